//! Records of what happened to a job, and the checks of them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::time::Instant;
use waterwheel_schedule::{Context, Group, JobError, Scheduler};

use super::round::End;

/// The state that the jobs of a round share.
#[derive(Default)]
pub(crate) struct Ground {
    pub(crate) jobs: Mutex<Vec<Arc<Facts>>>,
    pub(crate) refused: AtomicU64,
    pub(crate) faults: Mutex<Vec<String>>,
    /// The number of running jobs of the scheduler and of each group.
    gauges: [AtomicI64; 3],
    /// The maximum of each.
    limits: [i64; 3],
    groups: OnceLock<[Group; 2]>,
}

impl Ground {
    pub(crate) fn new(limits: [i64; 3]) -> Ground {
        Ground {
            limits,
            ..Ground::default()
        }
    }

    pub(crate) fn make_groups(&self, scheduler: &Scheduler) {
        let group = |n: usize| scheduler.group(n.to_string(), self.limits[n] as usize);
        let _ = self.groups.set([group(1), group(2)]);
    }

    pub(crate) fn groups(&self) -> &[Group; 2] {
        self.groups.get().expect("they were made")
    }

    pub(crate) fn fault(&self, fault: String) {
        self.faults.lock().unwrap().push(fault);
    }

    pub(crate) fn expect(&self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.fault(fault());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    Retry,
    Repeat,
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) id: usize,
    pub(crate) kind: Kind,
    pub(crate) blocks: bool,
    /// The job's group, one of two, if any.
    pub(crate) group: Option<usize>,
    pub(crate) was_taken: AtomicBool,
    /// The number of calls of the closure.
    calls: AtomicU64,
    is_live: AtomicBool,
    last_run: AtomicU64,
    /// The number of times that the closure was dropped.
    drops: AtomicU64,
    /// The number of cancels that returned `true`.
    pub(crate) cancels: AtomicU64,
    pub(crate) was_aborted: AtomicBool,
    /// The number of pauses, including those in progress.
    pub(crate) pauses: AtomicU64,
    /// The number of times that `shutdown_now` returned the job.
    pub(crate) returned: AtomicU64,
}

impl Facts {
    pub(crate) fn new(id: usize, kind: Kind, blocks: bool, group: Option<usize>) -> Facts {
        Facts {
            id,
            kind,
            blocks,
            group,
            was_taken: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            is_live: AtomicBool::new(false),
            last_run: AtomicU64::new(0),
            drops: AtomicU64::new(0),
            cancels: AtomicU64::new(0),
            was_aborted: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
            returned: AtomicU64::new(0),
        }
    }

    pub(crate) fn count_cancel(&self, won: bool) -> bool {
        self.cancels.fetch_add(u64::from(won), SeqCst);
        won
    }

    /// Whether only its scheduler could end the job early.
    fn was_left_alone(&self) -> bool {
        self.cancels.load(SeqCst) == 0
            && !self.was_aborted.load(SeqCst)
            && self.pauses.load(SeqCst) == 0
    }

    /// Checks the result of the handle.
    pub(crate) fn judge(&self, result: &Result<(), JobError>, end: End, ground: &Ground) {
        let calls = self.calls.load(SeqCst);
        let (returned, is_once) = (self.returned.load(SeqCst), self.kind == Kind::Once);
        let was_cancelled = self.cancels.load(SeqCst) > 0 || self.was_aborted.load(SeqCst);
        let is_right = match result {
            Ok(()) => calls > 0 && returned == 0,
            Err(JobError::Cancelled) => was_cancelled && returned == 0,
            Err(JobError::Shutdown) => {
                let must_run = end.spares_delayed() && self.was_left_alone();
                let had_run = returned > 0 && calls > 0;
                !is_once || !(must_run || had_run)
            }
            Err(_) => calls > 0 && returned == 0,
        };
        ground.expect(is_right, || format!("{result:?} of {self:?}"));
    }

    /// Checks a job after its scheduler and its runtime are gone.
    pub(crate) fn judge_end(&self, is_drained: bool, ground: &Ground) {
        let calls = self.calls.load(SeqCst);
        let must_have_run = is_drained
            && self.kind == Kind::Once
            && self.was_taken.load(SeqCst)
            && self.was_left_alone();
        let is_right = self.drops.load(SeqCst) == 1
            && !self.is_live.load(SeqCst)
            && self.cancels.load(SeqCst) <= 1
            && self.returned.load(SeqCst) <= 1
            && (calls <= 1 || self.kind != Kind::Once)
            && (calls > 0 || !must_have_run);
        ground.expect(is_right, || format!("at the end: {self:?}"));
    }
}

/// A value that the job's closure holds.
pub(crate) struct Held(pub(crate) Arc<Facts>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, SeqCst);
    }
}

/// A value that a run holds.
pub(crate) struct Live {
    facts: Arc<Facts>,
    ground: Arc<Ground>,
}

impl Live {
    pub(crate) fn begin(facts: &Arc<Facts>, ground: &Arc<Ground>, context: &Context) -> Live {
        facts.calls.fetch_add(1, SeqCst);
        let overlaps = facts.is_live.swap(true, SeqCst);
        ground.expect(!overlaps, || format!("two runs at once of {facts:?}"));
        let (run, last) = (context.run(), facts.last_run.swap(context.run(), SeqCst));
        let follows = run == last + 1 && context.attempt() == 1 || run == last;
        ground.expect(follows, || format!("run {run} after {last} of {facts:?}"));
        let now = Instant::now();
        ground.expect(context.scheduled() <= now, || format!("early: {facts:?}"));
        for (gauge, limit) in places(facts, ground) {
            let running = gauge.fetch_add(1, SeqCst) + 1;
            ground.expect(running <= limit, || format!("{running} of {limit} run"));
        }
        Live {
            facts: Arc::clone(facts),
            ground: Arc::clone(ground),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for (gauge, _) in places(&self.facts, &self.ground) {
            gauge.fetch_sub(1, SeqCst);
        }
        self.facts.is_live.store(false, SeqCst);
    }
}

fn places<'a>(facts: &Facts, ground: &'a Ground) -> impl Iterator<Item = (&'a AtomicI64, i64)> {
    let places = [Some(0), facts.group.map(|group| group + 1)];
    let numbers = places.into_iter().flatten();
    numbers.map(|n| (&ground.gauges[n], ground.limits[n]))
}
