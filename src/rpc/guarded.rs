use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::coop;

use super::idle_timeout::IdleTimeout;
use crate::driver::End;
use crate::error::Elapsed;
use crate::time::{RUNTIME_IS_OVER, Sleep, poll_limit};

pin_project! {
    /// The future of [`IdleTimeout::guard`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Guarded<F> {
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
    /// It has ended the future.
    Ended { was_stopped: bool },
}

impl<F> Guarded<F> {
    pub(super) fn new(future: F, delay: Delay, idle: IdleTimeout) -> Guarded<F> {
        Guarded {
            future,
            delay,
            idle,
        }
    }

    /// Returns a reference to the guarded future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns a mutable reference to the guarded future.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Consumes the `Guarded`, and returns the future without its time limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Guarded<F> {
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
                Delay::Ended { was_stopped } => return Poll::Ready(Elapsed::new(*was_stopped)),
            };
            // As an interval does, it keeps its permit from one sleep to the next.
            let tick = poll_fn(|context| sleep.poll_tick(context));
            ready!(poll_limit(tick, had_budget, context));
            // Each round sleeps until a touch that the one before did not see, plus the idle time.
            match sleep.found_end() {
                None => {}
                Some(End::Stopped) => {
                    *self = Delay::Ended { was_stopped: true };
                    continue;
                }
                // The task is dropped next.
                Some(End::TaskOfEndingRuntime) => return Poll::Pending,
                Some(End::Over) => panic!("{RUNTIME_IS_OVER}"),
            }
            *self = match idle.deadline() {
                Some(deadline) if deadline > sleep.deadline() => {
                    sleep.rearm(deadline);
                    continue;
                }
                Some(_) => Delay::Ended { was_stopped: false },
                None => Delay::Never,
            };
        }
    }
}
