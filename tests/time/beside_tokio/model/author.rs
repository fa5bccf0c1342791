//! Scripts by hand, from a seed.

use super::script::{Missed, Op, Restart};
use super::when::{DAY, END, When};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A few dozen timers, with all kinds of steps.
    Few,
    /// Hundreds or thousands of timers, with few other steps.
    Many,
}

/// The script of this seed.
pub(crate) fn write(seed: u64, kind: Kind) -> Vec<Op> {
    let mut author = Author {
        when: When::new(seed),
        script: Vec::new(),
        made: Vec::new(),
        may_loosen: seed % 3 == 0,
    };
    author.begin();
    match kind {
        Kind::Few => author.few(),
        Kind::Many => author.many(),
    }
    author.end();
    author.script
}

struct Author {
    when: When,
    script: Vec<Op>,
    /// The kind of each future, by number, and its last deadline.
    made: Vec<(Future, u64)>,
    /// Whether timers are reset to later, which removes them from the order among equals.
    may_loosen: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Future {
    Sleep,
    Interval,
    Timeout,
}

impl Author {
    /// The clock, and the two wheels, start apart.
    fn begin(&mut self) {
        if self.when.dice.roll(2) == 0 {
            let to = self.when.delay();
            self.advance_to(to, true);
        }
        self.make(100);
        if self.when.dice.roll(2) == 0 {
            let to = self.when.now + self.when.delay();
            self.advance_to(to, true);
        }
        self.when.meet();
    }

    fn few(&mut self) {
        let most = 4 + self.when.dice.roll(36) as usize;
        for _ in 0..30 + self.when.dice.roll(120) {
            match self.when.dice.roll(16) {
                0..=4 if self.made.len() < most => self.make(85),
                0..=6 => self.poll_one(),
                7..=9 => self.reset_one(),
                10 => {
                    let id = self.one();
                    self.script.push(Op::Drop { id });
                }
                11 => self.poll_all(),
                12 => {
                    let id = self.one();
                    self.script.push(Op::Complete { id });
                    self.script.push(Op::Poll { id });
                }
                _ => self.pass(),
            }
        }
    }

    fn many(&mut self) {
        let bursts = 2 + self.when.dice.roll(8);
        let each = 1 + self.when.dice.any_magnitude(4_000) / bursts;
        for _ in 0..bursts {
            for _ in 0..each {
                self.make(98);
            }
            for _ in 0..self.when.dice.roll(40) {
                self.reset_one();
            }
            for _ in 0..self.when.dice.roll(10) {
                let id = self.one();
                self.script.push(Op::Drop { id });
            }
            self.pass();
            if self.when.dice.roll(3) == 0 {
                self.poll_all();
            }
        }
    }

    /// Lets all remaining timers fire at the end.
    fn end(&mut self) {
        for _ in 0..3 {
            self.pass();
        }
        self.poll_all();
        let to = self.when.now + 100 * DAY;
        self.advance_to(to, true);
        let to = self.when.now + 1;
        self.script.push(Op::Await { to: END.max(to) });
        self.poll_all();
    }

    // ----- futures -----

    /// Makes a future, and polls it with this probability in percent.
    fn make(&mut self, polled: u64) {
        let (id, at) = (self.made.len(), self.when.deadline());
        let by_delay = self.when.dice.roll(2) == 0;
        let (future, op) = match self.when.dice.roll(8) {
            0 => (Future::Timeout, Op::Timeout { id, at, by_delay }),
            1 => {
                let missed = match self.when.dice.roll(3) {
                    0 => Missed::Burst,
                    1 => Missed::Delay,
                    _ => Missed::Skip,
                };
                let op = Op::Interval {
                    id,
                    start: at,
                    period: self.when.delay().max(1),
                    missed,
                };
                (Future::Interval, op)
            }
            _ => (Future::Sleep, Op::Sleep { id, at, by_delay }),
        };
        self.made.push((future, at));
        self.script.push(op);
        if self.when.dice.roll(100) < polled {
            self.script.push(Op::Poll { id });
        }
    }

    fn one(&mut self) -> usize {
        self.when.dice.roll(self.made.len() as u64) as usize
    }

    fn poll_one(&mut self) {
        let id = self.one();
        self.script.push(Op::Poll { id });
    }

    fn poll_all(&mut self) {
        let all = (0..self.made.len()).map(|id| Op::Poll { id });
        self.script.extend(all);
    }

    fn reset_one(&mut self) {
        let id = self.one();
        let (future, before) = self.made[id];
        let to = match self.when.dice.roll(8) {
            0 => self.when.now,
            1 => self.when.dice.roll(self.when.now + 1),
            2 => before,
            // Earlier, if it is still to come.
            3..=5 if before > self.when.now => {
                self.when.now + self.when.dice.roll(before - self.when.now)
            }
            _ => self.when.deadline(),
        };
        // Timers that fire are reset to later as well, instead of pending ones.
        let to = match to > before && before > self.when.now && !self.may_loosen {
            true => before - self.when.dice.roll(2),
            false => to,
        };
        let is_restart =
            future == Future::Interval && self.may_loosen && self.when.dice.roll(2) == 0;
        if is_restart {
            let how = match self.when.dice.roll(3) {
                0 => Restart::Period,
                1 => Restart::Now,
                _ => Restart::After(self.when.delay()),
            };
            self.script.push(Op::Restart { id, how });
        } else {
            self.made[id].1 = to;
            self.script.push(Op::Reset { id, to });
        }
        // Most code awaits a future after resetting it.
        if self.when.dice.roll(3) > 0 {
            self.script.push(Op::Poll { id });
        }
    }

    // ----- the clock -----

    fn pass(&mut self) {
        let Some(to) = self.when.next() else {
            return;
        };
        if to > self.when.now && self.when.dice.roll(6) == 0 {
            self.script.push(Op::Await { to });
            self.when.now = to;
        } else {
            let settles = self.when.dice.roll(3) > 0;
            self.advance_to(to, settles);
        }
    }

    fn advance_to(&mut self, to: u64, settles: bool) {
        self.when.now = self.when.now.max(to);
        // Beyond the limit of a turn, several turns are needed.
        let settles = settles || self.made.len() > 100;
        self.script.push(Op::Advance { to, settles });
    }
}
