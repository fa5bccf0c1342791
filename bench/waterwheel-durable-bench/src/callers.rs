//! Callers that each await their own call before the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use waterwheel_bench_kit::quantile;
use waterwheel_durable::Durable;

use crate::place::{Failure, Place, Played, Span};
use crate::sample::Sample;

/// The results of the callers.
pub(crate) struct Calls {
    /// How long each call took, in µs.
    pub(crate) micros: Vec<u32>,
}

impl Calls {
    pub(crate) fn len(&self) -> usize {
        self.micros.len()
    }

    pub(crate) fn note(mut self, sample: &mut Sample) {
        self.micros.sort_unstable();
        for (name, share) in [("call p50 µs", 0.5), ("call p99 µs", 0.99)] {
            sample.set(
                name,
                quantile(&self.micros, share).map_or(f64::NAN, f64::from),
            );
        }
    }
}

/// Measures the cost of these calls, apart from the disk's.
pub(crate) async fn measured(
    place: &Place,
    timers: &Durable,
    calls: impl Future<Output = Result<Calls, Failure>>,
) -> Played {
    let mut sample = Sample::default();
    let before = place.syncs()?;
    let span = Span::start(place, timers)?;
    let calls = calls.await?;
    span.end(timers, calls.len(), &mut sample)?;
    sample.set("syncs a second", f64::midpoint(before, place.syncs()?));
    calls.note(&mut sample);
    Ok(sample)
}

/// Lets this many tasks call until the time is over or `call` returns `None`. `call` gets the caller's number, and the number of the call within it.
pub(crate) async fn call<F, A>(callers: usize, time: Duration, call: F) -> Result<Calls, Failure>
where
    F: Fn(usize, usize) -> Option<A> + Send + Sync + 'static,
    A: Future<Output = Result<(), Failure>> + Send,
{
    let call = Arc::new(call);
    let end = Instant::now() + time;
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let call = Arc::clone(&call);
            tokio::spawn(async move {
                let mut micros = Vec::new();
                let mut start = Instant::now();
                while start < end
                    && let Some(called) = call(caller, micros.len())
                {
                    called.await?;
                    let now = Instant::now();
                    let taken = (now - start).as_micros();
                    micros.push(u32::try_from(taken).unwrap_or(u32::MAX));
                    start = now;
                }
                Ok::<_, Failure>(micros)
            })
        })
        .collect();
    let mut micros = Vec::new();
    for task in tasks {
        micros.append(&mut task.await??);
    }
    Ok(Calls { micros })
}
