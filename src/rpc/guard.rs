use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::coop;

use super::idle_timeout::IdleTimeout;
use crate::error::Elapsed;
use crate::time::{Sleep, poll_delay};

pin_project! {
    /// The future of [`IdleTimeout::guard`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Guard<F> {
        #[pin]
        future: F,
        delay: Delay,
        idle: IdleTimeout,
    }
}

/// What a guard waits for beside its future.
#[derive(Debug)]
pub(super) enum Delay {
    /// The deadline as of the last look at the cell; it may be later by now.
    Until(Sleep),
    /// The idle time is so long that it never ends, or the future is done.
    Never,
    /// The runtime is gone.
    Stopped,
}

impl<F> Guard<F> {
    pub(super) fn new(future: F, delay: Delay, idle: IdleTimeout) -> Guard<F> {
        Guard {
            future,
            delay,
            idle,
        }
    }
}

impl<F: Future> Future for Guard<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(value) = this.future.poll(context) {
            *this.delay = Delay::Never;
            return Poll::Ready(Ok(value));
        }
        this.delay.poll(this.idle, had_budget, context).map(Err)
    }
}

impl Delay {
    /// Not generic, compiled once.
    fn poll(
        &mut self,
        idle: &IdleTimeout,
        had_budget: bool,
        context: &mut Context<'_>,
    ) -> Poll<Elapsed> {
        loop {
            let sleep = match self {
                Delay::Until(sleep) => sleep,
                Delay::Never => return Poll::Pending,
                Delay::Stopped => return Poll::Ready(Elapsed::new(true)),
            };
            let elapsed = ready!(poll_delay(sleep, had_budget, context));
            if elapsed.was_stopped() {
                return Poll::Ready(elapsed);
            }
            // Each round sleeps until a touch that the one before did not see, plus the idle time.
            match idle.deadline() {
                Some(deadline) if deadline > sleep.deadline() => sleep.set_deadline(deadline),
                Some(_) => return Poll::Ready(elapsed),
                None => *self = Delay::Never,
            }
        }
    }
}
