//! Which rows exist, and in which order.

use crate::store::{Level, PageLimit, PendingCursor, Row, RowCursor};

use crate::conformance::rows::{DISTANCES, MAIL, NOW, bucket, due, insert, insert_second, of, row};
use crate::conformance::subject::{Done, Subject, same};

pub(super) fn an_empty_store_has_nothing(it: &mut Subject<'_>) -> Done {
    it.is_empty()?;
    same("the handlers", it.handlers()?, Vec::new())?;
    same("the dead letters", it.dead()?, Vec::new())?;
    same("the rows", it.seconds("unknown")?, Vec::new())?;
    same("the first second", it.first_second(i64::MIN)?, None)
}

pub(super) fn rows_load_as_they_were_inserted(it: &mut Subject<'_>) -> Done {
    let mut rows: Vec<_> = (1..50).map(|count| row(count, NOW + 100)).collect();
    rows[3].failures = 7;
    rows[4].key = Some(b"key".as_slice().into());
    it.inserts(&rows)?;
    it.has(&rows)
}

pub(super) fn rows_load_in_order_of_their_cursors(it: &mut Subject<'_>) -> Done {
    let mut rows: Vec<_> = (1..200_u64)
        .map(|count| row(count * 7919 % 200, NOW + (count as i64 * 104_729 % 9_000)))
        .collect();
    for part in rows.chunks(37) {
        it.inserts(part)?;
    }
    rows.sort_by_key(|row| (row.due.second(), row.id));
    it.has(&rows)
}

pub(super) fn a_load_begins_after_a_position(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..9).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    for (at, first) in rows.iter().enumerate() {
        let loaded = it.load(MAIL, first.cursor(), i64::MAX, PageLimit::rows(100))?;
        same("the rows after one of them", &loaded[..], &rows[at + 1..])?;
    }
    let before = RowCursor::before(rows[0].due.second());
    let loaded = it.load(MAIL, before, i64::MAX, PageLimit::rows(100))?;
    same("the rows of a second", loaded, rows)?;
    let after = RowCursor::before(due(NOW).second() + 1);
    let loaded = it.load(MAIL, after, i64::MAX, PageLimit::rows(100))?;
    same("the rows after that second", loaded, Vec::new())
}

pub(super) fn a_load_ends_before_a_second(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..6)
        .map(|count| row(count, count as i64 * 1_000))
        .collect();
    it.inserts(&rows)?;
    for second in 0..8_usize {
        let loaded = it.load(MAIL, RowCursor::START, second as i64, PageLimit::rows(100))?;
        let expected = &rows[..second.saturating_sub(1).min(5)];
        same("the rows before a second", &loaded[..], expected)?;
    }
    let loaded = it.load(MAIL, RowCursor::before(4), 3, PageLimit::rows(100))?;
    same("the rows of a range that ends first", loaded, Vec::new())
}

pub(super) fn a_load_has_at_most_so_many_rows(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..9).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    for limit in [0, 1, 7, 8, 9, usize::MAX] {
        let loaded = it.load(MAIL, RowCursor::START, i64::MAX, PageLimit::rows(limit))?;
        same("the first rows", &loaded[..], &rows[..limit.min(8)])?;
    }
    Ok(())
}

pub(super) fn a_load_ends_with_the_row_that_fills_it(it: &mut Subject<'_>) -> Done {
    let sizes = [10, 0, 20, 5, 100_000, 1];
    let mut rows: Vec<_> = (1..).zip(sizes).map(|(count, _)| row(count, NOW)).collect();
    for (row, size) in rows.iter_mut().zip(sizes) {
        row.payload = vec![7; size].into();
    }
    // A key counts as well.
    rows[3].key = Some(b"nine more".as_slice().into());
    it.inserts(&rows)?;
    for (bytes, expected) in [
        (0, 1),
        (1, 1),
        (10, 1),
        (11, 3),
        (30, 3),
        (31, 4),
        (44, 4),
        (45, 5),
        (100_044, 5),
        (100_045, 6),
        (100_046, 6),
        (usize::MAX, 6),
    ] {
        let limit = PageLimit { rows: 100, bytes };
        let loaded = it.load(MAIL, RowCursor::START, i64::MAX, limit)?;
        same("the rows within the bytes", &loaded[..], &rows[..expected])?;
        let limit = PageLimit { rows: 2, bytes };
        let loaded = it.load(MAIL, RowCursor::START, i64::MAX, limit)?;
        same("two rows at most", &loaded[..], &rows[..expected.min(2)])?;
    }
    Ok(())
}

pub(super) fn pages_of_a_load_join(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..100)
        .map(|count| row(count, NOW + count as i64 / 9 * 1_000))
        .collect();
    it.inserts(&rows)?;
    let (mut all, mut after) = (Vec::new(), RowCursor::START);
    loop {
        let page = it.load(MAIL, after, i64::MAX, PageLimit::rows(10))?;
        let Some(last) = page.last() else {
            break;
        };
        if last.cursor() <= after {
            return Err("a page has rows that are not after the cursor".into());
        }
        after = last.cursor();
        all.extend(page);
    }
    same("the rows of all pages", all, rows)
}

pub(super) fn rows_of_coarser_buckets_do_not_load(it: &mut Subject<'_>) -> Done {
    let rows = [1, 2, 3].map(|at| row(at as u64, NOW + DISTANCES[at]));
    it.commit(&rows.each_ref().map(insert))?;
    it.has(&[])?;
    same("the first second", it.first_second(i64::MIN)?, None)
}

pub(super) fn handlers_load_apart(it: &mut Subject<'_>) -> Done {
    let handlers = ["a", "ab", "b"];
    let rows: Vec<_> = (1..31_usize)
        .map(|count| of(handlers[count % 3], row(count as u64, NOW)))
        .collect();
    it.inserts(&rows)?;
    for handler in handlers {
        let own = rows.iter().filter(|row| &*row.handler == handler);
        same(
            "a handler's rows",
            it.seconds(handler)?,
            own.cloned().collect(),
        )?;
    }
    Ok(())
}

pub(super) fn the_first_second_is_found(it: &mut Subject<'_>) -> Done {
    let seconds = [-5, 0, 17, 18, 1_000_000_000];
    let rows = seconds.map(|second| row((second + 10) as u64, second * 1_000 + 999));
    it.inserts(&rows)?;
    it.commit(&[insert_second(&of("other", row(9, 3_000)))])?;
    for from in [i64::MIN, -6, -5, -4, 0, 1, 17, 18, 19, 1_000_000_001] {
        let expected = seconds.into_iter().find(|second| *second >= from);
        same("the first second", it.first_second(from)?, expected)?;
    }
    Ok(())
}

pub(super) fn the_first_bucket_of_each_level_is_found(it: &mut Subject<'_>) -> Done {
    let mut rows: Vec<_> = (1..=20_u64)
        .flat_map(|count| {
            [(0, 600_000), (100, 4 * 3_600_000), (200, 3 * 86_400_000)].map(|(more, distance)| {
                row(count + more, NOW + distance + (20 - count as i64) * 60_000)
            })
        })
        .collect();
    let steps: Vec<_> = rows.iter().map(insert).collect();
    it.commit(&steps)?;
    while let Some(row) = rows.pop() {
        let bucket = bucket(row.due.as_millis());
        for level in Level::CASCADING {
            let buckets = rows.iter().chain([&row]);
            let buckets = buckets.map(|row| crate::conformance::rows::bucket(row.due.as_millis()));
            let expected = buckets.filter(|of| of.level == level).min();
            let expected = expected.map(|of| of.number);
            same("the first bucket", it.first_bucket(level)?, expected)?;
        }
        same(
            "its level is the finest",
            bucket.level == Level::Second,
            false,
        )?;
        it.cancels([&row])?;
    }
    it.is_empty()
}

pub(super) fn handlers_are_known_by_name(it: &mut Subject<'_>) -> Done {
    let rows = [("b", 600_000), ("a", 0), ("c", 3 * 86_400_000), ("a", 5)];
    for (count, (handler, distance)) in rows.into_iter().enumerate() {
        it.commit(&[insert(&of(handler, row(count as u64 + 1, NOW + distance)))])?;
    }
    let expected: Vec<_> = ["a", "b", "c"].map(String::from).into();
    same("the handlers", it.handlers()?, expected.clone())?;
    it.cancels(&[of("b", row(1, NOW + 600_000))])?;
    same("the handlers that have had a row", it.handlers()?, expected)
}

pub(super) fn rows_of_coarser_buckets_load_by_level(it: &mut Subject<'_>) -> Done {
    let mut rows = Vec::new();
    for (number, distance) in (0..).zip(DISTANCES) {
        for count in 1..20_u64 {
            let at = NOW + distance + (count as i64 * 7_919 % 20) * distance / 10;
            let mut row = row(number * 100 + count, at);
            if count % 3 == 0 {
                row = of("other", row);
            }
            rows.push(row);
        }
    }
    let steps: Vec<_> = rows.iter().map(insert).collect();
    it.commit(&steps)?;
    for level in Level::CASCADING {
        let mut of_level: Vec<Row> = rows.clone();
        of_level.retain(|row| bucket(row.due.as_millis()).level == level);
        of_level.sort_by_key(|row| (level.bucket(row.due), row.id));
        for limit in [1, 7, 1_000] {
            let mut loaded: Vec<Row> = Vec::new();
            loop {
                let after = match loaded.last() {
                    Some(row) => PendingCursor {
                        bucket: level.bucket(row.due),
                        id: row.id,
                    },
                    None => PendingCursor::after_in(level, None),
                };
                let page = it.load_level(after, PageLimit::rows(limit))?;
                if page.is_empty() || loaded.len() > rows.len() {
                    break;
                }
                same("whether a page is short enough", page.len() <= limit, true)?;
                loaded.extend(page);
            }
            same("the rows of a level", &loaded, &of_level)?;
        }
        let first = of_level.first().map_or(0, Row::bytes);
        let limit = PageLimit {
            rows: 100,
            bytes: first,
        };
        let page = it.load_level(PendingCursor::after_in(level, None), limit)?;
        same(
            "the row that fills the page",
            page.len(),
            of_level.len().min(1),
        )?;
    }
    Ok(())
}
