//! Times from a seed: deadlines, and the instants at which the clock stops.
//!
//! A wheel could lose the order of timers of one tick that wait on different dials. So the timers of a script share a few ticks,
//! the meetings, whenever the timers are made. And the clock often stops at those distances from a tick at which its timers move
//! from dial to dial.

use crate::support::Dice;

pub(crate) const DAY: u64 = 86_400_000;

/// One revolution of each of our dials, in milliseconds.
const REVOLUTIONS: [u64; 5] = [1_000, 60_000, 3_600_000, DAY, 64 * DAY];

/// No deadline is later, in milliseconds since the script began. Even then the longest period ends within the 795 days of tokio's
/// wheel. tokio before 1.54 misplaces timers beyond.
pub(crate) const END: u64 = 600 * DAY;

pub(crate) struct When {
    pub(crate) dice: Dice,
    pub(crate) now: u64,
    meetings: Vec<u64>,
}

impl When {
    pub(crate) fn new(seed: u64) -> When {
        When {
            dice: Dice(seed),
            now: 0,
            meetings: Vec::new(),
        }
    }

    /// Chooses the ticks at which timers meet from now on.
    pub(crate) fn meet(&mut self) {
        for _ in 0..=self.dice.roll(4) {
            let meeting = self.now + self.delay();
            self.meetings.push(meeting);
        }
    }

    pub(crate) fn deadline(&mut self) -> u64 {
        let deadline = match self.dice.roll(12) {
            0..=5 if !self.meetings.is_empty() => self.meeting() + self.dice.roll(8) / 7,
            6 => self.now,
            7 => self.now - self.dice.roll(self.now + 1),
            _ => self.now + self.delay(),
        };
        deadline.min(END)
    }

    /// A future meeting. A new one replaces a meeting that has passed.
    fn meeting(&mut self) -> u64 {
        let which = self.dice.roll(self.meetings.len() as u64) as usize;
        if self.meetings[which] <= self.now {
            self.meetings[which] = self.now + self.delay();
        }
        self.meetings[which]
    }

    /// A delay from zero to some months.
    pub(crate) fn delay(&mut self) -> u64 {
        match self.dice.roll(12) {
            0 | 1 => self.dice.roll(4),
            2 => self.dice.roll(20),
            3 | 4 => self.dice.roll(1_200),
            5..=8 => {
                let times = 1 + self.dice.roll(6) / 4;
                self.border() * times + self.dice.roll(3) - 1
            }
            9 => self.border() + self.dice.roll(70_000),
            _ => self.dice.any_magnitude(100 * DAY),
        }
    }

    /// The length of a revolution: of one of our dials, mostly a lower one, or of one of tokio's levels.
    fn border(&mut self) -> u64 {
        match self.dice.roll(16) {
            0..=5 => REVOLUTIONS[0],
            6..=8 => REVOLUTIONS[1],
            9 | 10 => REVOLUTIONS[2],
            11 => REVOLUTIONS[3],
            12 => REVOLUTIONS[4],
            _ => 64_u64.pow(1 + self.dice.roll(5) as u32),
        }
    }

    /// Where the clock stops next: a little later, after a revolution of a dial, at a meeting, or where the timers of a meeting are
    /// about to move to a lower dial. `None` if the end is near: time must be left for later deadlines.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let meeting = match self.meetings.is_empty() {
            true => self.now,
            false => self.meeting(),
        };
        let to = match self.dice.roll(9) {
            0 => meeting,
            // An interval misses a tick that is 5 ms late.
            8 => meeting + 3 + self.dice.roll(5),
            1..=4 => {
                let before = self.border() + self.dice.roll(3) - 1;
                meeting.saturating_sub(before)
            }
            _ => self.now + self.delay(),
        };
        (to < END - 100 * DAY).then_some(to)
    }
}
