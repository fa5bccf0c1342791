use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::Sleep;

use super::{Postpones, Sleeps, TimesOut};

/// waterwheel's free functions: the timer of the current runtime, looked up by each call.
#[derive(Clone)]
pub(crate) struct Current;

impl Sleeps for Current {
    const NAME: &'static str = "current";
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        waterwheel::sleep(duration)
    }
    fn sleep_until(&self, deadline: Instant) -> Sleep {
        waterwheel::sleep_until(deadline)
    }
}

impl Postpones for Current {
    fn postpone_to(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.reset(deadline);
    }
}

impl TimesOut for Current {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        waterwheel::timeout(duration, future).await.is_ok()
    }
}
