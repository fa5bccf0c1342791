use std::sync::Arc;

use super::{
    ArchiveCursor, Archived, Command, DeadLetters, Handle, Id, Level, Notice, Op, Outcome,
    PageLimit, Row, RowCursor, Scope, Setting, StoreError,
};

/// The storage of durable timers.
///
/// A store has one caller at a time, on a thread that may block. Each call sees the writes of all previous calls.
///
/// # Errors
///
/// A definite read error is harmless: the read is retried. After an [indeterminate](StoreError::indeterminate) error of
/// a read or a write, the store is not called again.
pub trait Store: Send {
    /// Records, durably, that the store has been opened once more. Returns 1 for the first time, and a larger number
    /// each time.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn begin(&mut self) -> Result<u64, StoreError>;

    /// Carries out all steps in order, or none of them. Returns the outcome of each once they are durable (synced to
    /// disk).
    ///
    /// `number` is 1 for the first commit after `begin`, and increases by one for each commit. A commit with the number
    /// of the previous one is a retry after its reply was lost: it is not carried out again, and has the same outcome.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError>;

    /// Performs maintenance that can wait until callers have their results, such as copying the WAL and freeing space.
    /// It is called after each commit, successful or refused, once its results have been passed on; and about once a
    /// second while there are no commits, if the store [takes commands](Store::takes_commands). A call takes a few
    /// milliseconds, and leaves the remaining work to later calls. A store that forwards its calls to another store has
    /// to forward this one too: otherwise a file may grow without limit.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After a definite one, it is called again later.
    fn maintain(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the first rows of a handler in the buckets of [`Level::Second`], after the cursor `after` and before
    /// the second `before`, in order of their [cursors](Row::cursor): as many as [`limit`](PageLimit) allows.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError>;

    /// Returns the first second, starting with `from`, in which the handler has a row. The cost does not depend on how
    /// far ahead that is.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError>;

    /// Returns the first bucket of a far level that has a row. The cost does not depend on how far ahead that is.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError>;

    /// Returns the names of all handlers that have ever had a row.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError>;

    /// Returns the first dead letters of these handlers with ids after `after`, in order of their ids: as many as
    /// `limit` allows by [their bytes](crate::store::Dead::bytes), or fewer. A store examines about a thousand dead letters in
    /// a call, of any handler, so that commits are not delayed for long; the page contains the id after which the next
    /// one starts. Payloads of other handlers are not read.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, StoreError>;

    /// Returns the original handle of the timer of a handler that has this key, in whichever bucket it is: the handle
    /// with which an insert with the key is answered. `None` if the timer was [archived](Op::Archive): an insert is
    /// still answered with its handle, but there is no timer to cancel or reschedule.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError>;

    /// Returns at most `limit` records in the archive of a handler, in order: those after the cursor `after` and from days
    /// before `before`.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn archived(
        &mut self,
        handler: &str,
        after: ArchiveCursor,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(ArchiveCursor, Archived)>, StoreError>;

    /// Returns the first day for which the archive of a handler has records.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, StoreError>;

    /// Returns all settings, in order of their names.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn settings(&mut self) -> Result<Vec<Setting>, StoreError>;

    /// Returns whether other processes can send commands through this store, so that it is useful to call
    /// [`commands`](Store::commands).
    fn takes_commands(&self) -> bool {
        false
    }

    /// Returns the commands that other processes have sent to the process that has the store open, each with its
    /// number, until it is [answered](Op::Reply). Called about once a second.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn commands(&mut self) -> Result<Vec<(u64, Command)>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns what the operator should know, each notice once. Called after the store was opened, and after each
    /// [`maintain`](Store::maintain).
    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}
