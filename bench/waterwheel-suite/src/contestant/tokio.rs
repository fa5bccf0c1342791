use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::{Postpones, Sleeps, TimesOut};

/// `tokio::time`, unchanged.
#[derive(Clone)]
pub(crate) struct Tokio;

impl Sleeps for Tokio {
    const NAME: &'static str = "tokio";
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        tokio::time::sleep(duration)
    }
    fn sleep_until(&self, deadline: Instant) -> Sleep {
        tokio::time::sleep_until(deadline)
    }
}

impl Postpones for Tokio {
    fn postpone_to(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.reset(deadline);
    }
}

impl TimesOut for Tokio {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        tokio::time::timeout(duration, future).await.is_ok()
    }
}
