//! Daylight saving time: maps wall-clock times to instants when the clock of a zone is put forward or back.
//!
//! |  | fixed times | wildcards and steps |
//! |---|---|---|
//! | a time in a gap | the first instant after it | none |
//! | a time in an overlap | the first half's | both |
//!
//! A fixed time runs when the wall clock first reaches or passes it. So the instants of fixed times follow the order of their wall-clock
//! times, and several in one gap are one instant: a search needs no more than the next wall-clock time, for lists and ranges too.
//!
//! Wildcards follow the wall clock, which runs through an overlap twice. From within the first half, a search goes to the end of
//! that half, and then on from the beginning of the second. A search back does so the other way round.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::pattern::Pattern;

/// The maximum number of consecutive gaps that a search for wildcards skips. Zones put their clocks forward once a year, and change their
/// rules more often than every 40 years, so a schedule with this many times in gaps has no others: `*/30 2 8-14 3 +SUN` in New York.
const GAPS: usize = 40;

/// The first instant of a schedule after `after`.
pub(super) fn next_after(
    pattern: &Pattern,
    is_fixed: bool,
    zone: &TimeZone,
    after: Timestamp,
) -> Option<Timestamp> {
    let wall = zone.to_datetime(after);
    let mut next = match Overlap::at(zone, wall) {
        // Fixed times ran in the first half.
        Some(overlap) if is_fixed && overlap.change <= after => pattern.at_or_after(overlap.end),
        // The rest of the first half comes before the second.
        Some(overlap) if !is_fixed && after < overlap.change => pattern
            .after(wall)
            .filter(|next| *next < overlap.end)
            .or_else(|| pattern.at_or_after(overlap.start)),
        _ => pattern.after(wall),
    };
    for _ in 0..GAPS {
        let wall = next?;
        let instant = match Instants::of(zone, wall)? {
            Instants::One(instant) => instant,
            Instants::Two(first, _) if first > after => first,
            // A wildcard: the search began in the second half, or at its start.
            Instants::Two(_, second) => second,
            Instants::Gap { change, .. } if is_fixed => change,
            Instants::Gap { end, .. } => {
                next = pattern.at_or_after(end);
                continue;
            }
        };
        // Always true, unless a zone has two changes within hours.
        if instant > after {
            return Some(instant);
        }
        next = pattern.after(wall);
    }
    None
}

/// The last instant of a schedule before `before`.
pub(super) fn previous_before(
    pattern: &Pattern,
    is_fixed: bool,
    zone: &TimeZone,
    before: Timestamp,
) -> Option<Timestamp> {
    // At the end of a gap, the wall clock just before shows the start of the gap.
    let just_before = before.checked_sub(Duration::from_nanos(1)).ok()?;
    let wall = zone.to_datetime(just_before);
    let mut previous = match Overlap::at(zone, wall) {
        Some(overlap) if overlap.change <= just_before => {
            // The first half, to its end, comes before this part of the second. Fixed times ran in the first half only.
            let second = pattern.at_or_before(wall);
            second
                .filter(|previous| !is_fixed && *previous >= overlap.start)
                .or_else(|| pattern.before(overlap.end))
        }
        _ => pattern.at_or_before(wall),
    };
    for _ in 0..GAPS {
        let wall = previous?;
        let instant = match Instants::of(zone, wall)? {
            Instants::One(instant) => instant,
            Instants::Two(_, second) if !is_fixed && second < before => second,
            Instants::Two(first, _) => first,
            Instants::Gap { change, .. } if is_fixed => change,
            Instants::Gap { start, .. } => {
                previous = pattern.before(start);
                continue;
            }
        };
        if instant < before {
            return Some(instant);
        }
        previous = pattern.before(wall);
    }
    None
}

/// The instants at which the clock shows a wall-clock time.
enum Instants {
    One(Timestamp),
    /// The time is in an overlap.
    Two(Timestamp, Timestamp),
    /// The time is in a gap, from `start` to `end` by the wall clock. The clock is put forward at the instant `change`.
    Gap {
        change: Timestamp,
        start: DateTime,
        end: DateTime,
    },
}

impl Instants {
    fn of(zone: &TimeZone, wall: DateTime) -> Option<Instants> {
        let instant = |offset: Offset| offset.to_timestamp(wall).ok();
        Some(match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => Instants::One(instant(offset)?),
            AmbiguousOffset::Fold { before, after } => {
                Instants::Two(instant(before)?, instant(after)?)
            }
            AmbiguousOffset::Gap { before, after } => {
                let change = change_to(zone, after, instant(after)?)?;
                Instants::Gap {
                    change,
                    start: before.to_datetime(change),
                    end: after.to_datetime(change),
                }
            }
        })
    }
}

/// Wall-clock times that occur twice.
struct Overlap {
    /// The instant at which the clock is put back.
    change: Timestamp,
    /// The time that the clock is put back to.
    start: DateTime,
    /// The time that it would have shown.
    end: DateTime,
}

impl Overlap {
    /// The overlap that a wall-clock time is in.
    fn at(zone: &TimeZone, wall: DateTime) -> Option<Overlap> {
        let AmbiguousOffset::Fold { before, after } = zone.to_ambiguous_timestamp(wall).offset()
        else {
            return None;
        };
        let change = change_to(zone, after, before.to_timestamp(wall).ok()?)?;
        Some(Overlap {
            change,
            start: after.to_datetime(change),
            end: before.to_datetime(change),
        })
    }
}

/// The first change to `offset` after `from`. `from` is the time in a gap by the offset after it, or the time in an overlap by the offset
/// before it; both are instants before the change. The offset is compared because some changes affect only the abbreviation of a zone.
fn change_to(zone: &TimeZone, offset: Offset, from: Timestamp) -> Option<Timestamp> {
    let mut changes = zone.following(from);
    let change = changes.find(|it| it.offset() == offset)?;
    Some(change.timestamp())
}
