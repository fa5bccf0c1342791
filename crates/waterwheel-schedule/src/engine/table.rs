//! The job table: every job of a scheduler and its state, under one lock, so that each race has one winner.
//!
//! All clones of a scheduler share a [`Table`]. Its [`State`] is behind the lock, and holds an [`Entry`] for each job in a [`Wheel`]. The
//! table reaches the job's closure and result as a [`Job`], whose type does not depend on them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use waterwheel::Timer;
use waterwheel::wheel::{Key, Resolution, Tick, Wheel};

use super::concurrency_limit::{ConcurrencyLimit, Rank};
use super::plan::{Plan, Recurrence};
use super::wall_clock::{WallClock, WallDeadlines};
use crate::error::{JobError, Refusal, SubmitError};
use crate::info::{Counts, Event, Hook, JobId};

/// The part of a scheduler that all of its clones, handles and jobs share.
pub(crate) struct Table {
    pub(crate) timer: Timer,
    pub(crate) runtime: Handle,
    pub(crate) wall: WallClock,
    pub(crate) hook: Option<Hook>,
    pub(crate) max_pending: Option<usize>,
    /// Runs that were admitted and wait for a worker task to start them.
    pub(crate) run_queue: Mutex<VecDeque<AdmittedRun>>,
    state: Mutex<State>,
    /// Runs that have begun, counted while the lock of the run's job is held. [`Counts`] has the runs that have ended.
    pub(crate) runs_started: AtomicU64,
    pub(crate) terminated: Notify,
}

/// The state of a [`Table`], behind its lock.
pub(crate) struct State {
    pub(crate) wheel: Wheel<Entry>,
    /// The number of entries, disarmed ones included.
    pub(crate) jobs: usize,
    pub(crate) phase: Phase,
    /// The number of `Scheduler`s that refer to this table.
    pub(crate) scheduler_clones: usize,
    pub(crate) keeps_delayed: bool,
    pub(crate) keeps_periodic: bool,
    pub(crate) limit: ConcurrencyLimit,
    pub(crate) groups: Vec<ConcurrencyLimit>,
    pub(crate) counts: Counts,
    /// Jobs that wait for the system's wall clock, in addition to their place in the wheel.
    pub(crate) wall_deadlines: WallDeadlines,
    /// Wakes the driver's task. `None` while the driver is not waiting.
    pub(crate) driver_waker: Option<Waker>,
    /// The tick that the driver sleeps towards. `None` if the wheel was empty when it went to sleep.
    pub(crate) driver_waits_until: Option<Tick>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// No new jobs are accepted. Jobs that survive a shutdown still run.
    ShuttingDown,
    /// No job is left, and the driver has ended.
    Terminated,
}

impl Table {
    pub(crate) fn new(
        timer: Timer,
        runtime: Handle,
        wall: WallClock,
        hook: Option<Hook>,
        max_pending: Option<usize>,
        limit: ConcurrencyLimit,
    ) -> Table {
        // Every resolution of a timer is a valid resolution of a wheel.
        let resolution = Resolution::new(timer.resolution()).expect("a timer's resolution");
        let wheel = Wheel::starting_at(resolution, timer.tick_now());
        Table {
            timer,
            runtime,
            wall,
            hook,
            max_pending,
            run_queue: Mutex::default(),
            state: Mutex::new(State {
                wheel,
                jobs: 0,
                phase: Phase::Running,
                scheduler_clones: 1,
                keeps_delayed: true,
                keeps_periodic: false,
                limit,
                groups: Vec::new(),
                counts: Counts::default(),
                wall_deadlines: WallDeadlines::default(),
                driver_waker: None,
                driver_waits_until: None,
            }),
            runs_started: AtomicU64::new(0),
            terminated: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Accepts a job and assigns its id. From then on it is never lost: it runs, or its handle says why not. A job that `has_no_run`, because
    /// all its times have passed, ends at once with `Ok`.
    pub(crate) fn submit(
        &self,
        mut entry: Entry,
        has_no_run: bool,
    ) -> Result<(Key, JobId), SubmitError> {
        let tick = self.timer.tick_after(entry.deadline);
        let wall = entry.wall();
        let mut state = self.state();
        let refusal = if state.phase != Phase::Running {
            Some(Refusal::Shutdown)
        } else if self.max_pending.is_some_and(|most| state.jobs >= most) {
            Some(Refusal::AtCapacity)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            state.counts.refused += 1;
            drop(state);
            let name = entry.name().cloned();
            // The closure is foreign code.
            drop(entry);
            self.report(|| Event::Refused { name });
            return Err(SubmitError(refusal));
        }
        state.counts.submitted += 1;
        let id = JobId::from(state.counts.submitted);
        entry.id = id;
        let key = state.wheel.insert(tick, entry);
        if has_no_run {
            state.counts.ended += 1;
            let removed = state.wheel.cancel(key);
            drop(state);
            if let Some(entry) = removed {
                entry.job.end_ok();
            }
            return Ok((key, id));
        }
        state.jobs += 1;
        let waker = self.driver_waker_for(&mut state, key, tick, wall);
        drop(state);
        wake(waker);
        Ok((key, id))
    }

    /// Registers the wall-clock time of a job that was just filed in the wheel, if it has one, and returns the driver's waker if the
    /// driver sleeps too long for this job.
    pub(crate) fn driver_waker_for(
        &self,
        state: &mut State,
        key: Key,
        tick: Tick,
        wall: Option<SystemTime>,
    ) -> Option<Waker> {
        match wall {
            Some(wall) if self.wall.can_be_set() => {
                state.add_wall_deadline(key, wall);
                // The driver may have to sleep towards another wall-clock time.
                state.driver_waker.take()
            }
            _ => state.driver_waker_if_after(tick),
        }
    }

    /// Hands an event to the hook.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        if let Some(hook) = &self.hook {
            hook.call(&event());
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

/// Locks without poisoning, since no foreign code runs while a lock is held.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the driver. Call it without the table's lock: a waker is foreign code.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    /// Takes the driver's waker if the driver sleeps towards a tick after this one, or towards none.
    pub(crate) fn driver_waker_if_after(&mut self, tick: Tick) -> Option<Waker> {
        match self.driver_waits_until {
            Some(until) if until <= tick => None,
            _ => self.driver_waker.take(),
        }
    }

    /// Takes the driver's waker if the driver should end, or sleeps although the wheel is empty. The latter matters on a paused clock,
    /// which would jump to the end of that sleep.
    pub(crate) fn driver_waker_if_idle(&mut self) -> Option<Waker> {
        match self.is_finished() || self.wheel.is_empty() && self.driver_waits_until.is_some() {
            true => self.driver_waker.take(),
            false => None,
        }
    }

    /// Whether no job is left, and none can be submitted.
    pub(crate) fn is_finished(&self) -> bool {
        self.jobs == 0 && (self.phase != Phase::Running || self.scheduler_clones == 0)
    }

    /// Whether jobs of this kind still run after a shutdown.
    pub(crate) fn survives_shutdown(&self, is_periodic: bool) -> bool {
        match is_periodic {
            true => self.keeps_periodic,
            false => self.keeps_delayed,
        }
    }

    /// Remembers that a job waits for the system's wall clock. The caller files it in the wheel.
    pub(crate) fn add_wall_deadline(&mut self, key: Key, wall: SystemTime) {
        let wheel = &self.wheel;
        let waits = |key, wall| waits_for_wall(wheel, key, wall);
        self.wall_deadlines.insert(key, wall, self.jobs, waits);
    }

    /// The earliest wall-clock time that a job waits for, and the job.
    pub(crate) fn next_wall_deadline(&mut self) -> Option<(SystemTime, Key)> {
        let wheel = &self.wheel;
        self.wall_deadlines
            .first(|key, wall| waits_for_wall(wheel, key, wall))
    }

    /// Removes a job that has not begun its run, and counts it as cancelled. The caller must call `leave_limits` for it next.
    pub(crate) fn remove_cancelled(&mut self, key: Key) -> Option<Entry> {
        let entry = self.wheel.cancel(key)?;
        self.jobs -= 1;
        self.counts.cancelled += 1;
        Some(entry)
    }
}

/// Whether a job still waits for this wall-clock time.
fn waits_for_wall(wheel: &Wheel<Entry>, key: Key, wall: SystemTime) -> bool {
    let entry = wheel.get(key);
    entry.is_some_and(|it| it.status == Status::Waiting && it.wall() == Some(wall))
}

/// A reference to the table, one for each clone of a scheduler. The jobs that are submitted to a clone count references to its `TableRef`
/// instead of the table, so threads with a clone each do not contend for one reference count.
#[derive(Debug)]
pub(crate) struct TableRef(Arc<Table>);

impl TableRef {
    pub(crate) fn new(table: Arc<Table>) -> Arc<TableRef> {
        Arc::new(TableRef(table))
    }
}

impl Deref for TableRef {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.0
    }
}

/// A job in the table.
pub(crate) struct Entry {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) deadline: Instant,
    /// Assigned by the table, in the order of submission.
    pub(crate) id: JobId,
    pub(crate) status: Status,
    /// If set, the current run is the last, and this is why.
    pub(crate) end_reason: Option<EndReason>,
    /// Whether the job pauses after the current run.
    pub(crate) pause_requested: bool,
    /// `None` for a plain job after a delay, which therefore takes less memory.
    pub(crate) extras: Option<Box<Extras>>,
}

/// The options that most jobs do not use.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) plan: Option<Plan>,
    /// The wall-clock time that the job waits for.
    pub(crate) wall: Option<SystemTime>,
    /// The wall-clock time that the job was submitted for, before jitter.
    pub(crate) at_wall: Option<SystemTime>,
    pub(crate) time_limit: Option<Duration>,
}

/// Where a job is in its life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// In the wheel.
    Waiting,
    /// Its tick has come, and the driver is about to start it.
    Due,
    QueuedInGroup,
    /// Queued for a permit of the scheduler. If the job has a group, it holds a permit of the group.
    Queued,
    /// The job holds its permits. Its run is in progress, or is about to begin in a task.
    Admitted,
    Paused,
}

/// Why a job ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    Cancelled,
    Shutdown,
}

impl EndReason {
    pub(crate) fn error(self) -> JobError {
        match self {
            EndReason::Cancelled => JobError::Cancelled,
            EndReason::Shutdown => JobError::Shutdown,
        }
    }
}

impl Entry {
    pub(crate) fn new(job: Arc<dyn Job>, deadline: Instant, extras: Option<Box<Extras>>) -> Entry {
        Entry {
            job,
            deadline,
            id: JobId::from(0),
            status: Status::Waiting,
            end_reason: None,
            pause_requested: false,
            extras,
        }
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.plan()
            .is_some_and(|plan| plan.recurrence != Recurrence::Once)
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.extras.as_ref()?.plan.as_ref()
    }

    pub(crate) fn plan_mut(&mut self) -> Option<&mut Plan> {
        self.extras.as_mut()?.plan.as_mut()
    }

    pub(crate) fn wall(&self) -> Option<SystemTime> {
        self.extras.as_ref()?.wall
    }

    pub(crate) fn group(&self) -> Option<usize> {
        self.extras.as_ref()?.group
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.name.as_ref()
    }

    pub(crate) fn rank(&self) -> Rank {
        (self.deadline, self.id)
    }

    /// Whether a run is in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.status == Status::Admitted && self.job.has_begun()
    }

    /// Prevents an admitted run from beginning, and returns whether no run is in progress. If so, the caller must remove the entry before
    /// it releases the table's lock.
    pub(crate) fn withdraw(&self) -> bool {
        self.status != Status::Admitted || self.job.withdraw()
    }

    /// Marks the job as admitted: it holds its permits, and its run may begin.
    pub(crate) fn admit(&mut self, key: Key) -> AdmittedRun {
        self.status = Status::Admitted;
        let time_limit = self.extras.as_mut().and_then(|extras| {
            // A new time follows after the run, if there is one.
            extras.wall = None;
            extras.time_limit
        });
        let failures = self.plan().map_or(0, |plan| plan.failures);
        AdmittedRun {
            job: Arc::clone(&self.job),
            run: Run {
                id: self.id,
                key,
                scheduled: self.deadline,
                number: self.job.runs() + 1,
                attempt: failures.saturating_add(1),
            },
            time_limit,
        }
    }
}

/// A job, whatever the types of its closure and its result.
pub(crate) trait Job: Send + Sync {
    fn table(&self) -> &Arc<Table>;

    /// Spawns a run as a task of its own.
    fn spawn_run(self: Arc<Self>, run: Run, time_limit: Option<Duration>, runtime: &Handle);

    /// Returns a run as a future, for an existing task to poll.
    fn run_future(
        self: Arc<Self>,
        run: Run,
        time_limit: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Ends a job with an error: drops its closure, and completes its handle.
    fn end(&self, error: JobError);

    /// Ends a job with `Ok(())`: after its last run, or because it has no time to run at.
    fn end_ok(&self);

    /// The cancellation token of the current run, created by the first call.
    fn token(&self) -> CancellationToken;

    /// A token that is cancelled when the job has ended: its handle is complete, and its closure is dropped. The token does not keep the
    /// job alive.
    fn ended(&self) -> CancellationToken;

    /// Marks the job as cancelled, and cancels its token.
    fn mark_cancelled(&self);

    fn is_cancelled(&self) -> bool;

    /// Prevents the admitted run from beginning. Returns `false` if it has begun: its closure was called, or is about to be. The job's own
    /// lock decides between the two, so a run that was withdrawn never begins.
    fn withdraw(&self) -> bool;

    /// Whether the run that was last admitted has begun.
    fn has_begun(&self) -> bool;

    /// Resets [`has_begun`](Job::has_begun) between two runs.
    fn prepare_next_run(&self);

    /// Counts a run that has ended and is not retried.
    fn count_run(&self);

    /// The number of runs that have ended. A run that is retried counts once.
    fn runs(&self) -> u64;

    /// Makes the run in progress end at its next poll.
    fn abort(&self);

    fn set_last_error(&self, error: Arc<str>);

    fn last_error(&self) -> Option<Arc<str>>;
}

/// Identifies a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) id: JobId,
    pub(crate) key: Key,
    pub(crate) scheduled: Instant,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
}

/// A run that holds its permits and may begin.
pub(crate) struct AdmittedRun {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) run: Run,
    pub(crate) time_limit: Option<Duration>,
}

/// A token for an event that has already happened.
pub(super) fn cancelled_token() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}
