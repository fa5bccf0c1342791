//! The shell connects the engine to clocks, threads and tasks.
//!
//! | file | question |
//! |---|---|
//! | `shared` | who may use the engine, what does the lock protect, who carries out the engine's outputs, and who tells it the time? |
//! | `clock` | what time is it, and how does a task wait for a time? |
//! | `intake` | how many bytes of inserts may wait for their commits? |
//! | `store_queue` | which requests to the store are pending, and in which order? |
//! | `store_thread` | who calls the store? |
//! | `worker` | which handlers exist, who runs them, and what happens after a panic or a hang? |
//! | `task` | which helpers do tasks and threads share? |
//! | `trace` | what does the crate `tracing` see of a delivery? |
//!
//! One lock holds the engine. Callers, workers, the store's thread and the driver take the lock, pass something to the engine, and collect its outputs. They carry
//! out the outputs after releasing the lock: spawning workers, waking callers and calling the event hook. Requests to the store are queued under the lock, because
//! their order is determined by the engine. So an insert goes from its caller to the store's thread and back, without waiting for a task
//! in between.

pub(crate) mod clock;
pub(crate) mod intake;
pub(crate) mod shared;
mod store_queue;
pub(crate) mod store_thread;
mod task;
mod trace;
pub(crate) mod worker;

pub(crate) use task::unwound;
