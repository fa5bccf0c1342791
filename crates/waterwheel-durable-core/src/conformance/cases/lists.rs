//! Lists and counts of pending timers.

use crate::store::{Bucket, Handle, Level, Op, PendingCursor, Row, Scope};

use crate::conformance::rows::{
    DISTANCES, NOW, bucket, due, id, insert, moved, of, reschedule, row,
};
use crate::conformance::subject::{Done, Subject, same};

const HANDLERS: [&str; 5] = ["mail", "shop/mail", "shop", "shop2/mail", "shop/close"];

/// Timers of several handlers in the buckets of all levels, several in each, in order of their positions.
fn rows() -> Vec<(PendingCursor, Row)> {
    let rows = (1..61).map(|count| {
        let at = NOW + DISTANCES[count as usize % DISTANCES.len()] + (count as i64 % 3) * 500;
        let handler = HANDLERS[(count as usize / 2) % HANDLERS.len()];
        let row = of(handler, row(count, at));
        let bucket = bucket(at);
        (PendingCursor { bucket, id: row.id }, row)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(cursor, _)| *cursor);
    rows
}

fn inserts(rows: &[(PendingCursor, Row)]) -> Vec<Op> {
    rows.iter().map(|(_, row)| insert(row)).collect()
}

pub(super) fn timers_are_listed_in_pages(it: &mut Subject<'_>) -> Done {
    same("all", it.handles(Scope::All, 9)?, Vec::new())?;
    let rows = rows();
    it.commit(&inserts(&rows))?;
    for scope in [
        Scope::All,
        Scope::Handler("shop"),
        Scope::Handler("shop/mail"),
        Scope::Namespace("shop"),
        Scope::Namespace("default"),
        Scope::Handler("none"),
        Scope::Namespace("none"),
    ] {
        let meant = rows.iter().filter(|(_, row)| scope.contains(&row.handler));
        let meant: Vec<_> = meant.map(|(at, row)| (*at, row.handle())).collect();
        for limit in [1, 4, 100] {
            let found = it.handles(scope, limit)?;
            same(&format!("the timers of {scope:?}"), found, meant.clone())?;
        }
    }
    // By their first handles, wherever they are now.
    let (_, first) = &rows[0];
    let at = NOW + DISTANCES[4];
    it.commit(&[reschedule(first, at)])?;
    let cursor = PendingCursor {
        bucket: bucket(at),
        id: first.id,
    };
    let found = it.handles(Scope::All, 7)?;
    let expected: (PendingCursor, Handle) = (cursor, first.handle());
    same(
        "whether a moved timer is listed",
        found.contains(&expected),
        true,
    )?;
    same("the number of timers", found.len(), rows.len())
}

pub(super) fn the_longest_bucket_is_listed_first_if_starts_are_equal(it: &mut Subject<'_>) -> Done {
    // As between two steps of a cascade: the timers are due when the month begins.
    let start = Level::Month.bucket(due(NOW)).start().as_millis();
    let levels = [Level::Second].into_iter().chain(Level::CASCADING);
    let inserts = levels.zip([1, 3, 5, 7, 9]).flat_map(|(level, count)| {
        [count, count + 1].map(|count| Op::Insert(row(count, start), level.bucket(due(start))))
    });
    let inserts: Vec<_> = inserts.collect();
    it.commit(&inserts)?;
    for limit in [1, 2, 3, 100] {
        let listed = it.handles(Scope::All, limit)?;
        let listed = listed.iter().map(|(_, handle)| handle.id).collect();
        let expected = [9, 10, 7, 8, 5, 6, 3, 4, 1, 2].map(id).to_vec();
        same("the ids", listed, expected)?;
    }
    Ok(())
}

pub(super) fn a_cascade_between_two_pages_hides_no_timer(it: &mut Subject<'_>) -> Done {
    let rows = rows();
    it.commit(&inserts(&rows))?;
    let (mut after, mut seen, mut cascades) = (None, Vec::new(), 0);
    loop {
        let page = it.handles_after(Scope::All, after, 4)?;
        seen.extend(page.handles.into_iter().map(|(_, handle)| handle.id));
        after = page.next;
        if after.is_none() {
            break;
        }
        // The first bucket of a level, when it is due to cascade.
        cascades += 1;
        let level = Level::CASCADING[cascades % 4];
        if let Some(number) = it.first_bucket(level)? {
            let bucket = Bucket { level, number };
            it.cascade(bucket, bucket.cascades_at(), 7)?;
        }
    }
    seen.sort_unstable();
    seen.dedup();
    same(
        "the number of timers that were seen",
        seen.len(),
        rows.len(),
    )
}

pub(super) fn timers_and_dead_letters_are_counted(it: &mut Subject<'_>) -> Done {
    // Each commit of each case is followed by a recount; this has the steps that others do not have.
    let rows: Vec<_> = (1..9).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    it.inserts(&rows[..2])?;
    let bury = |row: &Row, error: &str| Op::Bury {
        row: row.clone(),
        at: due(NOW),
        error: error.into(),
    };
    let bury_all = [
        bury(&rows[0], "refused"),
        bury(&rows[1], "refused\nfor a reason"),
        bury(&rows[2], "timed out"),
        bury(&rows[2], "timed out"),
        bury(&of("other", rows[3].clone()), "refused"),
    ];
    it.commit(&bury_all)?;
    let minute = Level::Minute.bucket(due(NOW));
    let counts = it.counts()?;
    let dead: Vec<_> = counts
        .dead
        .iter()
        .map(|it| (&*it.error, it.count))
        .collect();
    same(
        "the dead letters",
        dead,
        vec![("refused", 2), ("timed out", 1)],
    )?;
    let pending: Vec<_> = counts
        .pending
        .iter()
        .map(|it| (it.bucket, it.count))
        .collect();
    same("the timers", pending, vec![(minute, 5)])?;
    let far = NOW + DISTANCES[3];
    it.commit(&[
        Op::Redrive(rows[0].id, due(far), bucket(far)),
        Op::Discard(rows[2].id),
        Op::Settle(rows[3].clone()),
        Op::Archive(rows[4].clone(), due(NOW)),
        Op::Settle(rows[4].clone()),
        Op::Retry(rows[5].clone(), due(far), bucket(far)),
        Op::Cancel(rows[6].handle()),
        Op::Cancel(rows[6].handle()),
    ])?;
    let counts = it.counts()?;
    let pending: Vec<_> = counts
        .pending
        .iter()
        .map(|it| (it.bucket, it.count))
        .collect();
    same("the timers", pending, vec![(minute, 1), (bucket(far), 2)])?;
    it.commit(&[
        Op::Cancel(moved(&rows[5], NOW).handle()),
        Op::Cancel(rows[0].handle()),
        Op::Settle(rows[7].clone()),
        Op::Discard(rows[1].id),
    ])?;
    same("the counts of nothing", it.counts()?, Default::default())
}
