use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::current::Entered;
use super::deadline::Deadline;
use crate::Timer;
use crate::error::{Elapsed, Error};
use crate::time::{Timeout, timeout_at};

pin_project! {
    /// The future of [`Deadline::scope`] and [`Deadline::scope_on`].
    ///
    /// If it is polled within a scope whose deadline is earlier, that deadline is current during the poll. If that scope has
    /// another clock, [the remaining time](Deadline) counts.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Scoped<F> {
        // Its deadline is that of the scope.
        #[pin]
        inner: Timeout<F>,
        // `None` for the runtime's. While the future is polled, what was current before.
        timer: Option<Timer>,
    }
}

impl<F> Scoped<F> {
    /// Returns a reference to the future that is in the scope.
    pub fn get_ref(&self) -> &F {
        self.inner.get_ref()
    }

    /// Returns a mutable reference to the future that is in the scope.
    pub fn get_mut(&mut self) -> &mut F {
        self.inner.get_mut()
    }

    /// Consumes the `Scoped`, and returns the future without its scope.
    pub fn into_inner(self) -> F {
        self.inner.into_inner()
    }
}

impl<F: Future> Scoped<F> {
    #[track_caller]
    pub(super) fn new(deadline: Deadline, future: F) -> Scoped<F> {
        let inner = match deadline.instant() {
            Some(instant) => timeout_at(instant, future),
            None => Timeout::new(None, future),
        };
        Scoped { inner, timer: None }
    }

    pub(super) fn try_new_on(
        timer: &Timer,
        deadline: Deadline,
        future: F,
    ) -> Result<Scoped<F>, Error> {
        let inner = match deadline.instant() {
            Some(instant) => timer.try_timeout_at(instant, future)?,
            None => Timeout::new(None, future),
        };
        let timer = Some(timer.clone());
        Ok(Scoped { inner, timer })
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inner = this.inner;
        let deadline = inner
            .deadline()
            .map_or(const { Deadline::never() }, Deadline::at);
        let _entered = Entered::polling(this.timer, deadline);
        inner.poll(context)
    }
}
