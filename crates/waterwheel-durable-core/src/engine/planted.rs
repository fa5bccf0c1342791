//! Faults that are planted in the engine, one at a time: a simulator that does not find each of them is worth nothing.

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// The bound of what is loaded is published after the read.
    BoundAfterRead,
    /// A load takes timers again that are already known.
    KnownTakenAgain,
    /// An insert is answered before its commit.
    AnswerBeforeCommit,
    /// Due times are rounded down to a tick, and the present time up to a millisecond.
    RoundedDown,
    /// Timers that do not fit in memory are passed over for good.
    CursorOverUndelivered,
    /// A timer is forgotten as its settling is written, and not when that is answered.
    ForgottenBeforeSettled,
    /// A timer that is cancelled or moved as it waits for its handler counts as one in memory for ever.
    ReadyCountedForEver,
    /// A refused cancel or move is undone only for a timer that was in memory: a load may have passed over the other ones.
    PassedOverWhenRefused,
    /// A timer that is given up leaves as one that comes back.
    GivenUpComesBack,
    /// Timers that were loaded keep out those that are due sooner.
    LaterKeepsOutSooner,
    /// Each 16th timer that was delivered is never settled.
    NeverSettled,
    /// A namespace that is paused goes on.
    PauseForgotten,
    /// A namespace's rate limits nothing.
    RateIgnored,
    /// A namespace that could not begin for want of places is not served first once there are some.
    QuantumForgotten,
    /// An occurrence of a calendar is written without how far the calendar has come with it.
    CursorNotWritten,
    /// Archived timers never expire.
    ExpiresNothing,
    /// Starts that were noted before the last end in order count as well.
    OldStartsCount,
    /// While an accused timer is tried, no other one of its namespace begins, accused or not.
    AccusedHoldAll,
    /// A handler is called though the wall clock was set back while the delivery was on its way.
    CalledThoughEarly,
    /// A delivery that is withdrawn is forgotten: its row is not read again.
    WithdrawnForgotten,
    /// A command of another process is carried out each time that it is read.
    CommandAgain,
    /// Timers that leave memory for others leave their entries in the wheel.
    WheelEntriesLeft,
}

/// Whether this fault is planted. Without the feature `planted`, none ever is.
#[cfg(feature = "planted")]
pub fn is(fault: Planted) -> bool {
    CHOSEN.with(|chosen| chosen.get() == Some(fault)) || EVERYWHERE.get() == Some(&fault)
}

#[cfg(not(feature = "planted"))]
pub const fn is(_: Planted) -> bool {
    false
}

#[cfg(feature = "planted")]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

#[cfg(feature = "planted")]
static EVERYWHERE: std::sync::OnceLock<Planted> = std::sync::OnceLock::new();

/// Plants a fault in the engines of all threads, for as long as the process lives. The first call counts.
#[cfg(feature = "planted")]
pub fn plant_everywhere(fault: Planted) {
    EVERYWHERE.get_or_init(|| fault);
}

/// Plants a fault in the engines of this thread, or none.
#[cfg(feature = "planted")]
pub fn plant(fault: Option<Planted>) {
    CHOSEN.with(|chosen| chosen.set(fault));
}
