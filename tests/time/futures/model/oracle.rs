//! Every future with its deadline. No wheel, no driver, no tokio: times are durations since tokio's clock began, and a division
//! gives a deadline's tick.

use std::time::Duration;

use super::known::{By, Counts, Drain, Kind, Life, Outcome, Refusal, Slot, State, Ticks, Timer};
use super::{Act, Home};

/// The number of wakers that count.
pub(super) const PROBES: usize = 4;

/// The most futures at a time: fewer than a turn of the driver serves, so that one turn fires all that are due.
pub(super) const SLOTS: usize = 24;

pub(super) struct Oracle {
    pub(super) now: Duration,
    pub(super) timers: [Timer; 2],
    pub(super) slots: Vec<Option<Slot>>,
    /// How often each probe has been woken.
    pub(super) wakes: [usize; PROBES],
    traps: Vec<Trap>,
    /// The traps that must have been woken and whose log has not been read.
    sprung: Vec<usize>,
}

struct Trap {
    victim: Option<usize>,
    act: Act,
    /// Where [`Act::Reset`] moves the victim's deadline.
    to: Duration,
    home: Home,
}

impl Oracle {
    pub(super) fn new(timers: [Timer; 2]) -> Oracle {
        Oracle {
            now: Duration::ZERO,
            timers,
            slots: vec![None; SLOTS],
            wakes: [0; PROBES],
            traps: Vec::new(),
            sprung: Vec::new(),
        }
    }

    pub(super) fn timer(&mut self, home: Home) -> &mut Timer {
        &mut self.timers[home as usize]
    }

    fn slot(&mut self, which: usize) -> &mut Slot {
        self.slots[which].as_mut().expect("it is there")
    }

    fn counts(&mut self, which: usize) -> &mut Counts {
        let home = self.slot(which).home;
        &mut self.timer(home).counts
    }

    // ----- what futures do -----

    /// Whether a timer takes a future. If it does, and the future `needs_permit`, the future has a permit.
    pub(super) fn admit(&mut self, home: Home, needs_permit: bool) -> Result<(), Refusal> {
        let timer = self.timer(home);
        if timer.state != State::Running || timer.is_over {
            return Err(Refusal::Shutdown);
        }
        if needs_permit {
            if timer.max_pending.is_some_and(|most| timer.permits >= most) {
                return Err(Refusal::AtCapacity);
            }
            timer.permits += 1;
        }
        Ok(())
    }

    /// Polls a future. `None` if it is pending.
    pub(super) fn poll(&mut self, which: usize, by: By, now: Duration) -> Option<Outcome> {
        match self.slot(which).kind.clone() {
            Kind::Sleep => {
                let stopped = self.poll_delay(which, by, now)?;
                self.complete(which);
                match stopped && self.is_over(which, now) {
                    true => Some(Outcome::Over),
                    false => Some(Outcome::Slept),
                }
            }
            Kind::Timeout { is_ready: true } => {
                self.cancel(which);
                self.slot(which).life = Life::Done { stopped: false };
                self.complete(which);
                self.let_go(by);
                Some(Outcome::InTime)
            }
            Kind::Timeout { is_ready: false } => {
                let stopped = self.poll_delay(which, by, now)?;
                self.complete(which);
                match stopped && self.is_over(which, now) {
                    true => Some(Outcome::Over),
                    false => Some(Outcome::Elapsed { stopped }),
                }
            }
            Kind::Interval(ticks) => self.poll_interval(which, ticks, by, now),
        }
    }

    /// Whether a future whose timer has ended panics: its runtime has ended, and no owner stopped the timer.
    fn is_over(&mut self, which: usize, now: Duration) -> bool {
        let slot = self.slot(which).clone();
        let timer = self.timer(slot.home);
        let is_due = slot
            .deadline
            .is_some_and(|deadline| timer.is_due(deadline, now));
        timer.is_over && timer.state != State::Stopped && !is_due
    }

    /// Polls a future's delay. Returns whether the delay was stopped, or `None` if it is pending.
    fn poll_delay(&mut self, which: usize, by: By, now: Duration) -> Option<bool> {
        let slot = self.slot(which).clone();
        let Some(deadline) = slot.deadline else {
            self.let_go(by);
            return None;
        };
        let timer = self.timer(slot.home);
        let is_stopped = timer.state == State::Stopped || timer.is_over;
        let is_due = timer.is_due(deadline, now);
        let stopped = match slot.life {
            Life::Done { stopped } => stopped,
            Life::Pending(before) if is_due => {
                self.counts(which).fired += 1;
                self.slot(which).life = Life::Done { stopped: false };
                self.let_go(before);
                self.has_one_less(slot.home);
                false
            }
            Life::Pending(before) => {
                self.slot(which).life = Life::Pending(by);
                if before != by {
                    self.let_go(before);
                }
                return None;
            }
            Life::New | Life::Reset | Life::Disarmed if is_due => false,
            Life::New | Life::Reset | Life::Disarmed if is_stopped => true,
            Life::New | Life::Reset | Life::Disarmed => {
                self.counts(which).armed += 1;
                self.slot(which).life = Life::Pending(by);
                return None;
            }
        };
        self.slot(which).life = Life::Done { stopped };
        self.let_go(by);
        Some(stopped)
    }

    fn poll_interval(
        &mut self,
        which: usize,
        mut ticks: Ticks,
        by: By,
        now: Duration,
    ) -> Option<Outcome> {
        if ticks.has_ended {
            self.let_go(by);
            return Some(Outcome::Ended);
        }
        let was_new = matches!(self.slot(which).life, Life::New | Life::Reset);
        let stopped = self.poll_delay(which, by, now)?;
        if stopped {
            ticks.has_ended = true;
            self.slot(which).kind = Kind::Interval(ticks);
            self.complete(which);
            return Some(Outcome::Ended);
        }
        let slot = self.slot(which);
        let home = slot.home;
        let tick = slot.deadline.expect("an interval ticks");
        let timer = &self.timers[home as usize];
        let next = ticks.next(tick, now, timer.tick);
        ticks.has_ended = timer.state != State::Running;
        let slot = self.slot(which);
        slot.deadline = Some(next);
        slot.life = if was_new { Life::New } else { Life::Disarmed };
        slot.kind = Kind::Interval(ticks);
        Some(Outcome::Tick(tick))
    }

    /// Moves the deadline of a sleep or an interval.
    pub(super) fn reset(&mut self, which: usize, to: Duration, now: Duration) {
        let slot = self.slot(which);
        let home = slot.home;
        if matches!(&slot.kind, Kind::Interval(ticks) if ticks.has_ended) {
            return;
        }
        let before = slot.deadline.replace(to).expect("it has a deadline");
        let life = slot.life;
        let is_past = self.timer(home).is_due(to, now);
        let slot = self.slot(which);
        match life {
            Life::Pending(by) if to < before && is_past => {
                slot.life = Life::Disarmed;
                self.counts(which).fired += 1;
                self.wake(by);
                self.has_one_less(home);
            }
            Life::Done { .. } => {
                slot.life = Life::Reset;
                slot.has_permit = true;
                self.timer(home).permits += 1;
            }
            Life::New => slot.life = Life::Reset,
            Life::Reset | Life::Pending(_) | Life::Disarmed => {}
        }
    }

    pub(super) fn drop(&mut self, which: usize) {
        self.cancel(which);
        self.complete(which);
        self.slots[which] = None;
    }

    fn cancel(&mut self, which: usize) {
        let slot = self.slot(which).clone();
        if let Life::Pending(by) = slot.life {
            self.slot(which).life = Life::Disarmed;
            self.counts(which).cancelled += 1;
            self.let_go(by);
            self.has_one_less(slot.home);
        }
    }

    /// Completes the future for good, so that it releases its permit.
    fn complete(&mut self, which: usize) {
        let slot = self.slot(which);
        let home = slot.home;
        if std::mem::take(&mut slot.has_permit) {
            self.timer(home).permits -= 1;
        }
    }

    // ----- what the driver does -----

    /// Lets the driver of a timer run at this time.
    pub(super) fn run(&mut self, home: Home, now: Duration) {
        for which in 0..SLOTS {
            let Some(slot) = &self.slots[which] else {
                continue;
            };
            let (Life::Pending(by), Some(deadline)) = (slot.life, slot.deadline) else {
                continue;
            };
            if slot.home == home && self.timer(home).is_due(deadline, now) {
                self.slot(which).life = Life::Disarmed;
                self.counts(which).fired += 1;
                self.wake(by);
                self.has_one_less(home);
            }
        }
    }

    /// Stops a timer. Returns how many of its futures were pending.
    pub(super) fn stop(&mut self, home: Home) -> usize {
        if std::mem::replace(&mut self.timer(home).state, State::Stopped) == State::Stopped {
            return 0;
        }
        self.end_pending(home)
    }

    /// Ends the runtime.
    pub(super) fn lose_runtime(&mut self, home: Home) {
        self.timer(home).is_over = true;
        self.end_pending(home);
    }

    fn end_pending(&mut self, home: Home) -> usize {
        let mut count = 0;
        for which in 0..SLOTS {
            let Some(slot) = self.slots[which].as_mut().filter(|slot| slot.home == home) else {
                continue;
            };
            if let Life::Pending(by) = slot.life {
                slot.life = Life::Disarmed;
                self.counts(which).stopped += 1;
                self.wake(by);
                count += 1;
            }
        }
        let timer = self.timer(home);
        if timer.drain == Drain::Waits {
            timer.drain = Drain::Woken;
        }
        count
    }

    pub(super) fn start_draining(&mut self, home: Home) {
        let timer = self.timer(home);
        if timer.state == State::Running {
            timer.state = State::Draining;
        }
    }

    /// Polls a drain. Returns whether the timer is drained, which stops it.
    pub(super) fn poll_drain(&mut self, home: Home) -> bool {
        let timer = self.timer(home);
        if timer.is_over {
            timer.drain = Drain::None;
            return true;
        }
        let is_drained = timer.state == State::Stopped || self.pending(home) == 0;
        self.timer(home).drain = if is_drained {
            Drain::None
        } else {
            Drain::Waits
        };
        if is_drained {
            self.stop(home);
        }
        is_drained
    }

    fn has_one_less(&mut self, home: Home) {
        let is_empty = self.pending(home) == 0;
        let timer = self.timer(home);
        if timer.drain == Drain::Waits && is_empty {
            timer.drain = Drain::Woken;
        }
    }

    pub(super) fn pending(&self, home: Home) -> u64 {
        let slots = self.slots.iter().flatten().filter(|slot| slot.home == home);
        slots
            .filter(|slot| matches!(slot.life, Life::Pending(_)))
            .count() as u64
    }

    // ----- wakers -----

    fn wake(&mut self, by: By) {
        match by {
            By::Probe(probe) => self.wakes[probe] += 1,
            By::Trap(trap) => self.sprung.push(trap),
            By::Main => {}
        }
    }

    /// Drops a waker. A trap drops the future that it owns.
    fn let_go(&mut self, by: By) {
        if let By::Trap(trap) = by {
            if let Some(victim) = self.traps[trap].victim.take() {
                self.drop(victim);
            }
        }
    }

    /// Makes a trap that owns this sleep. Returns its number.
    pub(super) fn set_trap(&mut self, victim: usize, act: Act, to: Duration) -> usize {
        let slot = self.slot(victim);
        slot.is_away = true;
        let home = slot.home;
        self.traps.push(Trap {
            victim: Some(victim),
            act,
            to,
            home,
        });
        self.traps.len() - 1
    }

    /// Notes that a trap has been woken. Returns the number of its victim and, if the trap polled the victim, whether that was ready.
    pub(super) fn spring(&mut self, trap: usize, now: Duration) -> (usize, Option<bool>) {
        let sprung = self.sprung.iter().position(|&sprung| sprung == trap);
        let sprung = sprung.expect("a trap was woken that was not to be");
        self.sprung.swap_remove(sprung);
        let Trap {
            victim, act, to, ..
        } = &mut self.traps[trap];
        let victim = victim.take().expect("a trap is sprung once");
        let (act, to) = (*act, *to);
        self.slot(victim).is_away = false;
        let mut is_ready = None;
        match act {
            Act::Drop => self.drop(victim),
            Act::Reset(_) => self.reset(victim, to, now),
            Act::Poll { probe } => {
                let outcome = self.poll(victim, By::Probe(probe), now);
                is_ready = Some(outcome.is_some());
            }
            Act::Panic => {}
        }
        (victim, is_ready)
    }

    pub(super) fn home_of(&self, trap: usize) -> Home {
        self.traps[trap].home
    }

    /// Whether a trap that must have been woken has logged nothing.
    pub(super) fn is_silent(&self) -> bool {
        !self.sprung.is_empty()
    }

    /// The number of clones of a probe's waker that are held.
    pub(super) fn held(&self, probe: usize) -> usize {
        let slots = self.slots.iter().flatten();
        slots
            .filter(|slot| slot.life == Life::Pending(By::Probe(probe)))
            .count()
    }
}
