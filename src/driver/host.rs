//! What the driver has of the machine and of tokio: the time, sleeps on tokio's clock, tasks, and a
//! thread for the bell. In a model it has them of the model, `models/host`.

#[cfg(waterwheel_loom)]
pub(super) use super::models::host::{
    Sleep, machine_now, sleep_until, spawn, start_bell, tokio_now,
};
#[cfg(not(waterwheel_loom))]
pub(super) use real::{machine_now, spawn, start_bell, tokio_now};
#[cfg(not(waterwheel_loom))]
pub(super) use tokio::time::{Sleep, sleep_until};

#[cfg(not(waterwheel_loom))]
mod real {
    use std::future::Future;
    use std::{io, thread};

    use tokio::runtime::Handle;

    #[inline]
    pub(in crate::driver) fn machine_now() -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Now, by the clock of the runtime that the thread is in.
    #[inline]
    pub(in crate::driver) fn tokio_now() -> tokio::time::Instant {
        tokio::time::Instant::now()
    }

    pub(in crate::driver) fn spawn(home: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        drop(home.spawn(task));
    }

    pub(in crate::driver) fn start_bell(run: fn()) -> io::Result<()> {
        let thread = thread::Builder::new().name("waterwheel-bell".into());
        thread.spawn(run).map(drop)
    }
}
