//! A timer of one's own and the ambient one, used alike.

use std::future::Future;

use waterwheel::{Duration, Instant, Interval, Sleep, Timeout, Timer};

#[derive(Clone)]
pub(crate) enum Timers {
    /// Its calls give nothing once it is stopped.
    Own(Timer),
    /// By the functions at the crate root. It goes with its runtime, and its futures tell so.
    Ambient,
}

impl Timers {
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Option<Sleep> {
        match self {
            Timers::Own(timer) => timer.try_sleep_until(deadline).ok(),
            Timers::Ambient => Some(waterwheel::sleep_until(deadline)),
        }
    }

    pub(crate) fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Option<Timeout<F>> {
        match self {
            Timers::Own(timer) => timer.try_timeout_at(deadline, future).ok(),
            Timers::Ambient => Some(waterwheel::timeout_at(deadline, future)),
        }
    }

    pub(crate) fn interval(&self, period: Duration) -> Option<Interval> {
        match self {
            Timers::Own(timer) => timer.try_interval(period).ok(),
            Timers::Ambient => Some(waterwheel::interval(period)),
        }
    }
}
