use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use waterwheel::Timer;
use waterwheel::clocks::sleep_until_wall;

use waterwheel_durable_core::engine::Now;

/// The shortest wait that also sleeps by the wall clock, in addition to the monotonic clock. In shorter waits, a clock that was set or the end of a
/// suspension is noticed at most this much later.
const LONG_WAIT: Duration = Duration::from_millis(100);
const TOGETHER_MICROS: u64 = 200;
/// The longest wait, which only keeps sums of times from overflowing.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The clocks that the engine is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    shift: Option<Arc<Shift>>,
}

/// Moves the clocks of a [`Durable`](crate::Durable) in tests, relative to the machine's clocks.
#[derive(Debug, Default)]
pub struct Shift {
    wall_micros: AtomicI64,
    boot_micros: AtomicU64,
    moved: Notify,
}

impl Shift {
    /// Sets the wall clock this many microseconds ahead of the machine's, or behind it if negative.
    pub fn set_wall(&self, micros: i64) {
        self.wall_micros.store(micros, Ordering::SeqCst);
        self.moved.notify_one();
    }

    /// Simulates a suspension of this many microseconds: both clocks advance by it.
    pub fn suspend(&self, micros: u64) {
        self.boot_micros.fetch_add(micros, Ordering::SeqCst);
        let wall = i64::try_from(micros).unwrap_or(i64::MAX);
        self.wall_micros.fetch_add(wall, Ordering::SeqCst);
        self.moved.notify_one();
    }

    /// The number of microseconds that the wall clock is ahead of the machine's.
    pub fn wall(&self) -> i64 {
        self.wall_micros.load(Ordering::SeqCst)
    }
}

impl Clock {
    pub(crate) fn shifted(shift: Arc<Shift>) -> Clock {
        Clock { shift: Some(shift) }
    }

    /// Reads both clocks, within `TOGETHER_MICROS` of each other where possible: if the thread is preempted in between, it seems that the clock was set.
    pub(crate) fn now(&self) -> Now {
        let mut boot = self.boot();
        for _ in 0..3 {
            let wall = self.wall();
            let now = Now {
                boot_micros: boot,
                wall_micros: wall,
            };
            boot = self.boot();
            if boot - now.boot_micros < TOGETHER_MICROS {
                return now;
            }
        }
        Now {
            boot_micros: boot,
            wall_micros: self.wall(),
        }
    }

    /// Microseconds since boot.
    pub(crate) fn boot(&self) -> u64 {
        let shift = self.shift.as_ref();
        boot_micros() + shift.map_or(0, |it| it.boot_micros.load(Ordering::SeqCst))
    }

    /// Microseconds since 1970.
    pub(crate) fn wall(&self) -> i64 {
        let since = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => {
                // Rounded down, like times after 1970.
                let before = before.duration() + Duration::from_nanos(999);
                i64::try_from(before.as_micros()).map_or(i64::MIN, |micros| -micros)
            }
        };
        let shift = self.shift.as_ref();
        since.saturating_add(shift.map_or(0, |it| it.wall()))
    }

    /// Waits until this time, in microseconds since boot, or forever. Returns early, or soon, if the clocks were moved against each other since `turned`.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the timer was stopped, along with its runtime.
    pub(crate) async fn sleep_until(
        &self,
        timer: &Timer,
        boot: Option<u64>,
        turned: Now,
    ) -> Result<(), Stopped> {
        let after = |then: u64| {
            let left = boot.map(|at| Duration::from_micros(at.saturating_sub(then)));
            left.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
        };
        let left = after(self.boot());
        let mut sleep = pin!(timer.try_sleep(left).map_err(|_| Stopped)?);
        let mut by_wall = (left >= LONG_WAIT).then(|| {
            // Based on the time that the engine knows, to notice a clock that was set since then. If none was, this sleep ends after the other one.
            let beyond = after(turned.boot_micros) + Duration::from_millis(1);
            let shift = self.shift.as_ref().map_or(0, |it| it.wall());
            let turned = turned.wall_micros.saturating_sub(shift).max(0);
            let turned = UNIX_EPOCH + Duration::from_micros(turned.unsigned_abs());
            Box::pin(sleep_until_wall(turned + beyond))
        });
        let mut moved = self.shift.as_ref().map(|it| Box::pin(it.moved.notified()));
        poll_fn(|context| {
            let mut is_done = sleep.as_mut().poll(context).is_ready();
            is_done |= is_ready(&mut by_wall, context);
            is_done |= is_ready(&mut moved, context);
            match is_done {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        match sleep.was_stopped() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }
}

/// The timer was stopped.
#[derive(Debug)]
pub(crate) struct Stopped;

fn is_ready(
    future: &mut Option<Pin<Box<impl Future<Output = ()>>>>,
    context: &mut std::task::Context<'_>,
) -> bool {
    match future {
        Some(future) => future.as_mut().poll(context).is_ready(),
        None => false,
    }
}

#[cfg(target_os = "linux")]
fn boot_micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

/// On platforms whose boot clock excludes suspensions, a suspension looks as if the wall clock had been set.
#[cfg(not(target_os = "linux"))]
fn boot_micros() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
