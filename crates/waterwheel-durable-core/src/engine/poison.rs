//! Which timers may be what ends the process, again and again?
//!
//! A run that ends in order notes its epoch in a setting, so the next run knows how many runs in a row before it have not. After two such ends, a run notes each
//! start of a timer that was overdue as the run began, before the handler is called. So nothing is written for a timer in a service that ends in order, or once
//! without order.
//!
//! What was noted before the last end in order is of no consequence. So a note has a count and its series: the epoch of the last run that had ended in order by then.
//! A note of another series counts for nothing. So it is with a copy that is restored, though its epochs say that many runs had no end in order.
//!
//! A timer that was started and has not ended is accused: it is what has ended that run, or it was with its handler beside what has. So the accused of a namespace
//! are tried one after another, and what has ended well by then is innocent. One that was started too often is given up before it is started once more.
//!
//! Namespaces do not wait for one another, but for a moment: trials do not begin together, so that what ends the process at once does so alone. What is with its
//! handler for longer than that may be accused for the fault of another, each time, and is given up with it.

use std::sync::Arc;

use crate::store::{Due, Id, Op, Row};
use foldhash::HashMap;

use super::planted::{self, Planted};
use super::{Engine, Now, Output};
use crate::policy::{NOTED_FROM, STARTS};

/// The setting: the epoch of the last run that ended in order, in decimal.
const CLEAN: &str = "clean";

/// So long an accused timer is tried as the only accused one of its namespace. What ends the process later may be tried beside others: a handler that hangs keeps none of
/// them waiting for ever.
const TRIAL_MICROS: u64 = 60_000_000;

/// So long it is tried as the only accused one of all.
const ALONE_MICROS: u64 = 1_000_000;

/// An accused timer that is with its handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    id: Id,
    /// When its handler was called, in microseconds since boot. `None` as long as its start is not noted.
    begun: Option<u64>,
}

impl Trial {
    fn alone_until(self) -> u64 {
        self.begun
            .map_or(u64::MAX, |begun| begun.saturating_add(ALONE_MICROS))
    }

    fn until(self) -> u64 {
        self.begun
            .map_or(u64::MAX, |begun| begun.saturating_add(TRIAL_MICROS))
    }
}

#[derive(Debug, Default)]
pub(super) struct Poison {
    /// The last run that ended in order.
    clean: u64,
    /// What was due by then may have been started by runs before.
    suspects_until: Option<Due>,
    /// A trial has ended, and what came of it is not written.
    rests: bool,
    /// Timers whose starts were noted by this run, and what was noted before. One that is given back starts again with that.
    noted_before: HashMap<Id, u64>,
    /// The end of this run was noted as clean.
    is_clean: bool,
}

impl Poison {
    /// Which series of runs this one belongs to. An epoch has 22 bits, as long as there are ids.
    fn series(&self) -> u64 {
        self.clean & 0x7fff_ffff
    }

    /// Whether any timer may be suspect.
    pub(super) fn is_watchful(&self) -> bool {
        self.suspects_until.is_some()
    }

    /// A timer has left, or has moved, with which the store forgets its starts.
    pub(super) fn forget(&mut self, id: Id) {
        self.noted_before.remove(&id);
    }

    /// The wall clock was set: what was due as the run began, by the clock as it is now, may have been started before as well.
    pub(super) fn clock_was_set(&mut self, now: Now, begun: u64) {
        let open = now.boot_micros.saturating_sub(begun);
        let began_at = Now {
            wall_micros: now.wall_micros.saturating_sub_unsigned(open),
            ..now
        };
        if let Some(until) = &mut self.suspects_until {
            *until = began_at.due().max(*until);
        }
    }
}

impl Engine {
    /// A setting that was found at the opening.
    pub(super) fn note_clean_end(&mut self, name: &str, value: &[u8]) {
        let text = || std::str::from_utf8(value).ok();
        if name == CLEAN {
            self.poison.clean = text().and_then(|it| it.parse().ok()).unwrap_or(0);
        }
    }

    /// All settings are known.
    pub(super) fn look_for_suspects(&mut self) {
        // A copy of a store has a later epoch than its runs: then there are suspects without need, which costs a commit each.
        let unclean = self
            .epoch
            .saturating_sub(self.poison.clean)
            .saturating_sub(1);
        if unclean >= u64::from(NOTED_FROM) {
            self.poison.suspects_until = Some(self.now.due());
        }
    }

    /// Nothing goes on any more, or it was given up in order: the last step.
    pub(super) fn mark_as_clean(&mut self) {
        let goes_on = self.loaded.running() > 0 && !self.is_abandoned;
        if self.is_stopping && !goes_on && !self.poison.is_clean && self.commits.is_empty() {
            self.poison.is_clean = true;
            let epoch = self.epoch.to_string().into_bytes();
            self.commits.push(Op::Set(CLEAN.into(), Some(epoch.into())));
        }
    }

    /// Whether an accused timer of a namespace may be tried.
    pub(super) fn may_try(&self, namespace: usize) -> bool {
        let now = self.now.boot_micros;
        let mut others = self.namespaces.iter().filter_map(|it| it.trial);
        let own = self.namespaces[namespace].trial;
        let is_over = own.is_none_or(|it| it.until() <= now);
        is_over && !self.poison.rests && others.all(|it| it.alone_until() <= now)
    }

    /// All namespaces are looked at.
    pub(super) fn goes_on_with_trials(&mut self) {
        self.poison.rests = false;
    }

    /// When the next accused timer may be tried though the last one has not ended, in microseconds since boot.
    pub(super) fn tries_at(&self) -> Option<u64> {
        let trials = self.namespaces.iter().filter_map(|it| it.trial);
        let trials = trials.filter(|it| it.begun.is_some());
        let times = trials.flat_map(|it| [it.alone_until(), it.until()]);
        times.filter(|at| *at > self.now.boot_micros).min()
    }

    /// The trial of an accused timer begins, or goes on to its handler.
    fn tries(&mut self, row: &Row, begun: Option<u64>) {
        let queue = self.queue(&row.handler);
        if self.is_accused(row) {
            let id = row.id;
            let namespace = self.queues[queue].namespace;
            self.namespaces[namespace].trial = Some(Trial { id, begun });
            if self.config.concurrency.is_none() {
                self.turn = namespace + 1;
            }
        }
    }

    /// Whether its start is to be noted.
    fn is_suspect(&self, row: &Row) -> bool {
        let is_overdue = self
            .poison
            .suspects_until
            .is_some_and(|until| row.due <= until);
        is_overdue && row.id.epoch() != Some(self.epoch)
    }

    /// Whether it was started by a run before that has noted it, and has not ended.
    pub(super) fn is_accused(&self, row: &Row) -> bool {
        self.starts_before(row) > 0 && self.is_suspect(row)
    }

    /// How often it was started by runs before that have noted it, since the last end in order.
    fn starts_before(&self, row: &Row) -> u32 {
        let before = self.poison.noted_before.get(&row.id);
        let (series, count) = split(before.copied().unwrap_or(row.starts));
        match series == self.poison.series() || planted::is(Planted::OldStartsCount) {
            true => count,
            false => 0,
        }
    }

    /// Whether a timer was started as often as its namespace bears: as often as that was noted, and at the ends before that, at which nothing was.
    pub(super) fn is_poison(&self, row: &Row, namespace: usize) -> bool {
        let limit = self.namespaces[namespace].policy.starts.unwrap_or(STARTS);
        self.is_accused(row) && self.starts_before(row) >= limit - NOTED_FROM
    }

    /// The delivery of a timer begins: its start is noted first, if it is suspect.
    pub(super) fn start(&mut self, mut row: Row) {
        if !self.poison.is_watchful() || !self.is_suspect(&row) {
            return self.hand_out(row);
        }
        self.tries(&row, None);
        // The store adds one, which stays within the lower half.
        let count = self.starts_before(&row).min(u32::MAX - 1);
        row.starts = self.poison.series() << 32 | u64::from(count);
        let queue = self.queue(&row.handler);
        self.namespaces[self.queues[queue].namespace].starts();
        self.commits.push(Op::Start(row));
    }

    /// The start of a timer was noted: it goes to its handler.
    pub(super) fn started(&mut self, row: &Row) {
        let queue = self.queue(&row.handler);
        let namespace = &mut self.namespaces[self.queues[queue].namespace];
        namespace.has_started();
        let is_closed = self.is_stopping || namespace.is_closed();
        let may_call = !is_closed && namespace.may_call(self.now.boot_micros);
        self.poison.noted_before.insert(row.id, row.starts);
        if !may_call || !self.now.is_past(row.due) {
            // Not any more: a pause, a stop, a slower rate, or a clock that was set back came with it.
            self.give_back(row.id);
            return;
        }
        self.tries(row, Some(self.now.boot_micros));
        let row = Row {
            starts: row.starts.saturating_add(1),
            ..row.clone()
        };
        self.hand_out(row);
    }

    /// A timer that ends the process is given up.
    pub(super) fn give_up(&mut self, row: &Row) {
        let error = format!(
            "the process ended {} times in a row while its handler was running or about to run",
            self.starts_before(row).saturating_add(NOTED_FROM)
        );
        if let Some((row, _)) = self.loaded.end(row.id) {
            let op = self.burial(row, Arc::from(error));
            self.commits.push(op);
        }
    }

    /// A timer whose handler was not called stays in the store, and is read again. Returns its handler queue, if it was with its handler.
    pub(super) fn give_back(&mut self, id: Id) -> Option<usize> {
        let (row, queue) = self.loaded.end(id)?;
        self.place_is_free(queue, &row);
        match planted::is(Planted::WithdrawnForgotten) {
            true => self.retire(id),
            false => self.restore(id),
        }
        Some(queue)
    }

    /// Timers whose starts are not noted yet do not start any more. A store that refuses that note holds nothing up.
    pub(super) fn give_back_starts(&mut self) {
        for row in self.commits.take_starts() {
            let queue = self.queue(&row.handler);
            self.namespaces[self.queues[queue].namespace].has_started();
            self.give_back(row.id);
        }
    }

    /// A delivery does not go on. If it was tried, the next accused one begins once what came of it is written.
    pub(super) fn place_is_free(&mut self, queue: usize, row: &Row) {
        let queue = &mut self.queues[queue];
        queue.running -= 1;
        let namespace = &mut self.namespaces[queue.namespace];
        namespace.running -= 1;
        if namespace.trial.take_if(|it| it.id == row.id).is_some() {
            // Until then, so that other namespaces have their turn.
            self.poison.rests = true;
        }
    }

    /// A timer goes to its handler.
    fn hand_out(&mut self, row: Row) {
        let queue = self.queue(&row.handler);
        let namespace = &mut self.namespaces[self.queues[queue].namespace];
        let at = self.now.boot_micros;
        namespace.calls(at);
        self.output
            .push_back(Output::Deliver(super::Delivery { row, at }));
    }
}

/// The series of a note, and how many starts.
fn split(starts: u64) -> (u64, u32) {
    let count = u32::try_from(starts & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (starts >> 32, count)
}
