//! The real driver, shards and futures under loom, which runs two or three threads in every order.
//!
//! ```text
//! RUSTFLAGS="--cfg waterwheel_loom" cargo test --lib --release models
//! LOOM_MAX_PREEMPTIONS=4 …                                    goes deeper
//! ```
//!
//! | file | who meets whom |
//! |---|---|
//! | `arm` | arming and the driver that goes to sleep, or serves another |
//! | `fire` | firing and a drop, another waker, a poll past the deadline; permits |
//! | `reset` | firing, or going to sleep, and a deadline that moves |
//! | `stop` | stopping, or the end of the runtime, and all of these |
//! | `drain` | the last timer's end and whoever drains |
//! | `help` | two threads that turn one overdue shard |
//! | `end` | the last handle, the last future and the driver |
//! | `bell` | the bell, those who tell it of targets, and those it wakes |
//! | `world` | a timer, its driver and tasks, polled by hand |
//! | `host` | a clock that is moved by hand, sleeps on it, tasks |
//!
//! A model ends by letting time go on, from one moment that tokio's clock knows of to the next (or, with
//! the bell's thread, to the deadline). A timer that the driver does not know of is then never served,
//! and one that it was told of too late is late. Each ends with the books: armed = fired + cancelled +
//! stopped + pending. What can come of a race is listed and must all come up.
//!
//! # What loom does not see
//!
//! What is written once (`OnceLock`: the shards, the segments of notes and cells, the driver's waker),
//! counts of references, and tokio itself: its clock, its scheduler, its runtime's end. A thread may be
//! preempted at an access to an atomic or a lock, and nowhere else. A clock that can be paused is not
//! modelled. All this is what `tests/stress.rs` is for, and the tests of virtual time and of stopping.

pub(super) mod host;

#[cfg(test)]
mod arm;
#[cfg(test)]
mod bell;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod end;
#[cfg(test)]
mod fire;
#[cfg(test)]
mod help;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod world;
