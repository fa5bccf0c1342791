//! Does the steps, on the futures and on the oracle.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use waterwheel::Timer;
use waterwheel::error::Error;

use super::known::{By, Drain, FAR, Kind, Life, Refusal, Slot, State, Ticks};
use super::oracle::PROBES;
use super::waker::{Boom, Trap};
use super::world::{Drained, Gate, Timed, World};
use super::{Act, Home, Op, When};
use crate::support::Probe;

impl World {
    /// Applies a step that needs no runtime around it.
    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Sleep { home, delay } => self.sleep(home, delay),
            Op::SleepUntil { home, at } => self.sleep_until(home, at),
            Op::Timeout { home, limit } => self.timeout(home, limit),
            Op::Interval {
                home,
                start,
                period,
                missed,
            } => {
                let ticks = Ticks {
                    period,
                    behavior: missed,
                    missed: 0,
                    has_ended: false,
                };
                self.interval(home, start, ticks);
            }
            Op::Poll { which, probe } => {
                if let Some(which) = self.pick(which) {
                    self.poll_by_probe(which, probe);
                }
            }
            Op::PollAll { probe } => {
                for which in 0..self.futures.len() {
                    if self.futures[which].is_some() {
                        self.poll_by_probe(which, probe);
                    }
                }
            }
            Op::PollWithTrap {
                which,
                delay,
                armed,
                act,
            } => self.poll_with_trap(which, delay, armed, act),
            Op::Reset { which, to } => self.reset(which, to),
            Op::SetPeriod { which, period } => self.set_period(which, period),
            Op::Complete { which } => self.complete(which),
            Op::Drop { which } => {
                if let Some(which) = self.pick(which) {
                    self.drop_future(which);
                }
            }
            Op::Jump { by } => self.jump(by),
            Op::Shutdown { home } => self.shutdown(home),
            Op::Drain { home } => self.drain(home),
            Op::PollDrain { home } => self.poll_drain(home),
            Op::DropHandle => self.timers[Home::Own as usize] = None,
            Op::Run | Op::Await { .. } | Op::DropRuntime => {}
        }
    }

    // ----- new futures -----

    /// A handle of the timer and a free place for a future. `None` if one of them is missing.
    fn place(&self, home: Home) -> Option<(Timer, usize)> {
        let timer = self.timers[home as usize].clone()?;
        let free = self.oracle.slots.iter().position(Option::is_none)?;
        Some((timer, free))
    }

    /// Whether to call the free functions. They find the runtime's timer themselves, and panic if it is stopped.
    fn is_current(&self, home: Home) -> bool {
        let is_running = self.oracle.timers[home as usize].state == State::Running;
        home == Home::Current && self.has_runtime && is_running
    }

    /// Stores a new future, or checks the error if the timer refused it. The oracle must agree.
    fn put(
        &mut self,
        which: usize,
        (home, deadline, kind): (Home, Option<Duration>, Kind),
        made: Result<Timed, Error>,
    ) {
        let has_permit = deadline.is_some();
        match (made, self.oracle.admit(home, has_permit)) {
            (Ok(timed), Ok(())) => {
                self.futures[which] = Some(timed);
                self.oracle.slots[which] = Some(Slot {
                    kind,
                    home,
                    deadline,
                    life: Life::New,
                    has_permit,
                    is_away: false,
                });
            }
            (Err(error), Err(refusal)) => {
                assert_eq!(error.is_shutdown(), refusal == Refusal::Shutdown);
                assert_eq!(error.is_at_capacity(), refusal == Refusal::AtCapacity);
            }
            (Err(error), Ok(())) => panic!("{home:?} refuses: {error}"),
            (Ok(_), Err(refusal)) => panic!("{home:?} does not refuse: {refusal:?}"),
        }
    }

    fn sleep(&mut self, home: Home, delay: Duration) {
        let Some((timer, free)) = self.place(home) else {
            return;
        };
        let made = match self.is_current(home) {
            true => Ok(waterwheel::sleep(delay)),
            false => timer.try_sleep(delay),
        };
        let deadline = self.oracle.now + delay.min(FAR);
        let known = (home, Some(deadline), Kind::Sleep);
        self.put(free, known, made.map(Timed::Sleep));
    }

    fn sleep_until(&mut self, home: Home, at: When) {
        let Some((timer, free)) = self.place(home) else {
            return;
        };
        let deadline = self.time(at);
        let at = self.instant(deadline);
        let made = match self.is_current(home) {
            true => Ok(waterwheel::sleep_until(at)),
            false => timer.try_sleep_until(at),
        };
        let known = (home, Some(deadline), Kind::Sleep);
        self.put(free, known, made.map(Timed::Sleep));
    }

    fn timeout(&mut self, home: Home, limit: Duration) {
        let Some((timer, free)) = self.place(home) else {
            return;
        };
        let gate = Gate::default();
        let made = match self.is_current(home) {
            true => Ok(waterwheel::timeout(limit, gate)),
            false => timer.try_timeout(limit, gate),
        };
        let deadline = self.start.checked_add(self.oracle.now);
        let deadline = deadline.and_then(|now| now.checked_add(limit));
        let deadline = deadline.map(|deadline| deadline - self.start);
        let known = (home, deadline, Kind::Timeout { is_ready: false });
        self.put(free, known, made.map(Timed::Timeout));
    }

    fn interval(&mut self, home: Home, start: When, ticks: Ticks) {
        let Some((timer, free)) = self.place(home) else {
            return;
        };
        let deadline = self.time(start);
        let at = self.instant(deadline);
        let (period, behavior) = (ticks.period, ticks.behavior);
        if period.is_zero() {
            let refused = timer.try_interval_at(at, period);
            return assert!(refused.is_err_and(|error| error.is_invalid()));
        }
        let made = match self.is_current(home) {
            true => Ok(waterwheel::interval_at(at, period)),
            false => timer.try_interval_at(at, period),
        };
        let made = made.map(|mut interval| {
            interval.set_missed_tick_behavior(behavior);
            Timed::Interval(interval)
        });
        let ticks = Ticks {
            period: period.min(FAR),
            ..ticks
        };
        self.put(free, (home, Some(deadline), Kind::Interval(ticks)), made);
    }

    // ----- steps on a future -----

    fn poll_by_probe(&mut self, which: usize, probe: usize) {
        let probe = probe % PROBES;
        let waker = self.probes[probe].waker();
        self.poll(which, By::Probe(probe), &waker);
    }

    fn poll_with_trap(&mut self, which: usize, delay: Duration, armed: Option<usize>, act: Act) {
        let Some(which) = self.pick(which) else {
            return;
        };
        let act = match act {
            Act::Poll { probe } => Act::Poll {
                probe: probe % PROBES,
            },
            act => act,
        };
        let home = self.oracle.slots[which].as_ref().expect("it is there").home;
        let Some((_, victim)) = self.place(home) else {
            return;
        };
        self.sleep(home, delay);
        if self.futures[victim].is_none() {
            // The timer refused the victim.
            return;
        }
        if let Some(probe) = armed {
            self.poll_by_probe(victim, probe);
        }
        let to = match act {
            Act::Reset(to) => self.time(to),
            _ => Duration::ZERO,
        };
        let number = self.oracle.set_trap(victim, act, to);
        let Some(Timed::Sleep(sleep)) = self.futures[victim].take() else {
            unreachable!("it is a sleep");
        };
        let trap = Trap {
            number,
            victim: Mutex::new(Some(sleep)),
            act,
            to: self.instant(to),
            probes: Arc::clone(&self.probes),
            home: self.runtime.clone(),
            log: self.log.clone(),
        };
        let waker = Waker::from(Arc::new(trap));
        self.poll(which, By::Trap(number), &waker);
    }

    fn reset(&mut self, which: usize, to: When) {
        let Some(which) = self.pick(which) else {
            return;
        };
        let deadline = self.time(to);
        let at = self.instant(deadline);
        let moved = match self.futures[which].as_mut().expect("it is there") {
            // Its waker may panic.
            Timed::Sleep(sleep) => quietly(|| sleep.set_deadline(at)),
            Timed::Interval(interval) => quietly(|| interval.reset_at(at)),
            Timed::Timeout(_) => return,
        };
        self.oracle.reset(which, deadline, self.oracle.now);
        moved.unwrap_or_else(|panic| panic::resume_unwind(panic));
        self.hear_all();
    }

    fn set_period(&mut self, which: usize, period: Duration) {
        let Some(which) = self.pick(which).filter(|_| !period.is_zero()) else {
            return;
        };
        let slot = self.oracle.slots[which].as_mut();
        let kind = &mut slot.expect("it is there").kind;
        if let (Some(Timed::Interval(interval)), Kind::Interval(ticks)) =
            (&mut self.futures[which], kind)
        {
            interval.set_period(period);
            ticks.period = period.min(FAR);
        }
    }

    fn complete(&mut self, which: usize) {
        let Some(which) = self.pick(which) else {
            return;
        };
        let slot = self.oracle.slots[which].as_mut();
        let kind = &mut slot.expect("it is there").kind;
        if let (Some(Timed::Timeout(timeout)), Kind::Timeout { is_ready }) =
            (&mut self.futures[which], kind)
        {
            timeout.get_mut().is_ready = true;
            *is_ready = true;
        }
    }

    // ----- steps on a timer -----

    fn shutdown(&mut self, home: Home) {
        if let Some(timer) = self.timers[home as usize].clone() {
            assert_eq!(timer.shutdown(), self.oracle.stop(home), "were pending");
            self.hear_all();
        }
    }

    fn drain(&mut self, home: Home) {
        if let Some(timer) = &self.timers[home as usize] {
            self.drains[home as usize] = Some(Drained {
                drain: Box::pin(timer.drain()),
                probe: Probe::new(),
                before: 0,
            });
            self.oracle.start_draining(home);
            self.oracle.timer(home).drain = Drain::None;
        }
    }

    // ----- helpers -----

    fn time(&self, when: When) -> Duration {
        match when {
            When::Ago(ago) => self.oracle.now.saturating_sub(ago),
            When::In(delay) => self.oracle.now + delay,
        }
    }
}

/// Calls `act`. A panic of one of our wakers counts as success.
fn quietly(act: impl FnOnce()) -> std::thread::Result<()> {
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Err(panic) if panic.is::<Boom>() => Ok(()),
        result => result,
    }
}
