use std::fmt;
use std::sync::Arc;

use waterwheel::wheel::Key;

use super::controls::controls;
use crate::engine::job::Job;

/// Cancels, moves and looks at a job, beside the [`JobHandle`](crate::JobHandle) that is awaited. Made by
/// [`JobHandle::control`](crate::JobHandle::control) and [`Scheduler::find`](crate::Scheduler::find).
///
/// It is cheap to clone, and has all methods of the handle but the result, as tokio's [`AbortHandle`](tokio::task::AbortHandle) beside the
/// `JoinHandle`. Dropping it changes nothing. It keeps neither the closure of a job that has ended nor its value.
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
/// // The order is paid: elsewhere.
/// assert!(orders.remove(&7).unwrap().cancel());
/// assert!(watch.await.unwrap().unwrap_err().is_cancelled());
/// # }
/// ```
#[derive(Clone)]
pub struct JobControl {
    job: Arc<dyn Job>,
    key: Key,
}

impl JobControl {
    pub(crate) fn new(job: Arc<dyn Job>, key: Key) -> JobControl {
        JobControl { job, key }
    }

    controls!();
}

impl fmt::Debug for JobControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobControl")
            .field("is_done", &self.is_done())
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}
