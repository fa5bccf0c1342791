//! Finds timers that may repeatedly end the process (poison timers).
//!
//! A run that ends cleanly notes its epoch in a setting, so the next run knows how many consecutive runs before it have not. After two such ends, a run notes each
//! start of a timer that was overdue when the run began, before the handler is called. A run that has handed the store over ended cleanly, whatever its last handlers do. So nothing is written for a service that ends cleanly, or that has ended only
//! once without doing so.
//!
//! Notes from before the last clean end do not count. So a note consists of a count and its series, the epoch of the last run that had ended cleanly by then,
//! and a note of another series counts as nothing. The same holds for a restored copy, although its epochs suggest that many runs did not end cleanly.
//!
//! A timer that was started and has not ended is accused: either it ended that run, or it was with its handler alongside one that did. So the accused timers of a
//! namespace are tried one after another, and those that end well are innocent. A timer that was started too often is given up before it is started once more.
//!
//! Namespaces wait for each other only briefly: trials do not begin together, so a timer that ends the process at once does so alone. A timer that is with its
//! handler for longer than that may be accused repeatedly for the fault of another, and given up with it.

use crate::store::{Due, Id, Op, Row, Setting};
use foldhash::{HashMap, HashMapExt as _};

use super::clocks::Now;
use super::planted::{self, Planted};
use crate::policy::{NOTED_FROM, STARTS};

/// How long an accused timer is tried as the only accused one of its namespace. One that ends the process later may be tried alongside others, so a handler that
/// hangs does not keep them waiting forever.
const TRIAL_MICROS: u64 = 60_000_000;

/// How long it is tried as the only accused one of all namespaces.
const ALONE_MICROS: u64 = 1_000_000;

/// An accused timer that is with its handler.
#[derive(Debug, Clone, Copy)]
struct Trial {
    id: Id,
    /// When its handler was called, in microseconds since boot. `None` until its start is noted.
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

#[derive(Debug)]
pub(super) struct Poison {
    /// The epoch with which this run began: see [`Id::new`].
    epoch: u64,
    /// The last epoch of this run.
    last_epoch: u64,
    /// The last epoch of the last run that ended cleanly.
    clean: u64,
    /// The number of epochs since then that did not begin with a run.
    drawn: u64,
    /// Timers that were due by this time may have been started by earlier runs.
    suspects_until: Option<Due>,
    /// The accused timers that are with their handlers, by their namespaces.
    trials: HashMap<usize, Trial>,
    /// Whether a trial has ended since all namespaces were last checked, so its outcome may not be written yet.
    rests: bool,
    /// The timers whose starts were noted by this run, with their earlier notes. A timer that is given back starts again with that value.
    noted_before: HashMap<Id, u64>,
    /// Whether the end of this run was noted as clean.
    is_clean: bool,
}

impl Poison {
    pub(super) fn new(epoch: u64) -> Poison {
        Poison {
            epoch,
            last_epoch: epoch,
            clean: 0,
            drawn: 0,
            suspects_until: None,
            trials: HashMap::new(),
            rests: false,
            noted_before: HashMap::new(),
            is_clean: false,
        }
    }

    /// Reads a setting when the store is opened.
    pub(super) fn note_clean_end(&mut self, name: &str, value: &[u8]) {
        if name == Setting::CLEAN {
            let text = std::str::from_utf8(value).unwrap_or_default();
            let mut numbers = text.split(' ').map(|it| it.parse().unwrap_or(0));
            self.clean = numbers.next().unwrap_or(0);
            self.drawn = numbers.next().unwrap_or(0);
        }
    }

    /// Determines the suspects, once all settings are known.
    pub(super) fn find_suspects(&mut self, now: Now) {
        // A copy of a store has a later epoch than its runs, so there may be needless suspects, which cost a commit each.
        let clean = self.clean.saturating_add(self.drawn);
        let unclean = self.epoch.saturating_sub(clean).saturating_sub(1);
        if unclean >= u64::from(NOTED_FROM) {
            self.suspects_until = Some(now.due());
        }
    }

    /// The operation for the last commit of a run that ends cleanly, even if handlers were given up. Returned once.
    pub(super) fn clean_end(&mut self) -> Option<Op> {
        if std::mem::replace(&mut self.is_clean, true) {
            return None;
        }
        Some(Op::set_clean(self.last_epoch, 0))
    }

    /// The operation for the commit that begins another epoch, so that the epoch is not counted as an unclean end.
    pub(super) fn next_epoch(&self) -> Op {
        Op::set_clean(self.clean, self.drawn + 1)
    }

    /// The store has begun another epoch.
    pub(super) fn drawn(&mut self, epoch: u64) {
        self.drawn += 1;
        self.last_epoch = epoch;
    }

    /// The series that this run belongs to. Epochs have 22 bits, so they fit as long as ids do.
    fn series(&self) -> u64 {
        self.clean & 0x7fff_ffff
    }

    /// Whether any timer may be suspect.
    pub(super) fn is_watchful(&self) -> bool {
        self.suspects_until.is_some()
    }

    /// Forgets a timer that has left or moved, at which the store resets its starts.
    pub(super) fn forget(&mut self, id: Id) {
        self.noted_before.remove(&id);
    }

    /// Handles a wall clock that was set: timers that were due when the run began, by the new time, may have been started before as well.
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

    /// Whether an accused timer of a namespace may be tried.
    pub(super) fn may_try(&self, namespace: usize, now: Now) -> bool {
        let now = now.boot_micros;
        let own = self.trials.get(&namespace);
        let is_over = own.is_none_or(|it| it.until() <= now);
        let mut all = self.trials.values();
        is_over && !self.rests && all.all(|it| it.alone_until() <= now)
    }

    /// Allows the next trial, because all namespaces are being checked.
    pub(super) fn continue_trials(&mut self) {
        self.rests = false;
    }

    /// When the next accused timer may be tried even if the last trial has not ended, in microseconds since boot.
    pub(super) fn tries_at(&self, now: Now) -> Option<u64> {
        let trials = self.trials.values().filter(|it| it.begun.is_some());
        let times = trials.flat_map(|it| [it.alone_until(), it.until()]);
        times.filter(|at| *at > now.boot_micros).min()
    }

    /// Records the trial of a timer, before and after its start is noted, if it is accused. Returns whether it is.
    pub(super) fn tries(&mut self, row: &Row, namespace: usize, begun: Option<u64>) -> bool {
        let is_accused = self.is_accused(row);
        if is_accused {
            let id = row.id;
            self.trials.insert(namespace, Trial { id, begun });
        }
        is_accused
    }

    /// Ends a delivery. If it was a trial, the next one begins once its outcome is written.
    pub(super) fn ended(&mut self, namespace: usize, id: Id) {
        if self.trials.get(&namespace).is_some_and(|it| it.id == id) {
            self.trials.remove(&namespace);
            // Until all namespaces are checked again, so that the others have their turn.
            self.rests = true;
        }
    }

    /// Whether the start of a timer has to be noted.
    pub(super) fn is_suspect(&self, row: &Row) -> bool {
        let is_overdue = self.suspects_until.is_some_and(|until| row.due <= until);
        is_overdue && row.id.epoch().is_none_or(|epoch| epoch < self.epoch)
    }

    /// Whether an earlier run noted the start of a timer that has not ended.
    pub(super) fn is_accused(&self, row: &Row) -> bool {
        self.starts_before(row) > 0 && self.is_suspect(row)
    }

    /// The number of starts noted by earlier runs since the last clean end.
    fn starts_before(&self, row: &Row) -> u32 {
        let before = self.noted_before.get(&row.id);
        let (series, count) = split(before.copied().unwrap_or(row.starts));
        match series == self.series() || planted::is(Planted::OldStartsCount) {
            true => count,
            false => 0,
        }
    }

    /// Why a timer is given up, if it was started as often as its namespace tolerates: the noted starts, plus the runs before them, in which none was noted.
    pub(super) fn verdict(&self, row: &Row, limit: Option<u32>) -> Option<String> {
        let starts = self.starts_before(row);
        let is_poison = self.is_accused(row) && starts >= limit.unwrap_or(STARTS) - NOTED_FROM;
        is_poison.then(|| {
            format!(
                "the process ended {} times in a row while its handler was running or about to run",
                starts.saturating_add(NOTED_FROM)
            )
        })
    }

    /// The row of a timer whose start has to be noted, with the starts to which the store adds one.
    pub(super) fn noted(&self, row: Row) -> Row {
        // The sum must fit into the lower half.
        let count = self.starts_before(&row).min(u32::MAX - 1);
        let starts = self.series() << 32 | u64::from(count);
        Row { starts, ..row }
    }

    /// Remembers a timer whose start was noted.
    pub(super) fn started(&mut self, row: &Row) {
        self.noted_before.insert(row.id, row.starts);
    }
}

/// Splits a note into its series and its count of starts.
fn split(starts: u64) -> (u64, u32) {
    let count = u32::try_from(starts & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (starts >> 32, count)
}
