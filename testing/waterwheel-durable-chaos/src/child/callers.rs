//! Many tasks that insert, cancel, reschedule and redrive at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use waterwheel_durable::{Durable, Handle, Id};

use super::calls::{Calls, Wish};
use super::handlers::NAMES;
use super::log::Stop;
use super::soak;
use crate::protocol::ChildOptions;

/// The longest pause between two requests of a caller.
const PAUSE_MILLIS: u64 = 16;
/// How many timers a caller remembers, and how many all of them have in common.
const MEMORY: usize = 200;
const COMMON: usize = 8_192;

const SECOND: i64 = 1_000_000;

/// What callers ask for, and how often each of them.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// As much as it can, of all kinds.
    Mixed,
    /// At this distance, for a service in its usual life.
    Steady(Duration),
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Insert,
    InsertMany,
    /// A key that many ask for at the same time.
    InsertAtOnce,
    Cancel,
    Reschedule,
    Redrive,
}

impl Load {
    fn of(options: &ChildOptions) -> Load {
        let callers = u32::try_from(options.callers).unwrap_or(u32::MAX);
        match options.rate {
            0 => Load::Mixed,
            rate => Load::Steady(Duration::from_secs(1) * callers / rate),
        }
    }

    fn request(self, rng: &mut Rng) -> Request {
        match (self, rng.u16(..1_000)) {
            (Load::Mixed, 0..440) | (Load::Steady(_), 0..700) => Request::Insert,
            (Load::Mixed, 440..480) | (Load::Steady(_), 700..710) => Request::InsertMany,
            (Load::Mixed, 480..500) | (Load::Steady(_), 710..712) => Request::InsertAtOnce,
            (Load::Mixed, 500..720) | (Load::Steady(_), 712..860) => Request::Cancel,
            (Load::Mixed, 720..960) | (Load::Steady(_), 860..990) => Request::Reschedule,
            _ => Request::Redrive,
        }
    }
}

struct Caller {
    load: Load,
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
    options: &ChildOptions,
    stop: &Arc<Stop>,
    alive: Vec<Handle>,
    mut dead: Vec<Id>,
) -> Vec<JoinHandle<()>> {
    let common = Arc::new(Mutex::new(alive));
    let share = dead.len().div_ceil(options.callers.max(1));
    let callers = 0..options.callers;
    callers
        .map(|number| {
            let caller = Caller {
                load: Load::of(options),
                timers: timers.clone(),
                calls: Arc::clone(calls),
                stop: Arc::clone(stop),
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
        while !self.stop.is_set() {
            let request = self.load.request(&mut self.rng);
            self.ask(request).await;
            next = match self.load {
                Load::Mixed => {
                    Instant::now() + Duration::from_micros(self.rng.u64(..PAUSE_MILLIS * 1_000))
                }
                // One that was held up makes nothing good.
                Load::Steady(pause) => (next + pause).max(Instant::now()),
            };
            tokio::time::sleep_until(next).await;
        }
    }

    async fn ask(&mut self, request: Request) {
        match request {
            Request::Insert => {
                let wish = self.wish();
                let inserted = self.calls.insert(&self.timers, &wish).await;
                self.remember(inserted);
            }
            Request::InsertMany => {
                let count = self.rng.usize(2..30);
                let wishes: Vec<_> = (0..count).map(|_| self.wish()).collect();
                let inserted = self.calls.insert_many(&self.timers, &wishes).await;
                self.remember(inserted);
            }
            Request::InsertAtOnce => self.insert_at_once().await,
            Request::Cancel => {
                if let Some(handle) = self.choose()
                    && self.calls.cancel(&self.timers, &handle).await
                {
                    self.remember([handle]);
                }
            }
            Request::Reschedule => {
                if let Some(handle) = self.choose() {
                    let due = self.wish().due;
                    let due = match self.load {
                        Load::Mixed => due,
                        Load::Steady(_) => soak::ahead(&handle.handler, due, self.calls.log.wall()),
                    };
                    if self.calls.reschedule(&self.timers, &handle, due).await {
                        self.remember([handle]);
                    }
                }
            }
            Request::Redrive => {
                if let Some(id) = self.dead.pop() {
                    self.calls.redrive(&self.timers, id).await;
                }
            }
        }
    }

    /// A key that many ask for at the same time.
    async fn insert_at_once(&mut self) {
        let mut wish = self.wish();
        if let Load::Steady(_) = self.load {
            // Where a key is free again as soon as its timer is settled.
            wish.handler = "keyed/order";
        }
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
        if let Load::Steady(_) = self.load {
            return soak::wish(&mut self.rng, self.calls.log.wall());
        }
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
