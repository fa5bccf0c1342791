//! Many tasks that insert, cancel, reschedule and redrive concurrently.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use waterwheel_durable::{Durable, Handle, Id};
use waterwheel_durable_core::store::Due;

use super::calls::Calls;
use super::handlers::NAMES;
use super::soak;
use crate::protocol::{ChildOptions, Known, NewTimer};

/// The longest pause between two requests of a caller.
const PAUSE_MILLIS: u64 = 16;
/// The number of timers that a caller remembers, and the number that all callers share.
const MEMORY: usize = 200;
const COMMON: usize = 8_192;

const SECOND: i64 = 1_000_000;

/// The requests of callers, and the weight of each.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// Requests of all kinds, as fast as possible.
    Mixed,
    /// Requests at this interval, as in the ordinary life of a service.
    Steady(Duration),
}

struct Caller {
    load: Load,
    timers: Durable,
    calls: Arc<Calls>,
    stop: watch::Receiver<bool>,
    rng: Rng,
    own: Vec<Handle>,
    /// Timers that all callers know.
    common: Arc<Mutex<Vec<Handle>>>,
    /// Dead letters to redrive: each belongs to one caller.
    dead: Vec<u64>,
}

pub(super) fn start(
    timers: &Durable,
    calls: &Arc<Calls>,
    options: &ChildOptions,
    stop: &watch::Receiver<bool>,
    Known { alive, mut dead }: Known,
) -> Vec<JoinHandle<()>> {
    let alive = alive.into_iter().map(|it| Handle {
        id: Id::from_stored(it.id),
        due: Due::from_millis(it.due),
        handler: it.handler.into(),
    });
    let common = Arc::new(Mutex::new(alive.collect()));
    let share = dead.len().div_ceil(options.callers.max(1));
    let number_of = u32::try_from(options.callers).unwrap_or(u32::MAX);
    let load = match options.rate {
        0 => Load::Mixed,
        rate => Load::Steady(Duration::from_secs(1) * number_of / rate),
    };
    let callers = 0..options.callers;
    callers
        .map(|number| {
            let caller = Caller {
                load,
                timers: timers.clone(),
                calls: Arc::clone(calls),
                stop: stop.clone(),
                rng: Rng::with_seed(options.seed ^ (number as u64 + 1) << 32),
                own: Vec::new(),
                common: Arc::clone(&common),
                dead: dead.split_off(dead.len().saturating_sub(share)),
            };
            tokio::spawn(caller.live())
        })
        .collect()
}

impl Caller {
    async fn live(mut self) {
        let mut next = Instant::now();
        while !*self.stop.borrow() {
            self.ask().await;
            next = match self.load {
                Load::Mixed => {
                    Instant::now() + Duration::from_micros(self.rng.u64(..PAUSE_MILLIS * 1_000))
                }
                // A caller that was delayed does not catch up.
                Load::Steady(pause) => (next + pause).max(Instant::now()),
            };
            tokio::time::sleep_until(next).await;
        }
    }

    async fn ask(&mut self) {
        match (self.load, self.rng.u16(..1_000)) {
            (Load::Mixed, 0..440) | (Load::Steady(_), 0..700) => {
                let new = self.new_timer();
                let inserted = self.calls.insert(&self.timers, &new).await;
                self.remember(inserted);
            }
            (Load::Mixed, 440..480) | (Load::Steady(_), 700..710) => {
                let count = self.rng.usize(2..30);
                let all = (0..count).map(|_| self.new_timer()).collect();
                let inserted = self.calls.insert_many(&self.timers, all).await;
                self.remember(inserted);
            }
            (Load::Mixed, 480..500) | (Load::Steady(_), 710..712) => self.insert_at_once().await,
            (Load::Mixed, 500..720) | (Load::Steady(_), 712..860) => {
                if let Some(handle) = self.choose()
                    && self.calls.cancel(&self.timers, &handle).await
                {
                    self.remember([handle]);
                }
            }
            (Load::Mixed, 720..960) | (Load::Steady(_), 860..990) => {
                if let Some(handle) = self.choose() {
                    let mut due = self.new_timer().due;
                    if let Load::Steady(_) = self.load {
                        due = soak::ahead(&handle.handler, due, self.calls.log.wall());
                    }
                    if self.calls.reschedule(&self.timers, &handle, due).await {
                        self.remember([handle]);
                    }
                }
            }
            _ => {
                if let Some(id) = self.dead.pop() {
                    self.calls.redrive(&self.timers, id).await;
                }
            }
        }
    }

    /// Inserts timers with a key that many ask for at the same time.
    async fn insert_at_once(&mut self) {
        let mut new = self.new_timer();
        if let Load::Steady(_) = self.load {
            // This namespace frees a key as soon as its timer is settled.
            new.handler = "keyed/order".into();
        }
        new.key = Some(format!("at-once-{}", self.rng.u16(..)));
        let inserts: Vec<_> = (0..20)
            .map(|_| {
                let (timers, calls) = (self.timers.clone(), Arc::clone(&self.calls));
                let new = new.clone();
                tokio::spawn(async move { calls.insert(&timers, &new).await })
            })
            .collect();
        for insert in inserts {
            self.own.extend(insert.await.ok().flatten());
        }
    }

    fn new_timer(&mut self) -> NewTimer {
        let (rng, now) = (&mut self.rng, self.calls.log.wall());
        if let Load::Steady(_) = self.load {
            return soak::new_timer(rng, now);
        }
        let is_keyed = rng.u8(..5) == 0;
        let handler = rng.choice(NAMES).unwrap_or(NAMES[0]).into();
        // Most are due soon, and some reach every level of the store.
        let delay = match rng.u8(..100) {
            0..5 => rng.i64(-SECOND..0),
            5..35 => rng.i64(0..300_000),
            35..65 => rng.i64(300_000..3 * SECOND),
            65..80 => rng.i64(3 * SECOND..90 * SECOND),
            80..90 => rng.i64(60 * SECOND..5_400 * SECOND),
            90..96 => rng.i64(3_600 * SECOND..36 * 3_600 * SECOND),
            _ => rng.i64(86_400 * SECOND..40 * 86_400 * SECOND),
        };
        NewTimer {
            handler,
            due: now + delay,
            key: is_keyed.then(|| format!("key-{}", rng.u16(..400))),
        }
    }

    fn remember(&mut self, handles: impl IntoIterator<Item = Handle>) {
        for handle in handles {
            if self.rng.u8(..10) == 0 {
                let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
                match common.len() {
                    0..COMMON => common.push(handle),
                    _ => common[self.rng.usize(..COMMON)] = handle,
                }
            } else if self.own.len() < MEMORY {
                self.own.push(handle);
            } else {
                let at = self.rng.usize(..MEMORY);
                self.own[at] = handle;
            }
        }
    }

    /// Chooses one of its timers, or one that others may choose at the same time.
    fn choose(&mut self) -> Option<Handle> {
        if self.rng.u8(..5) == 0 {
            let common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
            return self.rng.choice(common.iter()).cloned();
        }
        match self.own.len() {
            0 => None,
            length => Some(self.own.swap_remove(self.rng.usize(..length))),
        }
    }
}
