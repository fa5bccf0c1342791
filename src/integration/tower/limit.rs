use std::task::{Context, Poll};

use tokio::time::Duration;

use crate::error::{Elapsed, Error};
use crate::rpc::{self, Deadline, Entered};
use crate::time::poll_delay;
use crate::{Sleep, Timer};

/// The limit that a response carries, from the call to the end of its body.
#[derive(Debug)]
pub(super) struct Limit {
    /// `None` for never.
    sleep: Option<Sleep>,
    /// The end of the whole response, for a role that needs to know it; else never.
    deadline: Deadline,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// A time limit for the whole response, which leaves what is current as it is.
    Whole,
    /// As `Whole`, with a limit for each frame of the body as well. The sleep waits for the earlier of the two while a frame is awaited, and else
    /// for the end of the whole.
    Frames { timeout: Duration, is_awaited: bool },
    /// Makes the deadline current while what is limited is polled.
    Scope {
        /// Current with the deadline: `None` for the runtime's. While what is limited is polled, what was current before.
        timer: Option<Timer>,
        /// Whether a scope around the caller, if it ends no later, is left to end the response.
        defers: bool,
    },
}

impl Limit {
    pub(super) const NEVER: Limit = Limit {
        sleep: None,
        deadline: Deadline::never(),
        role: Role::Whole,
    };

    /// This duration from now, on this timer or the runtime's.
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

    /// This duration from now, and another one for each frame of the body.
    pub(super) fn with_frames(
        timer: Option<&Timer>,
        duration: Duration,
        timeout: Duration,
    ) -> Result<Limit, Error> {
        let mut limit = Limit::after(timer, duration)?;
        match &limit.sleep {
            Some(sleep) => limit.deadline = Deadline::at(sleep.deadline()),
            // The deadline of this one is set when a frame is awaited.
            None => limit = Limit::after(timer, timeout)?,
        }
        limit.role = Role::Frames {
            timeout,
            is_awaited: false,
        };
        Ok(limit)
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
            ..Limit::passed(timer, deadline)
        })
    }

    /// A deadline that has passed, so that no timer is needed: it ends nothing by itself.
    pub(super) fn passed(timer: Option<Timer>, deadline: Deadline) -> Limit {
        let role = Role::Scope {
            timer,
            defers: false,
        };
        Limit {
            sleep: None,
            deadline,
            role,
        }
    }

    /// Leaves it to an enclosing scope that ends no later to end the response.
    ///
    /// Otherwise the code of the scope, which waits for the response, would get an error at its own deadline and continue, although it
    /// should be dropped.
    pub(super) fn deferring(mut self) -> Limit {
        if let Role::Scope { defers, .. } = &mut self.role {
            *defers = true;
        }
        self
    }

    /// Calls with the deadline and its timer as the current ones.
    #[inline]
    pub(super) fn within<R>(&mut self, act: impl FnOnce() -> R) -> R {
        let _entered = match &mut self.role {
            Role::Whole | Role::Frames { .. } => None,
            Role::Scope { timer, .. } => Some(Entered::polling(timer, self.deadline)),
        };
        act()
    }

    /// `had_budget` says whether there was coop budget left before what is limited was polled.
    pub(super) fn poll(&mut self, had_budget: bool, context: &mut Context<'_>) -> Poll<Elapsed> {
        let ends_nothing = match &self.role {
            Role::Whole => false,
            Role::Frames { is_awaited, .. } => !is_awaited && self.deadline.is_never(),
            Role::Scope { .. } => self.is_left_to_scope(),
        };
        match &mut self.sleep {
            Some(_) if ends_nothing => Poll::Pending,
            Some(sleep) => poll_delay(sleep, had_budget, context),
            None => Poll::Pending,
        }
    }

    /// To be called before [`poll`](Limit::poll) for a body that goes on, with what a poll of it has found: whether the next frame
    /// is awaited, or was there.
    ///
    /// The time of a frame starts when it is found to be awaited, and not when the one before was there: in between, the client
    /// may have been slow to take that one.
    pub(super) fn await_frame(&mut self, is_awaited: bool) {
        let Role::Frames {
            timeout,
            is_awaited: was_awaited,
        } = &mut self.role
        else {
            return;
        };
        let was_awaited = std::mem::replace(was_awaited, is_awaited);
        let Some(sleep) = self.sleep.as_mut().filter(|_| was_awaited != is_awaited) else {
            return;
        };
        let mut deadline = self.deadline;
        if is_awaited {
            let frame = sleep.clock().now().checked_add(*timeout);
            deadline = deadline.earlier(frame.map_or(Deadline::never(), Deadline::at));
        }
        if let Some(instant) = deadline.instant() {
            sleep.set_deadline(instant);
        }
    }

    /// Whether the caller is in a scope that ends no later, and that is to end the response.
    pub(super) fn is_left_to_scope(&self) -> bool {
        match &self.role {
            Role::Scope {
                timer,
                defers: true,
            } => rpc::is_ended_by(self.deadline, timer.as_ref()),
            _ => false,
        }
    }
}

/// The timer of a layer, if it has one; else that of the caller's scope, or `None` for the runtime's.
pub(super) fn timer_of(layers: Option<&Timer>) -> Option<Timer> {
    layers.cloned().or_else(rpc::current_timer)
}

/// The time that remains until a deadline, by the clock of this timer, or of the runtime's.
pub(super) fn remaining(deadline: Deadline, timer: Option<&Timer>) -> Option<Duration> {
    match timer {
        Some(timer) => deadline.remaining_at(timer.now()),
        None => deadline.remaining(),
    }
}
