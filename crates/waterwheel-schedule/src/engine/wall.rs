//! Jobs by the wall clock, which may be set.
//!
//! Such a job waits on the dials as every other, at the instant at which the wall clock will show its time if it is not set meanwhile. Two
//! things make up for a clock that is set:
//!
//! - When the job is due on the dials, the driver looks at the wall clock. If that shows less, the job is filed again.
//! - The driver waits for the earliest of these times by the [wall clock itself](waterwheel::clocks::sleep_until_wall). If that comes first, since the
//!   clock was set forward or the machine was suspended, the job is due at once.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use waterwheel::Timer;
use waterwheel::wheel::Key;

use super::plan::add;
use super::table::{Entry, State, Status, Table};

/// Where the time of day comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WallClock {
    /// The machine's clock.
    Machine,
    /// It showed `start` at the instant `since` of the scheduler's timer, and goes on with that.
    OfTimer { start: SystemTime, since: Instant },
}

impl WallClock {
    pub(crate) fn now(&self, timer: &Timer) -> SystemTime {
        match *self {
            WallClock::Machine => SystemTime::now(),
            WallClock::OfTimer { start, since } => {
                start + timer.now().saturating_duration_since(since)
            }
        }
    }

    pub(crate) fn may_be_set(&self) -> bool {
        matches!(self, WallClock::Machine)
    }

    /// When the clock shows this time, if it is not set meanwhile.
    pub(crate) fn instant_of(&self, wall: SystemTime, timer: &Timer) -> Instant {
        let left = wall.duration_since(self.now(timer));
        add(timer.now(), left.unwrap_or(Duration::ZERO))
    }
}

/// The jobs by the machine's wall clock, earliest first. Those that have gone stay until they come up, or are too many.
#[derive(Default)]
pub(crate) struct Appointments(BinaryHeap<Reverse<Appointment>>);

struct Appointment {
    wall: SystemTime,
    key: Key,
}

impl PartialEq for Appointment {
    fn eq(&self, other: &Appointment) -> bool {
        self.wall == other.wall
    }
}

impl Eq for Appointment {}

impl PartialOrd for Appointment {
    fn partial_cmp(&self, other: &Appointment) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Appointment {
    fn cmp(&self, other: &Appointment) -> Ordering {
        self.wall.cmp(&other.wall)
    }
}

impl State {
    /// Remembers that a job waits for the machine's wall clock. The caller files it.
    pub(crate) fn appoint(&mut self, key: Key, wall: SystemTime) {
        let State {
            appointments,
            wheel,
            jobs,
            ..
        } = self;
        let heap = &mut appointments.0;
        // A job may be in it more than once, if it was paused meanwhile.
        if heap.len() > 2 * *jobs + 64 {
            heap.retain(|Reverse(it)| wheel.get(it.key).is_some_and(|entry| it.is_of(entry)));
        }
        heap.push(Reverse(Appointment { wall, key }));
    }

    /// The earliest time of day that a job waits for.
    pub(crate) fn next_appointment(&mut self) -> Option<SystemTime> {
        loop {
            let Reverse(first) = self.appointments.0.peek()?;
            if self
                .wheel
                .get(first.key)
                .is_some_and(|entry| first.is_of(entry))
            {
                return Some(first.wall);
            }
            self.appointments.0.pop();
        }
    }
}

impl Appointment {
    fn is_of(&self, entry: &Entry) -> bool {
        entry.status == Status::Waiting && entry.wall() == Some(self.wall)
    }
}

impl Table {
    /// The wall clock shows the earliest appointment: what it shows is due now.
    pub(crate) fn keep_appointments(&self) {
        let (wall, now) = (self.wall.now(&self.timer), self.timer.now());
        let tick = self.timer.tick_after(now);
        let mut state = self.state();
        while state.next_appointment().is_some_and(|first| first <= wall) {
            let Some(Reverse(first)) = state.appointments.0.pop() else {
                return;
            };
            if let Some(entry) = state.wheel.get_mut(first.key) {
                entry.deadline = entry.deadline.min(now);
                state.wheel.reset(first.key, tick);
            }
        }
    }

    /// Files a job again that is due on the dials and not by the wall clock. Returns whether it did.
    pub(crate) fn postpone_by_wall(&self, state: &mut State, key: Key) -> bool {
        let Some(entry) = state.wheel.get_mut(key) else {
            return false;
        };
        let Some(wall) = entry
            .wall()
            .filter(|&wall| self.wall.now(&self.timer) < wall)
        else {
            return false;
        };
        entry.deadline = self.wall.instant_of(wall, &self.timer);
        entry.status = Status::Waiting;
        let tick = self.timer.tick_after(entry.deadline);
        state.wheel.reset(key, tick);
        if self.wall.may_be_set() {
            state.appoint(key, wall);
        }
        true
    }
}
