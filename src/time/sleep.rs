use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::coop;
use tokio::time::{Duration, Instant};

use super::{FAR, far_at_most};
use crate::clock::Clock;
use crate::driver::{self, Answer, End, Lifecycle, Shard};
use crate::wheel::{Key, Tick, Ticks};

/// The future of [`sleep`](crate::sleep()) and [`sleep_until`](crate::sleep_until).
///
/// The first poll that returns `Pending` arms the sleep, on the shard of the polling thread. Dropping it cancels it. It is
/// `Unpin`, so it can be held and polled without pinning. Code that pins it, as tokio's `Sleep` requires, works unchanged.
///
/// # Examples
///
/// An idle deadline that is pushed back on every event:
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
#[repr(C)]
pub struct Sleep {
    shard: Arc<Shard>,
    phase: Packed,
    // Last, so that what else a `Timeout` may have lies before its niche.
    deadline: Instant,
}

impl Sleep {
    /// Returns the requested deadline, not the tick that it is rounded up to.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns `true` if the sleep completes at its next poll, because the tick of its deadline has come or its timer was
    /// stopped.
    ///
    /// Returns `false` until the first poll or reset, as in tokio.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match self.phase.phase() {
            Phase::New(_) => false,
            Phase::Reset => self.is_due() || self.is_stopped(),
            Phase::Armed(key) => {
                self.is_due() || self.shard.has_fired(key, self.tick()) || self.is_stopped()
            }
            Phase::Fired => true,
            Phase::Stopped => self.is_due() || self.is_stopped(),
        }
    }

    /// Returns `true` if the sleep has completed because its timer was stopped, or would do so if it were polled now.
    ///
    /// Returns `false` if the deadline has come as well, since the sleep is then due, and until the first poll or reset.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        match self.phase.phase() {
            Phase::New(_) | Phase::Fired => false,
            Phase::Reset | Phase::Armed(_) => !self.is_due() && self.is_stopped(),
            Phase::Stopped => self.is_stopped(),
        }
    }

    fn is_stopped(&self) -> bool {
        self.lifecycle().is_stopped() && self.shard.is_stopped()
    }

    /// [`was_stopped`](Sleep::was_stopped), by its owner or by the end of its runtime.
    pub(crate) fn has_no_timer(&self) -> bool {
        match self.phase.phase() {
            Phase::New(_) | Phase::Fired => false,
            Phase::Reset | Phase::Armed(_) => !self.is_due() && self.shard.is_stopped(),
            Phase::Stopped => true,
        }
    }

    /// Moves the deadline, to an earlier or a later instant, before or after completion.
    ///
    /// A sleep that has completed is pending again, and wakes no task until it has been polled. Moving a pending sleep to a later
    /// deadline takes no lock. Moving it to a deadline whose tick has passed wakes the task that waits for it.
    ///
    /// This is tokio's signature; [`set_deadline`](Sleep::set_deadline) does the same without a pin.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.get_mut().set_deadline(deadline);
    }

    /// Moves the deadline, like [`reset`](Sleep::reset), without requiring a pin.
    pub fn set_deadline(&mut self, deadline: Instant) {
        let before = std::mem::replace(&mut self.deadline, deadline);
        match self.phase.phase() {
            Phase::Armed(key) if deadline >= before => self.shard.postpone(key, self.tick()),
            Phase::Armed(key) => self.shard.move_earlier(key, self.tick(), self.is_due()),
            phase => self.set(phase, Phase::Reset),
        }
    }

    /// Moves the deadline to `duration` from now, by the clock of its timer. A duration is cut to 30 years.
    pub(crate) fn restart(&mut self, duration: Duration) {
        let now = self.clock().now();
        self.set_deadline(far_at_most(now, duration));
    }

    /// Always inlined, as its callers are, so that a `Sleep` is built in its final place. A `Sleep` that is returned through
    /// memory is copied right after its parts were stored, and the copy waits until they have left the processor's store
    /// buffer.
    #[inline(always)]
    pub(super) fn after(shard: Arc<Shard>, now: Instant, duration: Duration) -> Sleep {
        let deadline = far_at_most(now, duration);
        Sleep::until_after(shard, deadline, duration)
    }

    /// A sleep that was asked for `duration` before its deadline, or zero if that is not known.
    #[inline(always)]
    pub(super) fn until_after(shard: Arc<Shard>, deadline: Instant, duration: Duration) -> Sleep {
        let clock = shard.clock();
        // A short duration may have passed by the first poll, and a clock that can be paused may have been moved. In both cases the
        // first poll reads the clock again.
        let lead = if duration >= TRUSTED && !clock.may_jump() {
            Lead::covering(clock.ticks_covering(duration))
        } else {
            Lead::UNKNOWN
        };
        Sleep::new(shard, deadline, lead)
    }

    /// [`after`](Sleep::after), and up to `slack` later.
    #[inline(always)]
    pub(super) fn after_with_slack(
        shard: Arc<Shard>,
        now: Instant,
        duration: Duration,
        slack: Duration,
    ) -> Sleep {
        let duration = duration.min(FAR);
        let wait = shard.clock().wait_for_line(now, duration, slack);
        Sleep::after(shard, now, duration + wait)
    }

    /// Moves the deadline up as far as the slack allows, unless the sleep has completed. Always inlined, as [`after`](Sleep::after) is: then
    /// the phase of a sleep that was just made is known.
    #[inline(always)]
    pub(super) fn allow(&mut self, slack: Duration) {
        let wait = self
            .clock()
            .wait_for_line(self.deadline, Duration::ZERO, slack);
        let Some(deadline) = self.deadline.checked_add(wait) else {
            return;
        };
        match self.phase.phase() {
            Phase::New(lead) => {
                let moved = self.clock().ticks_covering(wait);
                self.deadline = deadline;
                self.phase = Packed::new(Phase::New(lead.and(moved)));
            }
            Phase::Reset | Phase::Armed(_) => self.set_deadline(deadline),
            Phase::Fired | Phase::Stopped => {}
        }
    }

    #[inline(always)]
    pub(super) fn new(shard: Arc<Shard>, deadline: Instant, lead: Lead) -> Sleep {
        Sleep {
            shard,
            phase: Packed::new(Phase::New(lead)),
            deadline,
        }
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        self.shard.clock()
    }

    /// The life of its timer, which no other timer has.
    pub(super) fn lifecycle(&self) -> &Lifecycle {
        self.shard.lifecycle()
    }

    /// Whether the timer's owner drains or stopped it, so that an interval must end.
    pub(super) fn is_closing(&self) -> bool {
        self.lifecycle().is_closing()
    }

    /// Polls for an interval or a guard, which will [`rearm`](Sleep::rearm) this sleep or drop it. When the sleep is due, returns the time, and keeps
    /// the entry and the permit. When the timer has ended, returns the time as well, and
    /// [`found_end`](Sleep::found_end) says how.
    #[inline]
    pub(crate) fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let phase = self.phase.phase();
        let answer = match phase {
            Phase::New(lead) => self.arm(phase, lead, context),
            Phase::Reset => self.arm(phase, Lead::UNKNOWN, context),
            Phase::Armed(key) => {
                let now = self.clock().now();
                // A disarmed entry says nothing here: it may be disarmed since the tick before.
                if self.clock().is_due(self.deadline, now) {
                    ready!(coop::poll_proceed(context)).made_progress();
                    self.shard.disarm(key);
                    return Poll::Ready(now);
                }
                self.poll_tick_armed(key, context)
            }
            // A sleep that is polled so is never `Fired`.
            Phase::Fired | Phase::Stopped => Answer::Stopped,
        };
        match answer {
            Answer::Pending(()) => return Poll::Pending,
            // As it was: without an entry, or armed with a disarmed one.
            Answer::Due => {}
            Answer::Stopped => drop(self.settle(phase, Answer::Stopped)),
        }
        ready!(coop::poll_proceed(context)).made_progress();
        Poll::Ready(self.clock().now())
    }

    /// The sleep stays on its shard, even if the task has moved to another thread. To move with the task would take the locks
    /// of two shards, and count references that all threads share.
    fn poll_tick_armed(&mut self, key: Key, context: &mut Context<'_>) -> Answer<()> {
        if self.shard.is_disarmed(key) {
            let waker = context.waker().clone();
            return self.shard.poll_with_new_waker(key, self.tick(), waker);
        }
        self.shard.poll(key, || self.tick(), context.waker())
    }

    /// Sets the next deadline of a sleep that [`poll_tick`](Sleep::poll_tick) has found due.
    #[inline]
    pub(crate) fn rearm(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Cancels the timer and gives the permit back. The sleep counts as completed until it is reset.
    pub(crate) fn retire(&mut self) {
        match self.phase.phase() {
            Phase::Armed(key) => {
                // The phase first: if the stored waker panics as it is dropped, no key of a freed entry stays behind.
                self.phase = Packed::new(Phase::Fired);
                self.cancel(key);
            }
            phase @ (Phase::New(_) | Phase::Reset) => self.set(phase, Phase::Fired),
            Phase::Fired | Phase::Stopped => {}
        }
    }

    /// Waits for the end of its timer and nothing else, until its deadline is set again: without one, it costs no turn, and a clock that
    /// is paused does not jump to it. It is not pending for the timer's metrics and drains. [`found_end`](Sleep::found_end) says
    /// how it has ended.
    pub(crate) fn poll_stop(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let phase = self.phase.phase();
        let key = match phase {
            Phase::Stopped => return Poll::Ready(()),
            Phase::Armed(key) => Some(key),
            Phase::New(_) | Phase::Reset | Phase::Fired => {
                if let Some(shard) = self.shard.other_of_this_thread() {
                    self.shard = shard;
                }
                None
            }
        };
        // Each deadline is later, so a reset finds the entry off the dials and has it armed.
        self.deadline = self.clock().epoch();
        let waker = context.waker().clone();
        match self.shard.await_stop(key, waker) {
            Answer::Stopped => self.settle(phase, Answer::Stopped),
            Answer::Pending(key) => {
                self.set(phase, Phase::Armed(key));
                Poll::Pending
            }
            Answer::Due => unreachable!("it has no deadline"),
        }
    }

    /// Arms the timer, unless it is due or stopped.
    fn arm(&mut self, phase: Phase, lead: Lead, context: &mut Context<'_>) -> Answer<()> {
        let deadline = self.tick();
        let passed = match lead.before(deadline) {
            Some(tick) if tokio::task::try_id().is_some() => tick,
            _ => {
                let now = self.clock().now();
                let tick = self.clock().tick_before(now);
                if deadline <= tick {
                    return Answer::Due;
                }
                tick
            }
        };
        // The sleep is armed where its task runs, which need not be where it was created.
        if let Some(shard) = self.shard.other_of_this_thread() {
            self.shard = shard;
        }
        let waker = context.waker().clone();
        let answer = self
            .shard
            .arm(deadline, passed, waker, driver::spawn_catch_up);
        match answer {
            Answer::Pending(key) => {
                self.set(phase, Phase::Armed(key));
                Answer::Pending(())
            }
            Answer::Due => Answer::Due,
            Answer::Stopped => Answer::Stopped,
        }
    }

    #[inline(never)]
    fn cancel(&self, key: Key) {
        let shard = &*self.shard;
        // First: the waker that is dropped with the entry may panic.
        self.move_permit(Phase::Armed(key), Phase::Fired);
        shard.cancel(key);
    }

    #[inline(always)]
    fn poll_new(&mut self, phase: Phase, lead: Lead, context: &mut Context<'_>) -> Poll<()> {
        let answer = self.arm(phase, lead, context);
        self.settle(phase, answer)
    }

    #[inline(always)]
    fn poll_armed(&mut self, key: Key, context: &mut Context<'_>) -> Poll<()> {
        // Past its tick it is due, whatever the driver has got to. An entry that a turn has disarmed is due, and no clock is
        // read for it.
        if self.shard.is_disarmed(key) || self.is_due() {
            // The phase first: if the stored waker panics as it is dropped, no key of a freed entry stays behind.
            let poll = self.settle(Phase::Armed(key), Answer::Due);
            self.shard.finish(key);
            return poll;
        }
        let answer = self.shard.poll(key, || self.tick(), context.waker());
        let is_due = matches!(answer, Answer::Due);
        let poll = self.settle(Phase::Armed(key), answer);
        if is_due {
            self.shard.finish(key);
        }
        poll
    }

    /// Takes an answer as the phase. An armed sleep becomes so in [`arm`](Sleep::arm).
    #[inline]
    fn settle(&mut self, phase: Phase, answer: Answer<()>) -> Poll<()> {
        match answer {
            Answer::Pending(()) => return Poll::Pending,
            Answer::Due => self.set(phase, Phase::Fired),
            Answer::Stopped => self.set(phase, Phase::Stopped),
        }
        Poll::Ready(())
    }

    /// How the timer has ended, if a poll has found that it did. Unlike [`was_stopped`](Sleep::was_stopped), it reads no clock.
    #[inline]
    pub(crate) fn found_end(&self) -> Option<End> {
        self.phase
            .is_stopped()
            .then(|| self.lifecycle().end_seen_here())
    }

    /// Ready, unless a task polls that its ending runtime drops next. To be called when the timer has ended.
    pub(crate) fn poll_found_end(&self) -> Poll<()> {
        match self.found_end() {
            Some(End::TaskOfEndingRuntime) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// As a poll, but ready as well if the timer has ended, however it did: [`found_end`](Sleep::found_end) says so.
    #[inline(always)]
    pub(crate) fn poll_or_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let phase = self.phase.phase();
        let poll = match phase {
            Phase::New(lead) => self.poll_new(phase, lead, context),
            Phase::Reset => self.poll_new(phase, Lead::UNKNOWN, context),
            Phase::Armed(key) => self.poll_armed(key, context),
            Phase::Fired | Phase::Stopped => Poll::Ready(()),
        };
        // Last, since only a sleep that is ready uses up budget: a task must not go on with those forever.
        if poll.is_ready() {
            ready!(coop::poll_proceed(context)).made_progress();
        }
        poll
    }

    /// A poll has found that the timer has ended.
    #[cold]
    fn poll_ended(&self, poll: Poll<()>) -> Poll<()> {
        ready!(poll);
        match self.lifecycle().end_seen_here() {
            _ if self.is_due() => Poll::Ready(()),
            End::Stopped => Poll::Ready(()),
            // The task is dropped next.
            End::TaskOfEndingRuntime => Poll::Pending,
            End::Over => panic!("{RUNTIME_IS_OVER}"),
        }
    }

    /// Moves on to another phase. `from` is the present one, which the caller has at hand.
    #[inline(always)]
    fn set(&mut self, from: Phase, to: Phase) {
        debug_assert_eq!(from, self.phase.phase());
        self.move_permit(from, to);
        self.phase = Packed::new(to);
    }

    /// Takes or gives back a permit, as the phase changes. A sleep that is reset after completion takes one again, even if none is
    /// left.
    #[inline(always)]
    fn move_permit(&self, from: Phase, to: Phase) {
        if from.holds_permit() == to.holds_permit() {
            return;
        }
        if let Some(permits) = self.shard.permits() {
            if to.holds_permit() {
                permits.take();
            } else {
                permits.give_back();
            }
        }
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

/// From this delay on, a first poll within a task trusts the time that was read when the sleep or the timeout was made. If the deadline has
/// passed by then, the poll is pending and the driver wakes the task at once: the task's worker is free after the poll, so some
/// worker can run the driver. Outside of tasks the poll reads the clock, since all workers may be blocked.
///
/// Three kinds of task have an id and need no worker of the timer's runtime: those of another runtime or of a `LocalSet`, and
/// `spawn_blocking` closures. They wait until a worker is free. (To look up the runtime as well takes 60 of the 500 instructions
/// of an `arm`.)
const TRUSTED: Duration = Duration::from_secs(1);

/// tokio's own sleep panics there as well.
pub(crate) const RUNTIME_IS_OVER: &str = "the runtime of this timer has ended, so nothing will \
     wake this future: keep the runtime alive until its futures are done, or await them in tasks \
     of that runtime, which are dropped with it";

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let poll = this.poll_or_end(context);
        if this.phase.is_stopped() {
            return this.poll_ended(poll);
        }
        poll
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        match self.phase.phase() {
            Phase::Armed(key) => self.cancel(key),
            phase => self.move_permit(phase, Phase::Fired),
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

/// Where a `Sleep` is in its life, in eight bytes. A key's generation is never zero. With a generation of zero, the other half
/// names the phase.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    half: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not in the wheel.
    New(Lead),
    /// Not in the wheel, and its deadline was moved since it was made, fired or stopped.
    Reset,
    /// In the wheel: it has an entry there.
    Armed(Key),
    /// Past the tick of its deadline.
    Fired,
    /// Its timer was stopped or its runtime ended first.
    Stopped,
}

/// How long before the deadline the sleep was made, in ticks rounded up. `None` if no clock was read then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead(Option<u32>);

const FIRED: u32 = u32::MAX;
const STOPPED: u32 = u32::MAX - 1;
const RESET: u32 = u32::MAX - 2;
const UNKNOWN: u32 = u32::MAX - 3;

impl Phase {
    /// Whether the sleep holds a place of the timer's `max_pending`: from when it is made until it completes or is dropped.
    #[inline]
    pub(super) fn holds_permit(self) -> bool {
        match self {
            Phase::New(_) | Phase::Reset | Phase::Armed(_) => true,
            Phase::Fired | Phase::Stopped => false,
        }
    }
}

impl Lead {
    pub(super) const UNKNOWN: Lead = Lead(None);

    pub(super) fn covering(ticks: Option<u32>) -> Lead {
        Lead(ticks.filter(|&ticks| ticks < UNKNOWN))
    }

    /// The lead of a deadline that is moved this many ticks later.
    pub(super) fn and(self, ticks: Option<u32>) -> Lead {
        let sum = self
            .0
            .zip(ticks)
            .and_then(|(lead, ticks)| lead.checked_add(ticks));
        Lead::covering(sum)
    }

    /// A tick that had passed when the clock was read.
    pub(super) fn before(self, deadline: Tick) -> Option<Tick> {
        self.0
            .map(|ticks| deadline.saturating_sub(Ticks::new(u64::from(ticks))))
    }
}

impl Packed {
    pub(super) fn new(phase: Phase) -> Packed {
        let half = match phase {
            Phase::Armed(key) => {
                let (index, generation) = key.into_parts();
                return Packed {
                    half: index,
                    generation: generation.get(),
                };
            }
            Phase::New(Lead(Some(ticks))) => ticks,
            Phase::New(Lead(None)) => UNKNOWN,
            Phase::Reset => RESET,
            Phase::Fired => FIRED,
            Phase::Stopped => STOPPED,
        };
        Packed {
            half,
            generation: 0,
        }
    }

    /// Whether it is [`Phase::Stopped`], in fewer instructions than by `phase`.
    #[inline(always)]
    pub(super) fn is_stopped(self) -> bool {
        self.generation == 0 && self.half == STOPPED
    }

    #[inline]
    pub(super) fn phase(self) -> Phase {
        match (NonZeroU32::new(self.generation), self.half) {
            (Some(generation), index) => Phase::Armed(Key::from_parts(index, generation)),
            (None, FIRED) => Phase::Fired,
            (None, STOPPED) => Phase::Stopped,
            (None, RESET) => Phase::Reset,
            (None, UNKNOWN) => Phase::New(Lead::UNKNOWN),
            (None, ticks) => Phase::New(Lead(Some(ticks))),
        }
    }
}

#[cfg(test)]
mod phase_tests {
    use super::{Lead, Packed, Phase, UNKNOWN};
    use crate::wheel::Key;
    use std::num::NonZeroU32;

    #[test]
    fn each_phase_survives_the_packing() {
        let key = |index, generation| Key::from_parts(index, NonZeroU32::new(generation).unwrap());
        for phase in [
            Phase::New(Lead::UNKNOWN),
            Phase::New(Lead::covering(Some(0))),
            Phase::New(Lead::covering(Some(UNKNOWN - 1))),
            Phase::Reset,
            Phase::Armed(key(0, 1)),
            Phase::Armed(key(u32::MAX, u32::MAX)),
            Phase::Fired,
            Phase::Stopped,
        ] {
            assert_eq!(Packed::new(phase).phase(), phase);
        }
        assert_eq!(Lead::covering(Some(UNKNOWN)), Lead::UNKNOWN);
        assert_eq!(Lead::covering(Some(u32::MAX)), Lead::UNKNOWN);
    }
}
