//! Inserts of one timer each, all due after the same delay.

use std::time::Duration;

use waterwheel_durable::{Drain, Durable};

use crate::callers::call;
use crate::sample::Sample;
use crate::stage::{HANDLER, Played, Span, Stage, payload};

const DELAY: Duration = Duration::from_secs(30 * 60);

pub(crate) async fn play(stage: Stage, callers: usize) -> Played {
    let timers = stage.open(Durable::builder()).await?;
    timers.handle(HANDLER, |_| async { Ok(()) });
    let insert = |time: Duration| {
        let timers = timers.clone();
        call(callers, time, move |_, _| {
            let timers = timers.clone();
            Some(async move {
                let timer = timers.after(HANDLER, DELAY).bytes(payload());
                timer.insert().await?;
                Ok(())
            })
        })
    };
    insert(stage.pick(Duration::from_millis(300), Duration::from_millis(100))).await?;
    let mut sample = Sample::default();
    let before = stage.syncs()?;
    let span = Span::start(&timers);
    let calls = insert(stage.pick(Duration::from_secs(2), Duration::from_millis(300))).await?;
    span.end(&timers, calls.len(), &mut sample);
    sample.set("syncs a second", f64::midpoint(before, stage.syncs()?));
    calls.note(&mut sample);
    timers
        .shutdown(Drain::within(Duration::from_secs(10)))
        .await?;
    Ok(sample)
}
