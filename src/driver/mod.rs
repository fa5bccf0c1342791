//! The driver: shards, the tasks that turn them, how those are woken in time, and the handle.
//!
//! | file or folder | question |
//! |---|---|
//! | `current` | which timer do the free functions use? |
//! | `builder` | how is a timer of one's own set up? [`Builder`] |
//! | `timer` | what can a handle do? [`Timer`] |
//! | `core` | what do the handles of a timer share, and how is its driver started? |
//! | `turn/` | who turns a shard, how much at a time, and who wakes what comes up? |
//! | `drain`, `ending` | how does a timer end? |
//! | `shard/` | what is behind one lock, and what do futures do with it? |
//! | `wakeup/` | how is the driver woken in time, and why is no wake-up lost? |
//! | `lifecycle` | what state is this timer in, who waits for a drain, and how is `max_pending` counted? |
//! | `metrics`, `snapshot` | what was done, and what is there to see? [`Metrics`], [`Snapshot`] |
//! | `instances` | are too many timers of one's own alive? |
//! | `host` | what is taken from the machine and from tokio? |
//! | `models/` | does all this hold in every interleaving of two or three threads? |
//!
//! A room imports from rooms below it in this table, and from none above. Within a room, two pairs of files import each other: a
//! shard and the list of shards (`shard/list`), and the wake-up of a driver and the thread that wakes it (`wakeup/thread`).
//! `tests/house/layering` checks both.

mod builder;
mod core;
mod current;
mod drain;
mod ending;
mod host;
#[cfg(feature = "tracing")]
mod instances;
mod lifecycle;
mod metrics;
#[cfg(waterwheel_loom)]
pub(crate) mod models;
mod shard;
mod snapshot;
mod timer;
mod turn;
mod wakeup;

pub use builder::Builder;
pub use metrics::{Lateness, Metrics};
pub use snapshot::{DialSnapshot, ShardSnapshot, Snapshot};
pub use timer::Timer;
pub use wakeup::Waking;

pub(crate) use current::current_shard;
pub(crate) use host::spawn;
pub(crate) use lifecycle::{End, Lifecycle, all_are_open};
pub(crate) use shard::{Answer, Shard};
pub(crate) use turn::spawn_catch_up;
