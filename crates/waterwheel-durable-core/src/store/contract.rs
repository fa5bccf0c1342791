use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{
    ArchiveCursor, Archived, Command, Counts, Dead, DeadLetters, Ended, Handle, HandlePage, Id,
    Lease, Level, Op, Outcome, PageLimit, PendingCursor, Row, RowCursor, Scope, Setting,
};

/// The storage of durable timers.
///
/// A store has one caller at a time, on a thread that may block. Each call sees the writes of all previous calls.
///
/// # Errors
///
/// A definite read error is harmless: the read is retried. After any other error of a read or a write, the store is not
/// called again.
pub trait Store: Send {
    /// Records, durably, that the store has been opened once more. Returns its epoch, from which ids are made: 1 for the
    /// first time, and a larger number each time.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn begin(&mut self) -> Result<u64, StoreError>;

    /// Returns the partition that is in the [ids](Id::in_partition) of this store's timers, from 0 to 63. Stores whose
    /// timers may be merged must use different partitions. A store that is on its own is partition 0.
    fn partition(&self) -> u8 {
        0
    }

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
    /// It is called after each commit, successful or refused, once its results have been passed on; and
    /// [regularly](Store::commands_every) while there are no commits, if the store takes commands. A call takes a few
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

    /// Returns the first bucket of a coarser level that has a row. The cost does not depend on how far ahead that is.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError>;

    /// Returns the first rows in the buckets of a coarser level, after a position in that level, in order of their
    /// [positions](PendingCursor) and of all handlers: as many as `limit` allows.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError>;

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

    /// Returns the timer with this handle, in whichever bucket it is, or `None` if there is none: it was settled,
    /// cancelled or archived, or is a dead letter.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn get(&mut self, handle: &Handle) -> Result<Option<Row>, StoreError>;

    /// Returns the handles of at most `limit` (at least 1) pending timers of these handlers, in order of their
    /// [positions](PendingCursor): those after `after`, or the first ones. A page has fewer, or none, if the store has
    /// examined many timers of other handlers, so that commits are not delayed for long; it contains the position
    /// after which the next one starts, unless it is the last one.
    ///
    /// A timer that is in the store all the time, and is moved by [cascades](Op::Cascade) alone, is in at least one of
    /// the pages, and may be in several.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, StoreError>;

    /// Returns how many timers each handler has in each bucket, and how many dead letters by kind of error. The cost
    /// does not depend on the number of timers, only on that of the buckets and the kinds.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn counts(&mut self) -> Result<Counts, StoreError>;

    /// Returns the handles of at most `limit` timers that have this [tag](crate::store::Extras::tag), in order of their
    /// ids: those with ids after `after`, of any handler. Dead letters are not among them.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn tagged(&mut self, tag: &str, after: Id, limit: usize) -> Result<Vec<Handle>, StoreError>;

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

    /// Returns the lease of the store. Called after [`begin`](Store::begin). A store that forwards its calls to another store has to
    /// forward this one too. A store whose lease may end has to be [polled](Store::commands_every), since the service finds out then
    /// that the lease is held again.
    fn lease(&self) -> Lease {
        Lease::unlimited()
    }

    /// Gives the store up, since the service has failed: nothing is written any more, and reads may follow. A store that
    /// another process can take over makes that possible at once, although the service may still be open for long.
    fn give_up(&mut self) {}

    /// Returns whether another process can take the store over while handlers of this one are running: see
    /// [`Op::HandOver`]. Such a store has to be [polled](Store::commands_every).
    fn hands_over(&self) -> bool {
        false
    }

    /// Returns the timers whose handlers are running in processes that have [handed the store over](Op::HandOver), and those
    /// whose reports are not applied. Called after [`begin`](Store::begin).
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn handed_over(&mut self) -> Result<Vec<Row>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns the ids of these timers, each with the end of its delivery if that was reported. A timer that was handed over
    /// and is missing has to be delivered again: its handler was not called, or its process has ended. Called several times
    /// a second while handlers are running in other processes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn ends(&mut self) -> Result<Vec<(Id, Option<Ended>)>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns how often the store is polled: for [commands](Store::commands), [maintenance](Store::maintain) and its
    /// [lease](Store::lease). `None` if none of these is needed without a commit.
    fn commands_every(&self) -> Option<Duration> {
        None
    }

    /// Passes in a hint, which the store may give when there may be commands, or when its lease is held again, so that they do not wait for the next
    /// regular call. Called once, before all calls of [`commands`](Store::commands).
    fn set_hint(&mut self, hint: Hint) {
        drop(hint);
    }

    /// Returns the commands that other processes have sent to the process that has the store open, each with its
    /// number, until it is [answered](Op::Reply). Called [regularly](Store::commands_every), and after a
    /// [hint](Store::set_hint).
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

impl<S: Store + ?Sized> Store for Box<S> {
    crate::store::forward!(this => (**this); begin maintain reads);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        (**self).commit(number, steps)
    }
}

/// Tells the service that its store may have [commands](Store::commands), or that its [lease](Store::lease) is held again.
#[derive(Clone)]
pub struct Hint(Arc<dyn Fn() + Send + Sync>);

impl Hint {
    /// Creates a hint that calls `wake`, from any thread.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Hint {
        Hint(Arc::new(wake))
    }

    /// Gives the hint. This neither blocks nor calls the store, and may be done from any thread. Frequent hints are
    /// combined.
    pub fn give(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hint")
    }
}

impl DeadLetters {
    /// Returns all dead letters of these handlers, however many. For tests and tools.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn all(store: &mut dyn Store, scope: Scope<'_>) -> Result<Vec<Dead>, StoreError> {
        let (mut all, mut next) = (Vec::new(), Some(Id::NONE));
        while let Some(after) = next {
            let page = store.dead(scope, after, PageLimit::rows(usize::MAX))?;
            all.extend(page.dead);
            next = page.next;
        }
        Ok(all)
    }
}

/// A store could not carry out a request. The message says whether something was written, and contains the cause.
#[derive(Debug)]
pub struct StoreError {
    kind: Kind,
    source: Box<dyn Error + Send + Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Definite,
    Indeterminate,
    Lost,
    Earlier,
}

impl StoreError {
    fn new(kind: Kind, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        let source = source.into();
        StoreError { kind, source }
    }

    /// Creates an error for a request of which nothing was done. It may be retried.
    pub fn definite(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::new(Kind::Definite, source)
    }

    /// Creates an error after which it is not known whether the request was carried out, or will turn out to be after a
    /// restart: a failed `fsync`, an I/O error, a lost connection. For a read, it means that the data cannot be read
    /// and that a retry would not help, for example because of damage or an I/O error.
    ///
    /// Nothing is retried on this store: after a failed `fsync`, a second one may wrongly report success
    /// ([fsyncgate](https://wiki.postgresql.org/wiki/Fsync_Errors)).
    pub fn indeterminate(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::new(Kind::Indeterminate, source)
    }

    /// Creates an error for a request to a store that another process has taken over since it was opened. Nothing was
    /// done for this request, however often it was sent, and nothing will be done for later ones.
    pub fn lost(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::new(Kind::Lost, source)
    }

    /// Creates an error for a request to a store that an earlier error has ended, with the cause of that error. Nothing
    /// was done for this request.
    pub fn failed_earlier(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::new(Kind::Earlier, source)
    }

    /// Returns whether nothing was done, and the request may be retried.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.kind == Kind::Definite
    }

    /// Returns the message of the cause, without the statement of what was written.
    #[must_use]
    pub fn cause(&self) -> String {
        self.source.to_string()
    }

    /// Whether it is certain that nothing was done, even if a retry would not help.
    pub(crate) fn wrote_nothing(&self) -> bool {
        self.kind != Kind::Indeterminate
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        match self.kind {
            Kind::Definite => write!(
                f,
                "the store refused the request, and nothing was written: {source}"
            ),
            Kind::Indeterminate => write!(
                f,
                "the store failed, and it is not known what was written: {source}"
            ),
            Kind::Lost => write!(
                f,
                "another process has taken the store over, and this request wrote nothing: {source}"
            ),
            Kind::Earlier => write!(
                f,
                "the store failed earlier, and this request wrote nothing: open it again ({source})"
            ),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// Something that the operator of a store should know, and that does not stop the store: see
/// [`Store::notices`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The file has a second name, a hard link. Locking and the WAL depend on the name, so a process that opens the
    /// file by the other name damages it.
    #[non_exhaustive]
    HardLinked {
        /// The name by which the file was opened.
        file: Arc<str>,
        /// The number of names that the file has.
        links: u64,
    },
    /// Acknowledged work is missing, and the file was opened without it, as requested.
    #[non_exhaustive]
    AcknowledgedLost {
        /// The file.
        file: Arc<str>,
        /// The loss, in words.
        loss: Arc<str>,
    },
    /// The store cannot record which commits it has acknowledged. The commits are in the file and its WAL nevertheless.
    /// But if the WAL is lost after a crash, the next open does not detect it.
    #[non_exhaustive]
    NoteFailed {
        /// The file that cannot be written.
        note: Arc<str>,
        /// The error of the operating system.
        error: Arc<str>,
    },
    /// The store was restored from a backup, or moved to another server. No deliveries begin until an operator accepts that, since timers that were
    /// delivered after the backup would be delivered again, and a copy made for tests would deliver real timers.
    #[non_exhaustive]
    Restored {
        /// The store.
        store: Arc<str>,
        /// How it is accepted.
        accept: Arc<str>,
    },
}

impl Notice {
    /// Creates a notice that a file has several names.
    #[must_use]
    pub fn hard_linked(file: &str, links: u64) -> Notice {
        let file = file.into();
        Notice::HardLinked { file, links }
    }

    /// Creates a notice that a file was opened although acknowledged work is missing.
    #[must_use]
    pub fn acknowledged_lost(file: &str, loss: &str) -> Notice {
        Notice::AcknowledgedLost {
            file: file.into(),
            loss: loss.into(),
        }
    }

    /// Creates a notice that acknowledged commits cannot be recorded.
    #[must_use]
    pub fn note_failed(note: &str, error: &str) -> Notice {
        Notice::NoteFailed {
            note: note.into(),
            error: error.into(),
        }
    }

    /// Creates a notice that deliveries wait because the store was restored, and how it is accepted.
    #[must_use]
    pub fn restored(store: &str, accept: &str) -> Notice {
        Notice::Restored {
            store: store.into(),
            accept: accept.into(),
        }
    }
}

/// Implements the calls of a [`Store`](crate::store::Store) by forwarding them: `forward!(this => this.inner; load dead)`. `reads` stands for all but `begin`, `commit`
/// and `maintain`; `rest` for all of those that are not named here.
#[doc(hidden)]
#[macro_export]
macro_rules! forward {
    ($this:ident => $inner:expr; $($call:ident)+) => {
        $($crate::store::forward!(@$call $this $inner);)+
    };
    (@reads $this:ident $inner:expr) => {
        $crate::store::forward!($this => $inner; load first_second first_bucket load_level handlers dead find get handles counts commands rest);
    };
    (@begin $this:ident $inner:expr) => {
        fn begin(&mut self) -> Result<u64, $crate::store::StoreError> {
            let $this = self;
            $inner.begin()
        }
    };
    (@maintain $this:ident $inner:expr) => {
        fn maintain(&mut self) -> Result<(), $crate::store::StoreError> {
            let $this = self;
            $inner.maintain()
        }
    };
    (@load $this:ident $inner:expr) => {
        fn load(
            &mut self,
            handler: &str,
            after: $crate::store::RowCursor,
            before: i64,
            limit: $crate::store::PageLimit,
        ) -> Result<Vec<$crate::store::Row>, $crate::store::StoreError> {
            let $this = self;
            $inner.load(handler, after, before, limit)
        }
    };
    (@first_second $this:ident $inner:expr) => {
        fn first_second(
            &mut self,
            handler: &str,
            from: i64,
        ) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_second(handler, from)
        }
    };
    (@first_bucket $this:ident $inner:expr) => {
        fn first_bucket(
            &mut self,
            level: $crate::store::Level,
        ) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_bucket(level)
        }
    };
    (@handlers $this:ident $inner:expr) => {
        fn handlers(&mut self) -> Result<Vec<std::sync::Arc<str>>, $crate::store::StoreError> {
            let $this = self;
            $inner.handlers()
        }
    };
    (@dead $this:ident $inner:expr) => {
        fn dead(
            &mut self,
            scope: $crate::store::Scope<'_>,
            after: $crate::store::Id,
            limit: $crate::store::PageLimit,
        ) -> Result<$crate::store::DeadLetters, $crate::store::StoreError> {
            let $this = self;
            $inner.dead(scope, after, limit)
        }
    };
    (@find $this:ident $inner:expr) => {
        fn find(
            &mut self,
            handler: &str,
            key: &[u8],
        ) -> Result<Option<$crate::store::Handle>, $crate::store::StoreError> {
            let $this = self;
            $inner.find(handler, key)
        }
    };
    (@get $this:ident $inner:expr) => {
        fn get(
            &mut self,
            handle: &$crate::store::Handle,
        ) -> Result<Option<$crate::store::Row>, $crate::store::StoreError> {
            let $this = self;
            $inner.get(handle)
        }
    };
    (@handles $this:ident $inner:expr) => {
        fn handles(
            &mut self,
            scope: $crate::store::Scope<'_>,
            after: Option<$crate::store::PendingCursor>,
            limit: usize,
        ) -> Result<$crate::store::HandlePage, $crate::store::StoreError> {
            let $this = self;
            $inner.handles(scope, after, limit)
        }
    };
    (@counts $this:ident $inner:expr) => {
        fn counts(&mut self) -> Result<$crate::store::Counts, $crate::store::StoreError> {
            let $this = self;
            $inner.counts()
        }
    };
    (@commands $this:ident $inner:expr) => {
        fn lease(&self) -> $crate::store::Lease {
            let $this = self;
            $inner.lease()
        }

        fn give_up(&mut self) {
            let $this = self;
            $inner.give_up();
        }

        fn hands_over(&self) -> bool {
            let $this = self;
            $inner.hands_over()
        }

        fn handed_over(&mut self) -> Result<Vec<$crate::store::Row>, $crate::store::StoreError> {
            let $this = self;
            $inner.handed_over()
        }

        fn ends(
            &mut self,
        ) -> Result<Vec<($crate::store::Id, Option<$crate::store::Ended>)>, $crate::store::StoreError> {
            let $this = self;
            $inner.ends()
        }

        fn commands_every(&self) -> Option<std::time::Duration> {
            let $this = self;
            $inner.commands_every()
        }

        fn set_hint(&mut self, hint: $crate::store::Hint) {
            let $this = self;
            $inner.set_hint(hint);
        }

        fn commands(&mut self) -> Result<Vec<(u64, $crate::store::Command)>, $crate::store::StoreError> {
            let $this = self;
            $inner.commands()
        }
    };
    (@load_level $this:ident $inner:expr) => {
        fn load_level(
            &mut self,
            after: $crate::store::PendingCursor,
            limit: $crate::store::PageLimit,
        ) -> Result<Vec<$crate::store::Row>, $crate::store::StoreError> {
            let $this = self;
            $inner.load_level(after, limit)
        }
    };
    (@rest $this:ident $inner:expr) => {
        fn tagged(
            &mut self,
            tag: &str,
            after: $crate::store::Id,
            limit: usize,
        ) -> Result<Vec<$crate::store::Handle>, $crate::store::StoreError> {
            let $this = self;
            $inner.tagged(tag, after, limit)
        }

        fn archived(
            &mut self,
            handler: &str,
            after: $crate::store::ArchiveCursor,
            before: i64,
            limit: usize,
        ) -> Result<Vec<($crate::store::ArchiveCursor, $crate::store::Archived)>, $crate::store::StoreError> {
            let $this = self;
            $inner.archived(handler, after, before, limit)
        }

        fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_archived(handler)
        }

        fn settings(
            &mut self,
        ) -> Result<Vec<$crate::store::Setting>, $crate::store::StoreError> {
            let $this = self;
            $inner.settings()
        }

        fn partition(&self) -> u8 {
            let $this = self;
            $inner.partition()
        }

        fn notices(&mut self) -> Vec<$crate::store::Notice> {
            let $this = self;
            $inner.notices()
        }
    };
}
