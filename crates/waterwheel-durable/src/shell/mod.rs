//! How does the engine meet clocks, threads and tasks?
//!
//! | file | question |
//! |---|---|
//! | `shared` | who may use the engine, and who does what it puts out? |
//! | `state` | what lies behind the lock? |
//! | `clock` | what time is it, and how does one wait for it? |
//! | `driver` | who turns the engine when its time has come? |
//! | `store_thread` | who calls the store? |
//! | `worker` | who runs a handler, and what becomes of a panic or a hang? |
//! | `trace` | what does a delivery look like to the crate `tracing`? |
//! | `give_way` | how does a task let others run, so that none of them can hold it? |
//! | `handlers` | which handlers are there? |
//!
//! One lock holds the engine. Who has something for it, a caller, a worker, the store's thread or the driver, takes the lock, hands it over, and takes what
//! the engine puts out with it. It does that after it has let go of the lock: it spawns workers, wakes callers and calls the hook for events. Requests to the store
//! are queued under the lock, because their command is the engine's. So an insert goes from its caller to the store's thread and back, and waits for no
//! task in between.

pub(crate) mod clock;
mod driver;
mod give_way;
pub(crate) mod handlers;
pub(crate) mod intake;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod store_thread;
mod trace;
mod worker;

pub(crate) use worker::unwound;
