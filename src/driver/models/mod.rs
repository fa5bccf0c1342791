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
//! | `drain` | the last timer's end and a future that drains |
//! | `catch_up` | two threads that turn one overdue shard |
//! | `end` | the last handle, the last future and the driver |
//! | `wakeup_thread` | the wake-up thread, the futures that lower a target, and the drivers that it wakes |
//! | `world` | a timer, its driver and tasks, polled by hand |
//! | `host` | sleeps on a clock that is moved by hand, tasks, the wake-up thread |
//!
//! A model ends by letting time go on, from one moment that tokio's clock knows of to the next (or, with the wake-up thread,
//! to the deadline). So a timer that the driver does not know of is never served, and a timer whose target it learns too late
//! is late. Each model ends with the books: armed = fired + cancelled + stopped + pending. The outcomes that a race may have
//! are listed, and all must come up.
//!
//! # What was broken to see them fail
//!
//! Each line was broken by hand, alone, and these models saw it.
//!
//! | broken | seen by |
//! |---|---|
//! | `Shard::unlock_with_earlier_next`: the target is read before `next` is lowered | `arm`, `reset`, `wakeup_thread`, `end`, `catch_up`, `fire` |
//! | `Workspace::end_turn`: the shards, or their count, are not read again | `arm`, `wakeup_thread`, `end`; the shards also `reset`, `catch_up`, `fire` |
//! | both accesses of the futures, or both of the driver, `Release` and `Acquire` for `SeqCst` | the same |
//! | `Shard::set_next` keeps no `next` in `Locked`, or does not write the atomic | all that fire |
//! | `Shard::poll_with_new_waker`: unlocked between the look and the new waker | `fire` |
//! | `poll_with_new_waker`: what is armed again lowers no `next` | `reset`, `fire` |
//! | `move_earlier`: `next` is not lowered; no look whether the timer is pending | `reset` |
//! | `Postponed::insert`: the note before the deadline, or `Relaxed` | `reset` |
//! | `remove`, `disarm`: an end is counted twice | all that fire; `fire` |
//! | `FirstTurn`: the driver is not woken | `arm`, `fire`, `reset`, `catch_up`, `wakeup_thread` |
//! | `DriverTask`: a sleep that is over is slept on | `arm` |
//! | `Drop for Shard`: the driver is not woken | `end` |
//! | `Shard::add`: no look at the state | `stop`, `drain` |
//! | `stop`: the shards are listed before the state is moved | `stop` |
//! | `stop`, `serve_batch`, `remove`: drains are not woken; `Drain` looks before it leaves its waker | `drain` |
//! | `arm`: a catch-up is spawned though one is under way; its end is not noted | `catch_up` |
//! | `one_shard::turn` or `catch_up`: a shard is turned though another thread turns it | `catch_up` |
//! | `one_shard::end`: the driver is not woken | `arm`, `catch_up` |
//! | `Workspace::turn`: a shard that is left to another thread holds up the rest | `catch_up` |
//! | `Wakeup::request`: tokio's sleep is not set | `arm`, `drain`, `end` |
//! | `Permits::try_take`, `give_back`: a load and a store | `fire` |
//! | `thread::update`: no look whether the driver has ended | `wakeup_thread`, `stop` |
//! | `thread::update`: the target read before the lock; no notify; `leave`: no notify | `wakeup_thread` |
//! | `thread::run`: an unanswered nudge wakes no task | `wakeup_thread` |
//! | `Wakeup::request`: the thread updated before the target is lowered; the target stored, not lowered | `wakeup_thread` |
//! | `Wakeup::lose_thread`: the driver is not woken | `wakeup_thread` |
//!
//! Not seen: one access of the four on `next` and `target` made weaker and the other three left, since `sync::atomic` fences
//! each of them on both sides.
//!
//! # What loom does not see
//!
//! It does not see what is written once (`OnceLock`: the shards, the segments of notes and cells, the driver's wakers), counts of
//! references, and tokio itself: its clock, its scheduler, its runtime's end. It preempts a thread at an access to an atomic or a
//! lock, and nowhere else. A clock that can be paused is not modelled. For these there are `tests/driver/stress.rs`, on cores and
//! (by `.ci/memcheck`) on valgrind's one thread at a time, and the tests of virtual time and of stopping. (The stress test also
//! holds under helgrind and drd. Their reports of data races name hundreds of places in std's locks and in tokio's atomics, which
//! they do not understand. Safe code has no data race.)

pub(super) mod host;

#[cfg(test)]
mod arm;
#[cfg(test)]
mod catch_up;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod end;
#[cfg(test)]
mod fire;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod wakeup_thread;
#[cfg(test)]
mod world;
