//! Many tasks that insert, cancel, reschedule and redrive at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinHandle;
use waterwheel_durable::{Durable, Handle, Id};

use super::calls::{Calls, Wish};
use super::handlers::NAMES;
use super::{Orders, Stop};

/// The longest pause between two requests of a caller.
const PAUSE_MILLIS: u64 = 16;
/// How many timers a caller remembers.
const MEMORY: usize = 200;

const SECOND: i64 = 1_000_000;

struct Caller {
    timers: Durable,
    calls: Arc<Calls>,
    stop: Arc<Stop>,
    rng: Rng,
    own: Vec<Handle>,
    /// Timers that several callers know.
    common: Arc<Mutex<Vec<Handle>>>,
    /// To be redriven: each is one caller's.
    dead: Vec<Id>,
}

pub(super) fn start(
    timers: &Durable,
    calls: &Arc<Calls>,
    orders: &Orders,
    stop: &Arc<Stop>,
    alive: Vec<Handle>,
    mut dead: Vec<Id>,
) -> Vec<JoinHandle<()>> {
    let common = Arc::new(Mutex::new(alive));
    let share = dead.len().div_ceil(orders.callers.max(1));
    let callers = 0..orders.callers;
    callers
        .map(|number| {
            let caller = Caller {
                timers: timers.clone(),
                calls: Arc::clone(calls),
                stop: Arc::clone(stop),
                rng: Rng::with_seed(orders.seed ^ (number as u64 + 1) << 32),
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
        while !self.stop.is_set() {
            match self.rng.u8(..100) {
                0..44 => {
                    let wish = self.wish();
                    let inserted = self.calls.insert(&self.timers, &wish).await;
                    self.remember(inserted);
                }
                44..48 => {
                    let count = self.rng.usize(2..30);
                    let wishes: Vec<_> = (0..count).map(|_| self.wish()).collect();
                    let inserted = self.calls.insert_many(&self.timers, &wishes).await;
                    self.remember(inserted);
                }
                48..50 => self.insert_at_once().await,
                50..72 => {
                    if let Some(handle) = self.choose()
                        && self.calls.cancel(&self.timers, &handle).await
                    {
                        self.remember([handle]);
                    }
                }
                72..96 => {
                    if let Some(handle) = self.choose() {
                        let due = self.due();
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
            let pause = Duration::from_micros(self.rng.u64(..PAUSE_MILLIS * 1_000));
            tokio::time::sleep(pause).await;
        }
    }

    /// A key that many ask for at the same time.
    async fn insert_at_once(&mut self) {
        let mut wish = self.wish();
        wish.key = Some(format!("at-once-{}", self.rng.u16(..)));
        let inserts: Vec<_> = (0..20)
            .map(|_| {
                let (timers, calls) = (self.timers.clone(), Arc::clone(&self.calls));
                let wish = wish.clone();
                tokio::spawn(async move { calls.insert(&timers, &wish).await })
            })
            .collect();
        for insert in inserts {
            let inserted = insert.await.ok().flatten();
            self.own.extend(inserted);
        }
    }

    fn wish(&mut self) -> Wish {
        let is_keyed = self.rng.u8(..5) == 0;
        Wish {
            handler: self.rng.choice(NAMES).unwrap_or(NAMES[0]),
            due: self.due(),
            key: is_keyed.then(|| format!("key-{}", self.rng.u16(..400))),
        }
    }

    /// Most are due soon, and some in all levels of the store.
    fn due(&mut self) -> i64 {
        let rng = &mut self.rng;
        let delay = match rng.u8(..100) {
            0..5 => rng.i64(-SECOND..0),
            5..35 => rng.i64(0..300_000),
            35..65 => rng.i64(300_000..3 * SECOND),
            65..80 => rng.i64(3 * SECOND..90 * SECOND),
            80..90 => rng.i64(60 * SECOND..5_400 * SECOND),
            90..96 => rng.i64(3_600 * SECOND..36 * 3_600 * SECOND),
            _ => rng.i64(86_400 * SECOND..40 * 86_400 * SECOND),
        };
        self.calls.log.wall() + delay
    }

    fn remember(&mut self, handles: impl IntoIterator<Item = Handle>) {
        for handle in handles {
            if self.rng.u8(..10) == 0 {
                let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
                common.push(handle);
            } else if self.own.len() < MEMORY {
                self.own.push(handle);
            } else {
                let at = self.rng.usize(..MEMORY);
                self.own[at] = handle;
            }
        }
    }

    /// One of its timers, or one that others may have at the same time.
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
