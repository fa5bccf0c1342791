use super::Tick;

/// The answer of the `judge` of [`Wheel::advance`](super::Wheel::advance) for a timer whose slot has come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The timer is due. The wheel frees its entry and hands out its payload.
    Due,
    /// The timer is due, but the wheel keeps its entry and its payload, off the dials, until its key is cancelled
    /// or reset. No other timer gets its [index](super::Key::index) in the meantime.
    Disarm,
    /// The timer's deadline is now this tick. If that is not after the hand, the timer is due, as with
    /// [`Due`](Verdict::Due).
    Postpone(Tick),
}

/// The result of one advance of a [`Wheel`](super::Wheel).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// The number of timers that were due: [`Verdict::Due`] and [`Verdict::Disarm`].
    pub expired: usize,
    /// The number of timers that were filed again under a later deadline.
    pub postponed: usize,
    /// Whether the budget was too small, so that the wheel should be advanced again, to the same time or a later
    /// one.
    pub backlog: bool,
}
