//! The driver: shards, the tasks that turn them, how those are woken in time, and the handle.
//!
//! | file or folder | question |
//! |---|---|
//! | `timer`, `builder`, `metrics` | what does a user see? [`Timer`], [`Builder`], [`Metrics`] |
//! | `current` | which timer do the free functions use? |
//! | `core` | what do the handles of a timer share, and how is its driver started? |
//! | `turn/` | who turns a shard, how much at a time, and who wakes what comes up? |
//! | `stop`, `drain` | how does a timer end? |
//! | `shard/` | what is behind one lock, and what do futures do with it? |
//! | `wakeup/` | how is the driver woken in time, and why is no wake-up lost? |
//! | `lifecycle` | what state is this timer in, and who waits for a drain? |
//! | `permits`, `wake_all`, `thread_number` | how is `max_pending` counted, how are wakers woken, which thread is this? |
//! | `host` | what is taken from the machine and from tokio? |
//! | `models/` | does all this hold in every interleaving of two or three threads? |
//!
//! A file knows those below it in this table, and none above. Two things are known in both directions: a shard and the list of
//! shards (`shard/list`), and the wake-up thread and the driver that it wakes (`wakeup/thread`). `tests/house/layering` checks it.

mod builder;
mod core;
mod current;
mod drain;
mod host;
mod lifecycle;
mod metrics;
#[cfg(waterwheel_loom)]
mod models;
mod permits;
mod shard;
mod stop;
mod thread_number;
mod timer;
mod turn;
mod wake_all;
mod wakeup;

pub use builder::Builder;
pub use metrics::{Lateness, Metrics};
pub use timer::Timer;

pub(crate) use current::current_shard;
pub(crate) use lifecycle::State;
pub(crate) use shard::{Answer, Shard};
pub(crate) use turn::catch_up;
