//! Sleeps on clocks other than the monotonic one: the wall clock, and the time since boot.
//!
//! This module requires the feature `clocks`.
//!
//! | to wait | use | if the machine is suspended | if the wall clock is set |
//! |---|---|---|---|
//! | for a duration | [`sleep`](crate::sleep()) | the suspension does not count (on Linux) | no effect |
//! | for a duration, including suspension | [`sleep_boot`] | the suspension counts: due at once on resume if the time is over | no effect |
//! | until a time of day | [`sleep_until_wall`] | the suspension counts | the deadline is compared with the new time |
//!
//! These futures do not run on a [`Timer`](crate::Timer), since a time of day is not an `Instant`: the clock that shows it may be
//! set back. They are meant for a small number of long waits, such as an appointment, a lease or a certificate: each one takes a
//! lock shared by all of them, and costs O(log n). For a time limit on a call, use [`timeout`](crate::timeout()).
//!
//! # How they wait
//!
//! On Linux, a thread of this module waits on two `timerfd`s. There is one per process, started at the first use. It wakes up
//! when the earliest deadline comes, when the wall clock is set, and when an earlier deadline is added; it never ticks. The
//! thread calls the wakers itself, one after the other: a waker that blocks delays the sleeps of the whole process, on both
//! clocks. (The wakers of runtimes do not block.)
//!
//! On other systems, and as long as that thread cannot be started, a tokio sleep checks the clock again at least once a minute. A
//! suspension or a set clock is then noticed up to a minute late, and the future must be polled within a tokio runtime with time
//! enabled. The next sleep, or the next check, tries to start the thread again.
//!
//! # Prior art
//!
//! `timerfd_create(2)` with `CLOCK_BOOTTIME`, and `TFD_TIMER_CANCEL_ON_SET`, which systemd's calendar timers use. Requested in
//! [tokio#3185](https://github.com/tokio-rs/tokio/issues/3185).

// From the ground up: which clock, and what waits for it whatever happens to it (`waiting`), by looking (`fallback`) or by a thread
// (`queue`, `linux`; `elsewhere` has none), and the futures (`sleep`).
#[cfg(any(test, not(target_os = "linux")))]
mod elsewhere;
mod fallback;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, target_os = "linux"))]
mod queue;
mod sleep;
mod waiting;

pub use sleep::{SleepBoot, SleepUntilWall, sleep_boot, sleep_until_wall};
