//! The archive of delivered timers, and its expiry.

use crate::store::{ArchiveCursor, Archived, Erased, Op, Outcome, Row};

use crate::conformance::rows::{
    MAIL, NOW, due, handle, insert_second, keyed, moved, of, reschedule, row, second,
};
use crate::conformance::subject::{Done, Subject, same};

const DAY: i64 = 86_400_000;

/// The day of `NOW`.
const TODAY: i64 = NOW / DAY;

fn archive(row: &Row, at: i64) -> Op {
    Op::Archive(row.clone(), due(at))
}

fn expire(before: i64, limit: usize) -> Op {
    Op::Expire {
        handler: MAIL.into(),
        before,
        limit,
    }
}

/// All archived records of a handler, page by page.
fn archived(it: &mut Subject<'_>, handler: &str, page: usize) -> Result<Vec<Archived>, String> {
    let (mut all, mut after) = (Vec::new(), ArchiveCursor::START);
    loop {
        let store = it.store()?;
        let found = store.archived(handler, after, i64::MAX, page);
        let found = found.map_err(|error| error.to_string())?;
        let Some((last, _)) = found.last() else {
            return Ok(all);
        };
        if !found.iter().map(|(cursor, _)| *cursor).is_sorted() || found[0].0 <= after {
            return Err(format!("not in order after {after:?}: {found:?}"));
        }
        after = *last;
        all.extend(found.into_iter().map(|(_, archived)| archived));
    }
}

fn first_day(it: &mut Subject<'_>, handler: &str) -> Result<Option<i64>, String> {
    let first = it.store()?.first_archived(handler);
    first.map_err(|error| error.to_string())
}

pub(super) fn an_archived_row_leaves_a_record(it: &mut Subject<'_>) -> Done {
    let mut rows = [row(1, NOW), keyed(b"", row(2, NOW + 5)), row(3, NOW)];
    rows[2].failures = 7;
    it.inserts(&rows)?;
    // A timer that has moved, so that its note is deleted as well.
    it.commit(&[reschedule(&rows[0], NOW + 2_000)])?;
    rows[0] = moved(&rows[0], NOW + 2_000);
    let steps = rows
        .each_ref()
        .map(|row| (archive(row, NOW + 9_000), Outcome::Done));
    it.does(steps)?;
    let expected = rows.iter().map(|row| row.archived(due(NOW + 9_000)));
    same("the archive", archived(it, MAIL, 9)?, expected.collect())?;
    same("the first day", first_day(it, MAIL)?, Some(TODAY))?;
    for row in &rows {
        it.does([(Op::Cancel(handle(row)), Outcome::Cancelled(false))])?;
    }
    it.is_empty()
}

pub(super) fn an_archived_key_stays_taken(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[archive(&first, NOW)])?;
    let second = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&second), Outcome::Exists(handle(&first)))])?;
    it.does([(expire(TODAY, 10), Outcome::Expired { is_empty: true })])?;
    it.does([(insert_second(&second), Outcome::Exists(handle(&first)))])?;
    it.does([(expire(TODAY + 1, 10), Outcome::Expired { is_empty: true })])?;
    it.does([(insert_second(&second), Outcome::Inserted)])
}

pub(super) fn an_archive_of_a_gone_row_keeps_nothing(it: &mut Subject<'_>) -> Done {
    let first = row(1, NOW);
    it.inserts([&first])?;
    it.commit(&[reschedule(&first, NOW + 60_000)])?;
    it.does([(archive(&first, NOW), Outcome::Done)])?;
    it.does([(archive(&row(2, NOW), NOW), Outcome::Done)])?;
    same("the archive", archived(it, MAIL, 9)?, Vec::new())?;
    same("the first day", first_day(it, MAIL)?, None)?;
    it.cancels([&first])
}

pub(super) fn what_is_archived_is_listed_in_pages(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..30)
        .map(|count| match count % 3 {
            0 => keyed(&[count as u8; 40], row(count, NOW)),
            _ => row(count, NOW),
        })
        .collect();
    it.inserts(&rows)?;
    let mut expected = Vec::new();
    for (commit, rows) in (0..).zip(rows.chunks(7)) {
        // Two days in one commit, and days that go backwards.
        let at = |index: usize| NOW + (index as i64 % 2 - commit % 2) * DAY;
        let steps = rows.iter().enumerate();
        let steps = steps.map(|(index, row)| archive(row, at(index)));
        it.commit(&steps.collect::<Vec<_>>())?;
        expected.extend(
            rows.iter()
                .enumerate()
                .map(|(index, row)| row.archived(due(at(index)))),
        );
    }
    // In order of their days, and within a day in the order of archiving.
    expected.sort_by_key(|archived| archived.at.day());
    for page in [1, 2, 5, 100] {
        same("the archive", archived(it, MAIL, page)?, expected.clone())?;
    }
    let store = it.store()?;
    let day = store.archived(MAIL, ArchiveCursor::before(TODAY), TODAY + 1, 100);
    let day: Vec<_> = day
        .map_err(|it| it.to_string())?
        .into_iter()
        .map(|it| it.1)
        .collect();
    let expected: Vec<_> = expected
        .into_iter()
        .filter(|it| it.at.day() == TODAY)
        .collect();
    same("a day", day, expected)
}

pub(super) fn what_is_archived_is_of_one_handler(it: &mut Subject<'_>) -> Done {
    let rows = [row(1, NOW), of("a", row(2, NOW)), of("mailer", row(3, NOW))];
    it.inserts(&rows)?;
    it.commit(&rows.each_ref().map(|row| archive(row, NOW)))?;
    for row in &rows {
        let expected = vec![row.archived(due(NOW))];
        same("the archive", archived(it, &row.handler, 9)?, expected)?;
    }
    same("the archive", archived(it, "none", 9)?, Vec::new())?;
    it.commit(&[expire(i64::MAX, 100)])?;
    same("the archive", archived(it, MAIL, 9)?, Vec::new())?;
    same("the first day", first_day(it, "a")?, Some(TODAY))?;
    let none = Op::Expire {
        handler: "none".into(),
        before: i64::MAX,
        limit: 9,
    };
    it.does([(none, Outcome::Expired { is_empty: true })])
}

pub(super) fn what_has_expired_is_gone_with_its_keys(it: &mut Subject<'_>) -> Done {
    let days = [TODAY - 2, TODAY - 1, TODAY];
    for (count, day) in (1..).zip(days) {
        let row = keyed(&[count as u8], row(count, NOW));
        it.inserts([&row])?;
        it.commit(&[archive(&row, day * DAY)])?;
    }
    for (count, day) in (1..).zip(days) {
        same("the first day", first_day(it, MAIL)?, Some(day))?;
        it.does([(expire(day, 100), Outcome::Expired { is_empty: true })])?;
        let again = keyed(&[count as u8], row(10 + count, NOW));
        let before = Outcome::Exists(handle(&row(count, NOW)));
        it.does([(insert_second(&again), before)])?;
        it.does([(expire(day + 1, 100), Outcome::Expired { is_empty: true })])?;
        it.does([(insert_second(&again), Outcome::Inserted)])?;
    }
    same("the archive", archived(it, MAIL, 9)?, Vec::new())
}

pub(super) fn what_expires_is_some_at_a_time(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..=40).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    for rows in rows.chunks(4) {
        it.commit(&rows.iter().map(|row| archive(row, NOW)).collect::<Vec<_>>())?;
    }
    let mut left = rows.len();
    for _ in 0..20 {
        let outcome = it.commit(&[expire(TODAY + 1, 10)])?;
        let kept = archived(it, MAIL, 100)?.len();
        let gone = left - kept;
        // As many as asked for, and up to one more commit's worth.
        if !(gone == left || (10..=14).contains(&gone)) {
            return Err(format!("{gone} of {left} have expired"));
        }
        same(
            "the outcome",
            outcome,
            vec![Outcome::Expired {
                is_empty: kept == 0,
            }],
        )?;
        left = kept;
        if left == 0 {
            return Ok(());
        }
    }
    Err(format!("{left} are left"))
}

pub(super) fn a_key_of_another_timer_does_not_expire(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[archive(&first, NOW - 3 * DAY)])?;
    it.commit(&[expire(TODAY, 9)])?;
    // Archived twice, as after a lost answer: the second is another timer with the same key.
    let second = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&second), Outcome::Inserted)])?;
    it.commit(&[archive(&first, NOW - 3 * DAY)])?;
    it.does([(expire(TODAY, 9), Outcome::Expired { is_empty: true })])?;
    let third = keyed(b"key", row(3, NOW));
    it.does([(insert_second(&third), Outcome::Exists(handle(&second)))])?;
    it.commit(&[Op::Settle(second)])?;
    it.does([(
        Op::Insert(third.clone(), second_of(&third)),
        Outcome::Inserted,
    )])
}

fn second_of(row: &Row) -> crate::store::Bucket {
    second(row.due.as_millis())
}

pub(super) fn an_erased_key_leaves_its_record_and_becomes_free(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..7)
        .map(|count| keyed(&[count as u8], row(count, NOW)))
        .collect();
    it.inserts(&rows)?;
    let other = of("other", keyed(&[3], row(9, NOW)));
    it.inserts([&other])?;
    let erase = |key: &[u8]| Op::Erase {
        handler: MAIL.into(),
        key: key.into(),
    };
    let erased = |is_archived| {
        Outcome::Erased(Erased {
            dead_letters: 0,
            is_archived,
        })
    };
    // A pending timer stays, and so does its key.
    it.does([(erase(&[1]), erased(false)), (erase(&[99]), erased(false))])?;
    it.has(&rows)?;
    let mut steps: Vec<_> = rows.iter().map(|row| archive(row, NOW)).collect();
    steps.push(archive(&other, NOW));
    it.commit(&steps)?;
    it.does([(erase(&[3]), erased(true)), (erase(&[3]), erased(false))])?;
    let records = rows.iter().map(|row| {
        let mut record = row.archived(due(NOW));
        record.key = record.key.filter(|key| **key != [3]);
        record
    });
    same("the archive", archived(it, MAIL, 2)?, records.collect())?;
    let others = vec![other.archived(due(NOW))];
    same("that of another handler", archived(it, "other", 9)?, others)?;
    let again = keyed(&[3], row(11, NOW));
    it.does([(insert_second(&again), Outcome::Inserted)])?;
    // In the commit that archives it.
    it.does([
        (archive(&again, NOW), Outcome::Done),
        (erase(&[3]), erased(true)),
        (insert_second(&keyed(&[3], row(12, NOW))), Outcome::Inserted),
    ])
}
