//! The days of a schedule, and whether it has any.
//!
//! Whether a year has a day of the schedule depends only on whether it is a leap year and on which weekday it begins. The years
//! 2001 to 2028 include all fourteen combinations, so a schedule without a day in them has none. croner's own rule for a day
//! decides this: `30 2`, `31W` in short months and `29 2 +MON#2` need no rule of ours. This is checked once, in `parse`, so that
//! no search looks for days that do not exist.

use std::ops::RangeInclusive;

use croner::{CronComponent, CronPattern, Weekday};
use jiff::civil::Date;

/// The days of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Days {
    /// croner's rule for the day of the month and the day of the week. Its other fields are empty.
    rule: CronPattern,
    months: Bits,
    /// The listed years in ascending order, or `None` if every year matches.
    years: Option<Box<[i16]>>,
}

impl Days {
    /// Without `has_years`, every year matches.
    pub(super) fn new(mut pattern: CronPattern, has_years: bool) -> Days {
        let months = Bits::of(&pattern.months);
        let years = has_years.then(|| {
            let years = pattern.years.values().into_iter();
            years.filter_map(|it| i16::try_from(it).ok()).collect()
        });
        // Frees their memory: croner uses a byte for each value, and thousands of years.
        for unused in [
            &mut pattern.seconds,
            &mut pattern.minutes,
            &mut pattern.hours,
            &mut pattern.months,
            &mut pattern.years,
        ] {
            *unused = CronComponent::default();
        }
        Days {
            rule: pattern,
            months,
            years,
        }
    }

    /// Returns the first day from `from` on.
    ///
    /// Unless years are listed, a search takes at most 40 years, as for a weekday on 29 February from 2088 on, across 2100. It ends in
    /// 9999, with jiff's calendar.
    pub(super) fn at_or_after(&self, from: Date) -> Option<Date> {
        let mut year = self.year_at_or_after(from.year())?;
        if year == from.year() {
            if let Some(date) = self.in_year(year, from.month(), from.day()) {
                return Some(date);
            }
            year = self.year_at_or_after(year + 1)?;
        }
        loop {
            if let Some(date) = self.in_year(year, 1, 1) {
                return Some(date);
            }
            year = self.year_at_or_after(year + 1)?;
        }
    }

    /// Returns the last day up to `to`. A search covers as many years as one forward, and ends in -9999.
    pub(super) fn at_or_before(&self, to: Date) -> Option<Date> {
        let mut year = self.year_at_or_before(to.year())?;
        if year == to.year() {
            if let Some(date) = self.last_in_year(year, to.month(), to.day()) {
                return Some(date);
            }
            year = self.year_at_or_before(year - 1)?;
        }
        loop {
            if let Some(date) = self.last_in_year(year, 12, 31) {
                return Some(date);
            }
            year = self.year_at_or_before(year - 1)?;
        }
    }

    /// The first day of a year from `month` and `day` on.
    fn in_year(&self, year: i16, month: i8, day: i8) -> Option<Date> {
        let (mut month, mut first) = (month, day);
        loop {
            let next = self.months.at_or_after(month)?;
            if next != month {
                (month, first) = (next, 1);
            }
            if let Some(date) = self.in_month(year, month, first) {
                return Some(date);
            }
            (month, first) = (month + 1, 1);
        }
    }

    /// The last day of a year up to `month` and `day`.
    fn last_in_year(&self, year: i16, month: i8, day: i8) -> Option<Date> {
        let (mut month, mut last) = (month, day);
        loop {
            let before = self.months.at_or_before(month)?;
            if before != month {
                (month, last) = (before, 31);
            }
            if let Some(date) = self.last_in_month(year, month, last) {
                return Some(date);
            }
            (month, last) = (month - 1, 31);
        }
    }

    /// The first day of a month from `first` on.
    fn in_month(&self, year: i16, month: i8, first: i8) -> Option<Date> {
        let start = Date::new(year, month, 1).ok()?;
        let day = (first..=start.days_in_month()).find(self.is_ours(start))?;
        Date::new(year, month, day).ok()
    }

    /// The last day of a month up to `last`.
    fn last_in_month(&self, year: i16, month: i8, last: i8) -> Option<Date> {
        let start = Date::new(year, month, 1).ok()?;
        let mut days = 1..=last.min(start.days_in_month());
        let day = days.rfind(self.is_ours(start))?;
        Date::new(year, month, day).ok()
    }

    /// Which days of the month that begins with `start` are days of the schedule.
    fn is_ours(&self, start: Date) -> impl Fn(&i8) -> bool {
        let weekday = start.weekday().to_sunday_zero_offset();
        let weekday = Weekday::from_days_from_sunday(u32::from(weekday.unsigned_abs()));
        let year = i32::from(start.year());
        let month = u32::from(start.month().unsigned_abs());
        move |day| {
            let weekday = weekday.shift(i32::from(*day) - 1);
            let day = u32::from(day.unsigned_abs());
            let found = self.rule.day_match(year, month, day, weekday);
            found.unwrap_or(false)
        }
    }

    fn year_at_or_after(&self, year: i16) -> Option<i16> {
        match &self.years {
            None => (year <= Date::MAX.year()).then_some(year),
            Some(years) => years.get(years.partition_point(|it| *it < year)).copied(),
        }
    }

    fn year_at_or_before(&self, year: i16) -> Option<i16> {
        match &self.years {
            None => (year >= Date::MIN.year()).then_some(year),
            Some(years) => years[..years.partition_point(|it| *it <= year)]
                .last()
                .copied(),
        }
    }

    /// Returns whether there is any day at all. Removes listed years without one.
    pub(super) fn comes(&mut self) -> bool {
        let mut known = [None; 14];
        self.retain_years(|days, year| {
            let found = &mut known[kind(year)];
            *found.get_or_insert_with(|| days.in_year(year, 1, 1).is_some())
        });
        !self.has_no_year()
            && ALL_KINDS
                .into_iter()
                .any(|it| self.in_year(it, 1, 1).is_some())
    }

    /// Keeps only the listed years for which this returns `true`.
    fn retain_years(&mut self, mut keep: impl FnMut(&Days, i16) -> bool) {
        if let Some(years) = self.years.take() {
            let kept = years.iter().copied().filter(|it| keep(self, *it));
            self.years = Some(kept.collect());
        }
    }

    /// Whether years are listed, and none is left.
    fn has_no_year(&self) -> bool {
        self.years.as_ref().is_some_and(|it| it.is_empty())
    }
}

const ALL_KINDS: RangeInclusive<i16> = 2001..=2028;

/// Which of the fourteen combinations a year is.
fn kind(year: i16) -> usize {
    let start = Date::constant(year, 1, 1);
    let weekday = start.weekday().to_sunday_zero_offset().unsigned_abs();
    usize::from(weekday) + if start.in_leap_year() { 7 } else { 0 }
}

/// A bit set of the values of a field, which are below 64. They are `i8`, like those of jiff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits(u64);

impl Bits {
    /// The values of one of croner's fields.
    pub(super) fn of(field: &CronComponent) -> Bits {
        let values = field.values().into_iter();
        Bits(values.fold(0, |bits, value| bits | 1 << value))
    }

    /// Returns the least value from `value` on, which is below 64.
    #[inline]
    pub(super) fn at_or_after(self, value: i8) -> Option<i8> {
        let rest = self.0 >> value;
        (rest != 0).then(|| value + rest.trailing_zeros() as i8)
    }

    /// Returns the greatest value up to `value`, which is below 64 and may be -1.
    #[inline]
    pub(super) fn at_or_before(self, value: i8) -> Option<i8> {
        // For -1, this shifts by 64 bits: there is no value before it.
        let rest = self.0.checked_shl((63 - value) as u32)?;
        (rest != 0).then(|| value - rest.leading_zeros() as i8)
    }

    #[inline]
    pub(super) fn first(self) -> Option<i8> {
        self.at_or_after(0)
    }

    #[inline]
    pub(super) fn last(self) -> Option<i8> {
        self.at_or_before(63)
    }

    #[inline]
    pub(super) fn contains(self, value: i8) -> bool {
        self.at_or_after(value) == Some(value)
    }
}
