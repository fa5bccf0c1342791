//! Which promises there are, and what was seen of them.

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// An acknowledged timer is delivered, or becomes a dead letter.
    Lost,
    /// No delivery before its due time.
    Early,
    /// No delivery after a cancel was answered with "done".
    AfterDone,
    /// No delivery after a settled end, and one at a time.
    Twice,
    /// One id in all attempts, and what was inserted with it.
    Id,
    /// The attempts are counted.
    Attempt,
    /// One timer has a key.
    Key,
    /// An answer can be so.
    Answer,
    Other,
}

impl Rule {
    /// All of them, in words.
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

/// The work that a restore has undone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    /// Timers that were inserted after the copy was made.
    pub(crate) gone: usize,
    /// Timers that were delivered or cancelled since, and are there again.
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
    /// Inserts that were refused for want of space.
    pub(crate) full: u64,
    pub(crate) cancels: u64,
    pub(crate) cancelled: u64,
    pub(crate) reschedules: u64,
    pub(crate) redrives: u64,
    pub(crate) deliveries: u64,
    /// Deliveries of what was in flight at a kill.
    pub(crate) duplicates: usize,
    pub(crate) in_flight: usize,
    pub(crate) clock_moves: u64,
    /// Deliveries of calendars.
    pub(crate) occurrences: u64,
    /// Handlers that the clock was set back under, between their call and their look at it.
    pub(crate) on_their_way: u64,
    /// By copies that were restored.
    pub(crate) undone: Undone,
}

/// The work under way at a kill.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Deliveries with their handlers.
    pub(crate) running: usize,
    /// Ended deliveries that may not be settled.
    pub(crate) unsettled: usize,
    /// Inserts, cancels, reschedules and redrives that wait for their answers.
    pub(crate) unanswered: [usize; 4],
    /// The steps of the commit that the store was busy with.
    pub(crate) commit: Option<usize>,
}
