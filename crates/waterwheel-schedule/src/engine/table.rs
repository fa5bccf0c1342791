//! Which jobs are there, and what may each do next? All under one lock, so that each race has one winner.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use waterwheel::Timer;
use waterwheel::wheel::{Key, Resolution, Tick, Wheel};

use super::herd::Herd;
use super::job::{Job, Run, Start};
use super::limits::{Limit, Rank};
use super::plan::{Pace, Plan};
use super::wall::{Appointments, WallClock};
use crate::error::{JobError, Refusal, SubmitError};
use crate::look::{Counts, Event, Hook};
use crate::sync::lock;

pub(crate) struct Table {
    pub(crate) timer: Timer,
    pub(crate) runtime: Handle,
    /// The time of day.
    pub(crate) wall: WallClock,
    pub(crate) hook: Option<Hook>,
    max_pending: Option<usize>,
    pub(crate) herd: Herd,
    state: Mutex<State>,
    pub(crate) terminated: Notify,
}

pub(crate) struct State {
    pub(crate) wheel: Wheel<Entry>,
    /// The number of entries, disarmed ones included.
    pub(crate) jobs: usize,
    /// The number of jobs that were ever taken.
    pub(crate) sequence: u64,
    pub(crate) phase: Phase,
    /// The `Scheduler`s there are.
    pub(crate) handles: usize,
    pub(crate) keeps_delayed: bool,
    pub(crate) keeps_periodic: bool,
    pub(crate) limit: Limit,
    pub(crate) groups: Vec<Limit>,
    pub(crate) counts: Counts,
    /// Those that wait for the machine's wall clock.
    pub(crate) appointments: Appointments,
    /// Of the driver's task, while it waits.
    pub(crate) waker: Option<Waker>,
    /// The tick that the driver waits for; `None` if there was none.
    pub(crate) waits_for: Option<Tick>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Takes nothing new. What may still run does.
    ShuttingDown,
    /// No job is left, and the driver ends.
    Terminated,
}

/// A job, as the table keeps it.
pub(crate) struct Entry {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) deadline: Instant,
    /// How many jobs were submitted before it.
    pub(crate) sequence: u64,
    pub(crate) status: Status,
    /// No run after the present one, and why.
    pub(crate) ends: Option<Ends>,
    /// Pauses after the present run.
    pub(crate) pauses: bool,
    /// What a plain job after a delay does not have.
    pub(crate) more: Option<Box<More>>,
}

#[derive(Default)]
pub(crate) struct More {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) group: Option<usize>,
    pub(crate) plan: Option<Plan>,
    /// The time of day that the job waits for.
    pub(crate) wall: Option<SystemTime>,
    /// The time of day that it was submitted for, before jitter.
    pub(crate) at_wall: Option<SystemTime>,
    /// The longest that a run may take.
    pub(crate) time_limit: Option<Duration>,
}

/// Where a job is between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// On the dials.
    Waiting,
    /// Its tick has come, and the driver is about to start it.
    Due,
    QueuedInGroup,
    /// Queued for a place of the scheduler. It holds its place of the group.
    Queued,
    Running,
    Paused,
}

/// Why a job ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Cancelled,
    Shutdown,
}

impl Ends {
    pub(crate) fn error(self) -> JobError {
        match self {
            Ends::Cancelled => JobError::Cancelled,
            Ends::Shutdown => JobError::Shutdown,
        }
    }
}

impl Entry {
    pub(crate) fn is_periodic(&self) -> bool {
        self.plan().is_some_and(|plan| plan.pace != Pace::Once)
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.more.as_ref()?.plan.as_ref()
    }

    pub(crate) fn plan_mut(&mut self) -> Option<&mut Plan> {
        self.more.as_mut()?.plan.as_mut()
    }

    pub(crate) fn wall(&self) -> Option<SystemTime> {
        self.more.as_ref()?.wall
    }

    pub(crate) fn group(&self) -> Option<usize> {
        self.more.as_ref()?.group
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.more.as_ref()?.name.as_ref()
    }

    pub(crate) fn rank(&self) -> Rank {
        (self.deadline, self.sequence)
    }

    /// The job runs from now on.
    fn run(&mut self, key: Key) -> Start {
        self.status = Status::Running;
        let limit = self.more.as_mut().and_then(|more| {
            // A time of day is for the first run.
            more.wall = None;
            more.time_limit
        });
        let failures = self.plan().map_or(0, |plan| plan.failures);
        Start {
            job: Arc::clone(&self.job),
            run: Run {
                key,
                scheduled: self.deadline,
                number: self.job.runs() + 1,
                attempt: failures.saturating_add(1),
            },
            limit,
            name: self.name().cloned(),
        }
    }
}

impl Table {
    pub(crate) fn new(
        timer: Timer,
        runtime: Handle,
        wall: WallClock,
        hook: Option<Hook>,
        max_pending: Option<usize>,
        limit: Limit,
    ) -> Table {
        // A timer's resolution is one of a wheel.
        let resolution = Resolution::new(timer.resolution()).expect("a timer's resolution");
        let wheel = Wheel::starting_at(resolution, timer.tick_now());
        Table {
            timer,
            runtime,
            wall,
            hook,
            max_pending,
            herd: Herd::default(),
            state: Mutex::new(State {
                wheel,
                jobs: 0,
                sequence: 0,
                phase: Phase::Running,
                handles: 1,
                keeps_delayed: true,
                keeps_periodic: false,
                limit,
                groups: Vec::new(),
                counts: Counts::default(),
                appointments: Appointments::default(),
                waker: None,
                waits_for: None,
            }),
            terminated: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Files a job. From then on it runs or is ended: never lost. One that is over ends at once, well.
    pub(crate) fn submit(&self, mut entry: Entry, is_over: bool) -> Result<Key, SubmitError> {
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
        entry.sequence = state.sequence;
        state.sequence += 1;
        let key = state.wheel.insert(tick, entry);
        state.counts.submitted += 1;
        if is_over {
            let removed = state.wheel.cancel(key);
            drop(state);
            if let Some(entry) = removed {
                entry.job.end_well();
            }
            return Ok(key);
        }
        state.jobs += 1;
        let waker = self.waker_of_new_wait(&mut state, key, tick, wall);
        drop(state);
        wake(waker);
        Ok(key)
    }

    /// The waker of the driver, if it has to know of a job that was filed.
    pub(crate) fn waker_of_new_wait(
        &self,
        state: &mut State,
        key: Key,
        tick: Tick,
        wall: Option<SystemTime>,
    ) -> Option<Waker> {
        match wall {
            Some(wall) if self.wall.may_be_set() => {
                state.appoint(key, wall);
                // It waits for the wall clock too.
                state.waker.take()
            }
            _ => state.waker_of_wait_beyond(tick),
        }
    }

    /// Starts runs that the table has admitted.
    pub(crate) fn start(&self, starts: Vec<Start>) {
        for start in starts {
            self.report_start(&start);
            start.job.start(start.run, start.limit, &self.runtime);
        }
    }

    /// Reports that a run begins.
    pub(crate) fn report_start(&self, start: &Start) {
        self.report(|| Event::Started {
            name: start.name.clone(),
            run: start.run.number,
            scheduled: start.run.scheduled,
        });
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

pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    /// The waker of the driver, if it waits for a later tick than this one.
    pub(crate) fn waker_of_wait_beyond(&mut self, tick: Tick) -> Option<Waker> {
        match self.waits_for {
            Some(waits_for) if waits_for <= tick => None,
            _ => self.waker.take(),
        }
    }

    /// The waker of the driver, if it has to end, or waits for nothing any more: a clock that is paused would jump to where it waits.
    pub(crate) fn waker_if_idle(&mut self) -> Option<Waker> {
        match self.is_over() || self.wheel.is_empty() && self.waits_for.is_some() {
            true => self.waker.take(),
            false => None,
        }
    }

    /// Whether no job is left and none can come.
    pub(crate) fn is_over(&self) -> bool {
        self.jobs == 0 && (self.phase != Phase::Running || self.handles == 0)
    }

    /// Whether a shutdown leaves jobs of this kind alone.
    pub(crate) fn keeps(&self, is_periodic: bool) -> bool {
        match is_periodic {
            true => self.keeps_periodic,
            false => self.keeps_delayed,
        }
    }

    /// Admits a job that is due: it runs, or it queues behind a limit.
    pub(crate) fn admit(&mut self, key: Key, starts: &mut Vec<Start>) {
        let Some(entry) = self.wheel.get_mut(key) else {
            return;
        };
        match entry.group() {
            None if self.limit.take_unbounded() => {
                self.counts.running += 1;
                starts.push(entry.run(key));
            }
            None => {
                self.queue_for_scheduler(key);
                self.start_queued(starts);
            }
            Some(group) => {
                entry.status = Status::QueuedInGroup;
                let rank = entry.rank();
                self.groups[group].queue(rank, key);
                self.start_group(group);
                self.start_queued(starts);
            }
        }
    }

    /// Whether a job of this group may have to wait for a place.
    pub(crate) fn is_limited(&self, group: Option<usize>) -> bool {
        group.is_some() || self.limit.is_bounded()
    }

    /// Queues a job whose next run is due already, before the places of the last run go to others. They follow by `leave`.
    pub(crate) fn queue_again(&mut self, key: Key) {
        let Some(entry) = self.wheel.get_mut(key) else {
            return;
        };
        let rank = entry.rank();
        match entry.group() {
            None => {
                self.queue_for_scheduler(key);
            }
            Some(group) => {
                entry.status = Status::QueuedInGroup;
                self.groups[group].queue(rank, key);
            }
        }
    }

    /// `false` if the job is gone.
    fn queue_for_scheduler(&mut self, key: Key) -> bool {
        let Some(entry) = self.wheel.get_mut(key) else {
            return false;
        };
        entry.status = Status::Queued;
        let rank = entry.rank();
        self.limit.queue(rank, key);
        true
    }

    /// Lets jobs of a group queue for the scheduler, as many as the group has places.
    fn start_group(&mut self, group: usize) {
        while let Some(key) = self.groups[group].next() {
            // A job that was just taken out of the table leaves its queue next.
            if !self.queue_for_scheduler(key) {
                self.groups[group].give_back();
            }
        }
    }

    fn start_queued(&mut self, starts: &mut Vec<Start>) {
        while let Some(key) = self.limit.next() {
            if !self.run(key, starts) {
                self.limit.give_back();
            }
        }
    }

    /// `false` if the job is gone.
    fn run(&mut self, key: Key, starts: &mut Vec<Start>) -> bool {
        let Some(entry) = self.wheel.get_mut(key) else {
            return false;
        };
        self.counts.running += 1;
        starts.push(entry.run(key));
        true
    }

    /// Gives back the places of a run that has ended. The first of the queues get them.
    pub(crate) fn leave_running(&mut self, group: Option<usize>, starts: &mut Vec<Start>) {
        self.counts.running -= 1;
        self.limit.give_back();
        if let Some(group) = group {
            self.groups[group].give_back();
            self.start_group(group);
        }
        self.start_queued(starts);
    }

    /// Takes a job that does not run out of the table. `leave_queue` must follow.
    pub(crate) fn take(&mut self, key: Key) -> Option<Entry> {
        let entry = self.wheel.cancel(key)?;
        self.jobs -= 1;
        self.counts.cancelled += 1;
        Some(entry)
    }

    /// Takes a job out of the queues, which had this status until now. Its place of the group, if it had one, goes to others.
    pub(crate) fn leave_queue(
        &mut self,
        status: Status,
        rank: Rank,
        group: Option<usize>,
        starts: &mut Vec<Start>,
    ) {
        match (status, group) {
            (Status::QueuedInGroup, Some(group)) => self.groups[group].leave_queue(rank),
            (Status::Queued, group) => {
                self.limit.leave_queue(rank);
                if let Some(group) = group {
                    self.groups[group].give_back();
                    self.start_group(group);
                    self.start_queued(starts);
                }
            }
            _ => {}
        }
    }
}
