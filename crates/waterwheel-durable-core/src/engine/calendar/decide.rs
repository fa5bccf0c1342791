//! Which occurrences are filed now, and when is the calendar decided again?

use crate::store::Due;

use super::plan::{Cursor, MISSED_AFTER, Misfire, Occurrences, Plan};

/// The action that a calendar needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The occurrences to file, in order. None is in the future.
    pub occurrences: Vec<Due>,
    /// The cursor after filing them. If it has changed, it is written atomically with the occurrences.
    pub cursor: Cursor,
    /// When to decide the calendar again: at once if more occurrences have come than are filed at a time.
    pub wakes_at: Option<Due>,
}

/// Decides what to do at this time, and files at most `limit` occurrences.
///
/// Occurrences after the cursor and up to the present have come. If none of them is [late](MISSED_AFTER), all are filed; otherwise the [`Misfire`] decides. If
/// more are to be filed than `limit` allows, the first ones are filed now and the others next time.
///
/// Asks the calendar at most about 100 times, plus twice for each occurrence that it files or, with [`Misfire::CatchUpTo`], may file, however many have come.
#[must_use]
pub fn decide(plan: &Plan, cursor: Cursor, now: Due, limit: usize) -> Decision {
    let of = &*plan.occurrences;
    let mut cursor = cursor.as_of(now, of);
    let first = of.next_after(cursor.at).filter(|first| *first <= now);
    let mut occurrences = Vec::new();
    if let Some(first) = first {
        let missed = Due::from_millis(now.as_millis().saturating_sub(MISSED_AFTER + 1));
        // Everything up to here that is not filed is passed over.
        let mut passed = cursor.at;
        occurrences = match plan.misfire {
            _ if first > missed => first_after(plan, cursor.at, now, limit),
            Misfire::Once => last(of, cursor.at, now, 1),
            Misfire::CatchUpTo(count) => last(of, cursor.at, now, count as usize),
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

// Finds the last occurrences, however many there were: a calendar that fires each second has 31 million in a year.
//
// Occurrences can only be asked for forwards. But one question tells whether there is one between a time and the present, and the answer is "yes" exactly for
// times before the last one. So a binary search finds the last one: about 100 questions in the worst case, and 2 if its distance from the following occurrence
// equals the previous distance, as is usual.

/// The last `limit` occurrences after one time and up to another, in order.
fn last(of: &dyn Occurrences, after: Due, until: Due, limit: usize) -> Vec<Due> {
    let mut found = Vec::new();
    let mut before = until.as_millis().saturating_add(1);
    let mut distance = 1;
    while found.len() < limit
        && let Some(last) = last_before(of, after.as_millis(), before, distance)
    {
        found.push(Due::from_millis(last));
        (distance, before) = (before - last, last);
    }
    found.reverse();
    found
}

/// The last occurrence after one time and before another. `distance` is a guess of how far before the latter it lies.
fn last_before(of: &dyn Occurrences, after: i64, before: i64, distance: i64) -> Option<i64> {
    let next = |from: i64| {
        let next = of.next_after(Due::from_millis(from))?.as_millis();
        (from < next && next < before).then_some(next)
    };
    // No occurrence lies after this time.
    let mut none = before;
    let mut width = distance.max(1);
    let mut last = loop {
        let from = before.saturating_sub(width).saturating_sub(1).max(after);
        if let Some(found) = next(from) {
            break found;
        }
        if from == after {
            return None;
        }
        none = from;
        width = width.saturating_mul(2);
    };
    while let Some(later) = next(last) {
        let middle = later + (none - later) / 2;
        match next(middle) {
            Some(found) => last = found,
            None => {
                none = middle;
                last = later;
            }
        }
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::calendar::tests::{Listed, due, dues};

    #[test]
    fn the_last_occurrences_are_found_in_order() {
        let of = Listed::new([5, 6, 7, 100, 1_000, 1_001, 5_000]);
        for (after, until, limit, found) in [
            (0, 9_999, 1, &[5_000][..]),
            (0, 5_000, 1, &[5_000]),
            (0, 4_999, 1, &[1_001]),
            (0, 4_999, 3, &[100, 1_000, 1_001]),
            (5, 4_999, 9, &[6, 7, 100, 1_000, 1_001]),
            (4, 7, 9, &[5, 6, 7]),
            (7, 99, 9, &[]),
            (100, 100, 9, &[]),
            (5_000, 9_999, 9, &[]),
            (9_999, 0, 9, &[]),
            (0, 9_999, 0, &[]),
        ] {
            let last = last(&of, due(after), due(until), limit);
            assert_eq!(last, dues(found), "{after} {until} {limit}");
        }
    }

    #[test]
    fn of_all_subsets_the_last_ones_are_found() {
        for subset in 0_u32..1 << 10 {
            let seconds: Vec<_> = (0..10_i64).filter(|it| subset >> it & 1 == 1).collect();
            let of = Listed::new(seconds.iter().map(|it| it * it * it));
            let all: Vec<_> = seconds.iter().map(|it| it * it * it).collect();
            for limit in 1..4 {
                let within = all.iter().filter(|it| **it > 1 && **it <= 600);
                let within: Vec<_> = within.copied().collect();
                let expected = &within[within.len().saturating_sub(limit)..];
                assert_eq!(last(&of, due(1), due(600), limit), dues(expected));
            }
        }
    }

    #[test]
    fn a_year_of_each_second_costs_as_little_as_a_minute() {
        let year = 365 * 86_400;
        let of = Listed::within(0..2 * year);
        assert_eq!(last(&of, due(5), due(year), 1), dues(&[year]));
        assert!(of.request() < 10, "{}", of.request());
        let thousand: Vec<_> = (year - 999..=year).collect();
        assert_eq!(last(&of, due(5), due(year), 1_000), dues(&thousand));
        assert!(of.request() < 2_100, "{}", of.request());
    }

    #[test]
    fn a_burst_long_ago_is_found_in_few_steps() {
        // Each second of an hour, and then nothing for a century.
        let of = Listed::within(1_000_000..1_003_600);
        let century = 100 * 365 * 86_400;
        assert_eq!(last(&of, due(0), due(century), 1), dues(&[1_003_599]));
        assert!(of.request() < 120, "{}", of.request());
    }
}
