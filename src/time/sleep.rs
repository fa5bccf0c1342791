use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use super::far_at_most;
use super::phase::{Delay, Packed, Phase};
use crate::driver::{Answer, Clock, Shard, Stage};
use crate::wheel::{Key, Tick};

/// The future of [`sleep`](crate::sleep()) and [`sleep_until`](crate::sleep_until).
///
/// It is registered at its first poll that is pending, with the shard of the thread that polls
/// it, and cancelled when it is dropped. It is `Unpin`, so it can be held and polled without
/// pinning; code that pins it, as tokio's `Sleep` wants, works as it is.
///
/// # Example
///
/// An idle deadline, pushed back on every event:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, Instant, sleep};
///
/// # let (sender, mut events) = tokio::sync::mpsc::channel(1);
/// # sender.send(()).await.unwrap();
/// let patience = Duration::from_millis(20);
/// let mut idle = sleep(patience);
/// loop {
///     tokio::select! {
///         Some(_event) = events.recv() => idle.set_deadline(Instant::now() + patience),
///         () = &mut idle => break,
///     }
/// }
/// # }
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Sleep {
    deadline: Instant,
    shard: Arc<Shard>,
    phase: Packed,
}

impl Sleep {
    /// The instant that was asked for, not the tick that it is rounded up to.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the tick of its deadline has come, or its timer was stopped, so that it completes at its next poll.
    ///
    /// `false` until the first poll or reset, as in tokio, whose sleeps are registered then.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match self.phase.phase() {
            Phase::New(_) => false,
            Phase::Reset => self.is_due() || self.shard.is_stopped(),
            Phase::Armed(key) => self.is_due() || self.shard.has_ended(key, self.tick()),
            Phase::Fired | Phase::Stopped => true,
        }
    }

    /// Whether it has completed because its timer was stopped, or would if it were polled now. One that is polled
    /// first when its deadline has come as well has not: it is due.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        match self.phase.phase() {
            Phase::New(_) | Phase::Fired => false,
            Phase::Reset | Phase::Armed(_) => !self.is_due() && self.shard.is_stopped(),
            Phase::Stopped => true,
        }
    }

    /// Moves the deadline, earlier or later, before or after completion.
    ///
    /// After completion it is pending again, and wakes no task until it has been polled again. Moving a
    /// pending sleep to a later deadline touches no lock. Moving it to one whose tick has passed wakes the task
    /// that waits for it.
    ///
    /// This form is tokio's; [`set_deadline`](Sleep::set_deadline) is the same and needs no pin.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.get_mut().set_deadline(deadline);
    }

    /// [`reset`](Sleep::reset) without a pin.
    pub fn set_deadline(&mut self, deadline: Instant) {
        let before = std::mem::replace(&mut self.deadline, deadline);
        match self.phase.phase() {
            Phase::Armed(key) if deadline >= before => self.shard.postpone(key, self.tick()),
            Phase::Armed(key) => self.shard.hasten(key, self.tick(), self.is_due()),
            Phase::New(_) | Phase::Reset => self.set(Phase::Reset),
            Phase::Fired | Phase::Stopped => {
                if let Some(permits) = self.shard.permits() {
                    permits.take();
                }
                self.set(Phase::Reset);
            }
        }
    }

    /// Always inlined, as is what calls it, so that a `Sleep` is built where it ends up. One that is
    /// returned through memory is copied right after its parts were stored, which waits until they have
    /// left the processor's store buffer: 8 ns each time it is moved so, of 30 that a `timeout` takes.
    #[inline(always)]
    pub(super) fn after(shard: Arc<Shard>, now: Instant, duration: Duration) -> Sleep {
        let clock = shard.clock();
        let deadline = far_at_most(now, duration);
        // A short delay may have passed by the first poll, and a clock that can be paused may
        // have been moved: then the clock is to be read again.
        let delay = if duration >= TRUSTED && !clock.is_pausable() {
            Delay::covering(clock.ticks_covering(duration))
        } else {
            Delay::UNKNOWN
        };
        Sleep::new(shard, deadline, delay)
    }

    #[inline(always)]
    pub(super) fn new(shard: Arc<Shard>, deadline: Instant, delay: Delay) -> Sleep {
        Sleep {
            deadline,
            shard,
            phase: Packed::new(Phase::New(delay)),
        }
    }

    #[inline]
    pub(super) fn clock(&self) -> &Clock {
        self.shard.clock()
    }

    /// Whether the timer takes nothing new, so that what ticks for ever has to end.
    pub(super) fn is_closing(&self) -> bool {
        self.shard.shared().stage() != Stage::Running
    }

    /// As `Future::poll`, but keeps the permit: for a future that lives on after it.
    #[inline]
    pub(super) fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let poll = match self.phase.phase() {
            Phase::New(delay) => self.poll_new(delay, context),
            Phase::Reset => self.poll_new(Delay::UNKNOWN, context),
            Phase::Armed(key) => self.poll_armed(key, context),
            Phase::Fired | Phase::Stopped => Poll::Ready(()),
        };
        // Last: it is what is ready that a task must not go on with for ever. (3 ns of an `arm`.)
        if poll.is_ready() {
            ready!(coop::poll_proceed(context)).made_progress();
        }
        poll
    }

    /// As `poll_deadline`, for a future that is about to [`rearm`](Sleep::rearm) this: gives the
    /// time, and leaves the record where it is, to be filed again.
    #[inline]
    pub(super) fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let Phase::Armed(key) = self.phase.phase() else {
            ready!(self.poll_deadline(context));
            return Poll::Ready(self.clock().now());
        };
        let now = self.clock().now();
        // That it is parked says nothing here: it may be since the tick before.
        if self.clock().is_due(self.deadline, now) {
            ready!(coop::poll_proceed(context)).made_progress();
            self.shard.park(key);
            return Poll::Ready(now);
        }
        // Where it is, even if the task has moved to another thread: to move with it would take the
        // locks of two shards, and count references that all threads share.
        let answer = if self.shard.is_parked(key) {
            self.shard
                .poll_anew(key, self.tick(), context.waker().clone())
        } else {
            self.shard.poll(key, || self.tick(), context.waker())
        };
        match answer {
            Answer::Pending(()) => return Poll::Pending,
            Answer::Due => self.set(Phase::Fired),
            Answer::Stopped => self.set(Phase::Stopped),
        }
        ready!(coop::poll_proceed(context)).made_progress();
        Poll::Ready(now)
    }

    /// Sets a deadline on a sleep that was due and still has its permit.
    #[inline]
    pub(super) fn rearm(&mut self, deadline: Instant) {
        self.deadline = deadline;
        if self.has_completed() {
            self.set(Phase::New(Delay::UNKNOWN));
        }
    }

    /// Gives back the permit of a sleep that has completed.
    #[inline]
    pub(super) fn release_permit(&self) {
        if let Some(permits) = self.shard.permits() {
            permits.release();
        }
    }

    fn poll_new(&mut self, delay: Delay, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.tick();
        let not_before = match delay.before(deadline) {
            Some(tick) if tokio::task::try_id().is_some() => tick,
            _ => {
                let now = self.clock().now();
                let tick = self.clock().tick_before(now);
                if deadline <= tick {
                    return self.complete(Phase::Fired);
                }
                tick
            }
        };
        if let Some(shard) = self.shard.of_this_thread() {
            self.shard = shard;
        }
        match self
            .shard
            .arm(deadline, not_before, context.waker().clone())
        {
            Answer::Pending(key) => {
                self.set(Phase::Armed(key));
                Poll::Pending
            }
            Answer::Due => self.complete(Phase::Fired),
            Answer::Stopped => self.complete(Phase::Stopped),
        }
    }

    #[inline(never)]
    fn cancel(&self, key: Key) {
        // First: the waker that is let go may panic.
        self.release_permit();
        self.shard.cancel(key);
    }

    fn poll_armed(&mut self, key: Key, context: &mut Context<'_>) -> Poll<()> {
        // Whatever the driver has got to: past its tick it is due. What it has fired is due without a look at the
        // clock.
        if self.shard.is_parked(key) || self.is_due() {
            // First: a waker that panics as it is let go must not leave the key behind.
            let ready = self.complete(Phase::Fired);
            self.shard.finish(key);
            return ready;
        }
        match self.shard.poll(key, || self.tick(), context.waker()) {
            Answer::Pending(()) => Poll::Pending,
            Answer::Due => self.complete(Phase::Fired),
            Answer::Stopped => self.complete(Phase::Stopped),
        }
    }

    /// Whether a poll has found the timer stopped. Unlike [`was_stopped`](Sleep::was_stopped), it reads no clock.
    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.phase.phase(), Phase::Stopped)
    }

    #[inline]
    pub(super) fn has_completed(&self) -> bool {
        matches!(self.phase.phase(), Phase::Fired | Phase::Stopped)
    }

    fn complete(&mut self, phase: Phase) -> Poll<()> {
        self.set(phase);
        Poll::Ready(())
    }

    #[inline]
    fn set(&mut self, phase: Phase) {
        self.phase = Packed::new(phase);
    }

    #[inline]
    fn is_due(&self) -> bool {
        let clock = self.clock();
        clock.is_due(self.deadline, clock.now())
    }

    #[inline]
    fn tick(&self) -> Tick {
        self.clock().tick_after(self.deadline)
    }
}

/// From this delay on, a first poll within a task trusts the clock read that made the future. If the
/// deadline has passed by then, the driver wakes the task at once: a task that runs has a
/// worker, and the driver comes next. Outside of tasks the clock is read: all workers may be blocked.
///
/// A task that needs no worker of the timer's runtime has an id too: one of another runtime or of a `LocalSet`, or a
/// `spawn_blocking` closure. It waits for a worker then. (To ask for the runtime as well takes 60 of the 500 instructions
/// of an `arm`.)
const TRUSTED: Duration = Duration::from_secs(1);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.has_completed() {
            return this.poll_deadline(context);
        }
        let permit = Permit(this);
        let poll = permit.0.poll_deadline(context);
        drop(permit);
        poll
    }
}

/// Gives the permit of a sleep back if it completes, even by a panic of the waker it lets go.
struct Permit<'a>(&'a mut Sleep);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.0.has_completed() {
            self.0.release_permit();
        }
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        match self.phase.phase() {
            Phase::New(_) | Phase::Reset => self.release_permit(),
            Phase::Armed(key) => self.cancel(key),
            Phase::Fired | Phase::Stopped => {}
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("phase", &self.phase.phase())
            .finish()
    }
}
