//! The handlers. Each logs a line when an attempt starts and one when it ends.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use waterwheel_durable::{Dead, Delivery, Durable, HandlerOptions, Policy, Retry};

use super::calls::{Calls, request_of};
use crate::protocol::{Begin, ChildOptions, How, Line, NewTimer};

/// The names of the handlers. `late` is registered after the child has run for a while.
pub(crate) const NAMES: [&str; 4] = ["plain", "fails", "slow", "late"];

/// A policy for a process that is killed many times in a row: no timer becomes a dead letter because it was with its handler each time.
pub(super) fn patient() -> Policy {
    Policy::default().starts(u32::MAX)
}

/// Logs how the attempt has ended, also if its future panics or is dropped.
struct Attempt {
    calls: Arc<Calls>,
    id: u64,
    number: u32,
    how: How,
}

impl Attempt {
    fn begin(calls: &Arc<Calls>, delivery: &Delivery) -> Attempt {
        let log = &calls.log;
        // Read the clock first: this is the time that counts.
        let wall = log.wall();
        let due = delivery.due().duration_since(UNIX_EPOCH);
        let due = due.map_or(0, |since| since.as_micros());
        let id = delivery.id().get();
        let insert = request_of(delivery.payload()).unwrap_or_else(|| {
            log.wrong(format!("the payload of {id:x} was not inserted"));
            0
        });
        let key = delivery.key();
        log.say(&Line::Begin(Begin {
            at: log.at(),
            id,
            insert,
            attempt: delivery.attempt(),
            wall,
            due: i64::try_from(due).unwrap_or(i64::MAX),
            handler: delivery.handler().into(),
            key: key.map(|key| String::from_utf8_lossy(key).into_owned()),
        }));
        Attempt {
            calls: Arc::clone(calls),
            id,
            number: delivery.attempt(),
            how: How::Dropped,
        }
    }

    fn end(mut self, how: How) {
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

/// Registers a handler that logs a line at the start and one at the end of each attempt.
pub(super) fn handle<F, A>(
    timers: &Durable,
    calls: &Arc<Calls>,
    name: &str,
    options: HandlerOptions,
    work: F,
) where
    F: Fn(Arc<Calls>, Delivery) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = How> + Send,
{
    let calls = Arc::clone(calls);
    timers.handle_with(name, options, move |delivery| {
        let (calls, work) = (Arc::clone(&calls), work.clone());
        async move {
            let attempt = Attempt::begin(&calls, &delivery);
            let how = work(calls, delivery).await;
            if how == How::Dropped {
                // Unlike `panic!`, prints nothing.
                std::panic::resume_unwind(Box::new("by chance"));
            }
            attempt.end(how);
            match how {
                How::Well => Ok(()),
                How::Dead => Err(Dead::because("by chance")),
                How::Failed | How::Dropped => Err(Retry::backoff("by chance")),
            }
        }
    });
}

pub(super) fn add(
    timers: &Durable,
    calls: &Arc<Calls>,
    options: &ChildOptions,
    rng: &mut fastrand::Rng,
) {
    let has_callers = options.callers > 0;
    let plain = HandlerOptions::default;
    handle(
        timers,
        calls,
        "plain",
        plain(),
        move |calls, delivery| async move {
            if has_callers && fastrand::u8(..) < 8 {
                let new = NewTimer {
                    handler: "plain".into(),
                    due: calls.log.wall() + fastrand::i64(0..2_000_000),
                    key: None,
                };
                calls.insert(delivery.timers(), &new).await;
            }
            How::Well
        },
    );
    handle(
        timers,
        calls,
        "fails",
        plain(),
        async |_, _| match fastrand::u8(..100) {
            0..60 => How::Well,
            60..92 => How::Failed,
            92..96 => How::Dead,
            _ => How::Dropped,
        },
    );
    let limited = plain()
        .concurrency(16)
        .attempt_limit(Duration::from_millis(60));
    handle(timers, calls, "slow", limited, async |_, _| {
        // Some take longer than the limit.
        let millis = match fastrand::u8(..) {
            0..4 => 200,
            _ => fastrand::u64(1..15),
        };
        tokio::time::sleep(Duration::from_millis(millis)).await;
        How::Well
    });
    let (calls, timers) = (Arc::clone(calls), timers.clone());
    let delay = Duration::from_millis(rng.u64(..1_500));
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        handle(&timers, &calls, "late", plain(), async |_, _| How::Well);
    });
}
