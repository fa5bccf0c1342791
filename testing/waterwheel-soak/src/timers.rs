//! A separate timer and the runtime's timer, behind one interface.

use std::future::Future;

use waterwheel::{Duration, Instant, Interval, Sleep, Timeout, Timer};

#[derive(Clone)]
pub(crate) enum Timers {
    /// A `Timer` that the load has started. Once it is stopped, the methods below return `None`.
    Own(Timer),
    /// `Timer::current`, used through the functions at the crate root. Its futures are dropped with the tasks of its runtime.
    Current,
}

impl Timers {
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Option<Sleep> {
        match self {
            Timers::Own(timer) => timer.try_sleep_until(deadline).ok(),
            Timers::Current => Some(waterwheel::sleep_until(deadline)),
        }
    }

    pub(crate) fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Option<Timeout<F>> {
        match self {
            Timers::Own(timer) => timer.try_timeout_at(deadline, future).ok(),
            Timers::Current => Some(waterwheel::timeout_at(deadline, future)),
        }
    }

    pub(crate) fn interval(&self, period: Duration) -> Option<Interval> {
        match self {
            Timers::Own(timer) => timer.try_interval(period).ok(),
            Timers::Current => Some(waterwheel::interval(period)),
        }
    }
}
