//! The values that go into the engine and come out of it.

use std::sync::Arc;
use std::time::Duration;

use crate::store::{Due, Handle, Id, Level, Op, PageLimit, Row, RowCursor, Store, StoreError};

use super::calendar::Declared;

/// Identifies a request in its answer.
pub type Token = u64;

/// How the engine works.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long before its second begins a timer is loaded, in seconds.
    pub window: i64,
    /// How many rows are loaded or cascaded at a time.
    pub page: usize,
    /// How many timers of a handler are in memory at most. The others wait in the store.
    pub max_in_memory: usize,
    /// How many bytes the timers of all handlers take in memory, about. One handler's may take as many as are left free, and always
    /// 64 KiB (where this is less than 2 MiB, a 32nd of it) and a row.
    pub max_bytes_in_memory: usize,
    /// The delays after the first, second … failure. After the last one, a failure is the end.
    pub retry_delays: Vec<Duration>,
    /// How many deliveries of all namespaces go on at a time. `None`: as many as each of them takes.
    pub concurrency: Option<usize>,
    /// How many operations a commit has at most.
    pub max_in_commit: usize,
    /// How many bytes the inserts of a commit have, about, those of calendars among them. A store that runs out of space has a reserve for what it has not yet copied from its WAL, and the
    /// reserve is not without end.
    pub max_bytes_in_commit: usize,
    /// After so many microseconds without a reply, the store is asked again.
    pub reply_micros: u64,
    /// After so many microseconds, what the store has refused is tried again.
    pub refused_micros: u64,
    /// A name without a handler is reported when its timers have been due, and the engine there, for so long: at a start, handlers come a little later than timers.
    pub grace: Duration,
    /// A larger change between both clocks, in microseconds, and the timers in memory are filed again.
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
            largest_drift_micros: 1_000,
        }
    }
}

/// A timer to [insert](super::Engine::handle_insert): the engine gives it an id. No other timer of the handler has its key at the same time.
#[must_use]
pub fn new_row(handler: Arc<str>, due: Due, key: Option<Arc<[u8]>>, payload: Arc<[u8]>) -> Row {
    Row {
        id: Id::NONE,
        due,
        handler,
        failures: 0,
        starts: 0,
        has_moved: false,
        key,
        payload,
    }
}

/// How a delivery has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The timer is settled.
    Well,
    /// It is retried after the next retry delay.
    Failed(Arc<str>),
    /// It is tried again after this delay, which is a year at most, instead of the next retry delay, and as often as that has delays.
    Later(Arc<str>, Duration),
    /// It is not tried again.
    Dead(Arc<str>),
}

/// An action that the engine asks for.
#[derive(Debug, Clone)]
pub enum Output {
    /// Have the store [commit](Store::commit) these operations. One commit is in flight at a time.
    Commit {
        /// It names the request in [the outcomes](super::Engine::handle_committed).
        number: u64,
        /// The number of the commit, by which the store knows it.
        commit: u64,
        /// Its operations.
        ops: Arc<Vec<Op>>,
    },
    /// Read from the store. The number names the request in the [reply](super::Engine::handle_reply), which may come late, after those to later requests.
    Read(u64, Query),
    /// Hand a timer to its handler.
    Deliver(Delivery),
    /// Answer a request.
    Answer(Token, Answer),
    /// Timers are due that have no handler: they wait in the store.
    Unhandled(Arc<str>),
    /// That was put out, and is no longer so: the timers have left.
    NoneDue(Arc<str>),
    /// A timer was given up.
    Dead(Row, Arc<str>),
    /// The stored calendar cannot be read, for this reason. It files nothing until it is declared anew.
    UnreadableCalendar(Arc<str>, Arc<str>),
    /// The stored policy of this namespace cannot be read. Nothing of the namespace is delivered until another policy is set.
    UnreadablePolicy(Arc<str>),
    /// The store has refused something, for this reason. Put out for the first refusal since it last did what was asked of it.
    Refused(Arc<str>),
    /// The store has no space for inserts. Put out for the first one that it was short of space for.
    Full,
    /// That was put out, and is no longer so: a timer was inserted.
    HasSpace,
    /// The store has failed, for this reason, so nothing goes on.
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
        /// before this second.
        before: i64,
        /// So many at most.
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
    /// Asks a store.
    ///
    /// # Errors
    ///
    /// The store's.
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
    /// To a load.
    Loaded(Vec<Row>),
    /// To a search.
    First(Option<i64>),
}

/// A timer that is due. If the wall clock shows an earlier time when its handler is about to be called, it is to be
/// [withdrawn](super::Engine::handle_withdrawn).
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The timer. Its `failures` are those of earlier attempts.
    pub row: Row,
    /// When it was handed out, in microseconds since boot.
    pub at: u64,
}

/// Counts of what the engine holds and has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// How many timers are in memory, or leave it.
    pub in_memory: usize,
    /// How many timers wait for their time in the wheel.
    pub in_wheel: usize,
    /// How many timers count against [`Config::max_in_memory`], of all handlers.
    pub held: usize,
    /// How many bytes count against [`Config::max_bytes_in_memory`].
    pub held_bytes: usize,
    /// How many deliveries are with their handlers.
    pub running: usize,
    /// How often the wall clock was set, by a second or more.
    pub jumps: u64,
    /// How often the store has refused a commit or a read.
    pub refusals: u64,
    /// How many inserts have found the store full, and whether the last one has.
    pub full: u64,
    pub is_full: bool,
}

/// A quota that an insert exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The namespace. Of several, the one that makes a batch wait for the longest time.
    pub namespace: Arc<str>,
    /// After this time, it is not. `None` if it always is: a batch has more timers than the burst.
    pub retry_after: Option<Duration>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The timer is durable.
    Created(Handle),
    /// Another timer has the key.
    Existing(Handle),
    /// The store keeps the space that it has left for other operations, and nothing was done.
    Full,
    /// The timer was cancelled, moved or redriven, durably.
    Done,
    /// The calendar is there, durably.
    Declared(Declared),
    /// It is with its handler.
    AlreadyFired,
    /// There is no such timer: it was settled, cancelled or given up, or never was.
    NotFound,
    /// The store has refused, and nothing was done.
    Refused(Arc<str>),
    /// The store had failed before, and nothing was done.
    Failed(Arc<str>),
    /// The store has failed, and it is not known what was done.
    Unknown(Arc<str>),
    /// The service shuts down.
    ShuttingDown,
    /// There is no namespace of this name.
    UnknownNamespace(Arc<str>),
    /// A namespace has used up its quota.
    Quota(OverQuota),
    /// More timers than ids.
    OutOfIds,
}
