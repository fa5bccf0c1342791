//! A service with namespaces and a calendar, under a steady load, and what goes wrong in its life.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use waterwheel_durable::{Calendar, Durable, Error, Namespace, Policy, Rate, Retry, Shift};

use super::calls::{Calls, Wish};
use super::handlers::Attempt;
use super::log::{Stop, in_words};
use super::moves::{HOUR, Mover};
use crate::protocol::{ChildOptions, How, Line, MEASURED, RETRY_DELAYS_MILLIS, SUSPENDED_HOURS};

/// Limited, and paused for a while. What was delivered is kept for a day.
const LIMITED: &str = "limited";
/// A quarter of its attempts fail. What was delivered is kept for a day.
const RETRYING: &str = "retrying";
/// Its timers have keys.
const KEYED: &str = "keyed";
/// Its handler hangs for a while.
const STUCK: &str = "stuck";
/// Each second.
const CALENDAR: &str = "tick";

/// Of a hundred timers, so many are of this handler.
const SHARES: [(&str, u8); 8] = [
    (MEASURED, 50),
    ("keyed/order", 15),
    ("retrying/notify", 12),
    ("limited/mail", 8),
    ("stuck/call", 8),
    ("slow", 3),
    ("fails", 2),
    ("late", 2),
];

const SECOND: i64 = 1_000_000;

/// Creates the namespaces, their handlers and the calendar, and lets things go wrong. Without callers, nothing goes wrong, and the calendar ends.
pub(super) async fn set_up(
    timers: &Durable,
    calls: &Arc<Calls>,
    options: &ChildOptions,
    shift: &Arc<Shift>,
    stop: &Arc<Stop>,
) -> Result<JoinHandle<()>, String> {
    let (hangs, is_hanging) = watch::channel(false);
    let limited = limited(options);
    create(timers, limited.clone()).await.map_err(in_words)?;
    handle(timers, calls, is_hanging);
    let namespace = timers.namespace(LIMITED).map_err(in_words)?;
    let faults = Faults {
        mover: Mover {
            timers: timers.clone(),
            calls: Arc::clone(calls),
            shift: Arc::clone(shift),
        },
        namespace,
        policy: limited,
        hangs,
    };
    // A process that was killed may have left it paused.
    faults.resume().await.map_err(in_words)?;
    let is_last = options.callers == 0;
    match is_last {
        true => drop(timers.remove_calendar(CALENDAR).await.map_err(in_words)?),
        false => {
            let each_second = Calendar::cron("* * * * * *");
            let declared = timers.calendar(CALENDAR, each_second);
            declared.await.map_err(in_words)?;
        }
    }
    let life = Duration::from_millis(options.soak);
    let stop = Arc::clone(stop);
    Ok(tokio::spawn(async move {
        if !is_last {
            faults.play(life, &stop).await;
        }
    }))
}

fn limited(options: &ChildOptions) -> Policy {
    let rate = Rate::per_second((options.rate / 8).max(20));
    Policy::default()
        .rate(rate)
        .concurrency(16)
        .priority(3)
        .retention(1)
}

async fn create(timers: &Durable, limited: Policy) -> Result<(), Error> {
    let retry_delays =
        RETRY_DELAYS_MILLIS.map(|millis| Duration::from_millis(millis.unsigned_abs()));
    let retrying = Policy::default().retry_delays(retry_delays).retention(1);
    for (name, policy) in [
        (LIMITED, limited),
        (RETRYING, retrying),
        (KEYED, Policy::default()),
        (STUCK, Policy::default().concurrency(32)),
    ] {
        let namespace = timers.create_namespace(name, policy.clone()).await?;
        namespace.set_policy(policy).await?;
    }
    Ok(())
}

fn handle(timers: &Durable, calls: &Arc<Calls>, is_hanging: watch::Receiver<bool>) {
    for name in ["limited/mail", "keyed/order"] {
        attempts(timers, calls, name, async || Ok(()));
    }
    attempts(
        timers,
        calls,
        "retrying/notify",
        async || match fastrand::u8(..4) {
            0 => Err("by chance"),
            _ => Ok(()),
        },
    );
    attempts(timers, calls, "stuck/call", move || {
        let mut is_hanging = is_hanging.clone();
        async move {
            // The end of the process is the end of it as well.
            let _ = is_hanging.wait_for(|is_hanging| !is_hanging).await;
            Ok(())
        }
    });
    let calls = Arc::clone(calls);
    timers.handle(CALENDAR, move |delivery| {
        let log = &calls.log;
        let time = delivery
            .occurrence()
            .map(|it| it.duration_since(UNIX_EPOCH));
        match time {
            Some(Ok(since)) => log.say(&Line::Occurred {
                at: log.at(),
                wall: log.wall(),
                time: i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            }),
            _ => log.wrong("a calendar's timer is no occurrence"),
        }
        async { Ok(()) }
    });
}

/// A handler with a line at the begin and one at the end of each attempt.
fn attempts<F, A>(timers: &Durable, calls: &Arc<Calls>, name: &str, attempt: F)
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Result<(), &'static str>> + Send + 'static,
{
    let calls = Arc::clone(calls);
    timers.handle(name, move |delivery| {
        let calls = Arc::clone(&calls);
        let attempted = attempt();
        async move {
            let attempt = Attempt::begin(&calls, &delivery);
            match attempted.await {
                Ok(()) => attempt.end(How::Well),
                Err(why) => {
                    attempt.end(How::Failed);
                    return Err(Retry::backoff(why));
                }
            }
            Ok(())
        }
    });
}

/// A timer of the handler whose lateness is measured is due after so long, at least. One that is due as it is inserted waits for its commit.
const AHEAD: i64 = SECOND / 10;

/// When a timer of this handler may be due, as near to `due` as it can be.
pub(super) fn ahead(handler: &str, due: i64, wall: i64) -> i64 {
    match handler {
        MEASURED => due.max(wall + AHEAD),
        _ => due,
    }
}

/// What a caller asks for: nearly all is due within half a minute.
pub(super) fn wish(rng: &mut Rng, wall: i64) -> Wish {
    let mut share = rng.u8(..100);
    let mut handler = SHARES[0].0;
    for (name, of) in SHARES {
        if share < of {
            handler = name;
            break;
        }
        share -= of;
    }
    let delay = match rng.u16(..1_000) {
        0..50 => rng.i64(-SECOND..0),
        50..400 => rng.i64(0..SECOND),
        400..800 => rng.i64(SECOND..6 * SECOND),
        800..998 => rng.i64(6 * SECOND..30 * SECOND),
        _ => rng.i64(60 * SECOND..3_600 * SECOND),
    };
    let key = (handler == "keyed/order").then(|| match rng.u8(..10) {
        0 => format!("order-{}", rng.u16(..400)),
        _ => format!("{:016x}", rng.u64(..)),
    });
    Wish {
        handler,
        due: ahead(handler, wall + delay, wall),
        key,
    }
}

struct Faults {
    mover: Mover,
    namespace: Namespace,
    policy: Policy,
    hangs: watch::Sender<bool>,
}

/// What goes wrong, and when, in thousandths of a life.
#[derive(Debug, Clone, Copy)]
enum Fault {
    ClockForward,
    ClockBack,
    Hangs,
    Answers,
    Pauses,
    Resumes,
    Suspended,
    OtherPolicy,
    Policy,
}

const PLAN: [(u32, Fault); 10] = [
    (100, Fault::ClockForward),
    (140, Fault::ClockBack),
    (240, Fault::Hangs),
    (320, Fault::Answers),
    (440, Fault::Pauses),
    (500, Fault::Resumes),
    // What is kept expires when the day after the next one begins.
    (600, Fault::Suspended),
    (640, Fault::Suspended),
    (740, Fault::OtherPolicy),
    (780, Fault::Policy),
];

impl Faults {
    async fn play(&self, life: Duration, stop: &Stop) {
        let start = tokio::time::Instant::now();
        for (part, fault) in PLAN {
            let at = start + life * part / 1_000;
            if tokio::time::timeout_at(at, stop.wait()).await.is_ok() {
                break;
            }
            if let Err(error) = self.begin(fault).await {
                let error = in_words(error);
                self.mover.calls.log.wrong(format!("{fault:?}: {error}"));
            }
        }
        self.hangs.send_replace(false);
    }

    async fn begin(&self, fault: Fault) -> Result<(), Error> {
        let log = &self.mover.calls.log;
        let say = |text: &str| {
            log.say(&Line::Fault {
                text: text.to_owned(),
            });
        };
        match fault {
            Fault::ClockForward => {
                say("the clock is set forward by an hour");
                self.mover.by(HOUR).await;
            }
            Fault::ClockBack => {
                say("the clock is set back by an hour");
                self.mover.by(-HOUR).await;
            }
            Fault::Hangs => {
                say("a handler hangs");
                self.hangs.send_replace(true);
            }
            Fault::Answers => {
                self.hangs.send_replace(false);
                say("it goes on");
            }
            Fault::Pauses => {
                say("a namespace is paused");
                self.namespace.pause().await?;
                log.say(&Line::Paused {
                    at: log.at(),
                    namespace: LIMITED.into(),
                });
            }
            Fault::Resumes => {
                self.resume().await?;
                say("it is resumed");
            }
            Fault::Suspended => {
                say("a suspension of 25 hours");
                self.mover.suspend((SUSPENDED_HOURS * HOUR).unsigned_abs());
            }
            Fault::OtherPolicy => {
                say("another policy");
                let policy = self.policy.clone().concurrency(2).retention(2);
                self.namespace.set_policy(policy).await?;
            }
            Fault::Policy => {
                say("the policy as before");
                self.namespace.set_policy(self.policy.clone()).await?;
            }
        }
        Ok(())
    }

    async fn resume(&self) -> Result<(), Error> {
        self.mover.calls.log.say(&Line::Resumes {
            namespace: LIMITED.into(),
        });
        self.namespace.resume().await
    }
}
