//! The expected behaviour of a wheel, by the example of a naive list: the steps, the list, and the two side by side.
//!
//! Shared with the fuzzer (`fuzz/targets/wheel.rs`), which makes the steps from bytes. The properties make
//! them at random. A new operation of the wheel goes into [`Op`] and, so that both reach it, into
//! `decode` and `properties`.
//!
//! | file | contents |
//! |---|---|
//! | `list` | the naive list, and the naive geometry that says when a timer is looked at |
//! | `pair` | a wheel and a list, and the steps on both |
//! | `advances` | the steps that move the hand |
//! | `checks` | compares the two after each step |
//! | `decode` | steps from bytes |
//!
//! A wheel is mutably borrowed while it advances, so no call re-enters it. The acts of a woken task
//! on its wheel come between two batches: [`Op::Turn`]. The re-entry from within a waker is in
//! `tests/time/futures`.

mod advances;
mod checks;
mod decode;
mod list;
mod pair;

use waterwheel::wheel::Resolution;

pub(crate) use decode::decode;
use pair::Pair;

/// A wheel, and the steps on it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) resolution: Resolution,
    /// The initial position of the hand.
    pub(crate) start: u64,
    pub(crate) ops: Vec<Op>,
}

/// One step. Times count from the wheel's hand unless they say otherwise, and saturate.
///
/// `which` picks a timer: every fourth number picks one that is gone, the others an existing one.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Adds a timer; the drop of a `bomb` panics.
    Insert {
        delay: u64,
        bomb: bool,
    },
    /// Adds many timers with one deadline.
    Herd {
        delay: u64,
        count: u8,
    },
    /// Adds a timer that was due before it was added.
    InsertPast {
        ago: u64,
    },
    Cancel {
        which: usize,
    },
    /// Moves a timer to a deadline counted from the hand.
    Reset {
        which: usize,
        delay: u64,
    },
    /// Moves a timer to a deadline before its own.
    ResetEarlier {
        which: usize,
        by: u64,
    },
    /// Moves a timer to a deadline after its own.
    ResetLater {
        which: usize,
        by: u64,
    },
    Disarm {
        which: usize,
    },
    SkipTo {
        by: u64,
    },
    /// Advances the hand; `says` is the judge's verdict on every second timer.
    Advance {
        by: u64,
        budget: usize,
        says: Says,
    },
    /// Advances the hand in order.
    AdvanceInOrder {
        by: u64,
        budget: usize,
        says: Says,
    },
    /// Moves the hand by the iterator, and takes this many items; then drops the iterator, or forgets it.
    Expire {
        by: u64,
        budget: usize,
        taken: usize,
        forget: bool,
    },
    /// Takes the timer that `peek` shows.
    ExpirePeeked,
    /// Advances batch by batch until there is no backlog. After each batch, the timers that were handed out act as
    /// `wakes` says.
    Turn {
        by: u64,
        batch: usize,
        wakes: Wakes,
    },
    /// Advances to just before the next expiration, then to that tick.
    AdvanceToExpiration,
    /// Advances and skips to a time that has passed.
    ClockBack {
        by: u64,
        budget: usize,
    },
    /// Drains the wheel, checks this many payloads, and drops the rest unseen.
    Drain {
        taken: usize,
    },
    /// Drops all timers and keeps the memory.
    Clear,
    /// Reserves capacity for this many more.
    Reserve {
        additional: u8,
    },
    ShrinkToFit,
    /// Drops the wheel with its timers, and goes on with a new one whose hand is here.
    Replace {
        start: u64,
    },
}

/// The judge's verdict on the timers with an odd number; the others are due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Says {
    Due,
    Postpone { by: u64 },
    Disarm,
    Panic,
}

/// The act of a timer's owner when it is handed out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wakes {
    /// Adds another timer. One without a delay comes up in the next batch, and the turn must end nevertheless.
    Insert {
        delay: u64,
    },
    Cancel {
        which: usize,
    },
    Reset {
        which: usize,
        delay: u64,
    },
}

/// Does the steps on a wheel and on the list, and compares the two after each step. Then time ends, so that a timer
/// that was lost is missed.
///
/// # Panics
///
/// If they differ.
pub(crate) fn run(case: &Case) {
    let mut pair = Pair::new(case.resolution, case.start);
    for op in &case.ops {
        pair.apply(op);
        pair.check();
    }
    pair.finish();
}
