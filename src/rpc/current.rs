//! The current values within a scope: its deadline, and the timer whose clock the deadline is an instant of.
//!
//! Both are thread-locals, which a scope sets for as long as it is polled ([`Entered`]). Instants of two clocks have nothing to do with
//! each other, so a deadline that crosses over to another clock is carried by what remains of it.

use std::cell::{Cell, RefCell};
use std::{mem, ptr};

use tokio::time::Instant;

use super::deadline::Deadline;
use crate::Timer;

#[derive(Debug, Clone, Copy)]
struct Current {
    deadline: Deadline,
    /// Whether what is running is the poll of a future that is ended at the deadline, rather than a function, which is not ended.
    ends: bool,
}

impl Current {
    const NONE: Current = Current {
        deadline: Deadline::never(),
        ends: false,
    };
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current::NONE) };

    /// `None` for the runtime's timer: outside of scopes, and in those that were not made on a timer of one's own.
    static TIMER: RefCell<Option<Timer>> = const { RefCell::new(None) };
}

// A thread that is ending may have no locals any more. Then nothing is current.

#[inline]
pub(super) fn deadline() -> Deadline {
    current().deadline
}

#[inline]
fn current() -> Current {
    CURRENT.try_with(Cell::get).unwrap_or(Current::NONE)
}

/// Whether the caller is polled within a scope that ends it no later than at a deadline by the clock of this timer.
#[cfg(feature = "tower")]
pub(crate) fn is_ended_by(deadline: Deadline, timer: Option<&Timer>) -> bool {
    current().ends && is_no_later(deadline_on(timer), deadline)
}

fn is_no_later(one: Deadline, other: Deadline) -> bool {
    !one.is_never() && one.earlier(other) == one
}

/// The current deadline by the clock of another timer.
pub(crate) fn deadline_on(timer: Option<&Timer>) -> Deadline {
    let deadline = deadline();
    let Some(instant) = deadline.instant() else {
        return deadline;
    };
    let carried = TIMER.try_with(|current| match (current.borrow().as_ref(), timer) {
        (None, None) => deadline,
        (Some(current), Some(timer)) if ptr::eq(current.clock(), timer.clock()) => deadline,
        (current, timer) => carry(instant, current, timer),
    });
    carried.unwrap_or(deadline)
}

/// The timer of the caller's scope; `None` for the runtime's.
pub(crate) fn timer() -> Option<Timer> {
    TIMER
        .try_with(|timer| timer.borrow().clone())
        .unwrap_or_default()
}

/// Now, by the clock that the current deadline is an instant of.
pub(super) fn now() -> Instant {
    TIMER
        .try_with(|timer| now_of(timer.borrow().as_ref()))
        .unwrap_or_else(|_| Instant::now())
}

fn now_of(timer: Option<&Timer>) -> Instant {
    timer.map_or_else(Instant::now, Timer::now)
}

/// An instant of one timer's clock, by the clock of another.
fn carry(instant: Instant, from: Option<&Timer>, to: Option<&Timer>) -> Deadline {
    let before = now_of(to);
    let there = now_of(from);
    // If one clock reads what the other reads before and after it, they are the same, as those of two timers of a runtime.
    if before <= there && there <= now_of(to) {
        return Deadline::at(instant);
    }
    let left = instant.saturating_duration_since(there);
    // By the earlier look, so that it can only become earlier.
    before
        .checked_add(left)
        .map_or(const { Deadline::never() }, Deadline::at)
}

/// Sets what is current until it is dropped, also by a panic.
pub(crate) struct Entered<'a> {
    before: Current,
    /// Holds the timer that was current before, and gets its own back.
    timer: Option<&'a mut Option<Timer>>,
}

impl<'a> Entered<'a> {
    /// For a function: the earlier of `deadline` and the one that is current. The timer stays.
    #[inline]
    pub(super) fn new(deadline: Deadline) -> Entered<'static> {
        let deadline = deadline.earlier(self::deadline());
        let ends = false;
        Entered {
            before: replace(Current { deadline, ends }),
            timer: None,
        }
    }

    /// For a function: the timer, and the earlier of `deadline` and the one that is current.
    #[inline]
    pub(super) fn calling(timer: &'a mut Option<Timer>, deadline: Deadline) -> Entered<'a> {
        let deadline = deadline.earlier(deadline_on(timer.as_ref()));
        let ends = false;
        Entered::with(timer, Current { deadline, ends })
    }

    /// For the poll of what is ended at `deadline`: the timer, and the earlier of `deadline` and the one that is current.
    #[inline]
    pub(crate) fn polling(timer: &'a mut Option<Timer>, deadline: Deadline) -> Entered<'a> {
        let outer = deadline_on(timer.as_ref());
        let ends = is_no_later(deadline, outer) || current().ends;
        let deadline = deadline.earlier(outer);
        Entered::with(timer, Current { deadline, ends })
    }

    #[inline]
    fn with(timer: &'a mut Option<Timer>, current: Current) -> Entered<'a> {
        swap_timer(timer);
        Entered {
            before: replace(current),
            timer: Some(timer),
        }
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        let _ = replace(self.before);
        if let Some(timer) = &mut self.timer {
            swap_timer(timer);
        }
    }
}

#[inline]
fn replace(new: Current) -> Current {
    CURRENT
        .try_with(|current| current.replace(new))
        .unwrap_or(new)
}

#[inline]
fn swap_timer(timer: &mut Option<Timer>) {
    let _ = TIMER.try_with(|current| mem::swap(&mut *current.borrow_mut(), timer));
}
