//! The handlers, each with a line at its begin and one at its end.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use waterwheel_durable::{Dead, Delivery, Durable, Failure, HandlerOptions, Retry};

use super::calls::{Calls, Wish, request_of};
use crate::protocol::{ChildOptions, How, Line};

/// `late` is registered when the child has run for a while.
pub(crate) const NAMES: [&str; 4] = ["plain", "fails", "slow", "late"];

/// Says how the attempt has ended, also if its future panics or is dropped.
pub(super) struct Attempt {
    calls: Arc<Calls>,
    id: u64,
    number: u32,
    how: How,
}

impl Attempt {
    pub(super) fn begin(calls: &Arc<Calls>, delivery: &Delivery) -> Attempt {
        let log = &calls.log;
        // First of all: this is the time that counts.
        let wall = log.wall();
        let due = delivery.due().duration_since(UNIX_EPOCH);
        let due = due.map_or(0, |since| since.as_micros());
        let id = delivery.id().get();
        let insert = request_of(delivery.payload()).unwrap_or_else(|| {
            log.wrong(format!("the payload of {id:x} was not inserted"));
            0
        });
        let key = delivery.key();
        log.say(&Line::Begin {
            at: log.at(),
            id,
            insert,
            attempt: delivery.attempt(),
            wall,
            due: i64::try_from(due).unwrap_or(i64::MAX),
            handler: delivery.handler().into(),
            key: key.map(|key| String::from_utf8_lossy(key).into_owned()),
        });
        Attempt {
            calls: Arc::clone(calls),
            id,
            number: delivery.attempt(),
            how: How::Dropped,
        }
    }

    pub(super) fn end(mut self, how: How) {
        self.how = how;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let log = &self.calls.log;
        log.say(&Line::End {
            thread: log.thread(),
            id: self.id,
            attempt: self.number,
            how: self.how,
            wall: log.wall(),
        });
    }
}

pub(super) fn add(
    timers: &Durable,
    calls: &Arc<Calls>,
    options: &ChildOptions,
    rng: &mut fastrand::Rng,
) {
    let (plain, has_callers) = (Arc::clone(calls), options.callers > 0);
    timers.handle("plain", move |delivery| {
        let calls = Arc::clone(&plain);
        async move {
            let attempt = Attempt::begin(&calls, &delivery);
            if has_callers && fastrand::u8(..) < 8 {
                let due = calls.log.wall() + fastrand::i64(0..2_000_000);
                let wish = Wish {
                    handler: "plain",
                    due,
                    key: None,
                };
                calls.insert(delivery.timers(), &wish).await;
            }
            attempt.end(How::Well);
            Ok(())
        }
    });

    let fails = Arc::clone(calls);
    timers.handle("fails", move |delivery| {
        let calls = Arc::clone(&fails);
        async move {
            let attempt = Attempt::begin(&calls, &delivery);
            let failed = match fastrand::u8(..100) {
                0..60 => {
                    attempt.end(How::Well);
                    return Ok(());
                }
                60..92 => Retry::backoff("by chance"),
                92..96 => {
                    attempt.end(How::Dead);
                    return Err(Dead::because("by chance"));
                }
                // Prints nothing.
                _ => std::panic::resume_unwind(Box::new("by chance")),
            };
            attempt.end(How::Failed);
            Err::<(), Failure>(failed)
        }
    });

    let slow = Arc::clone(calls);
    let options = HandlerOptions::default()
        .concurrency(16)
        .attempt_limit(Duration::from_millis(60));
    timers.handle_with("slow", options, move |delivery| {
        let calls = Arc::clone(&slow);
        async move {
            let attempt = Attempt::begin(&calls, &delivery);
            // Some beyond the limit.
            let millis = match fastrand::u8(..) {
                0..4 => 200,
                _ => fastrand::u64(1..15),
            };
            tokio::time::sleep(Duration::from_millis(millis)).await;
            attempt.end(How::Well);
            Ok(())
        }
    });

    let (late, owner) = (Arc::clone(calls), timers.clone());
    let delay = Duration::from_millis(rng.u64(..1_500));
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        owner.handle("late", move |delivery| {
            let attempt = Attempt::begin(&late, &delivery);
            async move {
                attempt.end(How::Well);
                Ok(())
            }
        });
    });
}
