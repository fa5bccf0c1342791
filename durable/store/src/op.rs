use std::sync::Arc;

use super::{Bucket, Due, Handle, Id, Most, Row};

/// One step of a [commit](crate::Store::commit).
///
/// Rows that a step is handed by value lie in the bucket of [`Level::Second`](crate::Level::Second) of their due time: they were loaded from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a timer into a bucket, unless another one of its handler has its key: [`Inserted`](Outcome::Inserted) or [`Exists`](Outcome::Exists). A row
    /// with the same id is written once.
    Insert(Row, Bucket),
    /// Deletes a timer that was delivered, and its key: [`Done`](Outcome::Done), also if it is gone.
    Settle(Row),
    /// Deletes a timer wherever it lies, and its key: [`Cancelled`](Outcome::Cancelled).
    Cancel(Handle),
    /// Moves a timer, wherever it lies, to another due time, in this bucket: [`Rescheduled`](Outcome::Rescheduled). From then on it is found there by its
    /// handle.
    Reschedule(Handle, Due, Bucket),
    /// Moves a timer whose attempt has failed, with one failure more, as `Reschedule` does: [`Done`](Outcome::Done).
    Retry(Row, Due, Bucket),
    /// Makes a timer a dead letter, and frees its key: [`Done`](Outcome::Done).
    Bury {
        /// The timer.
        row: Row,
        /// The present time.
        at: Due,
        /// What the last attempt said.
        error: Arc<str>,
    },
    /// Makes a dead letter a timer again, due at this time in this bucket, without failures and without a key: [`Redriven`](Outcome::Redriven).
    Redrive(Id, Due, Bucket),
    /// Moves the first rows of a far bucket to [finer](Bucket::finer) ones: [`Cascaded`](Outcome::Cascaded). A reader of the store sees each row once,
    /// before and after.
    Cascade {
        /// The bucket, of another level than [`Level::Second`](crate::Level::Second).
        bucket: Bucket,
        /// The present time.
        now: Due,
        /// How much to move: as much as a load of these rows would have.
        most: Most,
    },
}

/// What came of an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The timer was written.
    Inserted,
    /// Another timer has the key: this one.
    Exists(Handle),
    /// It is so now.
    Done,
    /// Whether there was such a timer.
    Cancelled(bool),
    /// The timer as it is now, if there is one.
    Rescheduled(Option<Row>),
    /// The timer that was a dead letter, if there was one.
    Redriven(Option<Row>),
    /// What has moved.
    Cascaded {
        /// Whether the bucket is empty now.
        is_empty: bool,
        /// The first bucket of each far level that rows have moved to.
        far: Vec<Bucket>,
        /// The first second that rows have moved to, of each handler.
        seconds: Vec<(Arc<str>, i64)>,
    },
}
