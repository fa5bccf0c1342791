//! The timers in memory: which ones they are, what each waits for, and which have left while rows were being loaded.

use std::collections::VecDeque;

use crate::store::{Due, Id, Row};
use foldhash::{HashMap, HashMapExt as _};
use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

use super::clocks::{Now, Ticks};
use super::planted::{self, Planted};

/// The maximum number of timers taken from the wheel in a turn.
const BATCH: usize = 4_096;

/// The approximate memory of a row apart from its key and its payload: its places in the tables, and the allocator's overhead.
pub const ROW_BYTES: usize = 256;

/// The share of the memory budget that a timer takes until it is known to have left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) queue: usize,
    pub(super) bytes: usize,
    pub(super) second: i64,
}

/// The state of a known timer.
#[derive(Debug)]
enum Known {
    /// In memory, for this handler queue.
    Held(Row, usize, Awaits),
    /// Waiting for the answer to a commit.
    Leaving(Leaving),
}

/// The event that a timer in memory waits for.
#[derive(Debug)]
enum Awaits {
    /// Its time, in the wheel, or its turn in the queue of its handler. The key identifies its entry there.
    Turn(Key),
    /// The end of its delivery.
    End,
    /// The end of its delivery in another process.
    RemoteEnd,
}

/// A timer whose delivery has ended.
pub(super) struct Delivered {
    pub(super) row: Row,
    /// The queue of its handler.
    pub(super) queue: usize,
    /// Whether its handler was running in another process.
    pub(super) is_remote: bool,
}

/// A timer that a commit takes away or moves.
#[derive(Debug)]
pub(super) struct Leaving {
    why: Leaves,
    /// `None` if it was not in memory, and is only recorded so that no load takes it.
    pub(super) share: Option<Share>,
    /// The handler queue and second of its row, if a load or a write left it out: read again from there if the commit comes to nothing.
    pub(super) left_out: Option<(usize, i64)>,
}

/// Why a timer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// The timer was delivered for the last time.
    Delivered,
    /// The timer is cancelled, or comes back with another due time.
    Moved,
}

/// Whether a timer can be moved.
pub(super) enum Free {
    /// The timer was taken out of memory.
    Taken,
    /// The timer is with its handler.
    WithHandler,
    /// Another commit is moving the timer.
    Moving,
}

/// A wheel entry.
#[derive(Debug, Clone, Copy)]
struct Filed {
    id: Id,
    due: Due,
    queue: usize,
}

/// A timer that came up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Up {
    id: Id,
    pub(super) due: Due,
    key: Key,
}

#[derive(Debug)]
pub(super) struct Loaded {
    wheel: Wheel<Filed>,
    ticks: Ticks,
    /// Uses a fast, randomly seeded hash: the id of a forged handle is in here only until its commit is answered.
    known: HashMap<Id, Known>,
    pub(super) tombstones: Tombstones,
    running: usize,
    has_backlog: bool,
}

impl Loaded {
    pub(super) fn new(now: Now) -> Loaded {
        let tick = Tick::new(now.boot_micros / 1_000);
        Loaded {
            wheel: Wheel::starting_at(Resolution::MILLISECOND, tick),
            ticks: Ticks::from(now, tick),
            known: HashMap::new(),
            tombstones: Tombstones::default(),
            running: 0,
            has_backlog: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The number of timers in the wheel.
    pub(super) fn filed(&self) -> usize {
        self.wheel.len()
    }

    /// The number of timers whose handlers are running in this process.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Whether the last turn of the wheel left due timers in it.
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// When the wheel has to be turned next, in microseconds since boot.
    pub(super) fn next(&self, now: Now) -> Option<u64> {
        // Or to bring up what was overdue when it came into memory. The wall clock may be slightly behind the wheel.
        if self.has_backlog || self.wheel.has_backlog() {
            return Some(now.boot_micros);
        }
        let next = self.wheel.next_expiration()?;
        Some(self.ticks.boot_at(next, now))
    }

    /// Puts a timer into the wheel, whatever is known about it.
    pub(super) fn hold(&mut self, row: Row, queue: usize) -> Share {
        let share = share(&row, queue);
        let key = self
            .wheel
            .insert(self.ticks.of(row.due), Filed::new(&row, queue));
        self.known
            .insert(row.id, Known::Held(row, queue, Awaits::Turn(key)));
        share
    }

    /// Adds a timer whose handler is running in another process.
    pub(super) fn hold_remote(&mut self, row: Row, queue: usize) -> Share {
        let share = share(&row, queue);
        let id = row.id;
        let known = Known::Held(row, queue, Awaits::RemoteEnd);
        self.known.insert(id, known);
        share
    }

    /// The ids of the timers whose handlers are running in this process, in order.
    pub(super) fn with_handlers(&self) -> Vec<Id> {
        let held = self.known.iter();
        let running = held.filter(|(_, known)| matches!(known, Known::Held(.., Awaits::End)));
        let mut ids: Vec<Id> = running.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Evicts timers that are not with their handlers, chosen by handler queue and second.
    pub(super) fn evict(&mut self, leaves: impl Fn(usize, i64) -> bool) -> Vec<Share> {
        let wheel = &mut self.wheel;
        let left = self.known.extract_if(|_, known| {
            let Known::Held(row, queue, Awaits::Turn(key)) = known else {
                return false;
            };
            let leaves = leaves(*queue, row.due.second());
            if leaves && !planted::is(Planted::WheelEntriesLeft) {
                // If it has come up, the queue of its handler skips it.
                wheel.cancel(*key);
            }
            leaves
        });
        let shares = left.filter_map(|(_, known)| match known {
            Known::Held(row, queue, _) => Some(share(&row, queue)),
            Known::Leaving(_) => None,
        });
        shares.collect()
    }

    /// Takes a timer out of memory, for a commit that moves it.
    pub(super) fn free(&mut self, id: Id) -> Free {
        let share = match self.known.get(&id) {
            Some(Known::Held(row, queue, Awaits::Turn(key))) => {
                let was_filed = self.wheel.cancel(*key).is_some();
                let is_counted = !was_filed && planted::is(Planted::ReadyCountedForEver);
                (!is_counted).then(|| share(row, *queue))
            }
            Some(Known::Leaving(leaving)) if leaving.why == Leaves::Moved => return Free::Moving,
            Some(_) => return Free::WithHandler,
            None => None,
        };
        // Also recorded if it is not in memory, so that no load takes it meanwhile.
        let leaving = Leaving::new(Leaves::Moved, share);
        self.known.insert(id, Known::Leaving(leaving));
        Free::Taken
    }

    /// Ends the last delivery of a timer.
    pub(super) fn end(&mut self, id: Id) -> Option<Delivered> {
        let known = self.known.get_mut(&id)?;
        let Known::Held(row, queue, Awaits::End | Awaits::RemoteEnd) = known else {
            return None;
        };
        let leaving = Leaving::new(Leaves::Delivered, Some(share(row, *queue)));
        let Known::Held(row, queue, awaits) = std::mem::replace(known, Known::Leaving(leaving))
        else {
            return None;
        };
        let is_remote = matches!(awaits, Awaits::RemoteEnd);
        self.running -= usize::from(!is_remote);
        Some(Delivered {
            row,
            queue,
            is_remote,
        })
    }

    /// The queue of a timer whose handler is running in another process.
    pub(super) fn remote_queue(&self, id: Id) -> Option<usize> {
        match self.known.get(&id)? {
            Known::Held(_, queue, Awaits::RemoteEnd) => Some(*queue),
            _ => None,
        }
    }

    /// Marks a leaving timer as coming back: requests for it wait until then.
    pub(super) fn comes_back(&mut self, id: Id) {
        if let Some(Known::Leaving(leaving)) = self.known.get_mut(&id) {
            leaving.why = Leaves::Moved;
        }
    }

    /// Forgets a timer that has left. Returns its share of the memory.
    pub(super) fn forget(&mut self, id: Id, loading: Option<u64>) -> Option<Share> {
        if let Some(last) = loading {
            self.tombstones.add(id, last);
        }
        self.restore(id)?.share
    }

    /// Undoes the leaving of a timer: its row, if it has one, is where it was.
    pub(super) fn restore(&mut self, id: Id) -> Option<Leaving> {
        match self.known.remove(&id)? {
            Known::Leaving(leaving) => Some(leaving),
            // Taken again while it was leaving, which only happens with a planted fault.
            Known::Held(row, queue, _) => {
                Some(Leaving::new(Leaves::Moved, Some(share(&row, queue))))
            }
        }
    }

    /// Whether a row that was found may be taken: the timer is not known, and did not leave after this load was requested.
    pub(super) fn is_new(&mut self, row: &Row, queue: usize, load: Option<u64>) -> bool {
        match self.known.get_mut(&row.id) {
            Some(Known::Leaving(leaving)) => {
                leaving.left_out = Some((queue, row.due.second()));
                false
            }
            Some(_) => false,
            None => load.is_none_or(|load| !self.tombstones.covers(row.id, load)),
        }
    }

    /// Marks a timer that came up as running, unless it has left. If the wall clock was set back meanwhile, it returns to the wheel.
    pub(super) fn run(&mut self, up: &Up, now: Now) -> Option<Row> {
        let Known::Held(row, queue, awaits) = self.known.get_mut(&up.id)? else {
            return None;
        };
        match awaits {
            Awaits::Turn(key) if *key != up.key => None,
            Awaits::End | Awaits::RemoteEnd => None,
            Awaits::Turn(_) if now.is_past(row.due) => {
                *awaits = Awaits::End;
                self.running += 1;
                Some(row.clone())
            }
            Awaits::Turn(key) => {
                *key = self
                    .wheel
                    .insert(self.ticks.of(row.due), Filed::new(row, *queue));
                None
            }
        }
    }

    /// The row of a timer that came up, if it still waits for its handler.
    pub(super) fn waiting(&self, up: &Up) -> Option<&Row> {
        match self.known.get(&up.id) {
            Some(Known::Held(row, _, Awaits::Turn(key))) if *key == up.key => Some(row),
            _ => None,
        }
    }

    /// Takes due timers out of the wheel. A timer whose time the wall clock does not show yet is filed again.
    pub(super) fn expire(&mut self, now: Now, mut each: impl FnMut(usize, Up)) {
        let ticks = self.ticks;
        let tick = ticks.at(now).max(self.wheel.now());
        let progress = self.wheel.advance_in_order(
            tick,
            BATCH,
            |key, _, filed| match now.is_past(filed.due) {
                true => {
                    let Filed { id, due, queue } = filed;
                    each(
                        *queue,
                        Up {
                            id: *id,
                            due: *due,
                            key,
                        },
                    );
                    Verdict::Due
                }
                false => {
                    let later = ticks.of(filed.due);
                    Verdict::Postpone(later.max(Tick::new(tick.get() + 1)))
                }
            },
            |_, _| {},
        );
        self.has_backlog = progress.backlog;
    }

    /// Files the timers again, because the clocks have moved against each other.
    pub(super) fn file_again(&mut self, now: Now) {
        self.ticks = Ticks::from(now, self.wheel.now());
        let mut filed: Vec<_> = self
            .wheel
            .iter()
            .map(|(key, _, of)| (of.due, of.id, key))
            .collect();
        // Timers of one tick come up in the order in which they were filed.
        filed.sort_unstable_by_key(|(due, id, _)| (*due, *id));
        for (due, _, key) in filed {
            self.wheel.reset(key, self.ticks.of(due));
        }
    }
}

impl Leaving {
    fn new(why: Leaves, share: Option<Share>) -> Leaving {
        Leaving {
            why,
            share,
            left_out: None,
        }
    }
}

impl Filed {
    fn new(row: &Row, queue: usize) -> Filed {
        Filed {
            id: row.id,
            due: row.due,
            queue,
        }
    }
}

fn share(row: &Row, queue: usize) -> Share {
    Share {
        queue,
        bytes: ROW_BYTES + row.bytes(),
        second: row.due.second(),
    }
}

/// Tombstones of timers that have left. A load requested before a timer left may have read its row, and must not bring it back.
#[derive(Debug)]
pub(super) struct Tombstones {
    /// The last request sent before each timer left.
    last: HashMap<Id, u64>,
    /// The tombstones, in the order of the requests.
    order: VecDeque<(u64, Id)>,
}

impl Default for Tombstones {
    fn default() -> Tombstones {
        Tombstones {
            last: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl Tombstones {
    /// Adds a tombstone for a timer that has left. `last` is the last request sent by then.
    pub(super) fn add(&mut self, id: Id, last: u64) {
        self.last.insert(id, last);
        self.order.push_back((last, id));
    }

    /// Returns whether this load may have read the row before the timer left.
    pub(super) fn covers(&self, id: Id, load: u64) -> bool {
        self.last.get(&id).is_some_and(|last| load <= *last)
    }

    /// Removes the tombstones that no load in flight needs. `oldest` is the first of those loads.
    pub(super) fn prune(&mut self, oldest: Option<u64>) {
        let oldest = oldest.unwrap_or(u64::MAX);
        while let Some((last, id)) = self.order.front()
            && *last < oldest
        {
            if self.last.get(id) == Some(last) {
                self.last.remove(id);
            }
            self.order.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.last.len().max(self.order.len())
    }
}
