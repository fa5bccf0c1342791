//! Cancels of timers that were inserted earlier, in random order.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable::{Cancelled, Durable, Handle, NewTimer};

use super::pending::take_handles;
use crate::callers::{call, measured};
use crate::place::{HANDLER, Place, Played, payload, shut_down};

const CALLERS: usize = 1_024;
const DELAY: Duration = Duration::from_secs(30 * 60);

/// Cancels timers that were inserted just before, with the same delay.
pub(crate) async fn recent(place: Place) -> Played {
    let count = place.pick(300_000, 20_000);
    let timers = place.open(Durable::builder()).await?;
    let batch = (0..count).map(|_| NewTimer::after(HANDLER, DELAY).bytes(payload()));
    let inserted = timers.insert_many(batch).await?;
    let mut handles: Vec<_> = inserted.iter().map(|it| it.handle().clone()).collect();
    Rng::with_seed(1).shuffle(&mut handles);
    play(place, timers, handles).await
}

/// Cancels some of the millions of pending timers, which lie all over the file.
pub(crate) async fn pending(place: Place) -> Played {
    let handles = take_handles(&place, place.pick(40_000, 4_000))?;
    let timers = place.open(Durable::builder()).await?;
    play(place, timers, handles).await
}

async fn play(place: Place, timers: Durable, handles: Vec<Handle>) -> Played {
    let handles = Arc::new(handles);
    let cancel = {
        let timers = timers.clone();
        move |caller, number| {
            let at: usize = number * CALLERS + caller;
            let (timers, handles) = (timers.clone(), Arc::clone(&handles));
            (at < handles.len()).then_some(async move {
                match timers.cancel(&handles[at]).await? {
                    Cancelled::Done => Ok(()),
                    other => Err(format!("a timer that was pending: {other:?}").into()),
                }
            })
        }
    };
    let calls = call(CALLERS, Duration::from_secs(60), cancel);
    let sample = measured(&place, &timers, calls).await?;
    shut_down(&timers).await?;
    Ok(sample)
}
