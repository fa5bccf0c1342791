//! Which schedules never come, and which of their years: asked once, in `parse`, so that no search looks for what is not there.
//!
//! Whether a year has a day of the schedule depends on two things, whether it is a leap year and on which weekday it begins. The years
//! 2001 to 2028 have all fourteen kinds. So a schedule without a day in them has none in any year, and croner's own rule for a day
//! decides it: `30 2`, `31W` in short months and `29 2 +MON#2` need no rule of ours.

use std::ops::RangeInclusive;

use jiff::civil::Date;

use super::days::Days;

const ALL_KINDS: RangeInclusive<i16> = 2001..=2028;

/// Whether the days come at all. Listed years without such a day are struck out.
pub(super) fn comes(days: &mut Days) -> bool {
    let mut known = [None; 14];
    days.retain_years(|days, year| {
        let found = &mut known[kind(year)];
        *found.get_or_insert_with(|| days.in_year(year, 1, 1).is_some())
    });
    !days.has_no_year()
        && ALL_KINDS
            .into_iter()
            .any(|it| days.in_year(it, 1, 1).is_some())
}

/// Of fourteen, the kind of a year.
fn kind(year: i16) -> usize {
    let start = Date::constant(year, 1, 1);
    let weekday = start.weekday().to_sunday_zero_offset().unsigned_abs();
    usize::from(weekday) + if start.in_leap_year() { 7 } else { 0 }
}
