use std::fmt;
use std::future::Future;
use std::sync::Arc;

use waterwheel::wheel::Key;

use super::controls::controls;
use crate::engine::table::Job;
use crate::info::JobId;

/// Controls a job without awaiting it: cancels, pauses, moves and inspects it, while a task awaits the [`JobHandle`](crate::JobHandle).
///
/// Created by [`JobHandle::control`](crate::JobHandle::control), [`Scheduler::job`](crate::Scheduler::job) and
/// [`Scheduler::find`](crate::Scheduler::find).
///
/// A control is cheap to clone and has all methods of the handle. It relates to the handle as tokio's
/// [`AbortHandle`](tokio::task::AbortHandle) does to the `JoinHandle`: it does not yield the value of the job, but
/// [`ended`](JobControl::ended) waits for the end of the job. Dropping a control has no effect. Once the job has ended, a
/// control keeps neither its closure nor its value alive.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::collections::HashMap;
/// use std::time::Duration;
/// use waterwheel_schedule::{JobControl, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let mut orders: HashMap<u32, JobControl> = HashMap::new();
///
/// let closing = scheduler.after(Duration::from_secs(1800)).run(|_| async { println!("closed") });
/// orders.insert(7, closing.control());
/// let watch = tokio::spawn(closing); // a task awaits the handle
///
/// // Elsewhere: the order is paid.
/// assert!(orders.remove(&7).unwrap().cancel());
/// assert!(watch.await.unwrap().unwrap_err().is_cancelled());
/// # }
/// ```
#[derive(Clone)]
pub struct JobControl {
    job: Arc<dyn Job>,
    key: Key,
    id: JobId,
}

impl JobControl {
    pub(crate) fn new(job: Arc<dyn Job>, key: Key, id: JobId) -> JobControl {
        JobControl { job, key, id }
    }

    /// Waits until the job has ended for good, however it ended: no run is in progress, and none will begin. The handle then
    /// has its result, and the closure is dropped. Any number of tasks may wait.
    ///
    /// The future borrows nothing and keeps nothing of the job alive. If the job has ended, it completes immediately. A run
    /// that waits for the end of its own job waits forever.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use waterwheel_schedule::Scheduler;
    ///
    /// let scheduler = Scheduler::new();
    /// let report = scheduler.every(Duration::from_millis(5)).name("report").run(|_| async {});
    /// let control = report.control();
    /// drop(report); // detached: it continues
    ///
    /// // An operator stops the report, and waits until its last run is over.
    /// control.cancel();
    /// control.ended().await;
    /// assert!(control.is_done());
    /// # }
    /// ```
    pub fn ended(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.job.ended().cancelled_owned()
    }

    controls!();
}

impl fmt::Debug for JobControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobControl")
            .field("id", &self.id)
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}
