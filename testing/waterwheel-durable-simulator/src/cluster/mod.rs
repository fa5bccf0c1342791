//! Lives of several nodes on a database: who owns the timers when processes stop and go on, connections break, replies are late or lost, and the server
//! restarts or fails over.
//!
//! The nodes run the engine and the [protocol](waterwheel_durable_postgres::protocol) of the store in PostgreSQL. The server is simulated.
//!
//! | file | question |
//! |---|---|
//! | `world` | what happens next? |
//! | `node` | what does a process do? |
//! | `network` | when does what arrive where? |
//! | `server` | what does the database do? |
//! | `promises` | what was promised, and was it kept? |

mod network;
mod node;
mod promises;
mod server;
mod world;

/// The maximum number of nodes.
const NODES: usize = 3;
const HANDLERS: [&str; 2] = ["mail", "close"];
/// How many deliveries of a handler may run at a time, in all processes together.
const CONCURRENCY: usize = 3;
/// How long a handler may run, in microseconds.
const LONGEST: u64 = 3_000_000;
/// The time of the wall clock at boot, in microseconds.
const WALL: i64 = 1_800_000_000_000_000;

/// A fault that is planted in the statements of the protocol, or in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A commit does not look at the row of the partition.
    NoFence,
    /// A commit locks the row of the partition in a mode that does not conflict with a take-over.
    FenceForKeyShare,
    /// A commit locks the row of the partition in a mode that does not conflict with itself: a lost transaction of the same opening may go on.
    FenceForShare,
    /// A commit does not compare the timeline.
    FenceOfAnyTimeline,
    /// An owner that leaves writes the timeline of the server into the row of the partition.
    LeavesOnNewTimeline,
    /// A commit does not look for the row of the commit before it.
    NoGapCheck,
    /// A take-over does not compare the counter of the node that held the partition again.
    CounterNotComparedAgain,
    /// The end of a delivery that was handed over stays in its table once it is applied.
    EndsKept,
    /// Deliveries begin without a look at the lease.
    LeaseNotLookedAt,
}
