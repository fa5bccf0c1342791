use std::sync::Arc;
use std::time::Duration;

use crate::store::{Handle, Level, Op, Outcome, PageLimit, Row, RowCursor, Store, StoreError};

use super::Token;
use super::calendar::Declared;

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Output {
    /// Ask the store. Its calls are made in the order in which they are put out. Replies to reads may come late, after those to later calls.
    Store(Request),
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
    /// What the store has of this calendar cannot be read, for this reason. It files nothing until it is declared anew.
    UnreadableCalendar(Arc<str>, Arc<str>),
    /// What the store has of this namespace's policy cannot be read. Nothing of it is delivered until it is given another one.
    UnreadablePolicy(Arc<str>),
    /// The store has refused something, for this reason. Put out for the first refusal since it last did what was asked of it.
    Refused(Arc<str>),
    /// The store has failed, for this reason, so nothing goes on.
    Failed(Arc<str>),
}

/// A call of the store.
#[derive(Debug, Clone)]
pub struct Request {
    /// What names it in the reply.
    pub number: u64,
    /// What is asked.
    pub call: Call,
}

/// What the store is asked.
#[derive(Debug, Clone)]
pub enum Call {
    /// [`Store::commit`](crate::store::Store::commit).
    Commit(u64, Arc<Vec<Op>>),
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

impl Call {
    /// Asks a store.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn execute(self, store: &mut (impl Store + ?Sized)) -> Result<Reply, StoreError> {
        Ok(match self {
            Call::Commit(number, steps) => Reply::Committed(store.commit(number, &steps)?),
            Call::Load {
                handler,
                after,
                before,
                limit,
            } => Reply::Loaded(store.load(&handler, after, before, limit)?),
            Call::FirstSecond(handler, from) => Reply::First(store.first_second(&handler, from)?),
            Call::FirstBucket(level) => Reply::First(store.first_bucket(level)?),
            Call::FirstArchived(handler) => Reply::First(store.first_archived(&handler)?),
        })
    }
}

/// What the store has replied.
#[derive(Debug, Clone)]
pub enum Reply {
    /// To a commit.
    Committed(Vec<Outcome>),
    /// To a load.
    Loaded(Vec<Row>),
    /// To a search.
    First(Option<i64>),
}

/// A timer that is due. If the wall clock shows an earlier time when its handler is about to be called, it is to be
/// [withdrawn](super::Engine::withdraw).
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The timer. Its `failures` are those of earlier attempts.
    pub row: Row,
    /// When it was handed out, in microseconds since boot.
    pub at: u64,
}

/// What is beyond the quota of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The namespace. Of several, the one that makes a batch wait for the longest time.
    pub namespace: Arc<str>,
    /// After this time, it is not. `None` if it always is: a batch has more timers than the burst.
    pub retry_after: Option<Duration>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The timer is durable.
    Created(Handle),
    /// Another timer has the key.
    Existing(Handle),
    /// The store keeps the space that it has left for other steps, and nothing was done.
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
