use croner::{CronComponent, CronPattern, Weekday};
use jiff::civil::Date;

use super::bits::Bits;

/// The days of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Days {
    /// What croner makes of the day of the month and the day of the week. Its other fields are empty.
    rule: CronPattern,
    months: Bits,
    /// In their order, if there is a field for them.
    years: Option<Box<[i16]>>,
}

impl Days {
    /// The years of the pattern are read if there is a field for them: without one, there is no end to them.
    pub(super) fn new(mut pattern: CronPattern, has_years: bool) -> Days {
        let months = Bits::of(&pattern.months);
        let years = has_years.then(|| {
            let years = pattern.years.values().into_iter();
            years.filter_map(|it| i16::try_from(it).ok()).collect()
        });
        // A byte for each value, and thousands of years.
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

    /// The first day from `from` on.
    ///
    /// A search looks at 40 years at most where no years are listed: that is how long a weekday of 29 February may take, as from 2088 on,
    /// across 2100. It ends with jiff's calendar, in 9999.
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

    /// The last day up to `to`. A search looks at as many years as one forward does, and ends in -9999.
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
    pub(super) fn in_year(&self, year: i16, month: i8, day: i8) -> Option<Date> {
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

    /// Keeps only those of the listed years.
    pub(super) fn retain_years(&mut self, mut keep: impl FnMut(&Days, i16) -> bool) {
        if let Some(years) = self.years.take() {
            let kept = years.iter().copied().filter(|it| keep(self, *it));
            self.years = Some(kept.collect());
        }
    }

    /// Whether years are listed, and none is left.
    pub(super) fn has_no_year(&self) -> bool {
        self.years.as_ref().is_some_and(|it| it.is_empty())
    }
}
