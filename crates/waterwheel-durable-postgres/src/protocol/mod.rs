//! Decides who owns the timers in a database, and whether a commit was carried out.
//!
//! Several processes, the *nodes*, are connected to one database. One of them owns the timers of a partition, and runs their engine. The
//! others are its standbys.
//!
//! | rule | where |
//! |---|---|
//! | Each node has a row with a counter, which its heartbeats increment. | [`Ownership`] |
//! | An owner counts on its lease from when a successful heartbeat was sent until shortly before one TTL is over. It looks at the lease before each delivery. | [`Lease`] |
//! | A standby takes over once it has seen the same counter for one TTL of its own clock, without a reconnection or a failed heartbeat in between. The counter is read again, with the row locked, in the transaction that takes over, which deletes the row of the node. | [`Ownership`] |
//! | Each opening of a partition has an owner id, drawn at random, in the row of the partition. Each commit locks that row, and is refused if it belongs to another opening. | [`Writer`] |
//! | Each commit inserts a row with its number. That row decides whether a commit was carried out when its reply is lost, and its absence shows that a failover has lost commits. | [`Writer`] |
//! | A failover may also lose a take-over, while the lease of that node lasts. So an opening of an older timeline of the server neither commits nor frees the partition until a node whose lease is held has confirmed it, or one TTL has passed. | [`Ownership`], [`Writer`] |
//! | An owner that stops while handlers are running gives the partition back, and records which timers they have. It sends heartbeats until it has reported how they ended. The next owner does not deliver these timers before, unless it has seen the same counter for one TTL and deletes the row of that node, with its records. | [`Ownership`], [`Writer`] |
//! | In a database that was restored from a backup, no deliveries begin until an operator accepts that: see [`Beat::is_suspended`]. | [`Lease`] |
//! | On another timeline, epochs rise by a large step, so that no id is assigned twice. | [`Drawn`] |
//!
//! Transactions that this protocol depends on have to be durable locally at least (`synchronous_commit`): a crash of the server must not lose any of them on the same timeline.
//!
//! The code here neither sends a statement nor asks for the time: a [`Database`] does. The simulator implements one with lock waits,
//! lost replies, restarts and failovers.

mod database;
mod epoch;
mod lease;
mod observation;
mod ownership;
mod unblock;
mod writer;

pub use database::{
    Attempts, Beat, Claim, Commit, Database, Failure, Holder, NodeId, Opening, OwnerId, Pid,
    Rejection, Session,
};
pub use epoch::Drawn;
pub use lease::{Lease, Terms};
pub use ownership::{Event, Ownership};
pub use writer::Writer;
