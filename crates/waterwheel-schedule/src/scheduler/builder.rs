use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Handle;
use waterwheel::Timer;

use super::Scheduler;
use crate::engine::driver::{End, drive};
use crate::engine::limits::Limit;
use crate::engine::share::Share;
use crate::engine::table::Table;
use crate::engine::wall::WallClock;
use crate::look::{Event, Hook};

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

    /// A function that is called at each [`Event`], without a lock: by the task of the run, or its thread if it blocks, by the driver, or by the submitter. So it should be
    /// quick. If it panics, nothing else happens.
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
    /// As a stream: a broadcast channel of tokio's. A receiver that is too slow loses the oldest events, and learns how many.
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
    ///     .on_event(move |event| drop(sender.send(event.clone()))) // fails only without a receiver
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
            table: Share::new(table),
        }
    }
}
