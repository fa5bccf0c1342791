//! Threads and tasks that only sleep: how late is this machine by itself?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::lateness;
use crate::sample::Sample;

/// The time from the end of one sleep to the end of the next.
const PERIOD: Duration = Duration::from_millis(1);

/// A thread and a task that only sleep until they are asked how late they were.
pub(crate) struct Control {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<i64>>,
    task: tokio::task::JoinHandle<Vec<i64>>,
}

/// The lateness of each sleep, in µs.
pub(crate) struct Slept {
    thread: Vec<i64>,
    task: Vec<i64>,
}

impl Control {
    pub(crate) fn start() -> Control {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let (mut next, mut late) = (Instant::now(), Vec::new());
            while !ends.load(Ordering::Relaxed) {
                next += PERIOD;
                thread::sleep(next.saturating_duration_since(Instant::now()));
                late.push(micros_since(next));
            }
            late
        });
        let ends = Arc::clone(&is_over);
        let task = tokio::spawn(async move {
            let (mut next, mut late) = (Instant::now(), Vec::new());
            while !ends.load(Ordering::Relaxed) {
                next += PERIOD;
                tokio::time::sleep_until(next.into()).await;
                late.push(micros_since(next));
            }
            late
        });
        Control {
            is_over,
            thread,
            task,
        }
    }

    pub(crate) async fn end(self) -> Result<Slept, crate::place::Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let task = self.task.await?;
        let thread = self
            .thread
            .join()
            .map_err(|_| "the control thread panicked")?;
        Ok(Slept { thread, task })
    }
}

impl Slept {
    /// Notes the lateness of this many deliveries and of the sleeps meanwhile, in µs; negative if early.
    pub(crate) fn note(self, late: Vec<i64>, deliveries: usize, sample: &mut Sample) {
        sample.set("early", late.iter().filter(|it| **it < 0).count() as f64);
        sample.set("twice", late.len().saturating_sub(deliveries) as f64);
        lateness::note("late", late, sample);
        lateness::note("thread", self.thread, sample);
        lateness::note("tokio", self.task, sample);
    }
}

fn micros_since(due: Instant) -> i64 {
    let late = Instant::now().saturating_duration_since(due).as_micros();
    i64::try_from(late).unwrap_or(i64::MAX)
}
