use std::task::{Context, Poll};

use tokio::time::Duration;

use crate::error::{Elapsed, Error};
use crate::rpc::{self, Deadline, Entered};
use crate::time::poll_delay;
use crate::{Sleep, Timer};

/// What a response carries of its limit, from the call to the end of its body.
#[derive(Debug)]
pub(super) struct Limit {
    /// `None` for never.
    sleep: Option<Sleep>,
    /// Current while what is limited is polled; never if the limit is no deadline of [`rpc`].
    deadline: Deadline,
    /// The timer that is current with the deadline: `None` for the runtime's. While what is limited is polled, what was current before.
    timer: Option<Timer>,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A time limit, which leaves what is current as it is.
    Limit,
    /// Makes its deadline and its timer current.
    Scope,
    /// The same, but a scope around the caller, if it ends no later, is left to end the response.
    DeferringScope,
}

impl Limit {
    pub(super) const NEVER: Limit = Limit {
        sleep: None,
        deadline: Deadline::never(),
        timer: None,
        role: Role::Limit,
    };

    /// So long from now, on this timer or the runtime's.
    pub(super) fn after(timer: Option<&Timer>, duration: Duration) -> Result<Limit, Error> {
        let sleep = match timer {
            Some(timer) => timer.try_sleep_unless_never(duration)?,
            None => Sleep::try_on_current(duration)?,
        };
        Ok(Limit {
            sleep,
            ..Limit::NEVER
        })
    }

    /// Until a deadline, which is current meanwhile, with this timer or the runtime's.
    pub(super) fn until(timer: Option<Timer>, deadline: Deadline) -> Result<Limit, Error> {
        let sleep = match (deadline.instant(), &timer) {
            (None, _) => None,
            (Some(instant), Some(timer)) => Some(timer.try_sleep_until(instant)?),
            (Some(instant), None) => Some(Sleep::try_until_on_current(instant)?),
        };
        Ok(Limit {
            sleep,
            deadline,
            timer,
            role: Role::Scope,
        })
    }

    /// A deadline that has passed, so that no timer is needed: it ends nothing by itself.
    pub(super) fn passed(timer: Option<Timer>, deadline: Deadline) -> Limit {
        Limit {
            sleep: None,
            deadline,
            timer,
            role: Role::Scope,
        }
    }

    /// The same, but within a scope that ends no later, it is that scope which ends the response.
    ///
    /// Else the code of the scope, which waits for the response, would get an error at its own deadline and go on, where it is to be
    /// dropped.
    pub(super) fn deferring(self) -> Limit {
        Limit {
            role: Role::DeferringScope,
            ..self
        }
    }

    /// Calls with the deadline and its timer as the current ones.
    #[inline]
    pub(super) fn within<R>(&mut self, act: impl FnOnce() -> R) -> R {
        if self.role == Role::Limit {
            return act();
        }
        let _entered = Entered::polling(&mut self.timer, self.deadline);
        act()
    }

    /// `had_budget` says whether there was coop budget left before what is limited was polled.
    pub(super) fn poll(&mut self, had_budget: bool, context: &mut Context<'_>) -> Poll<Elapsed> {
        let is_left_to_scope = self.is_left_to_scope();
        match &mut self.sleep {
            Some(_) if is_left_to_scope => Poll::Pending,
            Some(sleep) => poll_delay(sleep, had_budget, context),
            None => Poll::Pending,
        }
    }

    /// Whether the caller is in a scope that ends no later, and that is to end the response.
    pub(super) fn is_left_to_scope(&self) -> bool {
        self.role == Role::DeferringScope && rpc::is_ended_by(self.deadline, self.timer.as_ref())
    }
}

/// The timer of a layer, if it has one; else that of the caller's scope, or `None` for the runtime's.
pub(super) fn timer_of(layers: Option<&Timer>) -> Option<Timer> {
    layers.cloned().or_else(rpc::current_timer)
}

/// What remains of a deadline by the clock of this timer, or of the runtime's.
pub(super) fn remaining(deadline: Deadline, timer: Option<&Timer>) -> Option<Duration> {
    match timer {
        Some(timer) => deadline.remaining_at(timer.now()),
        None => deadline.remaining(),
    }
}
