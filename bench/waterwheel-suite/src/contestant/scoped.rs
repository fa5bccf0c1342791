use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use waterwheel::Sleep;
use waterwheel::rpc::Deadline;

use super::{Current, Own, Sleeps, TimesOut, Watched};

/// Ours, with the deadline of an RPC instead of a timeout: everything that the call awaits can query it.
#[derive(Clone)]
pub(crate) struct Scoped<S>(pub(crate) S);

impl Sleeps for Scoped<Own<Watched>> {
    const NAME: &'static str = "own, scope";
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration)
    }
}

impl TimesOut for Scoped<Own<Watched>> {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        let deadline = Deadline::at(Instant::now() + duration);
        deadline.scope_on(&self.0.timer, future).await.is_ok()
    }
}

impl Sleeps for Scoped<Current> {
    const NAME: &'static str = "current, scope";
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration)
    }
}

impl TimesOut for Scoped<Current> {
    async fn timeout<F: Future + Send>(&self, duration: Duration, future: F) -> bool {
        Deadline::after(duration).scope(future).await.is_ok()
    }
}
