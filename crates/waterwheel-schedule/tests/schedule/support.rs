//! Shared helpers of the tests.

use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use waterwheel::{ManualClock, Timer};
use waterwheel_schedule::{Context, Counts, JobError, JobHandle, Scheduler};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A runtime whose clock jumps to the next deadline when nothing else is left.
pub(crate) fn paused() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

pub(crate) fn multi_thread() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A runtime with this many workers; with none, the calling thread runs the tasks.
pub(crate) fn with_workers(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder
        .worker_threads(workers.max(1))
        .enable_all()
        .build()
        .unwrap()
}

/// A scheduler whose timer follows a clock that is advanced by hand. The wall clock is that of the machine.
pub(crate) fn on_manual_clock() -> (ManualClock, Scheduler) {
    let (clock, builder) = builder_on_manual_clock();
    (clock, builder.build())
}

pub(crate) fn builder_on_manual_clock() -> (ManualClock, waterwheel_schedule::Builder) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    (clock, Scheduler::builder().timer(&timer))
}

/// Whether each accepted job is counted in exactly one state.
pub(crate) fn add_up(counts: &Counts) -> bool {
    counts.submitted == counts.pending + counts.running + counts.cancelled + counts.ended
}

/// Fails if the future takes longer than it may on a busy machine.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(secs(60), future)
        .await
        .expect("it takes longer than a minute")
}

/// Waits for the end of each job, and expects success.
pub(crate) async fn all_end_well<T>(jobs: impl IntoIterator<Item = JobHandle<T>>) {
    for job in jobs {
        job.await.unwrap();
    }
}

/// Waits for the end of each job, and expects that it was shut down.
pub(crate) async fn all_shut_down<T>(jobs: impl IntoIterator<Item = JobHandle<T>>) {
    for job in jobs {
        assert!(matches!(job.await, Err(JobError::Shutdown)));
    }
}

/// A run whose first attempt fails.
pub(crate) async fn fails_at_first(context: Context) -> Result<(), &'static str> {
    if context.attempt() == 1 {
        Err("fails")
    } else {
        Ok(())
    }
}

/// Waits for another thread, which takes real time: a paused clock jumps to any deadline that exists.
pub(crate) async fn jumps_to_a_deadline() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(ms(20));
        sender.send(())
    });
    receiver.await.unwrap();
}

/// A log of events in order, with the time since the log was created.
#[derive(Clone)]
pub(crate) struct Log<T> {
    start: Instant,
    lines: Arc<Mutex<Vec<(u64, T)>>>,
}

impl<T: Clone> Log<T> {
    pub(crate) fn new() -> Log<T> {
        Log {
            start: Instant::now(),
            lines: Arc::default(),
        }
    }

    pub(crate) fn add(&self, line: T) {
        let at = self.start.elapsed().as_millis() as u64;
        self.lines.lock().unwrap().push((at, line));
    }

    /// A closure that logs this value of each run, and then does the rest of it.
    pub(crate) fn each<L, R, F>(
        &self,
        line: L,
        mut rest: R,
    ) -> impl FnMut(Context) -> F + Send + use<T, L, R, F>
    where
        T: Send,
        L: Fn(&Context) -> T + Send,
        R: FnMut(Context) -> F + Send,
    {
        let log = self.clone();
        move |context| {
            log.add(line(&context));
            rest(context)
        }
    }

    /// A closure that logs this line in each run.
    pub(crate) fn job(&self, line: T) -> impl FnMut(Context) -> Ready<()> + Send + use<T>
    where
        T: Send + Sync + 'static,
    {
        self.each(move |_| line.clone(), |_| ready(()))
    }

    pub(crate) fn lines(&self) -> Vec<T> {
        let lines = self.lines.lock().unwrap();
        lines.iter().map(|(_, line)| line.clone()).collect()
    }

    /// The times of the lines, in milliseconds.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .map(|&(at, _)| at)
            .collect()
    }

    /// Expects this many lines, in order.
    #[track_caller]
    pub(crate) fn assert_sorted(&self, count: usize)
    where
        T: Ord + std::fmt::Debug,
    {
        let lines = self.lines();
        assert_eq!(lines.len(), count);
        assert!(lines.is_sorted(), "{lines:?}");
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.lock().unwrap().len()
    }
}
