use std::sync::Arc;

use super::{Bucket, Due, Ended, Handle, Id, PageLimit, Row};

/// One step of a [commit](crate::store::Store::commit).
///
/// Rows that are passed to a step by value are in the bucket of [`Level::Second`](crate::store::Level::Second) of their due
/// time: they were loaded from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a timer into a bucket, unless another timer of its handler has its key. The outcome is
    /// [`Inserted`](Outcome::Inserted) or [`Exists`](Outcome::Exists). A row with the same id is written only once. A
    /// store that is short of space may answer [`Full`](Outcome::Full) to keep space for the other steps, but not if
    /// another timer has the key.
    Insert(Row, Bucket),
    /// Deletes a delivered timer and its key: [`Done`](Outcome::Done), also if it does not exist.
    Settle(Row),
    /// Deletes a timer that was delivered at this time, and keeps its [record](Row::archived) and its key:
    /// [`Done`](Outcome::Done), also if it does not exist. Until the record [expires](Op::Expire), an insert with the
    /// key [exists](Outcome::Exists).
    Archive(Row, Due),
    /// Deletes the records in the archive of a handler from days before `before`, oldest first, together with the keys
    /// of these timers: [`Expired`](Outcome::Expired).
    Expire {
        /// The name of the handler.
        handler: Arc<str>,
        /// The first day that stays archived.
        before: i64,
        /// The approximate maximum number of records: those of one more commit may be deleted.
        limit: usize,
    },
    /// Deletes a timer and its key, in whichever bucket it is: [`Cancelled`](Outcome::Cancelled).
    Cancel(Handle),
    /// Moves a timer, from whichever bucket it is in, to this due time and bucket:
    /// [`Rescheduled`](Outcome::Rescheduled). From then on, it is found there by its handle.
    Reschedule(Handle, Due, Bucket),
    /// Records, without moving the timer, that an attempt starts: the timer then has one start more than this row says,
    /// whatever was recorded before. [`Done`](Outcome::Done), also if it does not exist.
    Start(Row),
    /// Moves a timer whose attempt failed, like `Reschedule`, and increments its number of failures:
    /// [`Done`](Outcome::Done).
    Retry(Row, Due, Bucket),
    /// Moves a timer whose handler asked to be called again later, like `Retry` but without counting a failure:
    /// [`Done`](Outcome::Done).
    Snooze(Row, Due, Bucket),
    /// Makes a timer a dead letter, and frees its key: [`Done`](Outcome::Done).
    Bury {
        /// The timer.
        row: Row,
        /// The current time.
        at: Due,
        /// The error of the last attempt.
        error: Arc<str>,
    },
    /// Makes a dead letter a timer again, with this due time and in this bucket, without failures and without a key:
    /// [`Redriven`](Outcome::Redriven).
    Redrive(Id, Due, Bucket),
    /// Deletes a dead letter: [`Cancelled`](Outcome::Cancelled).
    Discard(Id),
    /// Deletes the dead letters of a handler that had this key. If a record in its archive keeps the key taken, the
    /// record stays without the key, which becomes free: [`Erased`](Outcome::Erased). A pending timer with the key
    /// stays.
    Erase {
        /// The name of the handler.
        handler: Arc<str>,
        /// The key.
        key: Arc<[u8]>,
    },
    /// Moves the first rows of a coarser bucket to [finer](Bucket::finer) ones: [`Cascaded`](Outcome::Cascaded). A reader
    /// of the store sees each row exactly once, before and after.
    Cascade {
        /// The bucket, of any level except [`Level::Second`](crate::store::Level::Second).
        bucket: Bucket,
        /// The current time.
        now: Due,
        /// How much to move: as much as a load with this limit would return.
        limit: PageLimit,
    },
    /// Sets the value of a setting, or deletes it: [`Done`](Outcome::Done).
    Set(Arc<str>, Option<Arc<[u8]>>),
    /// Answers a [command](crate::store::Store::commands), which is then no longer returned: [`Done`](Outcome::Done).
    Reply(u64, Arc<str>),
    /// Begins another epoch, larger than the given one and than all before, without reopening the store: [`Epoch`](Outcome::Epoch).
    /// The next [opening](crate::store::Store::begin) has a larger one.
    NextEpoch(u64),
    /// Lets another process take the store over at once, although handlers of this one are running for these timers:
    /// [`Done`](Outcome::Done). That process does not deliver them until this one has [reported](Op::Report) how they
    /// ended, or has ended itself. Only for stores that can [hand over](crate::store::Store::hands_over). In later commits, there
    /// are only reports.
    HandOver(Vec<Id>),
    /// Reports how a delivery that was handed over has ended, or that its handler was not called: [`Done`](Outcome::Done),
    /// also if the timer was given back meanwhile. A step that settles or moves the timer deletes the report.
    Report(Id, Option<Ended>),
    /// Carries out these steps atomically: [`All`](Outcome::All). None of its inserts is refused for lack of space, and
    /// none of its steps is an `All`.
    All(Vec<Op>),
}

/// The outcome of an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The timer was written.
    Inserted,
    /// Another timer has the key: this one.
    Exists(Handle),
    /// The timer was not written: the store keeps the remaining space for other steps.
    Full,
    /// The operation was applied.
    Done,
    /// Whether the timer or dead letter existed.
    Cancelled(bool),
    /// The timer as it is now, if it existed.
    Rescheduled(Option<Row>),
    /// The timer that was a dead letter, if it existed.
    Redriven(Option<Row>),
    /// The dead letters of a key, and the key in the archive, were deleted.
    Erased(Erased),
    /// Rows were moved.
    Cascaded {
        /// Whether the bucket is empty now.
        is_empty: bool,
        /// The first bucket of each coarser level to which rows were moved.
        buckets: Vec<Bucket>,
        /// The first second to which rows were moved, for each handler.
        seconds: Vec<(Arc<str>, i64)>,
    },
    /// Records have expired.
    Expired {
        /// Whether no records from earlier days are left.
        is_empty: bool,
    },
    /// The new epoch, larger than all before.
    Epoch(u64),
    /// The outcome of each step.
    All(Vec<Outcome>),
}

/// The result of an [erasure](Op::Erase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// The number of dead letters that were deleted.
    pub dead_letters: u64,
    /// Whether a record in the archive had the key.
    pub is_archived: bool,
}

/// A named value in a store: see [`Op::Set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Arc<[u8]>,
}

impl Setting {
    /// The setting that holds, in decimal, the epoch of the last run that ended cleanly, and the number of epochs that runs have drawn since.
    pub(crate) const CLEAN: &str = "clean";
}

impl Op {
    /// Notes the epoch of the last run that ended cleanly, and the number of epochs since that did not begin with a run.
    pub(crate) fn set_clean(clean: u64, drawn: u64) -> Op {
        let value = match drawn {
            0 => clean.to_string(),
            _ => format!("{clean} {drawn}"),
        };
        Op::Set(Setting::CLEAN.into(), Some(value.into_bytes().into()))
    }
}
