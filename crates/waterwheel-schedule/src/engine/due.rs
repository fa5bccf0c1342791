//! What is due and was not started yet.

use std::cmp::Reverse;
use std::sync::Arc;

use waterwheel::wheel::{Key, Tick, Verdict};

use super::concurrency_limit::Rank;
use super::entry::{Entry, Status};
use super::table::Table;

/// How many jobs are taken, or started, with the lock held.
pub(super) const BATCH: usize = 32;
/// How many batches are taken in one poll of the driver. Then others run.
pub(super) const BATCHES_PER_POLL: usize = 64;

/// Jobs that are due, by key: until one is started, it can be cancelled.
///
/// They are taken tick by tick, each tick as a whole, and sorted by deadline and submission.
#[derive(Default)]
pub(crate) struct Due {
    /// The next one last, once they are sorted.
    jobs: Vec<(Rank, Key)>,
    /// The tick that was taken in part.
    tick: Option<Tick>,
}

/// What [`Due::take`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Jobs to start: whole ticks.
    Some,
    /// Nothing is due.
    Nothing,
    /// There is more of a tick than one poll may take.
    Part,
}

impl Due {
    /// Whether there are jobs to start: whole ticks.
    pub(crate) fn is_ready(&self) -> bool {
        self.tick.is_none() && !self.jobs.is_empty()
    }

    /// Takes what is due, at least a tick of it.
    pub(crate) fn take(&mut self, table: &Table) -> Taken {
        let now = table.timer.tick_now();
        for _ in 0..BATCHES_PER_POLL {
            let mut state = table.state();
            let next = self.tick.or_else(|| state.wheel.next_expiration());
            let Some(tick) = next.filter(|&next| next <= now) else {
                // What is submitted next lies near the hand then.
                state.wheel.skip_to(now);
                drop(state);
                return self.sorted();
            };
            let jobs = &mut self.jobs;
            let judge = |key, _, entry: &mut Entry| {
                entry.status = Status::Due;
                jobs.push((entry.rank(), key));
                Verdict::Disarm
            };
            let progress = state.wheel.advance_in_order(tick, BATCH, judge, |_, _| {});
            self.tick = progress.backlog.then_some(tick);
            if self.tick.is_none() && self.jobs.len() >= BATCH {
                drop(state);
                return self.sorted();
            }
        }
        match self.is_ready() {
            true => self.sorted(),
            // It was cascading all the time, or this is a part of a tick.
            false => Taken::Part,
        }
    }

    fn sorted(&mut self) -> Taken {
        if self.jobs.is_empty() {
            // Give the memory of a large batch back.
            self.jobs.shrink_to(BATCH * BATCHES_PER_POLL);
            return Taken::Nothing;
        }
        self.jobs.sort_unstable_by_key(|&(rank, _)| Reverse(rank));
        Taken::Some
    }

    /// Starts a batch. It ends early with a job whose calendar was searched, or that leaves something to do without the lock.
    pub(crate) fn start(&mut self, table: &Arc<Table>) {
        let mut starts = Vec::with_capacity(self.jobs.len().min(BATCH));
        let mut deferred = None;
        let mut state = table.state();
        for _ in 0..BATCH {
            let Some((_, key)) = self.jobs.pop() else {
                break;
            };
            // It may have been cancelled, paused or moved since.
            let entry = state.wheel.get(key);
            if !entry.is_some_and(|entry| entry.status == Status::Due) {
                continue;
            }
            let check = table.check_wall_clock(&mut state, key);
            if check.is_due {
                state.admit(key, &mut starts);
            }
            deferred = check.deferred;
            if deferred.is_some() {
                break;
            }
        }
        drop(state);
        table.start_batch(starts);
        if let Some(deferred) = deferred {
            deferred.finish(table);
        }
    }
}
