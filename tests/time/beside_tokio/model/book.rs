//! A script's own record of a timer: its tick, whether it is filed, and its place among those of the
//! same tick.

use super::Missed;
use super::script::Restart;

/// Counts filings.
#[derive(Debug, Default)]
pub(crate) struct Filings(u64);

impl Filings {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// When a timer was filed, counted in filings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) tokio: u64,
    pub(crate) ours: u64,
    /// Whether it was reset to later: its place among equals is then not guaranteed.
    pub(crate) is_loose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The timer is in no wheel.
    New,
    /// The timer was reset, and not polled since: tokio has filed it.
    Reset,
    /// The timer was polled, and both have filed it. From its tick on it has fired.
    Filed,
    /// A sleep that was polled and ready.
    Ready,
}

#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) tick: u64,
    pub(crate) place: Place,
    /// Whether it was ready, and then reset: tokio wakes the last waker, and we do not.
    pub(crate) is_mute: bool,
    state: State,
    /// The tick at which ours is filed. A reset to later does not move it.
    slot: u64,
    /// The next tick and the behaviour of an interval.
    beat: Option<(u64, Missed)>,
}

impl Book {
    pub(crate) fn of_sleep(tick: u64) -> Book {
        Book {
            tick,
            place: Place::default(),
            is_mute: false,
            state: State::New,
            slot: tick,
            beat: None,
        }
    }

    pub(crate) fn of_interval(start: u64, period: u64, missed: Missed) -> Book {
        Book {
            beat: Some((period, missed)),
            ..Book::of_sleep(start)
        }
    }

    /// Notes that the timer is polled.
    pub(crate) fn poll(&mut self, now: u64, filings: &mut Filings) {
        self.is_mute = false;
        if self.tick > now {
            match self.state {
                State::New => self.file(filings),
                State::Reset => {
                    self.place.ours = filings.next();
                    self.slot = self.tick;
                }
                State::Filed => {}
                State::Ready => unreachable!("its tick has come"),
            }
            self.state = State::Filed;
        } else if let Some((period, missed)) = self.beat {
            self.tick = missed.next(self.tick, now, period);
            self.state = State::New;
            // Tokio 1.49 keeps the waker, and wakes it if the interval is filed next for a tick that has passed.
            self.is_mute = true;
        } else {
            self.state = State::Ready;
        }
    }

    pub(crate) fn reset(&mut self, to: u64, now: u64, filings: &mut Filings) {
        let before = std::mem::replace(&mut self.tick, to);
        if self.slot <= now {
            // Our driver has met it there since then.
            self.slot = before;
        }
        match self.state {
            State::Reset | State::Filed if before > now && to == before => {}
            State::Reset | State::Filed if before > now && to > before => {
                self.place.is_loose = true;
            }
            // Earlier than it was, but not earlier than the slot that ours has kept all the time.
            State::Filed if before > now && to >= self.slot => self.place.is_loose = true,
            State::Filed if before > now => self.file(filings),
            State::New | State::Reset | State::Filed | State::Ready => {
                self.is_mute |= self.state == State::Ready;
                self.state = State::Reset;
                self.place.tokio = filings.next();
                self.place.is_loose = false;
            }
        }
    }

    /// Files the timer in both.
    fn file(&mut self, filings: &mut Filings) {
        let at = filings.next();
        self.slot = self.tick;
        self.place = Place {
            tokio: at,
            ours: at,
            is_loose: false,
        };
    }

    pub(crate) fn restart(&mut self, how: Restart, now: u64, filings: &mut Filings) {
        let Some((period, _)) = self.beat else {
            return;
        };
        let to = match how {
            Restart::Period => now + period,
            Restart::Now => now,
            Restart::After(delay) => now + delay,
        };
        self.reset(to, now, filings);
    }
}
