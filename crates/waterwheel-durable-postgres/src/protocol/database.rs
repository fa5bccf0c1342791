use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable_core::store::{Ended, Id, Op, Outcome};

use super::Drawn;

/// The timers that were handed over, each with the end of its delivery if that was reported.
pub type Attempts = Vec<(Id, Option<Ended>)>;

/// A process that is connected to the database. A process that was declared dead draws another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// An opening of a partition, drawn at random for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u64);

/// A backend of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

/// A database and a clock. Clones share both.
pub trait Database: Clone {
    /// A connection to the database.
    type Session: Session;

    /// Returns the time since boot, including the time for which the machine was suspended.
    fn now(&self) -> Duration;

    /// Waits until this time since boot.
    fn sleep_until(&self, at: Duration) -> impl Future<Output = ()>;

    /// Draws a random number.
    fn random(&self) -> u64;

    /// Connects. Each call of the session ends within `deadline`.
    fn connect(&self, deadline: Duration) -> impl Future<Output = Result<Self::Session, Failure>>;
}

/// A connection. After a disconnection, it is not used again. After any other failure, no transaction is open.
///
/// Errors that say that the server shuts down, terminates the connection or has become a standby (`57P01` to `57P03`, `25006`) count as disconnections.
pub trait Session {
    /// Inserts the row of a node, unless it exists.
    fn register(&mut self, node: NodeId) -> impl Future<Output = Result<(), Failure>>;

    /// Deletes the row of a node, with the deliveries that it has handed over and whose ends it has not reported, and gives the partition back if this opening holds it. The timeline in the row of the
    /// partition stays as it is.
    fn leave(
        &mut self,
        node: NodeId,
        partition: u8,
        owner: Option<OwnerId>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Increments the counter of a node. Then reads the row of the partition, and those of other nodes that have handed it over while handlers were running, in
    /// the same transaction. If the database was restored from a backup, suspends deliveries, until an operator ends that.
    fn beat(&mut self, node: NodeId, partition: u8) -> impl Future<Output = Result<Beat, Failure>>;

    /// Begins a transaction, which the next call continues, and returns the backend that serves it.
    fn begin(&mut self) -> impl Future<Output = Result<Pid, Failure>>;

    /// Locks the rows of the claiming node and of the node that holds the partition, in the order of their ids, increments the
    /// counter of the first, and reads that of the second by the next statement. If the claiming node has no row, or the
    /// counter is not the one that was observed, rolls back and returns false.
    fn claim(&mut self, claim: &Claim) -> impl Future<Output = Result<bool, Failure>>;

    /// Ends the transaction of a claim. Waits until no commit of another opening is in progress, and writes the new owner and the timeline
    /// into the row of the partition, if the node and the owner in it are those that were observed; inserts the commit row
    /// with the number 0; deletes the row of the node that held the partition, and the commit rows of openings before the
    /// previous one. Then commits, and returns the epoch that it has drawn. Otherwise rolls back, and returns `None`.
    fn take(&mut self, claim: &Claim) -> impl Future<Output = Result<Option<Drawn>, Failure>>;

    /// Ends the transaction of a claim: deletes the row of the other node, like [`leave`](Session::leave), and commits.
    fn remove(&mut self, claim: &Claim) -> impl Future<Output = Result<(), Failure>>;

    /// Carries out a commit in one transaction, which may have [begun](Session::begin):
    ///
    /// 1. Locks the row of the partition `FOR NO KEY UPDATE`, and compares the owner and the timeline. The lock holds
    ///    up a take-over, and any other transaction of this opening.
    /// 2. Inserts the commit row, by a statement of its own, if the row of the previous commit exists. A statement that
    ///    has waited for the lock would not see what was committed meanwhile.
    /// 3. Carries out the steps, and commits. [`Op::HandOver`] gives the partition back, and records that handlers of this node are running for these timers.
    fn transact(
        &mut self,
        commit: &Commit<'_>,
    ) -> impl Future<Output = Result<Vec<Outcome>, Rejection>>;

    /// Writes the timeline of the server into the row of the partition, if the row belongs to this opening and the commit row of
    /// this number exists.
    fn confirm(
        &mut self,
        opening: &Opening,
        number: u64,
    ) -> impl Future<Output = Result<(), Rejection>>;

    /// Records the ends of deliveries that the node of this opening has handed over, and deletes those without an end. Those that no longer belong to it stay
    /// unchanged. Does nothing and returns false if the timeline in the row of the partition is not that of the server.
    fn report(
        &mut self,
        opening: &Opening,
        ends: &[(Id, Option<Ended>)],
    ) -> impl Future<Output = Result<bool, Failure>>;

    /// Returns the deliveries that were handed over and whose ends are not applied. `None` if the row of the partition does not belong to this opening on
    /// this timeline: a failover may have lost some.
    fn attempts(
        &mut self,
        opening: &Opening,
    ) -> impl Future<Output = Result<Option<Attempts>, Failure>>;

    /// Returns whether the commit row of this number exists. `None`: rows of this opening may have been deleted.
    fn was_committed(
        &mut self,
        opening: &Opening,
        number: u64,
    ) -> impl Future<Output = Result<Option<bool>, Failure>>;

    /// Terminates the backends that block this one at this moment.
    fn terminate_blockers(&mut self, of: Pid) -> impl Future<Output = Result<(), Failure>>;
}

/// The reply to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Whether the row of the node exists. Otherwise the node was declared dead.
    pub is_registered: bool,
    /// The timeline of the server.
    pub timeline: u32,
    /// The row of the partition.
    pub holder: Holder,
    /// The nodes that have handed this partition over and whose handlers are running, with their counters, if this node holds the partition.
    pub others: Vec<(NodeId, u64)>,
    /// Whether no deliveries may begin, because the database is a restored copy.
    pub is_suspended: bool,
}

/// The row of a partition, with the counter of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The node that holds the partition. `None` if it was given back.
    pub node: Option<NodeId>,
    /// The counter of the node. `None` if the node has no row.
    pub counter: Option<u64>,
    /// The last opening.
    pub owner: OwnerId,
    /// The timeline on which the last opening was begun or confirmed.
    pub timeline: u32,
}

/// A node that takes a partition over, or that declares another one dead.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The partition.
    pub partition: u8,
    /// The claiming node.
    pub node: NodeId,
    /// The opening that begins.
    pub owner: OwnerId,
    /// The row as it was observed.
    pub from: Holder,
}

/// An opening of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The partition.
    pub partition: u8,
    /// The node that has opened it.
    pub node: NodeId,
    /// The id of the opening.
    pub owner: OwnerId,
    /// The epoch of the first ids.
    pub epoch: u64,
}

/// A commit of an opening.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The opening.
    pub opening: &'a Opening,
    /// The number of the commit row: 1 for the first one.
    pub number: u64,
    /// The steps.
    pub steps: &'a [Op],
    /// Whether an insert looks for its key first, which is slower. Otherwise a taken key fails the transaction.
    pub looks_for_keys: bool,
    /// Commit rows of this opening with smaller numbers are deleted.
    pub keeps_from: u64,
}

/// A request failed.
#[derive(Debug, Clone)]
pub enum Failure {
    /// The connection is lost, or the reply did not come in time. Statements that were sent may be carried out, even later.
    Disconnected(Arc<str>),
    /// The server has refused a statement. The transaction was rolled back.
    Refused(Arc<str>),
}

/// A commit was not carried out, or is in doubt.
#[derive(Debug, Clone)]
pub enum Rejection {
    /// The row of the partition belongs to another opening.
    Fenced,
    /// The opening was neither begun nor confirmed on the timeline of the server.
    OtherTimeline,
    /// The row of the previous commit is missing.
    Gap,
    /// The row of this commit exists: a violation of the unique constraint of the commit rows.
    Repeated,
    /// A violation of another unique constraint: a key is taken.
    KeyTaken,
    /// The server has refused a statement other than `COMMIT`. Nothing was written.
    Refused(Arc<str>),
    /// The connection is lost, or the reply did not come in time. `COMMIT` was not sent.
    Disconnected(Arc<str>),
    /// The connection is lost, or the reply did not come in time, after `COMMIT` was sent. If the commit was carried out, these are its outcomes.
    InDoubt(Vec<Outcome>, Arc<str>),
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Rejection {
        match failure {
            Failure::Disconnected(why) => Rejection::Disconnected(why),
            Failure::Refused(why) => Rejection::Refused(why),
        }
    }
}

impl Failure {
    /// Returns the message of its cause.
    #[must_use]
    pub fn why(&self) -> Arc<str> {
        match self {
            Failure::Disconnected(why) | Failure::Refused(why) => Arc::clone(why),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Disconnected(why) => {
                write!(f, "cannot reach the database: {why}")
            }
            Failure::Refused(why) => write!(f, "the database has refused a statement: {why}"),
        }
    }
}

impl Error for Failure {}
