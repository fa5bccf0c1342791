//! The driver: shards, the task that turns them, the handle, the bell.
//!
//! | file | concept |
//! |---|---|
//! | `timer` | [`Timer`], the handle |
//! | `builder` | [`Builder`], its settings |
//! | `ambient` | which timer the free functions use |
//! | `shard` | one wheel of wakers behind one lock |
//! | `postponed` | deadlines beside the slab, moved without the lock |
//! | `shared` | what the task, the shards and the bell share; the lost wake-up and why it is not |
//! | `task` | the task that turns the wheels |
//! | `batch` | the wakers of a turn, in the order in which they are woken |
//! | `alarm` | its sleep on tokio's clock |
//! | `help` | a task that turns a shard when that task is late |
//! | `bell` | the thread that wakes the task |
//! | `nudge` | how the bell wakes the task without waking more workers than one |
//! | `clock` | the seam through which time enters |
//! | `test_util` | whether tokio's clocks can be paused in this build |
//! | `drain` | waiting until nothing is pending |
//! | `permits` | `max_pending` |
//! | `metrics` | what was done |
//! | `thread` | which shard is a thread's |
//! | `host` | what all this has of the machine and of tokio |
//! | `models` | every interleaving of two or three threads, under loom |

mod alarm;
mod ambient;
mod batch;
mod bell;
mod builder;
mod clock;
mod drain;
mod help;
mod host;
mod metrics;
#[cfg(waterwheel_loom)]
mod models;
mod nudge;
mod permits;
mod postponed;
mod shard;
mod shared;
mod task;
mod test_util;
mod thread;
mod timer;

pub use builder::Builder;
pub use metrics::{Lateness, Metrics};
pub use timer::Timer;

pub(crate) use ambient::shard as ambient_shard;
pub(crate) use clock::Clock;
pub(crate) use shard::{Answer, Shard};
pub(crate) use shared::Stage;

/// Panics where tokio's own `sleep` would for want of a time driver, and with its words.
#[track_caller]
fn assert_time_is_enabled(handle: &tokio::runtime::Handle) {
    let _entered = handle.enter();
    drop(tokio::time::sleep(std::time::Duration::ZERO));
}
