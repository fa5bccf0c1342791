//! How does the engine meet clocks, threads and tasks?
//!
//! | file | question |
//! |---|---|
//! | `shared` | who may use the engine, what lies behind the lock, who does what the engine puts out, and who tells it the time? |
//! | `clock` | what time is it, and how does one wait for it? |
//! | `intake` | how many bytes of inserts may wait for their commits? |
//! | `store_queue` | what is asked of the store, and when? |
//! | `store_thread` | who calls the store? |
//! | `worker` | which handlers are there, who runs them, and what becomes of a panic or a hang? |
//! | `task` | what do all of these have in common? |
//! | `trace` | what does a delivery look like to the crate `tracing`? |
//!
//! One lock holds the engine. Who has something for it, a caller, a worker, the store's thread or the driver, takes the lock, hands it over, and takes what
//! the engine puts out with it. It does that after it has let go of the lock: it spawns workers, wakes callers and calls the hook for events. Requests to the store
//! are queued under the lock, because their command is the engine's. So an insert goes from its caller to the store's thread and back, and waits for no
//! task in between.

pub(crate) mod clock;
pub(crate) mod intake;
pub(crate) mod shared;
mod store_queue;
pub(crate) mod store_thread;
mod task;
mod trace;
pub(crate) mod worker;

pub(crate) use task::unwound;
