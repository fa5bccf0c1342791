//! The inputs and outputs of the engine.

use std::sync::Arc;
use std::time::Duration;

use crate::store::{
    Due, Erased, Handle, Id, Level, Op, PageLimit, Row, RowCursor, Store, StoreError,
};

use super::calendar::Declared;

/// Identifies a request in its answer.
pub type Token = u64;

/// The engine's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long before its second begins a timer is loaded, in seconds.
    pub window: i64,
    /// The number of rows loaded or cascaded at a time.
    pub page: usize,
    /// The maximum number of a handler's timers in memory. The others wait in the store.
    pub max_in_memory: usize,
    /// The approximate maximum memory of the timers of all handlers, in bytes. One handler's may take as much as is left free, and always
    /// 64 KiB (or a 32nd of this limit, if that is below 2 MiB) and one row.
    pub max_bytes_in_memory: usize,
    /// The delays after the first, second … failure. A failure after the last one is final.
    pub retry_delays: Vec<Duration>,
    /// The maximum number of concurrent deliveries in all namespaces. `None`: as many as each of them allows.
    pub concurrency: Option<usize>,
    /// The maximum number of operations in a commit.
    pub max_in_commit: usize,
    /// The approximate maximum size of the inserts in a commit, including those of calendars, in bytes. A store that runs out of space has a reserve for what it has not
    /// yet copied from its WAL, and that reserve is limited.
    pub max_bytes_in_commit: usize,
    /// How long the store may take to reply, in microseconds, before it is asked again.
    pub reply_micros: u64,
    /// How long to wait before retrying what the store has refused, in microseconds.
    pub refused_micros: u64,
    /// A missing handler is reported once its timers have been due, and the engine open, for this long: at a start, handlers are added a little later than timers.
    pub grace: Duration,
    /// The partition of the store: see [`Store::partition`].
    pub partition: u8,
    /// Whether another process can take the store over while handlers run: see [`Store::hands_over`].
    pub hands_over: bool,
    /// The number of ids in an epoch, at most [`Id::IN_EPOCH`]. Another epoch is drawn once half of them are used.
    pub ids_in_epoch: u64,
    /// The timers in memory are filed again when the clocks drift apart by more than this many microseconds.
    pub largest_drift_micros: u64,
}

impl Default for Config {
    fn default() -> Config {
        let retry_delays = [15, 30, 180, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600];
        Config {
            window: 2,
            page: 4_096,
            max_in_memory: 65_536,
            max_bytes_in_memory: 64 << 20,
            retry_delays: retry_delays.map(Duration::from_secs).to_vec(),
            concurrency: None,
            max_in_commit: 16_384,
            max_bytes_in_commit: 4 << 20,
            reply_micros: 30_000_000,
            refused_micros: 200_000,
            grace: Duration::from_secs(1),
            partition: 0,
            hands_over: false,
            ids_in_epoch: Id::IN_EPOCH,
            largest_drift_micros: 1_000,
        }
    }
}

/// A timer to [insert](super::Engine::handle_insert); the engine assigns its id. Its key is unique among the timers of its handler.
#[must_use]
pub fn new_row(handler: Arc<str>, due: Due, key: Option<Arc<[u8]>>, payload: Arc<[u8]>) -> Row {
    Row {
        key,
        ..Row::new(Id::NONE, due, handler, payload)
    }
}

/// An action that the engine asks for.
#[derive(Debug, Clone)]
pub enum Output {
    /// [Commit](Store::commit) these operations to the store. One commit is in flight at a time.
    Commit {
        /// Identifies the request in [its outcome](super::Engine::handle_committed).
        number: u64,
        /// The number of the commit, by which the store recognises it.
        commit: u64,
        /// The operations of the commit.
        ops: Arc<Vec<Op>>,
    },
    /// Read from the store. The number identifies the request in the [reply](super::Engine::handle_reply), which may arrive after the replies to later requests.
    Read(u64, Query),
    /// Hand a timer to its handler.
    Deliver(Delivery),
    /// Answer a request.
    Answer(Token, Answer),
    /// This handler has due timers, but is missing: they wait in the store.
    Unhandled(Arc<str>),
    /// A handler reported as [`Unhandled`](Output::Unhandled) no longer has due timers.
    NoneDue(Arc<str>),
    /// A timer was given up.
    Dead(Row, Arc<str>),
    /// A stored calendar cannot be read, for this reason. It creates no timers until it is declared again.
    UnreadableCalendar(Arc<str>, Arc<str>),
    /// The stored policy of this namespace cannot be read. Nothing in the namespace is delivered until another policy is set.
    UnreadablePolicy(Arc<str>),
    /// The store has refused a commit or a read, for this reason. The first of consecutive refusals is reported, separately for commits and reads.
    Refused(Arc<str>),
    /// The store has no space for inserts. Only the first insert in a row that finds it full is reported.
    Full,
    /// The store has space again after [`Full`](Output::Full): a timer was inserted.
    HasSpace,
    /// The lease of the store is no longer held: no deliveries begin.
    LeaseLost,
    /// The lease of the store is held again.
    LeaseHeld,
    /// The store has failed, for this reason, and the engine does nothing more.
    Failed(Arc<str>),
}

/// A read from the store.
#[derive(Debug, Clone)]
pub enum Query {
    /// [`Store::load`](crate::store::Store::load).
    Load {
        /// The handler whose rows are read.
        handler: Arc<str>,
        /// The cursor after which to read.
        after: RowCursor,
        /// Only rows due before this second are read.
        before: i64,
        /// The maximum number and size of the rows.
        limit: PageLimit,
    },
    /// [`Store::first_second`](crate::store::Store::first_second).
    FirstSecond(Arc<str>, i64),
    /// [`Store::first_bucket`](crate::store::Store::first_bucket).
    FirstBucket(Level),
    /// [`Store::first_archived`](crate::store::Store::first_archived).
    FirstArchived(Arc<str>),
}

impl Query {
    /// Runs the query on a store.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    pub fn execute(self, store: &mut (impl Store + ?Sized)) -> Result<Reply, StoreError> {
        Ok(match self {
            Query::Load {
                handler,
                after,
                before,
                limit,
            } => Reply::Loaded(store.load(&handler, after, before, limit)?),
            Query::FirstSecond(handler, from) => Reply::First(store.first_second(&handler, from)?),
            Query::FirstBucket(level) => Reply::First(store.first_bucket(level)?),
            Query::FirstArchived(handler) => Reply::First(store.first_archived(&handler)?),
        })
    }
}

/// The store's reply to a query.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The reply to [`Query::Load`].
    Loaded(Vec<Row>),
    /// The reply to any other query: the first number found.
    First(Option<i64>),
}

/// A timer to deliver. If the wall clock shows an earlier time when its handler is about to be called, it has to be
/// [withdrawn](super::Engine::handle_withdrawn).
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The timer. Its `failures` count earlier attempts.
    pub row: Row,
    /// When it was handed out, in microseconds since boot.
    pub at: u64,
}

/// The engine's counts and gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// The number of timers in memory or about to leave it.
    pub in_memory: usize,
    /// The number of timers in the wheel that wait for their time.
    pub in_wheel: usize,
    /// The number of timers of all handlers that count against [`Config::max_in_memory`].
    pub held: usize,
    /// The number of bytes that count against [`Config::max_bytes_in_memory`].
    pub held_bytes: usize,
    /// The number of deliveries that are with their handlers.
    pub running: usize,
    /// The number of times the wall clock was set, by a second or more.
    pub jumps: u64,
    /// The number of commits and reads that the store has refused.
    pub refusals: u64,
    /// The number of inserts that found the store full, and whether the last one did.
    pub full: u64,
    pub is_full: bool,
}

/// A quota that an insert exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The namespace; if a batch exceeds several quotas, the one with the longest wait.
    pub namespace: Arc<str>,
    /// How long until the quota allows the insert. `None` if it never will, because a batch has more timers than the burst.
    pub retry_after: Option<Duration>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The timer is durable.
    Created(Handle),
    /// Another timer already has the key.
    Existing(Handle),
    /// The store reserves its remaining space for other operations; nothing was done.
    Full,
    /// The timer was durably cancelled, moved or redriven, or the setting was written.
    Done,
    /// The calendar is durable.
    Declared(Declared),
    /// The dead letters of a key, and the key in the archive, were durably deleted.
    Erased(Erased),
    /// The timer is already with its handler.
    AlreadyFired,
    /// There is no such timer: it was settled, cancelled or given up, or never was.
    NotFound,
    /// The store refused; nothing was done.
    Refused(Arc<str>),
    /// The store had already failed; nothing was done.
    Failed(Arc<str>),
    /// The store failed, and whether the operation was applied is unknown.
    Unknown(Arc<str>),
    /// The service is shutting down.
    ShuttingDown,
    /// No namespace has this name.
    UnknownNamespace(Arc<str>),
    /// A namespace has used up its quota.
    Quota(OverQuota),
    /// No more ids are left.
    OutOfIds,
}
