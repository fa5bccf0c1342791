//! Which instants a wall-clock time is, where a zone's clock is put forward or back.
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
//! that half, and then on from the beginning of the second.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::pattern::Pattern;

/// How many gaps in a row a search of wildcards steps over. Zones put their clocks forward once a year, by rules that have stood
/// for shorter than that; a schedule that falls into so many gaps has no other times: `*/30 2 8-14 3 +SUN` in New York.
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
        // Its fixed times came in the first half.
        Some(overlap) if is_fixed && overlap.change <= after => pattern.at_or_after(overlap.end),
        // What is left of the first half comes before the second.
        Some(overlap) if !is_fixed && after < overlap.change => pattern
            .after(wall)
            .filter(|next| *next < overlap.end)
            .or_else(|| pattern.at_or_after(overlap.start)),
        _ => pattern.after(wall),
    };
    for _ in 0..GAPS {
        let wall = next?;
        let instant = match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok()?,
            AmbiguousOffset::Fold {
                before,
                after: later,
            } => {
                let first = before.to_timestamp(wall).ok()?;
                if first > after {
                    first
                } else {
                    // A wildcard's: the search began in the second half, or at its beginning.
                    later.to_timestamp(wall).ok()?
                }
            }
            AmbiguousOffset::Gap { after: later, .. } => {
                let change = change_to(zone, later, later.to_timestamp(wall).ok()?)?;
                if !is_fixed {
                    next = pattern.at_or_after(later.to_datetime(change));
                    continue;
                }
                change
            }
        };
        // Always so, unless a zone was changed twice within hours.
        if instant > after {
            return Some(instant);
        }
        next = pattern.after(wall);
    }
    None
}

/// Wall-clock times that come twice.
struct Overlap {
    /// The instant at which the clock is put back.
    change: Timestamp,
    /// What the clock is put back to.
    start: DateTime,
    /// What it would have shown.
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

/// The first change to `offset` after `from`: of a time in a gap by the offset after it, of one in an overlap by the offset before it,
/// both of which are instants before the change. A zone also has changes of its abbreviation alone.
fn change_to(zone: &TimeZone, offset: Offset, from: Timestamp) -> Option<Timestamp> {
    let mut changes = zone.following(from);
    let change = changes.find(|it| it.offset() == offset)?;
    Some(change.timestamp())
}
