//! Settings, and everything else that a store holds.

use std::sync::Arc;

use crate::store::{Op, Outcome, Setting};

use crate::conformance::rows::{
    DISTANCES, MAIL, NOW, bucket, due, handle, insert, insert_second, moved, reschedule, row,
    second,
};
use crate::conformance::subject::{Done, Subject, same};

type Settings = Vec<Setting>;

fn set(name: &str, value: Option<&[u8]>) -> Op {
    Op::Set(name.into(), value.map(Arc::from))
}

fn settings(it: &mut Subject<'_>) -> Result<Settings, String> {
    it.store()?.settings().map_err(|error| error.to_string())
}

fn expected(settings: &[(&str, &[u8])]) -> Settings {
    let settings = settings.iter().map(|(name, value)| Setting {
        name: (*name).into(),
        value: (*value).into(),
    });
    settings.collect()
}

/// A row stores its starts in 63 bits.
const MAX_STARTS: u64 = i64::MAX.unsigned_abs();

pub(super) fn settings_are_kept_in_order(it: &mut Subject<'_>) -> Done {
    same("the settings", settings(it)?, Vec::new())?;
    it.does([
        (set("namespace/b", Some(b"\x00\xff")), Outcome::Done),
        (set("a", Some(b"")), Outcome::Done),
        (set("namespace/a b", Some(&[7; 100_000])), Outcome::Done),
    ])?;
    let all = [
        ("a", &b""[..]),
        ("namespace/a b", &[7; 100_000]),
        ("namespace/b", b"\x00\xff"),
    ];
    same("the settings", settings(it)?, expected(&all))
}

pub(super) fn a_setting_is_replaced_and_deleted(it: &mut Subject<'_>) -> Done {
    it.commit(&[set("a", Some(b"1")), set("b", Some(b"2"))])?;
    it.does([
        (set("a", Some(b"3")), Outcome::Done),
        (set("c", None), Outcome::Done),
    ])?;
    same(
        "the settings",
        settings(it)?,
        expected(&[("a", b"3"), ("b", b"2")]),
    )?;
    it.does([(set("a", None), Outcome::Done)])?;
    same("the settings", settings(it)?, expected(&[("b", b"2")]))
}

pub(super) fn steps_of_all_are_done_in_order(it: &mut Subject<'_>) -> Done {
    let (first, second) = (row(1, NOW), row(2, NOW));
    it.inserts([&first])?;
    let all = Op::All(vec![
        Op::Cancel(handle(&first)),
        insert_second(&second),
        set("cursor", Some(b"2")),
        Op::Cancel(handle(&first)),
    ]);
    let outcomes = vec![
        Outcome::Cancelled(true),
        Outcome::Inserted,
        Outcome::Done,
        Outcome::Cancelled(false),
    ];
    it.does([
        (all, Outcome::All(outcomes)),
        (Op::All(Vec::new()), Outcome::All(Vec::new())),
    ])?;
    same("the settings", settings(it)?, expected(&[("cursor", b"2")]))?;
    it.has(&[second])
}

pub(super) fn a_start_is_noted_in_place(it: &mut Subject<'_>) -> Done {
    let mut first = row(1, NOW);
    it.inserts([&first, &row(2, NOW)])?;
    for starts in 1..=3 {
        it.does([(Op::Start(first.clone()), Outcome::Done)])?;
        first.starts = starts;
        it.has(&[first.clone(), row(2, NOW)])?;
    }
    // The row passed in determines what the starts are counted from.
    for starts in [1, 8, MAX_STARTS] {
        first.starts = starts - 1;
        it.does([(Op::Start(first.clone()), Outcome::Done)])?;
        first.starts = starts;
        it.has(&[first.clone(), row(2, NOW)])?;
    }
    it.commit(&[Op::Settle(first), Op::Settle(row(2, NOW))])?;
    it.is_empty()
}

pub(super) fn a_start_of_a_gone_row_does_nothing(it: &mut Subject<'_>) -> Done {
    let first = row(1, NOW);
    it.inserts([&first])?;
    it.commit(&[reschedule(&first, NOW + 2_000)])?;
    it.does([(Op::Start(first.clone()), Outcome::Done)])?;
    it.has(&[moved(&first, NOW + 2_000)])
}

pub(super) fn a_move_forgets_the_starts(it: &mut Subject<'_>) -> Done {
    let later = |row: &_| moved(row, NOW + 2_000);
    let (first, second_row) = (row(1, NOW), row(2, NOW));
    it.inserts([&first, &second_row])?;
    it.commit(&[Op::Start(first.clone()), Op::Start(second_row.clone())])?;
    it.commit(&[
        reschedule(&first, NOW + 2_000),
        Op::Retry(second_row.clone(), due(NOW + 2_000), second(NOW + 2_000)),
    ])?;
    let mut retried = later(&second_row);
    retried.failures = 1;
    it.has(&[later(&first), retried])
}

pub(super) fn starts_survive_a_burial_and_a_cascade(it: &mut Subject<'_>) -> Done {
    let mut first = row(1, NOW);
    first.starts = MAX_STARTS;
    it.inserts([&first])?;
    it.commit(&[Op::Bury {
        row: first.clone(),
        at: due(NOW),
        error: "poison".into(),
    }])?;
    let dead = it.dead()?;
    let starts = dead.first().map(|dead| dead.row.starts);
    same("the starts", starts, Some(MAX_STARTS))?;
    it.commit(&[Op::Redrive(first.id, due(NOW), bucket(NOW))])?;
    let starts = it.seconds(MAIL)?.first().map(|row| row.starts);
    same("the starts", starts, Some(0))?;
    it.cancels([&first])?;
    let mut later = row(2, NOW + DISTANCES[1]);
    later.starts = MAX_STARTS - 1;
    it.commit(&[insert(&later)])?;
    let from = bucket(later.due.as_millis());
    it.commit(&[Op::Cascade {
        bucket: from,
        now: from.cascades_at(),
        limit: crate::store::PageLimit::rows(9),
    }])?;
    it.has(&[later])
}
