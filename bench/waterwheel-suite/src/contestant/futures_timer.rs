use std::pin::Pin;
use std::time::Duration;

use futures_timer::Delay;
use tokio::time::Instant;

use super::{Postpones, Sleeps};

/// futures-timer's `Delay`: a heap in one thread of the process. Each change is added to a list, and wakes that thread.
#[derive(Clone)]
pub(crate) struct FuturesTimer;

impl Sleeps for FuturesTimer {
    const NAME: &'static str = "futures-timer";
    type Sleep = Delay;

    fn sleep(&self, duration: Duration) -> Delay {
        Delay::new(duration)
    }
}

impl Postpones for FuturesTimer {
    fn postpone(mut sleep: Pin<&mut Delay>, duration: Duration) {
        sleep.reset(duration);
    }

    fn postpone_to(sleep: Pin<&mut Delay>, deadline: Instant) {
        Self::postpone(sleep, deadline - Instant::now());
    }
}
