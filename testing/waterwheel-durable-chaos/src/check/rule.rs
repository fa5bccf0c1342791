//! The promises, and the counts of what was seen of them.

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// An acknowledged timer is delivered, or becomes a dead letter.
    Lost,
    /// No delivery before its due time.
    Early,
    /// No delivery after a cancel was answered with "done".
    AfterDone,
    /// No delivery after a settled end, and no two at a time.
    Twice,
    /// All attempts have one id, and the data that was inserted with it.
    Id,
    /// The attempts are counted.
    Attempt,
    /// At most one timer has a key.
    Key,
    /// Every answer is possible.
    Answer,
    Other,
}

impl Rule {
    /// All promises, in words.
    pub(crate) const ALL: [(Rule, &str); 9] = [
        (Rule::Lost, "lost"),
        (Rule::Early, "early"),
        (Rule::AfterDone, "delivered after Done"),
        (Rule::Twice, "delivered twice, not in flight"),
        (Rule::Id, "another id"),
        (Rule::Attempt, "wrong attempt"),
        (Rule::Key, "wrong key"),
        (Rule::Answer, "wrong answer"),
        (Rule::Other, "other"),
    ];
}

/// The work that a restore undid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    /// Timers that were inserted after the copy was made.
    pub(crate) gone: usize,
    /// Timers that were delivered or cancelled after the copy was made, and exist again.
    pub(crate) again: usize,
}

/// The counts of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Summary {
    pub(crate) rounds: u64,
    pub(crate) requests: u64,
    /// Answered inserts.
    pub(crate) inserts: u64,
    pub(crate) created: u64,
    /// Inserts that were refused for lack of space.
    pub(crate) full: u64,
    pub(crate) cancels: u64,
    pub(crate) cancelled: u64,
    pub(crate) reschedules: u64,
    pub(crate) redrives: u64,
    pub(crate) deliveries: u64,
    /// Repeated deliveries of timers that were in flight at a kill.
    pub(crate) duplicates: usize,
    pub(crate) in_flight: usize,
    pub(crate) clock_moves: u64,
    /// Deliveries of calendar occurrences.
    pub(crate) occurrences: u64,
    /// Handlers that read a clock that was set back just after they were called.
    pub(crate) on_their_way: u64,
    /// The work undone by restored copies.
    pub(crate) undone: Undone,
}

/// The work in progress at a kill.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Deliveries that were with their handlers.
    pub(crate) running: usize,
    /// Deliveries that have ended, but may not be settled.
    pub(crate) unsettled: usize,
    /// Inserts, cancels, reschedules and redrives that wait for their answers.
    pub(crate) unanswered: [usize; 4],
    /// The steps of the commit that the store was busy with.
    pub(crate) commit: Option<usize>,
}
