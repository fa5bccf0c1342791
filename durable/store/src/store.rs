use std::sync::Arc;

use super::{
    Archived, Handle, Id, Letters, Level, Mark, Most, Notice, Op, Order, Outcome, Position, Row,
    Setting, StoreError, Whose,
};

/// Where durable timers lie.
///
/// One caller at a time, from a thread that may block. Each call sees what all calls before it have written.
///
/// # Errors
///
/// A definite error of a read is of no consequence: it is read again. After an [indeterminate](StoreError::indeterminate) error, of a read or of a write,
/// nothing more is asked of the store.
pub trait Store: Send {
    /// Says that the store has been opened once more, durably: returns 1 for the first time, and more each time.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn begin(&mut self) -> Result<u64, StoreError>;

    /// Does all steps, in order, or none; returns the outcome of each once they are durable, synced to the disk.
    ///
    /// `number` is 1 for the first commit after `begin`, and one more for each. A commit with the number of the last one is that one again, and the reply to it
    /// was lost: it is not done a second time, and has the same outcome.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError>;

    /// Does what can wait until callers have their answers: copies a log, makes room. The caller calls it after each commit, done or refused, once it has
    /// handed on what came of that, and about once a second while there is none if the store [takes orders](Store::takes_orders). A call takes some milliseconds,
    /// and what is left to be done is done by later ones. A store that passes its calls on to another one passes this on as well: a file may grow without end
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After a definite one, it is tried again later.
    fn tend(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The first rows of a handler in the buckets of [`Level::Second`]: those after a position and before a second, in order of their
    /// [position](Row::position), and as many as there [may be](Most).
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn load(
        &mut self,
        handler: &str,
        after: Position,
        before: i64,
        most: Most,
    ) -> Result<Vec<Row>, StoreError>;

    /// The first second, from this one on, in which the handler has a row. It costs the same, however far that is.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError>;

    /// The first bucket of a far level that has a row. It costs the same, however far that is.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError>;

    /// The names of all handlers that have had a row.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError>;

    /// The first dead letters of these handlers after this id, in order of their ids: as many as there may be, by [their bytes](crate::Dead::bytes), or fewer. A store
    /// looks at some thousand in a call, of whatever handler, so that it soon has time for a commit: the page says after which one the next one begins. It reads no
    /// payload of another handler.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn dead(&mut self, whose: Whose<'_>, after: Id, most: Most) -> Result<Letters, StoreError>;

    /// The timer of a handler that has a key, wherever it lies, by its first handle: what an insert with the key is answered. `None` if it was
    /// [archived](Op::Archive): an insert is answered with its handle, and there is no timer to cancel or to move.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError>;

    /// What is archived of a handler after this mark and before a day, in order, and as many as this.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn archived(
        &mut self,
        handler: &str,
        after: Mark,
        before: i64,
        most: usize,
    ) -> Result<Vec<(Mark, Archived)>, StoreError>;

    /// The first day of which something is archived of a handler.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, StoreError>;

    /// All settings, in order of their names.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn settings(&mut self) -> Result<Vec<Setting>, StoreError>;

    /// Whether other processes can ask for something by it, so that [`orders`](Store::orders) is worth a call.
    fn takes_orders(&self) -> bool {
        false
    }

    /// What other processes ask of the one that has the store open, if they can, each with its number, until it is [answered](Op::Reply). It is asked for about
    /// once a second.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn orders(&mut self) -> Result<Vec<(u64, Order)>, StoreError> {
        Ok(Vec::new())
    }

    /// What the operator should know, each once: asked for after the opening, and after each [`tend`](Store::tend).
    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}
