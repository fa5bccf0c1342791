use std::future::Future;

use tokio::runtime::Runtime;
use tokio::task::{LocalSet, coop, spawn_local};

/// Runs this within a task, on the main thread: the library takes other paths outside of tasks.
///
/// Unconstrained by tokio's budget, which a task of thousands of operations would use up.
pub(crate) fn within(runtime: &Runtime, work: impl Future<Output = ()> + 'static) {
    let task = async { spawn_local(coop::unconstrained(work)).await };
    let ended = LocalSet::new().block_on(runtime, task);
    ended.expect("no path panics");
}
