//! Times from a seed: deadlines, and where the clock stops.
//!
//! Order is lost where timers of one tick wait on different dials. So each script has a few ticks
//! at which its timers meet, whenever they are made; and the clock stops at just those distances from
//! these ticks, and from others, at which a timer moves from dial to dial.

use crate::support::Dice;

pub(crate) const DAY: u64 = 86_400_000;

/// The dials of ours, in milliseconds: a full turn of each.
const TURNS: [u64; 5] = [1_000, 60_000, 3_600_000, DAY, 64 * DAY];

/// No deadline is later, in milliseconds since the script began. The longest period ends within tokio's wheel, of
/// 795 days, even then: its timers beyond were misplaced before 1.54.
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

    /// From now on timers meet.
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

    /// A tick that is still to come. One that has passed gives way to another.
    fn meeting(&mut self) -> u64 {
        let which = self.dice.roll(self.meetings.len() as u64) as usize;
        if self.meetings[which] <= self.now {
            self.meetings[which] = self.now + self.delay();
        }
        self.meetings[which]
    }

    /// From nothing to some months.
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

    /// The length of a turn, more often of the lower dials, or of one of tokio's.
    fn border(&mut self) -> u64 {
        match self.dice.roll(16) {
            0..=5 => TURNS[0],
            6..=8 => TURNS[1],
            9 | 10 => TURNS[2],
            11 => TURNS[3],
            12 => TURNS[4],
            _ => 64_u64.pow(1 + self.dice.roll(5) as u32),
        }
    }

    /// Where the clock stops next: a little later, after a turn of a dial, at one of the meetings, or where its
    /// timers are about to move to a lower dial. Nowhere if the end is near: there is always something left
    /// to come.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let meeting = match self.meetings.is_empty() {
            true => self.now,
            false => self.meeting(),
        };
        let to = match self.dice.roll(9) {
            0 => meeting,
            // From 5 ms on an interval's tick was missed.
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
