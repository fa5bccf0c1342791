use croner::Cron;
use jiff::civil::{Date, DateTime};

use super::days::{Bits, Days};

/// The wall-clock times of an expression, regardless of the time zone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    seconds: Bits,
    minutes: Bits,
    hours: Bits,
    days: Days,
}

/// Hour, minute, second.
type Time = (i8, i8, i8);

impl Pattern {
    pub(super) fn new(cron: &Cron, days: Days) -> Pattern {
        Pattern {
            seconds: Bits::of(&cron.pattern.seconds),
            minutes: Bits::of(&cron.pattern.minutes),
            hours: Bits::of(&cron.pattern.hours),
            days,
        }
    }

    /// The first time from `from` on, which is a whole second.
    pub(super) fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        self.search(from.date(), (from.hour(), from.minute(), from.second()))
    }

    /// The first time after `wall`.
    pub(super) fn after(&self, wall: DateTime) -> Option<DateTime> {
        // From second 60, which does not exist, the search continues in the next minute.
        let time = (wall.hour(), wall.minute(), wall.second() + 1);
        self.search(wall.date(), time)
    }

    /// The last time up to `to`, in whole seconds.
    pub(super) fn at_or_before(&self, to: DateTime) -> Option<DateTime> {
        self.search_back(to.date(), (to.hour(), to.minute(), to.second()))
    }

    /// The last time before `wall`, which is a whole second.
    pub(super) fn before(&self, wall: DateTime) -> Option<DateTime> {
        // From second -1, which does not exist, the search continues in the minute before.
        let time = (wall.hour(), wall.minute(), wall.second() - 1);
        self.search_back(wall.date(), time)
    }

    fn search(&self, from: Date, time: Time) -> Option<DateTime> {
        let mut day = self.days.at_or_after(from)?;
        if day == from {
            if let Some(time) = self.time_at_or_after(time) {
                return Some(at(day, time));
            }
            day = self.days.at_or_after(from.tomorrow().ok()?)?;
        }
        Some(at(day, self.time_at_or_after((0, 0, 0))?))
    }

    fn search_back(&self, to: Date, time: Time) -> Option<DateTime> {
        let mut day = self.days.at_or_before(to)?;
        if day == to {
            if let Some(time) = self.time_at_or_before(time) {
                return Some(at(day, time));
            }
            day = self.days.at_or_before(to.yesterday().ok()?)?;
        }
        Some(at(day, self.time_at_or_before((23, 59, 59))?))
    }

    /// The first time of a day from `(hour, minute, second)` on.
    fn time_at_or_after(&self, (hour, minute, second): Time) -> Option<Time> {
        if self.hours.contains(hour) {
            if self.minutes.contains(minute) {
                if let Some(second) = self.seconds.at_or_after(second) {
                    return Some((hour, minute, second));
                }
            }
            if let Some(minute) = self.minutes.at_or_after(minute + 1) {
                return Some((hour, minute, self.seconds.first()?));
            }
        }
        let hour = self.hours.at_or_after(hour + 1)?;
        Some((hour, self.minutes.first()?, self.seconds.first()?))
    }

    /// The last time of a day up to `(hour, minute, second)`.
    fn time_at_or_before(&self, (hour, minute, second): Time) -> Option<Time> {
        if self.hours.contains(hour) {
            if self.minutes.contains(minute) {
                if let Some(second) = self.seconds.at_or_before(second) {
                    return Some((hour, minute, second));
                }
            }
            if let Some(minute) = self.minutes.at_or_before(minute - 1) {
                return Some((hour, minute, self.seconds.last()?));
            }
        }
        let hour = self.hours.at_or_before(hour - 1)?;
        Some((hour, self.minutes.last()?, self.seconds.last()?))
    }
}

fn at(day: Date, (hour, minute, second): Time) -> DateTime {
    day.at(hour, minute, second, 0)
}
