//! A service with namespaces and a calendar under a steady load, and the faults in its life.

use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use waterwheel_durable::{Calendar, Error, HandlerOptions, Namespace, Policy, Rate};

use super::handlers::{handle, patient};
use super::moves::{HOUR, Mover};
use crate::protocol::{ChildOptions, How, Line, MEASURED, NewTimer, SUSPENDED_HOURS, retry_delays};
use crate::report::in_words;

/// A namespace that is limited, and paused for a while. It keeps delivered timers for a day.
const LIMITED: &str = "limited";
/// A namespace a quarter of whose attempts fail. It keeps delivered timers for a day.
const RETRYING: &str = "retrying";
/// A namespace whose timers have keys.
const KEYED: &str = "keyed";
/// A namespace whose handler hangs for a while.
const STUCK: &str = "stuck";
/// A calendar with an occurrence each second.
const CALENDAR: &str = "tick";

/// The percentage of timers for each handler.
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

/// Creates the namespaces, their handlers and the calendar, and starts the faults. Without callers, there are no faults, and the calendar ends.
pub(super) async fn set_up(
    mover: Mover,
    options: &ChildOptions,
) -> Result<Option<JoinHandle<()>>, String> {
    let faults = begin(mover, options).await.map_err(in_words)?;
    let life = Duration::from_millis(options.soak);
    let is_last = options.callers == 0;
    Ok((!is_last).then(|| tokio::spawn(faults.play(life))))
}

async fn begin(mover: Mover, options: &ChildOptions) -> Result<Faults, Error> {
    let timers = &mover.timers;
    let limited = patient()
        .rate(Rate::per_second((options.rate / 8).max(20)))
        .concurrency(16)
        .priority(3)
        .retention(1);
    let retrying = patient().retry_delays(retry_delays()).retention(1);
    for (name, policy) in [
        (LIMITED, limited.clone()),
        (RETRYING, retrying),
        (KEYED, patient()),
        (STUCK, patient().concurrency(32)),
    ] {
        let namespace = timers.create_namespace(name, policy.clone()).await?;
        namespace.set_policy(policy).await?;
    }
    let (hangs, is_hanging) = watch::channel(false);
    add_handlers(&mover, is_hanging);
    match options.callers {
        0 => drop(timers.remove_calendar(CALENDAR).await?),
        _ => {
            let each_second = Calendar::cron("* * * * * *");
            timers.calendar(CALENDAR, each_second).await?;
        }
    }
    let faults = Faults {
        namespace: timers.namespace(LIMITED)?,
        mover,
        policy: limited,
        hangs,
    };
    // A process that was killed may have left the namespace paused.
    faults.resume().await?;
    Ok(faults)
}

fn add_handlers(Mover { timers, calls, .. }: &Mover, is_hanging: watch::Receiver<bool>) {
    let plain = HandlerOptions::default;
    for name in ["limited/mail", "keyed/order"] {
        handle(timers, calls, name, plain(), async |_, _| How::Well);
    }
    handle(
        timers,
        calls,
        "retrying/notify",
        plain(),
        async |_, _| match fastrand::u8(..4) {
            0 => How::Failed,
            _ => How::Well,
        },
    );
    handle(timers, calls, "stuck/call", plain(), move |_, _| {
        let mut is_hanging = is_hanging.clone();
        async move {
            // The end of the process ends the hang as well.
            let _ = is_hanging.wait_for(|is_hanging| !is_hanging).await;
            How::Well
        }
    });
    let calls = calls.clone();
    timers.handle(CALENDAR, move |delivery| {
        let log = &calls.log;
        let time = delivery.occurrence();
        match time.map(|it| it.duration_since(UNIX_EPOCH)) {
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

/// The minimum delay of a timer of the handler whose lateness is measured. A timer that is due as it is inserted waits for its commit.
const AHEAD: i64 = SECOND / 10;

/// The due time for a timer of this handler, as near to `due` as allowed.
pub(super) fn ahead(handler: &str, due: i64, wall: i64) -> i64 {
    match handler {
        MEASURED => due.max(wall + AHEAD),
        _ => due,
    }
}

/// A caller's next timer: nearly all are due within half a minute.
pub(super) fn new_timer(rng: &mut Rng, wall: i64) -> NewTimer {
    let mut share = rng.u8(..100);
    let chosen = SHARES.iter().find(|(_, of)| {
        let is_it = share < *of;
        share = share.saturating_sub(*of);
        is_it
    });
    let handler = chosen.map_or(MEASURED, |(name, _)| name);
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
    NewTimer {
        handler: handler.into(),
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

#[derive(Debug, Clone, Copy)]
enum Fault {
    Clock(i64),
    Hangs(bool),
    Paused(bool),
    Suspended,
    Policy(usize, u32),
}

/// The faults, and when they begin, in thousandths of a life.
const PLAN: [(u32, &str, Fault); 10] = [
    (100, "the clock goes forward by an hour", Fault::Clock(HOUR)),
    (140, "the clock goes back by an hour", Fault::Clock(-HOUR)),
    (240, "a handler hangs", Fault::Hangs(true)),
    (320, "it goes on", Fault::Hangs(false)),
    (440, "a namespace is paused", Fault::Paused(true)),
    (500, "it is resumed", Fault::Paused(false)),
    // Archived timers expire when the day after the next one begins.
    (600, "a suspension of 25 hours", Fault::Suspended),
    (640, "a suspension of 25 hours", Fault::Suspended),
    (740, "another policy", Fault::Policy(2, 2)),
    (780, "the policy as before", Fault::Policy(16, 1)),
];

impl Faults {
    async fn play(self, life: Duration) {
        let (start, log) = (Instant::now(), &self.mover.calls.log);
        for (part, text, fault) in PLAN {
            let at = start + life * part / 1_000;
            let mut stop = self.mover.stop.clone();
            if timeout_at(at, stop.wait_for(|is_set| *is_set))
                .await
                .is_ok()
            {
                break;
            }
            log.say(&Line::Fault { text: text.into() });
            if let Err(error) = self.begin(fault).await {
                log.wrong(format!("{text}: {}", in_words(error)));
            }
        }
        self.hangs.send_replace(false);
    }

    async fn begin(&self, fault: Fault) -> Result<(), Error> {
        let log = &self.mover.calls.log;
        match fault {
            Fault::Clock(by) => self.mover.by(by).await,
            Fault::Hangs(is_hanging) => drop(self.hangs.send_replace(is_hanging)),
            Fault::Paused(true) => {
                self.namespace.pause().await?;
                log.say(&Line::Paused {
                    at: log.at(),
                    namespace: LIMITED.into(),
                });
            }
            Fault::Paused(false) => self.resume().await?,
            Fault::Suspended => self.mover.suspend((SUSPENDED_HOURS * HOUR).unsigned_abs()),
            Fault::Policy(concurrency, days) => {
                let policy = self.policy.clone().concurrency(concurrency).retention(days);
                self.namespace.set_policy(policy).await?;
            }
        }
        Ok(())
    }

    async fn resume(&self) -> Result<(), Error> {
        let namespace = LIMITED.into();
        self.mover.calls.log.say(&Line::Resumes { namespace });
        self.namespace.resume().await
    }
}
