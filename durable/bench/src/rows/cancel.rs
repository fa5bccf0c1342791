//! Cancels of timers that were inserted before, in random order.

use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable::{Cancelled, Drain, Durable, NewTimer};

use crate::callers::call;
use crate::random::Random;
use crate::sample::Sample;
use crate::stage::{HANDLER, Played, Span, Stage, payload};

const CALLERS: usize = 1_024;
const DELAY: Duration = Duration::from_secs(30 * 60);

pub(crate) async fn play(stage: Stage) -> Played {
    let count = stage.pick(300_000, 20_000);
    let timers = stage.open(Durable::builder()).await?;
    timers.handle(HANDLER, |_| async { Ok(()) });
    let batch = (0..count).map(|_| NewTimer::after(HANDLER, DELAY).bytes(payload()));
    let inserted = timers.insert_many(batch).await?;
    let mut handles: Vec<_> = inserted.iter().map(|it| it.handle().clone()).collect();
    Random(1).shuffle(&mut handles);
    let handles = Arc::new(handles);

    let mut sample = Sample::default();
    let before = stage.syncs()?;
    let span = Span::start(&timers);
    let cancel = {
        let timers = timers.clone();
        move |caller, number| {
            let at: usize = number * CALLERS + caller;
            let (timers, handles) = (timers.clone(), Arc::clone(&handles));
            (at < handles.len()).then(|| async move {
                match timers.cancel(&handles[at]).await? {
                    Cancelled::Done => Ok(()),
                    other => Err(format!("a timer that was pending: {other:?}").into()),
                }
            })
        }
    };
    let calls = call(CALLERS, Duration::from_secs(60), cancel).await?;
    span.end(&timers, calls.len(), &mut sample);
    sample.set("syncs a second", f64::midpoint(before, stage.syncs()?));
    calls.note(&mut sample);
    timers
        .shutdown(Drain::within(Duration::from_secs(10)))
        .await?;
    Ok(sample)
}
