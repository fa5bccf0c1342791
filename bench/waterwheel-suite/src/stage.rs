//! The runtime in which a sample is taken, with two workers.
//!
//! The measured code runs as a task on a worker. A `block_on` thread is not a worker: it reaches the timer by other
//! paths and does not turn the driver, so it only waits here.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Worker threads of every runtime in this benchmark.
pub(crate) const WORKERS: usize = 2;

/// The number of operations after which a task yields.
pub(crate) const BATCH: usize = 128;

/// A fresh runtime, dropped with the sample.
pub(crate) struct Stage(Runtime);

impl Stage {
    /// Starts the workers.
    pub(crate) fn new() -> Self {
        Self::with_workers(WORKERS)
    }

    /// Starts another number of workers, for the workload in which that number grows.
    pub(crate) fn with_workers(workers: usize) -> Self {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(workers).enable_all();
        #[cfg(waterwheel_alt_timer)]
        builder.enable_alt_timer();
        Self(builder.build().expect("a runtime with workers"))
    }

    /// Starts a task on a worker.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.spawn(task)
    }

    /// Waits for a task, from outside the workers.
    pub(crate) fn wait<T>(&self, task: JoinHandle<T>) -> T {
        self.0
            .block_on(task)
            .expect("a measured task does not panic")
    }

    /// Runs a task on a worker and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.wait(self.spawn(task))
    }
}
