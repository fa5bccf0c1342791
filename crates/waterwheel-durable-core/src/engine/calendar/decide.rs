//! Which occurrences are filed now, and when is to be looked again?

use crate::store::Due;

use super::plan::{Cursor, MISSED_AFTER, Misfire, Plan};
use super::search;

/// What is to be done for a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The occurrences to file, in order. They are not later than the present.
    pub occurrences: Vec<Due>,
    /// How far the calendar has come with that. If it differs from the one before, it is to be written, in one step with the occurrences.
    pub cursor: Cursor,
    /// When to look at the calendar again. At once, if there were more occurrences than are filed at a time.
    pub wakes_at: Option<Due>,
}

/// Decides by the present, and files so many occurrences at most.
///
/// Occurrences after the cursor and up to the present have come. None of them is [late](MISSED_AFTER): all are filed. Else it is for the [`Misfire`] to say. If
/// more are to be filed than may be at a time, the first of them are, and the others the next time.
///
/// It asks the calendar some 100 times at most, and 2 times more for each occurrence that it files or, by [`Misfire::All`], may file; however many have come.
#[must_use]
pub fn decide(plan: &Plan, cursor: Cursor, now: Due, limit: usize) -> Decision {
    let of = &*plan.occurrences;
    let mut cursor = cursor.as_of(now, of);
    let first = of.next_after(cursor.at).filter(|first| *first <= now);
    let mut occurrences = Vec::new();
    if let Some(first) = first {
        let missed = Due::from_millis(now.as_millis().saturating_sub(MISSED_AFTER + 1));
        // Up to here all is passed over that is not filed.
        let mut passed = cursor.at;
        occurrences = match plan.misfire {
            _ if first > missed => first_after(plan, cursor.at, now, limit),
            Misfire::Once => search::last(of, cursor.at, now, 1),
            Misfire::All(count) => search::last(of, cursor.at, now, count as usize),
            Misfire::Skip => {
                passed = missed;
                first_after(plan, missed, now, limit)
            }
        };
        occurrences.truncate(limit);
        cursor.last = occurrences.last().copied().or(cursor.last);
        let at = occurrences.last().copied().unwrap_or(passed);
        cursor = cursor.moved(at, of);
    }
    Decision {
        wakes_at: of.next_after(cursor.at),
        occurrences,
        cursor,
    }
}

fn first_after(plan: &Plan, after: Due, until: Due, limit: usize) -> Vec<Due> {
    let next = |after: &Due| plan.occurrences.next_after(*after);
    let all = std::iter::successors(next(&after), next);
    all.take_while(|it| *it <= until).take(limit).collect()
}
