use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::time::Instant;
use waterwheel::Timer;

use crate::engine::driver::{End, drive};
use crate::engine::limits::Limit;
use crate::engine::plan::{Pace, add};
use crate::engine::table::{Phase, Table, wake};
use crate::engine::wall::WallClock;
use crate::look::{Counts, Event, Hook, JobInfo};
use crate::submit::{Once, Options, Repeat};

/// Runs jobs: after a delay, at an instant, at a fixed rate, with a fixed delay.
///
/// A job that waits is an entry of a [`Wheel`](waterwheel::wheel::Wheel), and no task. When it is due, it is started as a task of the
/// runtime. Jobs are started in order of their deadlines, equal ones in the order in which they were submitted. A job that panics harms no other.
///
/// A `Scheduler` is cheap to clone, and all clones are the same one. When the last clone is dropped, the jobs go on; then only handles and
/// the jobs themselves reach them. The scheduler ends when no job is left. It ends with its runtime, and when it finds its timer stopped: all handles give
/// [`JobError::Shutdown`](crate::JobError::Shutdown) then.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::{Duration, SystemTime};
/// use waterwheel_schedule::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let reminder = scheduler.after(Duration::from_millis(20)).run(|_| async { println!("tea is ready") });
/// let heartbeat = scheduler.every(Duration::from_millis(5)).name("heartbeat").run(|context| async move {
///     println!("heartbeat {}", context.run());
/// });
///
/// reminder.await.unwrap();
/// heartbeat.cancel();
/// scheduler.shutdown();
/// assert!(scheduler.await_termination(Duration::from_secs(5)).await);
/// # }
/// ```
pub struct Scheduler {
    /// Each job holds the outer one, whose count then is written by those that use this clone alone. With one count for all, submitting and cancelling
    /// from 2 threads took twice the CPU time.
    table: Arc<Arc<Table>>,
}

impl Scheduler {
    /// A scheduler on the current runtime and its timer, [`Timer::current`], without limits.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without `enable_time`.
    #[must_use]
    #[track_caller]
    pub fn new() -> Scheduler {
        Scheduler::builder().build()
    }

    /// To set limits, a timer of your own, or a function for events.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of_table(table: &Arc<Table>) -> Scheduler {
        table.state().handles += 1;
        Scheduler {
            table: Arc::new(Arc::clone(table)),
        }
    }

    /// A job that runs once, `delay` from now.
    ///
    /// Zero is the end of the running tick. A delay beyond the range of `Instant` is thirty years.
    pub fn after(&self, delay: Duration) -> Once<'_> {
        self.at(add(self.table.timer.now(), delay))
    }

    /// A job that runs once, at `deadline`. One that is past is due at once.
    pub fn at(&self, deadline: Instant) -> Once<'_> {
        Once::new(Options::new(&self.table, deadline))
    }

    /// A job that runs once, when the wall clock shows `time`. One that is past is due at once.
    ///
    /// If the wall clock is set, or the machine is suspended, the job goes by the new time: it never runs before the clock shows `time`.
    /// It does not poll ([how it waits](waterwheel::clocks#how-they-wait)). In virtual time, see
    /// [`Builder::virtual_wall_clock`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::{Duration, SystemTime};
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let soon = SystemTime::now() + Duration::from_millis(20);
    /// scheduler.at_wall(soon).run(|_| async {}).await.unwrap();
    /// assert!(SystemTime::now() >= soon);
    /// # }
    /// ```
    pub fn at_wall(&self, time: SystemTime) -> Once<'_> {
        let deadline = self.table.wall.instant_of(time, &self.table.timer);
        let mut options = Options::new(&self.table, deadline);
        options.wall = Some(time);
        Once::new(options)
    }

    /// A job at a fixed rate: its deadlines are `period` apart, however long a run takes. The first is one period from now.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    #[track_caller]
    pub fn every(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Pace::Rate(period))
    }

    /// A job with a fixed delay: each run is `period` after the end of the one before. The first is one period from now.
    ///
    /// # Panics
    ///
    /// If `period` is zero.
    #[track_caller]
    pub fn with_delay(&self, period: Duration) -> Repeat<'_> {
        self.repeat(period, Pace::Delay(period))
    }

    /// A job by the calendar: a cron expression in a time zone, by its IANA name.
    ///
    /// [`calendar`](crate::calendar) says what an expression may have, and what happens when the clock is put forward or back. Like
    /// [`at_wall`](Scheduler::at_wall), it goes by the wall clock, also when that is set. What was missed meanwhile, [`Missed`](crate::Missed)
    /// decides; at most 100 missed runs are counted. So also if a time comes up late, and the time after it is past as well; if that is not, the
    /// run begins late. If the clock is set back, a time that has had its run has no other, unless the clock is set back by more than a day.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`](crate::calendar::ScheduleError), if the expression or the zone is wrong.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel_schedule::calendar::ScheduleError> {
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let report = scheduler.cron("0 9 * * TUE", "UTC")?.name("report").run(|_| async {});
    /// assert!(report.time_left().unwrap().as_secs() <= 7 * 86_400);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "cron")]
    pub fn cron(
        &self,
        expression: &str,
        zone: &str,
    ) -> Result<Repeat<'_>, crate::calendar::ScheduleError> {
        Ok(self.by_calendar(crate::calendar::Schedule::parse(expression, zone)?))
    }

    /// A job by a schedule that was parsed before. One that never comes any more ends at once, well.
    #[cfg(feature = "cron")]
    pub fn by_calendar(&self, schedule: crate::calendar::Schedule) -> Repeat<'_> {
        let now = self.table.wall.now(&self.table.timer);
        let first = crate::engine::first_occurrence(&schedule, now);
        let (timer, wall) = (&self.table.timer, &self.table.wall);
        let deadline = first.map_or_else(|| timer.now(), |first| wall.instant_of(first, timer));
        let mut options = Options::new(&self.table, deadline);
        options.wall = first;
        let job = Repeat::new(options, Pace::Calendar(schedule));
        match first {
            Some(_) => job,
            None => job.without_runs(),
        }
    }

    #[track_caller]
    fn repeat(&self, period: Duration, pace: Pace) -> Repeat<'_> {
        assert!(!period.is_zero(), "`period` must be non-zero.");
        let first = add(self.table.timer.now(), period);
        Repeat::new(Options::new(&self.table, first), pace)
    }

    /// A group of jobs, of which at most `most` run at a time. The others wait, first in, first out.
    ///
    /// Jobs of a group of one are started in order of their deadlines, each when the one before has ended. A group stays for as long as its scheduler.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::{Duration, SystemTime};
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let exports = scheduler.group("exports", 2);
    /// let export = scheduler.after(Duration::ZERO).group(&exports).run(|_| async {});
    /// export.await.unwrap();
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn group(&self, name: impl Into<Arc<str>>, most: usize) -> Group {
        let most = NonZeroUsize::new(most);
        assert!(most.is_some(), "a group runs at least 1 job at a time");
        let mut state = self.table.state();
        state.groups.push(Limit::new(Some(name.into()), most));
        Group {
            index: state.groups.len() - 1,
            table: Arc::clone(&*self.table),
        }
    }

    /// The jobs that there are, in no particular order. Jobs that have ended are not among them.
    ///
    /// O(jobs), with the scheduler's lock held: for a list on a screen, and not for each submission.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobInfo> {
        let state = self.table.state();
        state
            .wheel
            .iter_all()
            .map(|(.., entry)| JobInfo::of(entry))
            .collect()
    }

    /// How many jobs and runs there were and are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.table.state();
        let running = state.counts.running;
        Counts {
            pending: (state.jobs as u64).saturating_sub(running),
            ..state.counts
        }
    }

    /// When the scheduler next has something to do: the deadline of its next job, or earlier. `None` if no job waits.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        let next = self.table.state().wheel.next_expiration()?;
        self.table.timer.instant_of(next)
    }

    /// The timer by which the scheduler measures.
    #[must_use]
    pub fn timer(&self) -> &Timer {
        &self.table.timer
    }

    /// Takes nothing new from now on. By default, jobs that run once still run, and those that run more than once end now, or after their present run. So Java's
    /// `shutdown`; its two policies are [`keep_delayed`](Scheduler::keep_delayed) and [`keep_periodic`](Scheduler::keep_periodic).
    ///
    /// Paused jobs end: they would never run. Submissions race with it cleanly: each is taken as a whole or refused. A second call does nothing.
    pub fn shutdown(&self) {
        self.table.shutdown();
    }

    /// Ends every job that does not run, and returns what these were. Takes nothing new.
    ///
    /// Their handles give [`JobError::Shutdown`](crate::JobError::Shutdown) (Java's never end). Runs that go on are let finish, and their
    /// [tokens](crate::Context::token) are cancelled. A second call returns nothing.
    pub fn shutdown_now(&self) -> Vec<JobInfo> {
        self.table.shutdown_now()
    }

    /// Whether jobs that run once still run after a [`shutdown`](Scheduler::shutdown); by default yes. It can be changed at any time: said after
    /// a shutdown, `false` ends them now.
    pub fn keep_delayed(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_delayed = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Whether jobs that run more than once go on after a [`shutdown`](Scheduler::shutdown); by default no. It can be changed at any time.
    pub fn keep_periodic(&self, keep: bool) {
        let mut state = self.table.state();
        state.keeps_periodic = keep;
        let phase = state.phase;
        drop(state);
        self.shut_down_again(phase);
    }

    /// Waits until the scheduler was shut down and its last job has ended. `false` if that takes longer than `limit`.
    ///
    /// Without a shutdown, it waits for one. A timer that is stopped measures no limit: then this says at once whether it has ended.
    pub async fn await_termination(&self, limit: Duration) -> bool {
        if self.is_terminated() {
            return true;
        }
        match self.table.timer.try_timeout(limit, self.terminated()) {
            Ok(terminated) => terminated.await.is_ok(),
            Err(_) => self.is_terminated(),
        }
    }

    /// [`shutdown`](Scheduler::shutdown), and waits until the last run has ended, however long that takes. A job that awaits it waits for itself, for ever.
    pub async fn drain(&self) {
        self.shutdown();
        self.terminated().await;
    }

    /// Whether the scheduler was shut down. Jobs may still run.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.table.state().phase != Phase::Running
    }

    /// Whether the scheduler was shut down, and its last job has ended.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.table.state().phase == Phase::Terminated
    }

    async fn terminated(&self) {
        let mut terminated = std::pin::pin!(self.table.terminated.notified());
        terminated.as_mut().enable();
        if !self.is_terminated() {
            terminated.await;
        }
    }

    fn shut_down_again(&self, phase: Phase) {
        if phase == Phase::ShuttingDown {
            self.table.shutdown();
        }
    }
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler::new()
    }
}

impl Clone for Scheduler {
    fn clone(&self) -> Scheduler {
        Scheduler::of_table(&self.table)
    }
}

impl Drop for Scheduler {
    /// The last one lets the driver end, once no job is left.
    fn drop(&mut self) {
        let mut state = self.table.state();
        state.handles -= 1;
        let waker = state.waker_if_idle();
        drop(state);
        wake(waker);
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// A bound on how many jobs of a group run at a time. Made by [`Scheduler::group`].
#[derive(Clone)]
pub struct Group {
    table: Arc<Table>,
    index: usize,
}

impl Group {
    pub(crate) fn is_of(&self, table: &Arc<Table>) -> bool {
        Arc::ptr_eq(&self.table, table)
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        let name = self.table.state().groups[self.index].name.clone();
        name.unwrap_or_default()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.name()).finish()
    }
}

/// Sets up a [`Scheduler`]. Made by [`Scheduler::builder`].
#[derive(Debug, Default)]
#[must_use = "a scheduler is made by `build`"]
pub struct Builder {
    timer: Option<Timer>,
    concurrency: Option<NonZeroUsize>,
    max_pending: Option<usize>,
    wall: Option<SystemTime>,
    hook: Option<Hook>,
}

impl Builder {
    /// The timer to measure by; by default that of the current runtime. The jobs run on the current runtime in any case.
    pub fn timer(mut self, timer: &Timer) -> Builder {
        self.timer = Some(timer.clone());
        self
    }

    /// At most so many jobs run at a time; by default there is no bound. Those that are due wait, first in, first out.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[track_caller]
    pub fn concurrency(mut self, most: usize) -> Builder {
        self.concurrency = NonZeroUsize::new(most);
        assert!(
            self.concurrency.is_some(),
            "a scheduler runs at least 1 job at a time"
        );
        self
    }

    /// At most so many jobs, running ones included; by default there is no bound. One more is
    /// [refused](crate::SubmitError::is_at_capacity).
    pub fn max_pending(mut self, jobs: usize) -> Builder {
        self.max_pending = Some(jobs);
        self
    }

    /// A wall clock for tests: it shows `start` when the scheduler is built, and goes on with the time of its timer, so that
    /// virtual time moves it. By default it is the machine's.
    pub fn virtual_wall_clock(mut self, start: SystemTime) -> Builder {
        self.wall = Some(start);
        self
    }

    /// A function that is called at each [`Event`], without a lock: by the task of the run, by the driver, or by the submitter. So it should be
    /// quick. If it panics, nothing else happens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::{Duration, SystemTime};
    /// use waterwheel_schedule::{Event, Scheduler};
    ///
    /// let scheduler = Scheduler::builder()
    ///     .on_event(|event| if let Event::Finished { name, error: Some(error), .. } = event {
    ///         eprintln!("{name:?}: {error}");
    ///     })
    ///     .build();
    /// let job = scheduler.after(Duration::ZERO).name("import").run(|_| async { Err::<(), _>("no such file") });
    /// assert!(job.await.is_err());
    /// # }
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.hook = Some(Hook::new(hook));
        self
    }

    /// The scheduler, with its driver as a task of the current runtime.
    ///
    /// # Panics
    ///
    /// If the timer has a [`max_pending`](waterwheel::Builder::max_pending): a scheduler needs a place of it at any time. Outside of a tokio runtime. Without a [`timer`](Builder::timer), also in a runtime without `enable_time`, and if its timer was shut down.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Scheduler {
        let runtime = Handle::current();
        let timer = self.timer.unwrap_or_else(Timer::current);
        assert!(
            timer.max_pending().is_none(),
            "a scheduler needs a place of its timer at any time: give it a timer without `max_pending`, and bound the scheduler by its own"
        );
        let limit = Limit::new(None, self.concurrency);
        let wall = match self.wall {
            Some(start) => WallClock::OfTimer {
                start,
                since: timer.now(),
            },
            None => WallClock::Machine,
        };
        let table = Table::new(
            timer,
            runtime.clone(),
            wall,
            self.hook,
            self.max_pending,
            limit,
        );
        let table = Arc::new(table);
        runtime.spawn(drive(End {
            table: Arc::clone(&table),
        }));
        Scheduler {
            table: Arc::new(table),
        }
    }
}
