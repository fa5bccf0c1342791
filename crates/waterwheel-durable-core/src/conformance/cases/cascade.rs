//! Where the rows of a coarser bucket go.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{Bucket, Due, Level, Op, PageLimit, Row};

use crate::conformance::rows::{MAIL, NOW, due, handle, insert, moved, of, reschedule, row};
use crate::conformance::subject::{Done, Page, Subject, same};

/// Rows spread over a bucket, of two handlers, not in the order of their due times.
fn spread(bucket: Bucket, count: u64) -> Vec<Row> {
    let part = bucket.level.millis() / count as i64;
    (0..count)
        .map(|at| {
            let nth = (at * 7919 % count) as i64;
            let due = bucket.start().as_millis() + nth * part + nth % part.min(1_000);
            of(["mail", "call"][at as usize % 2], row(at + 1, due))
        })
        .collect()
}

/// The expected reply to a cascade of these rows.
fn expected(bucket: Bucket, now: Due, rows: &[Row], is_empty: bool) -> Page {
    let (mut buckets, mut seconds) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let finer = bucket.finer(row.due, now);
        let first = match finer.level {
            Level::Second => seconds
                .entry(row.handler.to_string())
                .or_insert(finer.number),
            level => buckets.entry(level).or_insert(finer.number),
        };
        *first = finer.number.min(*first);
    }
    Page {
        is_empty,
        buckets: buckets
            .into_iter()
            .map(|(level, number)| Bucket { level, number })
            .collect(),
        seconds: seconds.into_iter().collect(),
    }
}

/// Cascades a bucket page by page, then the buckets that its rows have moved to, down to the seconds. Each row arrives exactly once.
fn cascades(it: &mut Subject<'_>, bucket: Bucket, now: Due, rows: Vec<Row>, limit: usize) -> Done {
    let steps: Vec<_> = rows
        .iter()
        .map(|row| Op::Insert(row.clone(), bucket))
        .collect();
    it.commit(&steps)?;
    let (mut left, mut finer) = (&rows[..], BTreeSet::new());
    loop {
        let (page, rest) = left.split_at(limit.min(left.len()));
        let got = it.cascade(bucket, now, limit)?;
        let expected = expected(bucket, now, page, rest.is_empty());
        same("a page", &got, &expected)?;
        finer.extend(page.iter().map(|row| bucket.finer(row.due, now)));
        left = rest;
        if left.is_empty() {
            break;
        }
        let first = it.first_bucket(bucket.level)?;
        same("the bucket that has rows", first, Some(bucket.number))?;
    }
    finer.retain(|bucket| bucket.level != Level::Second);
    for level in Level::CASCADING {
        let first = finer.iter().find(|bucket| bucket.level == level);
        let first = first.map(|bucket| bucket.number);
        same("the first bucket", it.first_bucket(level)?, first)?;
    }
    while let Some(bucket) = finer.pop_last() {
        let own = |row: &&Row| bucket.level.bucket(row.due) == bucket;
        let now = bucket.cascades_at();
        finer.extend(
            rows.iter()
                .filter(own)
                .map(|row| bucket.finer(row.due, now)),
        );
        finer.retain(|bucket| bucket.level != Level::Second);
        it.cascade(bucket, now, 1_000)?;
    }
    for handler in ["mail", "call"] {
        let mut own: Vec<_> = rows.iter().filter(|row| &*row.handler == handler).collect();
        own.sort_by_key(|row| row.cursor());
        let found = it.seconds(handler)?;
        same("the rows", found.iter().collect::<Vec<_>>(), own)?;
    }
    it.cancels(&rows)?;
    it.is_empty()
}

pub(super) fn each_level_cascades_into_all_finer_ones(it: &mut Subject<'_>) -> Done {
    for (level, count, limit, late) in [
        (
            Level::Month,
            97,
            40,
            &[0, 1, 86_400_001, 12 * 3_600_000 + 1][..],
        ),
        (Level::Day, 97, 40, &[0, 1, 3_600_001, 12 * 3_600_000 + 1]),
        (Level::Hour, 60, 25, &[0, 1_800_000]),
        (Level::Minute, 40, 40, &[0]),
        // More rows than a store may move at a time.
        (Level::Minute, 400, 300, &[0]),
    ] {
        let bucket = level.bucket(due(NOW));
        for late in late {
            let now = due(bucket.cascades_at().as_millis() + late);
            cascades(it, bucket, now, spread(bucket, count), limit)?;
        }
    }
    Ok(())
}

pub(super) fn a_cascade_moves_the_first_rows(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(NOW));
    let at = minute.start().as_millis();
    let rows: Vec<_> = (1..10).rev().map(|count| row(count, at)).collect();
    let steps: Vec<_> = rows
        .iter()
        .map(|row| Op::Insert(row.clone(), minute))
        .collect();
    it.commit(&steps)?;
    for (limit, moved) in [(1, 1), (3, 4), (5, 9), (5, 9)] {
        let page = it.cascade(minute, minute.cascades_at(), limit)?;
        same("whether it is empty", page.is_empty, moved == 9)?;
        let found = it.seconds(MAIL)?.into_iter().map(|row| row.id);
        let first = (1..=moved)
            .map(crate::conformance::rows::id)
            .collect::<Vec<_>>();
        same("the rows that have moved", found.collect::<Vec<_>>(), first)?;
    }
    Ok(())
}

pub(super) fn a_cascade_ends_with_the_row_that_fills_it(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(NOW));
    let at = minute.start().as_millis();
    let sizes = [10, 0, 20, 5, 100_000, 1];
    let mut rows: Vec<_> = (1..).zip(sizes).map(|(count, _)| row(count, at)).collect();
    for (row, size) in rows.iter_mut().zip(sizes) {
        row.payload = vec![7; size].into();
    }
    // A key counts as well.
    rows[3].key = Some(b"nine more".as_slice().into());
    let steps: Vec<_> = rows
        .iter()
        .map(|row| Op::Insert(row.clone(), minute))
        .collect();
    it.commit(&steps)?;
    // The bytes of a page, and the number of rows moved after it.
    for (bytes, moved) in [(0, 1), (1, 3), (14, 4), (100_000, 5), (usize::MAX, 6)] {
        let limit = PageLimit { rows: 100, bytes };
        let page = it.cascade_of(minute, minute.cascades_at(), limit)?;
        same("whether it is empty", page.is_empty, moved == 6)?;
        let found = it.seconds(MAIL)?;
        same("the rows that have moved", &found[..], &rows[..moved])?;
    }
    it.cancels(&rows)?;
    it.is_empty()
}

pub(super) fn a_cascade_of_no_rows_moves_none(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(NOW));
    it.commit(&[Op::Insert(row(1, NOW), minute)])?;
    let got = it.cascade(minute, minute.cascades_at(), 0)?;
    same("the page", got, expected(minute, due(NOW), &[], false))?;
    it.has(&[])
}

pub(super) fn an_empty_bucket_cascades_to_nothing(it: &mut Subject<'_>) -> Done {
    for level in Level::CASCADING {
        let bucket = level.bucket(due(NOW));
        let got = it.cascade(bucket, bucket.cascades_at(), 10)?;
        same("the page", got, expected(bucket, due(NOW), &[], true))?;
    }
    it.is_empty()
}

pub(super) fn a_cascade_leaves_other_buckets(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(NOW));
    let others = [-60_000, 60_000].map(|off| row((off + 90_000) as u64, NOW + off));
    let [before, after] = others.each_ref().map(|row| {
        let bucket = Level::Minute.bucket(row.due);
        Op::Insert(row.clone(), bucket)
    });
    let same_number = Bucket {
        level: Level::Hour,
        number: minute.number,
    };
    let hour = row(5, same_number.start().as_millis());
    let steps = [
        before,
        after,
        Op::Insert(row(1, NOW), minute),
        Op::Insert(hour.clone(), same_number),
    ];
    it.commit(&steps)?;
    it.cascade(minute, minute.cascades_at(), 100)?;
    it.has(&[row(1, NOW)])?;
    it.cancels(&others)?;
    it.cancels([&hour, &row(1, NOW)])?;
    it.is_empty()
}

pub(super) fn a_cascade_names_the_first_second_of_each_handler(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(0));
    let rows = [("b", 9_000), ("a", 8_999), ("b", 7_001), ("a", 30_000)];
    for (count, (handler, at)) in (1..).zip(rows) {
        let row = of(handler, row(count, at));
        it.commit(&[Op::Insert(row, minute)])?;
    }
    let got = it.cascade(minute, minute.cascades_at(), 100)?;
    let seconds = vec![("a".to_string(), 8), ("b".to_string(), 7)];
    same("the first seconds", got.seconds, seconds)
}

pub(super) fn a_cascaded_timer_is_found_by_its_handle(it: &mut Subject<'_>) -> Done {
    let day = Level::Day.bucket(due(NOW + 3 * 86_400_000));
    let first = row(1, day.start().as_millis() + 5 * 3_600_000);
    it.commit(&[insert(&first)])?;
    it.cascade(day, day.cascades_at(), 10)?;
    let at = first.due.as_millis() + 9;
    it.commit(&[Op::Reschedule(
        handle(&first),
        due(at),
        Level::Hour.bucket(due(at)),
    )])?;
    let hour = Level::Hour.bucket(due(at));
    it.cascade(hour, hour.start(), 10)?;
    it.cascade(Level::Minute.bucket(due(at)), due(at), 10)?;
    it.cancels([&first])?;
    it.is_empty()
}

pub(super) fn a_moved_timer_cascades_as_such(it: &mut Subject<'_>) -> Done {
    let mut first = row(1, NOW);
    first.failures = 2;
    let at = NOW + 600_000;
    it.commit(&[insert(&first)])?;
    it.commit(&[reschedule(&first, at)])?;
    let minute = Level::Minute.bucket(due(at));
    it.cascade(minute, minute.cascades_at(), 10)?;
    it.has(&[moved(&first, at)])?;
    it.cancels([&first])?;
    it.is_empty()
}

pub(super) fn a_cascade_before_1970_goes_where_it_should(it: &mut Subject<'_>) -> Done {
    for (level, number) in [
        (Level::Day, -1),
        (Level::Day, 0),
        (Level::Day, -1_000),
        (Level::Month, -1),
    ] {
        let coarser = Bucket { level, number };
        let spread = spread(coarser, 97);
        cascades(it, coarser, coarser.cascades_at(), spread, 40)?;
    }
    let level = Level::Minute;
    let minute = Bucket { level, number: -1 };
    cascades(it, minute, minute.start(), spread(minute, 60), 60)
}

pub(super) fn a_late_cascade_goes_to_seconds(it: &mut Subject<'_>) -> Done {
    for level in Level::CASCADING {
        let bucket = level.bucket(due(NOW));
        let months_later = due(NOW + 60 * 86_400_000);
        cascades(it, bucket, months_later, spread(bucket, 50), 20)?;
    }
    Ok(())
}
