//! The machine and tokio as the driver sees them, apart from the time: sleeps on tokio's clock, tasks, and the
//! watchdog thread. In a model it takes them from the model, `models/host`. The time is `clock`'s.

#[cfg(waterwheel_loom)]
pub(crate) use super::models::host::spawn;
#[cfg(waterwheel_loom)]
pub(super) use super::models::host::{
    TokioSleep, await_end_of_clock, is_processed_by_tokio, queue_length, runs_this_task,
    sleep_until, start_watchdog,
};
#[cfg(not(waterwheel_loom))]
pub(crate) use real::spawn;
#[cfg(not(waterwheel_loom))]
pub(super) use real::{
    await_end_of_clock, is_processed_by_tokio, queue_length, runs_this_task, start_watchdog,
};
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
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::{Pin, pin};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake, Waker};
    use std::{io, thread};

    use tokio::runtime::Handle;
    use tokio::task::{coop, yield_now};
    use tokio::time::{Duration, Instant, Sleep, sleep_until};

    /// As good as never, and within what tokio's clock takes.
    const FAR: Duration = Duration::from_secs(86_400 * 30);

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

    /// The number of tasks in the queue that all workers of a runtime take from.
    pub(in crate::driver) fn queue_length(home: &Handle) -> usize {
        home.metrics().global_queue_depth()
    }

    /// A sleep of tokio's that wakes `waker` when the clock of this runtime ends: when the runtime has dropped its last task. `None` if it
    /// has ended already.
    pub(in crate::driver) fn await_end_of_clock(
        home: &Handle,
        waker: Waker,
    ) -> Option<Pin<Box<Sleep>>> {
        // A thread that is ending cannot enter a runtime. It may drop one, in the destructor of a thread-local.
        if Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed()) {
            return None;
        }
        let _entered = home.enter();
        let register = || {
            let far = Instant::now() + FAR;
            let mut sleep = Box::pin(sleep_until(far));
            // Registers it. Only a reset does so without a panic if the clock has ended; then the sleep counts as elapsed.
            sleep.as_mut().reset(far);
            if sleep.is_elapsed() {
                return None;
            }
            let poll = pin!(coop::unconstrained(sleep.as_mut()));
            let is_pending = poll.poll(&mut Context::from_waker(&waker)).is_pending();
            is_pending.then_some(sleep)
        };
        // The poll panics if another thread ends the runtime at this moment.
        catch_unwind(AssertUnwindSafe(register)).unwrap_or(None)
    }

    /// Whether a worker of this runtime runs the caller: in a task, or in the `block_on` of its only thread. `false` on a thread of
    /// `spawn_blocking`, in `Handle::block_on` and in other runtimes.
    ///
    /// tokio defers the wake of a task that yields until its worker has looked at the clock. On a thread that is no worker there
    /// is nothing to defer to, and it wakes at once.
    pub(in crate::driver) fn runs_this_task(home: &Handle) -> bool {
        if !Handle::try_current().is_ok_and(|here| here.id() == home.id()) {
            return false;
        }
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let _ = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
        !woken.0.load(Ordering::Relaxed)
    }

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    pub(in crate::driver) fn start_watchdog(run: fn()) -> io::Result<()> {
        // Linux shows 15 bytes of a thread's name.
        let thread = thread::Builder::new().name("waterwheel-wake".into());
        thread.spawn(run).map(drop)
    }
}
