//! Which time of a calendar a job runs at next, and how many it missed.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::calendar::Schedule;
use crate::policy::Missed;

/// How many missed occurrences are counted, and looked at: each is a search.
const MOST: usize = 100;

/// The first occurrence after `now`.
pub(crate) fn first(schedule: &Schedule, now: SystemTime) -> Option<SystemTime> {
    Some(schedule.next_after(timestamp(now)?)?.into())
}

/// The occurrence that follows `last`, of which a run has ended, or which is still to run if `is_open`; at `now`. And how many were missed.
pub(super) fn next(
    schedule: &Schedule,
    missed: Missed,
    last: SystemTime,
    is_open: bool,
    now: SystemTime,
) -> Option<(SystemTime, u64)> {
    let (mut last, now) = (timestamp(last)?, timestamp(now)?);
    if is_open {
        // So that `last` itself is found.
        last = last.checked_sub(Duration::from_nanos(1)).ok()?;
    }
    let first = schedule.next_after(last)?;
    if first > now {
        return Some((first.into(), 0));
    }
    let late = || {
        schedule
            .upcoming(last)
            .take_while(|it| *it <= now)
            .take(MOST)
    };
    let taken = match missed {
        Missed::CatchUp => return Some((first.into(), 0)),
        Missed::Skip => 0,
        Missed::Once => 1,
        Missed::CatchUpTo(most) => usize::try_from(most).unwrap_or(MOST).min(MOST),
    };
    let count = late().count();
    let skipped = count.saturating_sub(taken);
    let next = match taken {
        0 => schedule.next_after(now)?,
        _ if count < MOST => late().nth(skipped)?,
        // There are more than were counted: of these, the latest.
        _ => latest(schedule, taken, last, now)?,
    };
    Some((next.into(), skipped as u64))
}

/// The earliest of the last `wanted` occurrences up to `now`: from ever longer before now on, until there are as many.
fn latest(
    schedule: &Schedule,
    wanted: usize,
    last: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut before = Duration::from_secs(1);
    loop {
        let from = now.checked_sub(before).ok().filter(|from| *from > last);
        let from = from.unwrap_or(last);
        let found: Vec<_> = schedule
            .upcoming(from)
            .take_while(|it| *it <= now)
            .collect();
        if found.len() >= wanted {
            return Some(found[found.len() - wanted]);
        }
        if from == last {
            return found.first().copied();
        }
        before *= 2;
    }
}

fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}
