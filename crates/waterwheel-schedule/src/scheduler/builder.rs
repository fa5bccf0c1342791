use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Handle;
use waterwheel::Timer;

use super::Scheduler;
use crate::engine::concurrency_limit::ConcurrencyLimit;
use crate::engine::driver::{DriverGuard, drive};
use crate::engine::table::{Table, TableRef};
use crate::engine::wall_clock::WallClock;
use crate::info::{Event, Hook};

/// Configures a [`Scheduler`]. Created by [`Scheduler::builder`].
#[derive(Debug, Default)]
#[must_use = "call `build` to create the scheduler"]
pub struct Builder {
    runtime: Option<Handle>,
    timer: Option<Timer>,
    concurrency: Option<NonZeroUsize>,
    max_pending: Option<usize>,
    wall: Option<SystemTime>,
    hook: Option<Hook>,
}

impl Builder {
    /// Sets the runtime that the jobs run on. The default is the current runtime.
    ///
    /// With it, a scheduler can be built outside a runtime, such as in a `main` that starts the runtime itself. Jobs can be
    /// submitted from anywhere in any case.
    ///
    /// ```
    /// use std::time::Duration;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// let scheduler = Scheduler::builder().runtime(runtime.handle()).build();
    /// let job = scheduler.after(Duration::from_millis(5)).run(|_| async {});
    /// runtime.block_on(job).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn runtime(mut self, runtime: &Handle) -> Builder {
        self.runtime = Some(runtime.clone());
        self
    }

    /// Sets the timer that the scheduler measures time with. The default is the timer of its runtime.
    ///
    /// Jobs run on the scheduler's runtime, whatever the timer.
    pub fn timer(mut self, timer: &Timer) -> Builder {
        self.timer = Some(timer.clone());
        self
    }

    /// Limits how many jobs run at the same time. By default there is no limit.
    ///
    /// Jobs that are due beyond the limit are queued in order of their deadlines, then of their submission.
    ///
    /// # Panics
    ///
    /// Panics if `most` is 0.
    #[track_caller]
    pub fn concurrency(mut self, most: usize) -> Builder {
        self.concurrency = NonZeroUsize::new(most);
        assert!(
            self.concurrency.is_some(),
            "the `concurrency` of a scheduler must be at least 1"
        );
        self
    }

    /// Limits how many jobs the scheduler holds, including running ones. By default there is no limit.
    ///
    /// A job beyond the limit is [refused](crate::SubmitError::is_at_capacity).
    pub fn max_pending(mut self, jobs: usize) -> Builder {
        self.max_pending = Some(jobs);
        self
    }

    /// Sets a virtual wall clock, for tests. The default is the wall clock of the machine.
    ///
    /// The clock shows `start` when the scheduler is built and advances with the scheduler's timer, so that virtual time moves it.
    pub fn virtual_wall_clock(mut self, start: SystemTime) -> Builder {
        self.wall = Some(start);
        self
    }

    /// Sets a function that is called for each [`Event`], without a lock held.
    ///
    /// The function is called by the task of the run (or by the thread of a blocking run), by the scheduler's driver
    /// task, or by the submitter, so it should return quickly. A panic in it is ignored.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
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
    ///
    /// To get a stream of events, use tokio's broadcast channel. A receiver that is too slow loses the oldest events, and is told how many.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use tokio::sync::broadcast::{self, error::RecvError};
    /// use waterwheel_schedule::{Event, Scheduler};
    ///
    /// let (sender, mut events) = broadcast::channel(256);
    /// let scheduler = Scheduler::builder()
    ///     .on_event(move |event| drop(sender.send(event.clone()))) // fails only if there is no receiver
    ///     .build();
    /// let metrics = tokio::spawn(async move {
    ///     let (mut finished, mut lost) = (0, 0);
    ///     loop {
    ///         match events.recv().await {
    ///             Ok(Event::Finished { .. }) => finished += 1,
    ///             Ok(_) => {}
    ///             Err(RecvError::Lagged(events)) => lost += events,
    ///             Err(RecvError::Closed) => return (finished, lost), // the scheduler is gone
    ///         }
    ///     }
    /// });
    ///
    /// drop(scheduler.after(Duration::ZERO).run(|_| async {}));
    /// scheduler.drain().await;
    /// drop(scheduler);
    /// assert_eq!(metrics.await.unwrap(), (1, 0));
    /// # }
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.hook = Some(Hook::new(hook));
        self
    }

    /// Creates the scheduler, and spawns its driver task on the runtime.
    ///
    /// # Panics
    ///
    /// Panics if
    ///
    /// - no [`runtime`](Builder::runtime) was set, and it is called outside a tokio runtime;
    /// - the timer has a [`max_pending`](waterwheel::Builder::max_pending), since a scheduler must be able to use its timer at any time;
    /// - no [`timer`](Builder::timer) was set, and the runtime was built without `enable_time` or its timer was shut down.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Scheduler {
        let Some(runtime) = self.runtime.or_else(|| Handle::try_current().ok()) else {
            panic!(
                "there is no tokio runtime here: call `build` within a runtime, or name one by `Builder::runtime`"
            );
        };
        let timer = match self.timer {
            Some(timer) => timer,
            None => {
                let _inside = runtime.enter();
                Timer::current()
            }
        };
        assert!(
            timer.max_pending().is_none(),
            "a scheduler cannot use a timer that has a `max_pending`: use a timer without `max_pending`, and set that of the scheduler"
        );
        let limit = ConcurrencyLimit::new(None, self.concurrency);
        let wall = match self.wall {
            Some(start) => WallClock::Virtual {
                start,
                since: timer.now(),
            },
            None => WallClock::System,
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
        runtime.spawn(drive(DriverGuard {
            table: Arc::clone(&table),
        }));
        Scheduler {
            table: TableRef::new(table),
        }
    }
}
