//! Inserts of one timer each, all due after the same delay.

use std::time::Duration;

use crate::callers::{call, measured};
use crate::place::{Place, Played, payload_of, shut_down};
use crate::policies::Policies;
use crate::process;

const DELAY: Duration = Duration::from_secs(30 * 60);

pub(crate) async fn play(
    place: Place,
    callers: usize,
    policies: Policies,
    payload: usize,
) -> Played {
    let timers = place.open(policies.builder()).await?;
    policies.set_up(&timers).await?;
    let handler = policies.handler();
    timers.handle(handler, |_| async { Ok(()) });
    let insert = |time: Duration| {
        let timers = timers.clone();
        call(callers, time, move |_, _| {
            let timers = timers.clone();
            Some(async move {
                let timer = timers.after(handler, DELAY).bytes(payload_of(payload));
                timer.insert().await?;
                Ok(())
            })
        })
    };
    insert(place.pick(Duration::from_millis(300), Duration::from_millis(100))).await?;
    let calls = insert(place.pick(Duration::from_secs(2), Duration::from_millis(300)));
    let mut sample = measured(&place, &timers, calls).await?;
    shut_down(&timers).await?;
    sample.set("peak memory", process::peak_memory());
    Ok(sample)
}
