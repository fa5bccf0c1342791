use std::task::{Context, Poll};

use tokio::time::Duration;

use crate::error::{Elapsed, Error};
use crate::rpc::Deadline;
use crate::time::poll_delay;
use crate::{Sleep, Timer};

/// What a response carries of its limit, from the call to the end of its body.
#[derive(Debug)]
pub(super) struct Limit {
    /// `None` for never.
    sleep: Option<Sleep>,
    /// Current while what is limited is polled; never if the limit is no deadline of [`rpc`](crate::rpc).
    deadline: Deadline,
    /// Whether a scope around the caller, if it ends no later, is left to end the response.
    defers: bool,
}

impl Limit {
    pub(super) const NEVER: Limit = Limit {
        sleep: None,
        deadline: Deadline::never(),
        defers: false,
    };

    /// So long from now, on this timer or the runtime's.
    pub(super) fn after(timer: Option<&Timer>, duration: Duration) -> Result<Limit, Error> {
        let sleep = match timer {
            Some(timer) => timer.try_sleep_unless_never(duration)?,
            None => Sleep::on_current(duration),
        };
        Ok(Limit {
            sleep,
            ..Limit::NEVER
        })
    }

    /// Until a deadline, which is current meanwhile.
    pub(super) fn until(timer: Option<&Timer>, deadline: Deadline) -> Result<Limit, Error> {
        let sleep = match (deadline.instant(), timer) {
            (None, _) => None,
            (Some(instant), Some(timer)) => Some(timer.try_sleep_until(instant)?),
            (Some(instant), None) => Some(crate::sleep_until(instant)),
        };
        Ok(Limit {
            sleep,
            deadline,
            defers: false,
        })
    }

    /// The same, but within a scope that ends no later, it is that scope which ends the response.
    ///
    /// Else the code of the scope, which waits for the response, would get an error at its own deadline and go on, where it is to be
    /// dropped.
    pub(super) fn deferring(self) -> Limit {
        Limit {
            defers: true,
            ..self
        }
    }

    /// Calls with the deadline as the current one.
    #[inline]
    pub(super) fn within<R>(&self, act: impl FnOnce() -> R) -> R {
        self.deadline.sync_scope(act)
    }

    /// `had_budget` says whether there was coop budget left before what is limited was polled.
    pub(super) fn poll(&mut self, had_budget: bool, context: &mut Context<'_>) -> Poll<Elapsed> {
        match &mut self.sleep {
            Some(sleep) if !(self.defers && is_left_to_scope(self.deadline)) => {
                poll_delay(sleep, had_budget, context)
            }
            _ => Poll::Pending,
        }
    }
}

/// Whether the caller is in a scope that ends no later.
fn is_left_to_scope(deadline: Deadline) -> bool {
    let current = Deadline::current();
    current.instant().is_some() && current.earlier(deadline) == current
}
