//! Which timers may be what ends the process, again and again?
//!
//! A run that ends in order notes its epoch in a setting, so the next run knows how many runs in a row before it have not. After two such ends, a run notes each
//! start of a timer that was overdue as the run began, before the handler is called. So nothing is written for a timer in a service that ends in order, or once
//! without order.
//!
//! Notes from before the last clean end do not count. So a note has a count and its series: the epoch of the last run that had ended in order by then.
//! A note of another series counts for nothing. So it is with a copy that is restored, though its epochs say that many runs had no end in order.
//!
//! A timer that was started and has not ended is accused: it is what has ended that run, or it was with its handler beside what has. So the accused of a namespace
//! are tried one after another, and what has ended well by then is innocent. One that was started too often is given up before it is started once more.
//!
//! Namespaces do not wait for one another, but for a moment: trials do not begin together, so that what ends the process at once does so alone. What is with its
//! handler for longer than that may be accused for the fault of another, each time, and is given up with it.

use crate::store::{Due, Id, Op, Row};
use foldhash::{HashMap, HashMapExt as _};

use super::clocks::Now;
use super::planted::{self, Planted};
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
struct Trial {
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

#[derive(Debug)]
pub(super) struct Poison {
    /// The epoch of this run: see [`Id::new`].
    epoch: u64,
    /// The last run that ended in order.
    clean: u64,
    /// Timers that were due by then may have been started by earlier runs.
    suspects_until: Option<Due>,
    /// The accused timers that are with their handlers, by their namespaces.
    trials: HashMap<usize, Trial>,
    /// A trial has ended, and what came of it is not written.
    rests: bool,
    /// Timers whose starts were noted by this run, and what was noted before. One that is given back starts again with that.
    noted_before: HashMap<Id, u64>,
    /// The end of this run was noted as clean.
    is_clean: bool,
}

impl Poison {
    pub(super) fn new(epoch: u64) -> Poison {
        Poison {
            epoch,
            clean: 0,
            suspects_until: None,
            trials: HashMap::new(),
            rests: false,
            noted_before: HashMap::new(),
            is_clean: false,
        }
    }

    /// A setting that was found at the opening.
    pub(super) fn note_clean_end(&mut self, name: &str, value: &[u8]) {
        let text = || std::str::from_utf8(value).ok();
        if name == CLEAN {
            self.clean = text().and_then(|it| it.parse().ok()).unwrap_or(0);
        }
    }

    /// All settings are known.
    pub(super) fn find_suspects(&mut self, now: Now) {
        // A copy of a store has a later epoch than its runs: then there are suspects without need, which costs a commit each.
        let unclean = self.epoch.saturating_sub(self.clean).saturating_sub(1);
        if unclean >= u64::from(NOTED_FROM) {
            self.suspects_until = Some(now.due());
        }
    }

    /// Nothing goes on any more, or it was given up in order: what the last commit is to write, once.
    pub(super) fn clean_end(&mut self) -> Option<Op> {
        if std::mem::replace(&mut self.is_clean, true) {
            return None;
        }
        let epoch = self.epoch.to_string().into_bytes();
        Some(Op::Set(CLEAN.into(), Some(epoch.into())))
    }

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

    /// Whether an accused timer of a namespace may be tried.
    pub(super) fn may_try(&self, namespace: usize, now: Now) -> bool {
        let now = now.boot_micros;
        let own = self.trials.get(&namespace);
        let is_over = own.is_none_or(|it| it.until() <= now);
        let mut all = self.trials.values();
        is_over && !self.rests && all.all(|it| it.alone_until() <= now)
    }

    /// All namespaces are checked: the next trial may begin.
    pub(super) fn continue_trials(&mut self) {
        self.rests = false;
    }

    /// When the next accused timer may be tried though the last one has not ended, in microseconds since boot.
    pub(super) fn tries_at(&self, now: Now) -> Option<u64> {
        let trials = self.trials.values().filter(|it| it.begun.is_some());
        let times = trials.flat_map(|it| [it.alone_until(), it.until()]);
        times.filter(|at| *at > now.boot_micros).min()
    }

    /// The trial of a timer begins, or goes on to its handler, if it is accused. Returns whether it is.
    pub(super) fn tries(&mut self, row: &Row, namespace: usize, begun: Option<u64>) -> bool {
        let is_accused = self.is_accused(row);
        if is_accused {
            let id = row.id;
            self.trials.insert(namespace, Trial { id, begun });
        }
        is_accused
    }

    /// A delivery does not go on. If it was tried, the next accused one begins once what came of it is written.
    pub(super) fn ended(&mut self, namespace: usize, id: Id) {
        if self.trials.get(&namespace).is_some_and(|it| it.id == id) {
            self.trials.remove(&namespace);
            // Until then, so that other namespaces have their turn.
            self.rests = true;
        }
    }

    /// Whether its start is to be noted.
    pub(super) fn is_suspect(&self, row: &Row) -> bool {
        let is_overdue = self.suspects_until.is_some_and(|until| row.due <= until);
        is_overdue && row.id.epoch() != Some(self.epoch)
    }

    /// Whether it was started by a run before that has noted it, and has not ended.
    pub(super) fn is_accused(&self, row: &Row) -> bool {
        self.starts_before(row) > 0 && self.is_suspect(row)
    }

    /// How often it was started by runs before that have noted it, since the last end in order.
    fn starts_before(&self, row: &Row) -> u32 {
        let before = self.noted_before.get(&row.id);
        let (series, count) = split(before.copied().unwrap_or(row.starts));
        match series == self.series() || planted::is(Planted::OldStartsCount) {
            true => count,
            false => 0,
        }
    }

    /// Why a timer is given up, if it was started as often as its namespace bears: as often as that was noted, and at the ends before that, at which nothing was.
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

    /// A timer whose start is to be noted, with the starts that the store adds one to.
    pub(super) fn noted(&self, row: Row) -> Row {
        // The sum stays within the lower half.
        let count = self.starts_before(&row).min(u32::MAX - 1);
        let starts = self.series() << 32 | u64::from(count);
        Row { starts, ..row }
    }

    /// The start of a timer was noted.
    pub(super) fn started(&mut self, row: &Row) {
        self.noted_before.insert(row.id, row.starts);
    }
}

/// The series of a note, and how many starts.
fn split(starts: u64) -> (u64, u32) {
    let count = u32::try_from(starts & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (starts >> 32, count)
}
