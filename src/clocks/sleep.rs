use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use tokio::task::coop;

use super::face::{Face, since_1970};
#[cfg(target_os = "linux")]
use super::linux;
#[cfg(target_os = "linux")]
use super::queue::Key;
use crate::Sleep;

/// Waits until the wall clock shows `deadline`.
///
/// It completes when the wall clock is at `deadline` or after it, be it by running or by being set, and not before. If the clock is set back
/// while it waits, it waits longer. The time in which the machine is suspended counts. A deadline that has passed is ready at
/// the first poll. There is no longest wait: beyond the range of the system's clocks it is never ready.
///
/// # Cancellation
///
/// Dropping the future cancels it.
///
/// # Panics
///
/// When it is polled outside of a runtime, where the [fallback](crate::clocks#how-they-wait) is used. Never on Linux, but if no thread can be started.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::{Duration, SystemTime};
/// use waterwheel::clocks::sleep_until_wall;
///
/// let deadline = SystemTime::now() + Duration::from_millis(20);
/// sleep_until_wall(deadline).await;
/// assert!(SystemTime::now() >= deadline);
/// # }
/// ```
pub fn sleep_until_wall(deadline: SystemTime) -> SleepUntilWall {
    SleepUntilWall {
        deadline,
        waiting: Waiting::new(Face::Wall, since_1970(deadline)),
    }
}

/// Waits until `duration` has passed, the time in which the machine is suspended included.
///
/// If the machine sleeps over the deadline, it completes when the machine wakes up: a lease that others hold against their clocks is over then. On
/// other systems than Linux, whether that time counts depends on the system's `Instant`; on Windows it does, on macOS it does not.
/// Setting the wall clock changes nothing.
///
/// # Cancellation
///
/// Dropping the future cancels it.
///
/// # Panics
///
/// As [`sleep_until_wall`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::{Duration, Instant};
/// use waterwheel::clocks::sleep_boot;
///
/// let begun = Instant::now();
/// sleep_boot(Duration::from_millis(20)).await;
/// assert!(begun.elapsed() >= Duration::from_millis(20));
/// # }
/// ```
pub fn sleep_boot(duration: Duration) -> SleepBoot {
    let deadline = Face::Boot.now().saturating_add(duration);
    SleepBoot(Waiting::new(Face::Boot, deadline))
}

/// The future of [`sleep_until_wall`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SleepUntilWall {
    deadline: SystemTime,
    waiting: Waiting,
}

impl SleepUntilWall {
    /// The time that it was given.
    #[must_use]
    pub fn deadline(&self) -> SystemTime {
        self.deadline
    }
}

/// The future of [`sleep_boot`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SleepBoot(Waiting);

impl Future for SleepUntilWall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.waiting.poll(context)
    }
}

impl Future for SleepBoot {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}

impl fmt::Debug for SleepUntilWall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepUntilWall")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SleepBoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.0.deadline.saturating_sub(Face::Boot.now());
        f.debug_struct("SleepBoot")
            .field("left", &left)
            .finish_non_exhaustive()
    }
}

/// A wait for a point in time of one clock.
struct Waiting {
    face: Face,
    deadline: Duration,
    state: State,
}

enum State {
    New,
    /// The thread has its waker, under this key.
    #[cfg(target_os = "linux")]
    Queued(Key),
    /// It looks again when this sleep is over.
    Looks(Sleep),
    Over,
}

impl Waiting {
    fn new(face: Face, deadline: Duration) -> Waiting {
        Waiting {
            face,
            deadline,
            state: State::New,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // First: a task that awaits one such sleep after the other gives way from time to time.
        let coop = ready!(coop::poll_proceed(context));
        while !matches!(self.state, State::Over) {
            if self.deadline <= self.face.now() {
                self.leave(State::Over);
            } else if self.is_waiting(context) {
                return Poll::Pending;
            }
        }
        coop.made_progress();
        Poll::Ready(())
    }

    /// Whether the task of this context will be woken. If not, the clock is to be looked at again.
    fn is_waiting(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.state {
            State::New => {
                self.state = self.begin(context);
                !matches!(self.state, State::Looks(_))
            }
            #[cfg(target_os = "linux")]
            State::Queued(key) => {
                let waker = context.waker().clone();
                let thread = linux::thread();
                let is_queued = thread.is_some_and(|it| it.replace(self.face, *key, waker));
                if !is_queued {
                    // It was woken, and then the clock was set back.
                    self.state = State::New;
                }
                is_queued
            }
            State::Looks(sleep) => {
                let is_over = Pin::new(sleep).poll(context).is_ready();
                if is_over {
                    self.state = State::New;
                }
                !is_over
            }
            State::Over => false,
        }
    }

    #[cfg(target_os = "linux")]
    fn begin(&self, context: &Context<'_>) -> State {
        match linux::thread() {
            Some(thread) => {
                let waker = context.waker().clone();
                State::Queued(thread.insert(self.face, self.deadline, waker))
            }
            None => self.begin_to_look(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn begin(&self, _: &Context<'_>) -> State {
        self.begin_to_look()
    }

    fn begin_to_look(&self) -> State {
        let left = self.deadline.saturating_sub(self.face.now());
        State::Looks(super::fallback::until_next_look(left))
    }

    fn leave(&mut self, state: State) {
        match std::mem::replace(&mut self.state, state) {
            #[cfg(target_os = "linux")]
            State::Queued(key) => {
                if let Some(thread) = linux::thread() {
                    thread.remove(self.face, key);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.leave(State::Over);
    }
}
