//! Whether the extreme values of each range are kept.

use std::slice::from_ref;

use crate::store::{Bucket, Id, Level, Op, Outcome};

use crate::conformance::rows::{
    DISTANCES, MAIL, NOW, due, handle, insert, insert_second, keyed, of, row,
};
use crate::conformance::subject::{Done, Subject, same};

fn keeps_payload(it: &mut Subject<'_>, payload: &[u8]) -> Done {
    let mut rows = DISTANCES.map(|distance| row(distance as u64, NOW + distance));
    for row in &mut rows {
        row.payload = payload.into();
    }
    it.commit(&rows.each_ref().map(insert))?;
    let found = it.seconds(MAIL)?;
    same("the number of rows", found.len(), 1)?;
    same("the payload", &*found[0].payload == payload, true)?;
    for row in &rows {
        let to = Op::Reschedule(handle(row), due(NOW), Level::Second.bucket(due(NOW)));
        it.commit(&[to])?;
    }
    let found = it.seconds(MAIL)?;
    same("the number of moved rows", found.len(), rows.len())?;
    let are_whole = found.iter().all(|row| &*row.payload == payload);
    same("the moved payloads", are_whole, true)?;
    it.cancels(&rows)
}

pub(super) fn a_payload_may_have_any_byte_or_none_or_a_megabyte(it: &mut Subject<'_>) -> Done {
    let megabyte: Vec<_> = (0..1_u32 << 20).map(|at| (at % 251) as u8).collect();
    let any: Vec<_> = (0..=255).chain([0, 0]).collect();
    for payload in [&[][..], &any, &megabyte] {
        keeps_payload(it, payload)?;
    }
    Ok(())
}

pub(super) fn handlers_may_have_strange_names(it: &mut Subject<'_>) -> Done {
    let long = "long ".repeat(1_000);
    let names = [
        "",
        " ",
        "0",
        "a",
        "A",
        "a ",
        "it's; DROP TABLE timers --",
        "%_\"`",
        "水车",
        "é",
        "e\u{301}",
        &long,
    ];
    let mut count = 0;
    for name in names {
        for distance in DISTANCES {
            count += 1;
            let row = of(name, keyed(b"key", row(count, NOW + distance)));
            let row = match distance == DISTANCES[1] {
                true => row,
                false => crate::store::Row { key: None, ..row },
            };
            it.does([(insert(&row), Outcome::Inserted)])?;
        }
    }
    let mut expected: Vec<_> = names.map(String::from).into();
    expected.sort();
    same("the handlers", it.handlers()?, expected)?;
    for (at, name) in (0..).zip(names) {
        let found = of(name, row(at * 5 + 1, NOW + DISTANCES[0]));
        same("the rows", it.seconds(name)?, vec![found])?;
        let later = of(name, row(at * 5 + 2, NOW + DISTANCES[1]));
        it.cancels([&later])?;
    }
    Ok(())
}

pub(super) fn due_times_before_1970_are_in_order(it: &mut Subject<'_>) -> Done {
    let times = [-86_400_001, -1_001, -1_000, -999, -1, 0, 1, 999, 1_000];
    let rows: Vec<_> = (1..).zip(times).map(|(count, at)| row(count, at)).collect();
    let steps: Vec<_> = rows.iter().rev().map(insert_second).collect();
    it.commit(&steps)?;
    it.has(&rows)?;
    same("the first second", it.first_second(-1)?, Some(-1))?;
    it.cancels(&rows)?;
    it.is_empty()
}

pub(super) fn due_times_may_be_as_far_as_they_go(it: &mut Subject<'_>) -> Done {
    for (count, at) in (1..).zip([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]) {
        for level in [
            Level::Second,
            Level::Minute,
            Level::Hour,
            Level::Day,
            Level::Month,
        ] {
            let row = row(count, at);
            let bucket = level.bucket(row.due);
            it.commit(&[Op::Insert(row.clone(), bucket)])?;
            let mut at = bucket;
            while at.level != Level::Second {
                let finer = at.finer(row.due, due(NOW));
                let page = it.cascade(at, due(NOW), 10)?;
                let expected: Vec<Bucket> = match finer.level {
                    Level::Second => Vec::new(),
                    _ => vec![finer],
                };
                same("the coarser buckets", page.buckets, expected)?;
                at = finer;
            }
            it.has(from_ref(&row))?;
            it.cancels([&row])?;
        }
    }
    it.is_empty()
}

pub(super) fn failures_may_be_many(it: &mut Subject<'_>) -> Done {
    let mut first = row(1, NOW);
    first.failures = u32::MAX - 1;
    it.inserts([&first])?;
    for _ in 0..2 {
        let row = it.seconds(MAIL)?.remove(0);
        let (due, bucket) = (row.due, Level::Second.bucket(row.due));
        it.commit(&[Op::Retry(row, due, bucket)])?;
    }
    let failures: Vec<_> = it.seconds(MAIL)?.iter().map(|row| row.failures).collect();
    same("the failures", failures, vec![u32::MAX])
}

pub(super) fn the_last_id_may_be_used(it: &mut Subject<'_>) -> Done {
    let ids = [
        Id::from_stored(1),
        Id::from_stored(Id::MAX.get() - 1),
        Id::MAX,
    ];
    for distance in DISTANCES {
        let rows = ids.map(|id| crate::store::Row {
            id,
            ..row(1, NOW + distance)
        });
        it.commit(&rows.each_ref().map(insert))?;
        it.cancels(&rows)?;
    }
    it.is_empty()
}
