//! The shards of a `Timer`. Its handles find them by thread and own them; its driver has a list of those in use.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};

use super::{Common, Shard};
use crate::driver::metrics::Metrics;
use crate::driver::snapshot::Look;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, OwnLine, thread_local};
use crate::wheel::Tick;

/// The shards by thread, a power of two of them. Each is made when a thread first uses it.
pub(in crate::driver) struct Shards(Arc<[OnceLock<Arc<Shard>>]>);

/// [`Shards`], for a shard to find the others. It does not own them.
pub(super) struct Siblings {
    shards: Weak<[OnceLock<Arc<Shard>>]>,
    /// The number of shards less one: the bits of a thread's number that name its position.
    mask: usize,
}

impl Shards {
    pub(in crate::driver) fn new(count: usize) -> Shards {
        debug_assert!(count.is_power_of_two());
        Shards((0..count).map(|_| OnceLock::new()).collect())
    }

    pub(in crate::driver) fn count(&self) -> usize {
        self.0.len()
    }

    /// The shard of the thread that asks.
    #[inline]
    pub(in crate::driver) fn of_this_thread(&self, common: &Common) -> &Arc<Shard> {
        let position = thread_number() & (self.0.len() - 1);
        match self.0[position].get() {
            Some(shard) => shard,
            None => self.make(position, common),
        }
    }

    #[cold]
    fn make(&self, position: usize, common: &Common) -> &Arc<Shard> {
        self.0[position].get_or_init(|| {
            let siblings = Siblings {
                shards: Arc::downgrade(&self.0),
                mask: self.0.len() - 1,
            };
            Shard::add(common, siblings, position)
        })
    }
}

impl Siblings {
    /// The position of a thread's shard, by the thread's number.
    #[inline]
    pub(super) fn position_of(&self, thread: usize) -> usize {
        thread & self.mask
    }

    /// `None` if the `Timer` has no handle any more.
    pub(super) fn shards(&self) -> Option<Shards> {
        self.shards.upgrade().map(Shards)
    }
}

/// The shards that are in use, by a handle or a future.
pub(in crate::driver) struct ShardList {
    listed: OwnLine<Mutex<Listed>>,
    /// The number of shards that were ever put on the list. Written with the list's lock held.
    made: OwnLine<AtomicU64>,
    /// The number of turns of the driver, including first turns taken for it.
    turns: OwnLine<AtomicU64>,
}

struct Listed {
    shards: Vec<Weak<Shard>>,
    /// The last handle is gone. After that, only a future that found the shards just before can add one, and it holds another.
    is_closed: bool,
}

impl ShardList {
    pub(in crate::driver) fn new() -> ShardList {
        ShardList {
            listed: OwnLine(Mutex::new(Listed {
                shards: Vec::new(),
                is_closed: false,
            })),
            made: OwnLine(AtomicU64::new(0)),
            turns: OwnLine(AtomicU64::new(0)),
        }
    }

    /// Puts a new shard on the list, before it is used.
    pub(super) fn add(&self, shard: &Arc<Shard>) {
        let mut listed = self.listed.lock();
        // Weak: a shard lives as long as a handle or a future uses it.
        listed.shards.push(Arc::downgrade(shard));
        // Sequentially consistent: it belongs to 1. of the proof in `wakeup`, and `made` to b.
        self.made.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of shards that were ever created. b. of the proof in `wakeup`: it pairs with `add`.
    pub(in crate::driver) fn made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// The shards that are in use.
    pub(in crate::driver) fn in_use(&self) -> Vec<Arc<Shard>> {
        let listed = self.listed.lock();
        listed.shards.iter().filter_map(Weak::upgrade).collect()
    }

    /// Puts the shards that are in use into `shards`, for a turn, which it counts. Returns how many there had ever been.
    pub(in crate::driver) fn list_for_turn(&self, shards: &mut Vec<Arc<Shard>>) -> u64 {
        self.count_turn();
        let listed = self.listed.lock();
        shards.extend(listed.shards.iter().filter_map(Weak::upgrade));
        self.made()
    }

    /// The last handle is gone. Returns whether the list is [over](ShardList::is_over).
    pub(in crate::driver) fn close(&self) -> bool {
        self.listed.lock().is_closed = true;
        self.is_over()
    }

    /// Whether the last handle is gone and no shard is in use, so that the driver may end. Then none will be added.
    pub(in crate::driver) fn is_over(&self) -> bool {
        let listed = self.listed.lock();
        listed.is_closed && listed.shards.iter().all(|shard| shard.strong_count() == 0)
    }

    pub(in crate::driver) fn count_turn(&self) {
        // Relaxed: a counter for metrics.
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// The sum of the counters of all shards.
    pub(in crate::driver) fn metrics(&self) -> Metrics {
        let mut metrics = Metrics {
            turns: self.turns.load(Ordering::Relaxed),
            ..Metrics::default()
        };
        for shard in self.in_use() {
            shard.add_to(&mut metrics);
        }
        metrics
    }

    /// The shards that are in use, one after the other, as seen from `now`, each with its number. A stopped shard is left out.
    pub(in crate::driver) fn look(&self, now: Tick) -> impl Iterator<Item = (usize, Look)> + use<> {
        let shards = self.in_use().into_iter();
        shards.filter_map(move |shard| shard.look(now))
    }
}

static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// From 1 up; zero if the thread has none yet. A lazy value would check at each use whether it has been made.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// A small number of this thread's own, by which it finds its shard. Threads are numbered in the order in which they first use a
/// timer, so a runtime's workers tend to use different shards.
#[inline]
pub(in crate::driver) fn thread_number() -> usize {
    // On some systems a thread that ends has no locals any more. Any shard will do.
    match NUMBER.try_with(Cell::get) {
        Ok(0) => assign(),
        Ok(number) => number,
        Err(_) => 1,
    }
}

#[cold]
fn assign() -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    set_thread_number(number);
    number
}

pub(in crate::driver) fn set_thread_number(number: usize) {
    NUMBER.with(|own| own.set(number));
}

#[cfg(test)]
mod thread_number_tests {
    use std::thread;

    use super::thread_number;

    #[test]
    fn each_thread_has_a_number_of_its_own_and_keeps_it() {
        let mine = thread_number();
        let others = thread::spawn(|| (thread_number(), thread_number()))
            .join()
            .unwrap();
        assert_eq!(others.0, others.1);
        assert_ne!(others.0, mine);
        assert_eq!(thread_number(), mine);
    }
}
