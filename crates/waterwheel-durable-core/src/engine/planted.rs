//! Faults that can be planted in the engine, one at a time, to check that the simulator finds each of them.

/// A fault to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// The bound of what is loaded is published after the read.
    BoundAfterRead,
    /// Another epoch begins with the ids of the previous one.
    EpochBeginsAgain,
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
    /// A timer that is cancelled or moved while it waits for its handler counts as in memory forever.
    ReadyCountedForEver,
    /// A refused cancel or move is undone only for a timer that was in memory; a row that a load left out stays left out.
    PassedOverWhenRefused,
    /// A timer that is given up leaves like one that comes back.
    GivenUpComesBack,
    /// Timers that were loaded keep out those that are due sooner.
    LaterKeepsOutSooner,
    /// Every 16th delivered timer is never settled.
    NeverSettled,
    /// A paused namespace continues to deliver.
    PauseForgotten,
    /// The rate of a namespace limits nothing.
    RateIgnored,
    /// A namespace that ran out of places is not served first once places are free.
    QuantumForgotten,
    /// An occurrence of a calendar is written without the calendar's progress.
    CursorNotWritten,
    /// Archived timers never expire.
    ExpiresNothing,
    /// Starts that were noted before the last clean end also count.
    OldStartsCount,
    /// While an accused timer is tried, no other timer of its namespace begins, accused or not.
    AccusedHoldAll,
    /// A handler is called though the wall clock was set back while the delivery was on its way.
    CalledThoughEarly,
    /// A withdrawn delivery is forgotten: its row is not read again.
    WithdrawnForgotten,
    /// A command from another process is carried out each time it is read.
    CommandAgain,
    /// Timers that are evicted from memory leave their entries in the wheel.
    WheelEntriesLeft,
    /// A node counts on its lease for a whole TTL, however slow its clock is.
    TrustedForTtl,
    /// Backends that block a take-over or a commit are not terminated.
    BlockersStay,
    /// A node counts on its lease from when the reply to its heartbeat came, not from when it was sent.
    TrustByReceipt,
    /// A heartbeat extends a lease although the row of the node is gone.
    HeartbeatOfNoRows,
    /// An observation goes on although a heartbeat of the observer has failed.
    ObservationGoesOn,
    /// A partition that was given back counts as free although a failover may have lost a take-over since.
    OldTimelineCounts,
    /// A commit whose reply is lost counts as refused.
    DoubtIsRefusal,
    /// A commit that violates the unique constraint of the keys counts as carried out before.
    UniqueViolationIsDone,
    /// Epochs on another timeline of the database rise as usual.
    EpochsRepeat,
    /// An engine that takes over does not know which deliveries go on elsewhere.
    HandedOverForgotten,
    /// It does not read how they end.
    EndsNotRead,
    /// The timers of a process that ends before its handlers are not given back.
    DeadNodesKept,
    /// A process keeps the partition if a failover has lost its hand-over.
    LostHandOverKept,
    /// An observation of a process that has handed over goes on although a heartbeat of the observer has failed.
    OthersStayObserved,
}

/// Whether this fault is planted. Always false without the feature `planted`.
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

/// Plants a fault in the engines of all threads, for the life of the process. Only the first call has an effect.
#[cfg(feature = "planted")]
pub fn plant_everywhere(fault: Planted) {
    EVERYWHERE.get_or_init(|| fault);
}

/// Sets or clears the fault that is planted in the engines of this thread.
#[cfg(feature = "planted")]
pub fn plant(fault: Option<Planted>) {
    CHOSEN.with(|chosen| chosen.set(fault));
}
