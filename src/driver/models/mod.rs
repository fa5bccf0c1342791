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
//! | `given` | the task that has a backlog from the driver, and the driver, futures that arm, ends of the timer |
//! | `by_hand` | the thread that advances a manual clock, and futures that arm, poll, move and cancel |
//! | `end` | the last handle, the last future and the driver |
//! | `watchdog` | the watchdog thread, the futures that lower a target, and the drivers that it wakes |
//! | `world` | a timer, its driver and tasks, polled by hand |
//! | `host` | sleeps on a clock that is moved by hand, tasks, the watchdog thread |
//!
//! A model ends by letting time go on, from one moment that tokio's clock knows of to the next (or, with the watchdog thread,
//! to the deadline). So a timer that the driver does not know of is never served, and a timer whose target it learns too late
//! is late. Each model ends with the books: armed = fired + cancelled + stopped + pending. The outcomes that a race may have
//! are listed, and all must come up.
//!
//! # What was broken to see them fail
//!
//! Each line was broken by hand, alone, and these models saw it. A line with several faults, each set off by a semicolon or
//! an "or", was broken once for each.
//!
//! | broken | seen by |
//! |---|---|
//! | `Shard::unlock_with_earlier_next`: the target is read before `next` is lowered | `arm`, `catch_up`, `end`, `fire`, `reset`, `watchdog` |
//! | `Wakeup::sleep_towards`: the shards are read before the target is written | the same |
//! | `Workspace::end_turn`: the shards, or their count, are not read again | the same; the count `arm`, `end`, `watchdog` |
//! | both accesses of the futures, or both of the driver, `Release` and `Acquire` for `SeqCst` | the same six |
//! | `ShardList::list_for_turn`: the count is read after the list is unlocked | `arm`, `end`, `watchdog` |
//! | `Shard::set_next` does not write the atomic; or keeps no `next` in `Locked` | all; `catch_up` |
//! | `serve_batch` raises `next` in the atomic alone, or in `Locked` alone | all that fire |
//! | `Shard::poll_with_new_waker`: unlocked between the look and the new waker | `fire` |
//! | `poll_with_new_waker`: what is armed again lowers no `next` | `fire`, `reset` |
//! | `move_earlier`: `next` is not lowered; no look whether the timer is pending; its end is not counted | `reset` |
//! | `Postponed::insert`: the note before the deadline, or `Relaxed` | `reset` |
//! | `arm`, `poll_with_new_waker`: the note is not cleared; `disarm_due` writes over `MOVED` | `reset` |
//! | `remove`, `disarm`: an end is counted twice | all that fire; `fire` |
//! | `Shard::finish`: the entry is not freed | `fire` |
//! | `FirstTurn`: the driver is not woken | `arm`, `catch_up`, `fire`, `reset`, `watchdog` |
//! | `FirstTurn::take`: tokio's sleep is not set for the next turn | `arm`, `catch_up`, `fire`, `reset` |
//! | `FirstTurn::take`: taken while this thread sets tokio's sleep | `arm` |
//! | `DriverTask`: a sleep that is over is slept on | `arm` |
//! | `DriverTask`, its `Drop`: the wake-up does not end | `stop`, `watchdog` |
//! | `Drop for Shard`, or for `Core`: the driver is not woken | `end`; the shard's also `watchdog` |
//! | `ShardList::is_over`: no look whether the list is closed; none at the shards | `drain`, `end`, `stop`, `watchdog`; `end` |
//! | `Shard::add`: no look at the state; listed after the look | `stop`, `drain` |
//! | `stop`: the shards are listed before the state is moved; the driver is not woken | `stop`, `drain` |
//! | `Lifecycle::advance`: a load and a store | `stop`, `drain` |
//! | `stop`, `serve_batch`, `remove`: drains are not woken | `drain` |
//! | `Drain`: looks before it leaves its waker; moves the state after it lists the shards; keeps its waker when dropped | `drain` |
//! | `arm`: a catch-up is spawned though one is under way; its end is not noted; none is spawned | `catch_up` |
//! | `one_shard::turn` or `catch_up`: a shard is turned though another thread turns it | `catch_up` |
//! | `Turning::begin` notes no `LEFT`; `one_shard::end`: the driver is not woken | `arm`, `catch_up` |
//! | `Turning::give` notes no `LEFT`; an end forgets it while the other of the two goes on | `given` |
//! | `Turning::begin` of a shard that is given away; `Turning::end` takes it back; `give_back` ends the turn of another thread | `given` |
//! | `Backlog`, its `Drop`: the driver is not woken; the shard stays given away | `given` |
//! | `Backlog::turn`: no look at the queue, or at how long it waited; `Workspace::turn`: no backlog is kept | `given` |
//! | `ManualClock::try_advance`: the last turn leaves out timers whose `next` is later; `move_earlier`: no look at the hand | `by_hand` |
//! | `try_advance_to_next`: goes on until a turn has fired something | `by_hand` |
//! | `Workspace::turn`: a shard that is left to another thread holds up the rest, or stays listed | `catch_up` |
//! | `FirstTurn::take`: sets a target though it has left out a shard | `catch_up` |
//! | `Workspace::end_turn`: the shards are not given back | `end`, `watchdog` |
//! | `Wakeup::request`: tokio's sleep is not set; the target is not lowered | `arm`, `catch_up`, `fire`, `reset`; the sleep also `drain`, `end` |
//! | `request`, `set_tokio_sleep`: the target is read before the sleep's lock | `arm`; `arm`, `catch_up`, `fire`, `reset` |
//! | `request`: no look at the target | `catch_up`, `watchdog` |
//! | `Permits::try_take`, `give_back`: a load and a store; `Sleep` gives none back, armed or not | `fire` |
//! | `watchdog::join`: no look whether the driver has ended; `leave` does not note it | `stop`, `watchdog` |
//! | `watchdog::update`: no look whether the driver is a member; `watchdog::join`: no notify | `watchdog` |
//! | `watchdog::leave`: no notify; `Wakeup::end`: does not leave | `stop`, `watchdog` |
//! | `watchdog::run`: an unanswered nudge wakes no task; its end is not noted | `watchdog` |
//! | `watchdog::run`: the targets are not read again; are read before `looks_at` is written; it is not written | `watchdog` |
//! | `look_on_guard`, `first_look`, `note`: a watched driver is not woken, or not sooner once it was late; a closely watched one is looked at like a watched one | `watchdog` |
//! | `Wakeup::request`: the thread updated before the target is lowered; the target stored, not lowered | `watchdog` |
//! | `Wakeup::sleep_towards`: the nudge is expected after the target is written, or not at all | `watchdog` |
//! | `Wakeup::lose_thread`: the driver is not woken | `watchdog` |
//!
//! Not seen: one access of the four on `next` and `target`, or of the four on `target` and `looks_at`, made weaker and the other three
//! left, since `sync::atomic` fences each of them on both sides.
//!
//! Tests see what needs a paused clock, or a large herd:
//!
//! | broken | seen by |
//! |---|---|
//! | `FirstTurn::take`: taken on the watchdog thread | `driver/watchdog` |
//! | `Setting::rest`: the sleep is dropped on a running clock | `driver/watchdog` |
//! | `FirstTurn::take`: the workspace is not put back | `time/beside_tokio`, `driver/reentrancy/counting` |
//! | `FirstTurn::take`: what it leaves is not noted; a late one serves no more; `DriverTask`: what it left is not asked | `time/virtual_time/advancing` |
//! | `DriverTask`: the target is not forgotten | the unit test of `turn` |
//! | `DriverTask` of a stopped timer, or `Wakeup::end`: tokio's sleep stays | `time/virtual_time/idle_clock` |
//! | `Lifecycle::await_drain`: each poll adds a waker | `driver/reentrancy/keeping` |
//! | `Shard::arm`: files what the hand has passed | `time/poll` |
//! | `Shard::disarm`: the stored waker stays | `time/futures` |
//! | `Sleep::set`: no permit moves | `time/bounded` |
//! | `Registration`: removes nothing; removes another's | unit tests of `current` |
//! | `Clock::look_for_pause` notes no pause; `earliest_of_tick`: none | `time/virtual_time` |
//! | `Clock::may_stand_still`: never; `Setting::set`: an old target stays set | `time/virtual_time/idle_clock` |
//! | `Clock::is_of_one_thread`, `uses_tokio_sleep`: false | `time`, `driver/local_runtime`: the clock does not jump |
//! | `arrange`: the thread is updated on a clock that was paused | `time/virtual_time/pausing` |
//! | `is_tokio_sleep_alone`: false on a clock that was paused | `time/virtual_time/advancing` |
//!
//! Nothing sees these, and no timer is late or lost:
//!
//! - `driver_runs`, or `wake`, does not keep the target: a future that is earlier sets the sleep once more, and the driver looks
//!   at every shard in any case.
//! - `list_for_turn` counts the shards before it locks: the driver turns once more.
//! - `lose_thread` leaves the member: the thread, if another driver starts it, wakes this driver once.
//! - `update` leaves `is_nudged`: every second wake-up is the costlier one.
//! - `DriverTask` does not ask the workspace first: what is in it counts as in use for `is_over`.
//! - `nudge` is not ended with the driver: the timer's clock keeps the same runtime's handle.
//! - `move_earlier` to the past writes no note: the next poll reads the clock.
//!
//! # What loom does not see
//!
//! It does not see what is written once (`OnceLock`: the shards, the segments of notes and cells, the driver's wakers), counts of
//! references, and tokio itself: its clock, its scheduler, its runtime's end. It preempts a thread at an access to an atomic or a
//! lock, and nowhere else. A clock that can be paused is not modelled. For these there are `tests/driver/stress.rs`, on cores and
//! (by `ci/memcheck`) on valgrind's one thread at a time, and the tests of virtual time and of stopping. (The stress test also
//! holds under helgrind and drd. Their reports of data races name hundreds of places in std's locks and in tokio's atomics, which
//! they do not understand. Safe code has no data race.)

pub(crate) mod host;

#[cfg(test)]
mod arm;
#[cfg(test)]
mod by_hand;
#[cfg(test)]
mod catch_up;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod end;
#[cfg(test)]
mod fire;
#[cfg(test)]
mod given;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod watchdog;
#[cfg(test)]
pub(crate) mod world;
