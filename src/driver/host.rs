//! What the driver takes from the machine and from tokio, but for the time: sleeps on tokio's clock, tasks, and the
//! wake-up thread. In a model it takes them from the model, `models/host`. The time is `clock`'s.

#[cfg(waterwheel_loom)]
pub(crate) use super::models::host::spawn;
#[cfg(waterwheel_loom)]
pub(super) use super::models::host::{
    TokioSleep, is_processed_by_tokio, queue_length, sleep_until, start_wakeup_thread,
};
#[cfg(not(waterwheel_loom))]
pub(crate) use real::spawn;
#[cfg(not(waterwheel_loom))]
pub(super) use real::{is_processed_by_tokio, queue_length, start_wakeup_thread};
#[cfg(not(waterwheel_loom))]
pub(super) use tokio::time::{Sleep as TokioSleep, sleep_until};

/// Panics on a runtime without `enable_time`, as tokio's own `sleep` does and with the same message.
#[track_caller]
pub(super) fn assert_time_is_enabled(handle: &tokio::runtime::Handle) {
    let _entered = handle.enter();
    drop(tokio::time::sleep(std::time::Duration::ZERO));
}

#[cfg(not(waterwheel_loom))]
mod real {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::{io, thread};

    use tokio::runtime::Handle;
    use tokio::task::coop;
    use tokio::time::{Instant, sleep_until};

    /// Whether tokio has processed an instant's millisecond. To be called in the context of a runtime.
    pub(in crate::driver) fn is_processed_by_tokio(now: Instant) -> impl FnMut(Instant) -> bool {
        let mut sleep = Box::pin(sleep_until(now));
        move |at| {
            sleep.as_mut().reset(at);
            let poll = pin!(coop::unconstrained(sleep.as_mut()));
            let mut context = Context::from_waker(Waker::noop());
            poll.poll(&mut context).is_ready()
        }
    }

    pub(crate) fn spawn(home: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        drop(home.spawn(task));
    }

    /// How many tasks wait in the queue that all workers of a runtime take from.
    pub(in crate::driver) fn queue_length(home: &Handle) -> usize {
        home.metrics().global_queue_depth()
    }

    pub(in crate::driver) fn start_wakeup_thread(run: fn()) -> io::Result<()> {
        // Linux shows 15 bytes of a thread's name.
        let thread = thread::Builder::new().name("waterwheel-wake".into());
        thread.spawn(run).map(drop)
    }
}
