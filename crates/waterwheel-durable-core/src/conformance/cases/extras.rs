//! Tags, and the retries of single timers.

use std::slice::from_ref;

use crate::store::{Extras, Handle, Id, Level, Op, PageLimit, Row, RowCursor};

use crate::conformance::rows::{
    DISTANCES, MAIL, NOW, bucket, due, id, insert, keyed, moved, of, reschedule, row, second,
};
use crate::conformance::subject::{Done, Subject, same};

fn with(tag: Option<&str>, retries: Option<&[u8]>, row: Row) -> Row {
    Row {
        extras: Extras::new(tag.map(Box::from), retries.map(Box::from)),
        ..row
    }
}

fn tagged(tag: &str, row: Row) -> Row {
    with(Some(tag), None, row)
}

/// The handles of the timers with a tag, read in pages of this size.
fn pages(it: &mut Subject<'_>, tag: &str, limit: usize) -> Result<Vec<Handle>, String> {
    let (mut all, mut after) = (Vec::new(), Id::NONE);
    loop {
        let page = it.tagged(tag, after, limit)?;
        let Some(last) = page.last() else {
            return Ok(all);
        };
        if page.len() > limit || last.id <= after {
            return Err(format!("the page of {limit} after {after} is {page:?}"));
        }
        after = last.id;
        all.extend(page);
    }
}

fn handles<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Vec<Handle> {
    rows.into_iter().map(Row::handle).collect()
}

pub(super) fn a_timer_keeps_its_extras(it: &mut Subject<'_>) -> Done {
    let all: [(Option<&str>, Option<&[u8]>); 5] = [
        (None, None),
        (Some("order 17"), None),
        (None, Some(b"{}")),
        (Some(""), Some(&[])),
        (Some("größe @ \"17\"\n"), Some(&[0, 255])),
    ];
    for (count, (tag, retries)) in (1..).zip(all) {
        let first = with(tag, retries, keyed(&[7], row(count, NOW)));
        it.inserts([&first])?;
        it.has(from_ref(&first))?;
        for distance in DISTANCES {
            let at = NOW + distance;
            it.commit(&[reschedule(&first, at)])?;
            same("a timer", it.get(&first)?, Some(moved(&first, at)))?;
        }
        // Through all levels.
        let far = NOW + DISTANCES[4];
        let (mut at, cascaded) = (bucket(far), moved(&first, far));
        while at.level != Level::Second {
            let begins = due(at.cascades_at().as_millis());
            it.cascade(at, begins, 10)?;
            at = at.finer(cascaded.due, begins);
        }
        it.has(from_ref(&cascaded))?;
        let later = cascaded.due.as_millis() + 5;
        it.commit(&[Op::Retry(cascaded.clone(), due(later), second(later))])?;
        let failed = Row {
            failures: 1,
            ..moved(&first, later)
        };
        it.has(from_ref(&failed))?;
        let (at, error) = (due(later), "no".into());
        it.commit(&[Op::Bury {
            row: failed.clone(),
            at,
            error,
        }])?;
        let dead: Vec<_> = it.dead()?.into_iter().map(|it| it.row).collect();
        same("the dead letters", dead, vec![failed])?;
        it.commit(&[Op::Redrive(first.id, due(later), second(later))])?;
        let redriven = Row {
            key: None,
            ..moved(&first, later)
        };
        it.has(&[redriven])?;
        it.commit(&[Op::Cancel(first.handle())])?;
    }
    it.is_empty()
}

pub(super) fn extras_count_as_bytes(it: &mut Subject<'_>) -> Done {
    let minute = Level::Minute.bucket(due(NOW));
    let at = minute.start().as_millis();
    let wide = |count| with(Some(&"ü".repeat(20)), Some(&[7; 60]), row(count, at));
    let rows: Vec<_> = (1..7).map(wide).collect();
    let steps = rows.iter().map(|row| Op::Insert(row.clone(), minute));
    it.commit(&steps.collect::<Vec<_>>())?;
    let limit = PageLimit {
        rows: 100,
        bytes: 2 * rows[0].bytes(),
    };
    for moved in [2, 4, 6] {
        let page = it.cascade_of(minute, minute.cascades_at(), limit)?;
        same("whether it is empty", page.is_empty, moved == 6)?;
        it.has(&rows[..moved])?;
    }
    let loaded = it.load(MAIL, RowCursor::START, i64::MAX, limit)?;
    same("the rows of a page", &loaded[..], &rows[..2])
}

pub(super) fn timers_are_found_by_their_tag(it: &mut Subject<'_>) -> Done {
    let mut rows = Vec::new();
    for count in 1..25 {
        let distance = DISTANCES[count as usize % DISTANCES.len()];
        let handler = ["mail", "shop/close"][count as usize % 2];
        let tag = ["order 17", "order 18", "order"][count as usize % 3];
        rows.push(tagged(tag, of(handler, row(count, NOW + distance))));
    }
    it.commit(&rows.iter().map(insert).collect::<Vec<_>>())?;
    it.commit(&[insert(&row(99, NOW))])?;
    let (mine, others): (Vec<Row>, Vec<Row>) = rows
        .into_iter()
        .partition(|row| row.tag() == Some("order 17"));
    for limit in [1, 3, 8, 100] {
        same(
            "the timers with a tag",
            pages(it, "order 17", limit)?,
            handles(&mine),
        )?;
    }
    same("the timers with no tag", pages(it, "", 9)?, Vec::new())?;
    same(
        "the first page",
        it.tagged("order 17", Id::NONE, 0)?,
        Vec::new(),
    )?;
    let after = it.tagged("order 17", id(9), 100)?;
    same("those after an id", after, handles(&mine[3..]))?;

    // Moved, settled, cancelled, given up, and redriven.
    let first = &mine[0];
    it.commit(&[reschedule(first, NOW + DISTANCES[1])])?;
    same("a moved timer", pages(it, "order 17", 100)?, handles(&mine))?;
    it.commit(&[reschedule(first, NOW)])?;
    let buried = moved(first, NOW);
    let (at, error) = (due(NOW), "no".into());
    it.commit(&[Op::Bury {
        row: buried,
        at,
        error,
    }])?;
    it.commit(&[Op::Cancel(mine[1].handle())])?;
    it.commit(&[reschedule(&mine[2], NOW), reschedule(&mine[3], NOW)])?;
    it.commit(&[
        Op::Settle(moved(&mine[2], NOW)),
        Op::Archive(moved(&mine[3], NOW), due(NOW)),
    ])?;
    same(
        "those that are left",
        pages(it, "order 17", 3)?,
        handles(&mine[4..]),
    )?;
    it.commit(&[Op::Redrive(first.id, due(NOW), second(NOW))])?;
    let left = handles([first].into_iter().chain(&mine[4..]));
    same("with the redriven one", pages(it, "order 17", 3)?, left)?;

    // Without having moved.
    let near: Vec<_> = (51..53)
        .map(|count| tagged("near", row(count, NOW)))
        .collect();
    it.inserts(&near)?;
    same("two near timers", pages(it, "near", 9)?, handles(&near))?;
    it.commit(&[
        Op::Settle(near[0].clone()),
        Op::Archive(near[1].clone(), due(NOW)),
    ])?;
    same("no near timer", pages(it, "near", 9)?, Vec::new())?;
    let untouched = others.iter().filter(|row| row.tag() == Some("order"));
    same("the others", pages(it, "order", 100)?, handles(untouched))
}
