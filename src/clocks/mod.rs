//! Sleeps by other clocks than the monotonic one: the wall clock, and the time since boot. Feature `clocks`.
//!
//! | to wait | use | the machine was suspended meanwhile | the wall clock is set |
//! |---|---|---|---|
//! | for a duration | [`sleep`](crate::sleep()) | the suspension does not count (on Linux) | nothing |
//! | for a duration, suspension included | [`sleep_boot`] | it counts: due at once, if it is over | nothing |
//! | until a time of day | [`sleep_until_wall`] | it counts | the deadline is compared with the new time |
//!
//! They are futures of their own, and not timers of a [`Timer`](crate::Timer): a time of day is no `Instant`, since the clock
//! that shows it may be set back. They are for few and long waits, such as an appointment, a lease or a certificate: each takes a lock that all of them share, and
//! O(log n). For a time limit on a call use [`timeout`](crate::timeout()).
//!
//! # How they wait
//!
//! On Linux a thread of this module, one a process and started at the first use, waits on two `timerfd`s. It is woken when the earliest deadline comes,
//! when the wall clock is set, and when an earlier deadline is added; it never ticks. The thread calls the wakers itself, one after the other: a
//! waker that blocks holds up the sleeps of the whole process, of both clocks. (Those of runtimes do not block.)
//!
//! Elsewhere, and as long as that thread cannot be started, a sleep of tokio's looks at the clock again at least once a minute. So it notices
//! a suspension or a set clock up to a minute late, and only then must the future be polled within a tokio runtime with time enabled.
//! The next sleep, or the next look, tries to start the thread again.
//!
//! # Where the idea is from
//!
//! `timerfd_create(2)` with `CLOCK_BOOTTIME`, and `TFD_TIMER_CANCEL_ON_SET`, which systemd's calendar timers use. Asked for in
//! [tokio#3185](https://github.com/tokio-rs/tokio/issues/3185).

// From the ground up: which clock (`face`), what waits for it whatever happens to it (`waiting`), by looking (`fallback`) or by a thread
// (`started`, `queue`, `linux`; `elsewhere` has none), and the futures (`sleep`).
#[cfg(any(test, not(target_os = "linux")))]
mod elsewhere;
mod face;
mod fallback;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, target_os = "linux"))]
mod queue;
mod sleep;
#[cfg(any(test, target_os = "linux"))]
mod started;
mod waiting;

pub use sleep::{SleepBoot, SleepUntilWall, sleep_boot, sleep_until_wall};
