use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Timer;
use tokio::time::Instant;

use super::{Postpones, Sleeps};

/// async-io's `Timer`: an ordered map in the process's one reactor, behind a queue of operations, with its own thread.
///
/// A `Timer` is registered by its first poll; each registration notifies the reactor.
#[derive(Clone)]
pub(crate) struct AsyncIo;

impl Sleeps for AsyncIo {
    const NAME: &'static str = "async-io";
    type Sleep = AsyncIoSleep;

    fn sleep(&self, duration: Duration) -> AsyncIoSleep {
        AsyncIoSleep(Timer::after(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> AsyncIoSleep {
        AsyncIoSleep(Timer::at(deadline.into_std()))
    }
}

impl Postpones for AsyncIo {
    fn postpone(mut sleep: Pin<&mut AsyncIoSleep>, duration: Duration) {
        sleep.0.set_after(duration);
    }

    fn postpone_to(mut sleep: Pin<&mut AsyncIoSleep>, deadline: Instant) {
        sleep.0.set_at(deadline.into_std());
    }
}

/// A `Timer` without its output, the instant.
pub(crate) struct AsyncIoSleep(Timer);

impl Future for AsyncIoSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}
