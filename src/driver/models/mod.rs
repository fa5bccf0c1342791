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
//! | `fire` | firing and a drop, another waker, a poll past the tick; permits |
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
//! # What was broken to see them fail
//!
//! Each line was broken by hand, alone, and these models saw it.
//!
//! | broken | seen by |
//! |---|---|
//! | `Shard::lower`: the target is read before `next` is lowered | `arm`, `reset`, `bell`, `end`, `help`, `fire` |
//! | `Shared::aim`: the shards, or the roster, are not read again | `arm`, `bell`, `end`; the shards also `reset`, `help`, `fire` |
//! | both accesses of the futures, or both of the driver, `Release` and `Acquire` for `SeqCst` | the same |
//! | `Shard::turn`: `published` is not kept, `next` is not raised | all that fire |
//! | `Shard::poll_anew`: unlocked between the look and the new waker | `fire` |
//! | `poll_anew`: what is armed again is not published | `reset`, `fire` |
//! | `hasten`: not published; no look whether it is pending | `reset` |
//! | `Postponed::insert`: the note before the deadline, or `Relaxed` | `reset` |
//! | `remove`, `park`: an end is counted twice | all that fire; `fire` |
//! | `FirstBite`: the driver is not rung | `arm`, `fire`, `reset`, `help`, `bell` |
//! | `DriverTask`: a sleep that is over is slept on | `arm` |
//! | `DriverTask`: closed is read after the shards are listed; `Drop for Shard`: the driver is not told | `end` |
//! | `Shared::enlist`: no look at the stage | `stop`, `drain` |
//! | `Shared::stop`: the shards are listed before the stage is moved | `stop` |
//! | `stop`, `turn`, `remove`: drains are not told; `is_drained`: looks before it leaves its waker | `drain` |
//! | `arm`: help is called though some is on its way; `help_is_over`: not noted | `help` |
//! | `Shard::turn` or `Shard::help`: a shard is turned though another thread turns it | `help` |
//! | `Shard::end_turn`: the driver is not rung | `arm`, `help` |
//! | `DriverTask`: a shard that is left to another thread holds up the rest | `help` |
//! | `Shared::heed`: the alarm is not set | `arm`, `drain`, `end` |
//! | `Permits::try_take`, `release`: a load and a store | `fire` |
//! | `bell::update`: no look at the stage | `bell`, `stop` |
//! | `bell::update`: the target read before the lock; no notify; `leave`: no notify | `bell` |
//! | `bell::run`: a nudge is not made good by the waker | `bell` |
//! | `Shared::heed`: the bell told before the target is lowered; the target stored, not lowered | `bell` |
//! | `Shared::lose_bell`: the driver is not woken | `bell` |
//!
//! Not seen: one access of the four on `next` and `target` made weaker and the other three left, since
//! `sync::atomic` fences each of them on both sides.
//!
//! # What loom does not see
//!
//! What is written once (`OnceLock`: the shards, the segments of notes and cells, the driver's waker),
//! counts of references, and tokio itself: its clock, its scheduler, its runtime's end. A thread may be
//! preempted at an access to an atomic or a lock, and nowhere else. A clock that can be paused is not
//! modelled. All this is what `tests/stress.rs` is for, on cores and, by `.ci/memcheck`, on valgrind's one
//! thread at a time, and the tests of virtual time and of stopping. (Under helgrind and drd it holds as well;
//! what those say of data races is hundreds of places in std's locks and tokio's atomics, which they do not
//! know, and safe code has none.)

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
