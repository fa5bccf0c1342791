use std::sync::Arc;

use super::{Bucket, Due, Handle, Id, Most, Row};

/// One step of a [commit](crate::Store::commit).
///
/// Rows that a step is handed by value lie in the bucket of [`Level::Second`](crate::Level::Second) of their due time: they were loaded from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a timer into a bucket, unless another one of its handler has its key: [`Inserted`](Outcome::Inserted) or [`Exists`](Outcome::Exists). A row
    /// with the same id is written once. A store that is short of space may answer [`Full`](Outcome::Full), so that the other steps have some; not if the
    /// key is another timer's.
    Insert(Row, Bucket),
    /// Deletes a timer that was delivered, and its key: [`Done`](Outcome::Done), also if it is gone.
    Settle(Row),
    /// Deletes a timer that was delivered at this time, and keeps what is [archived](Row::archived) of it, and its key: [`Done`](Outcome::Done), also if it is
    /// gone. Until it [expires](Op::Expire), an insert with the key [exists](Outcome::Exists).
    Archive(Row, Due),
    /// Deletes what is archived of a handler on days before this one, the first days first, and the keys that these timers have:
    /// [`Expired`](Outcome::Expired).
    Expire {
        /// The handler.
        handler: Arc<str>,
        /// The first day that is kept.
        before: i64,
        /// How many at most, about: one more commit's worth may go.
        most: usize,
    },
    /// Deletes a timer wherever it lies, and its key: [`Cancelled`](Outcome::Cancelled).
    Cancel(Handle),
    /// Moves a timer, wherever it lies, to another due time, in this bucket: [`Rescheduled`](Outcome::Rescheduled). From then on it is found there by its
    /// handle.
    Reschedule(Handle, Due, Bucket),
    /// Notes that an attempt of a timer begins, in its place: it has one start more than this row says, whatever was noted before. [`Done`](Outcome::Done), also if it is
    /// gone.
    Start(Row),
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
    /// Deletes a dead letter: [`Cancelled`](Outcome::Cancelled).
    Discard(Id),
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
    /// Gives a setting this value, or deletes it: [`Done`](Outcome::Done).
    Set(Arc<str>, Option<Arc<[u8]>>),
    /// Answers an [order](crate::Store::orders), which is not put out again: [`Done`](Outcome::Done).
    Reply(u64, Arc<str>),
    /// These steps, of which no commit has only a part: [`All`](Outcome::All). None of its inserts is refused for want of space, and none of its steps is an
    /// `All`.
    All(Vec<Op>),
}

/// What came of an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The timer was written.
    Inserted,
    /// Another timer has the key: this one.
    Exists(Handle),
    /// The timer was not written: the store keeps the space that is left for other steps.
    Full,
    /// It is so now.
    Done,
    /// Whether there was such a timer, or such a dead letter.
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
    /// What has expired.
    Expired {
        /// Whether nothing is archived on an earlier day any more.
        is_empty: bool,
    },
    /// Of each step.
    All(Vec<Outcome>),
}
