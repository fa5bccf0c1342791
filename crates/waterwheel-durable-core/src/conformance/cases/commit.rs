//! Commits: atomic, durable and repeatable.

use crate::store::{Op, Outcome};

use crate::conformance::rows::{
    MAIL, NOW, due, handle, insert, insert_second, reschedule, row, second,
};
use crate::conformance::subject::{Done, Subject, same};

pub(super) fn epochs_rise(it: &mut Subject<'_>) -> Done {
    // `reopen` compares each epoch with the last one.
    for _ in 0..20 {
        it.reopen()?;
    }
    Ok(())
}

pub(super) fn an_epoch_begins_without_an_opening(it: &mut Subject<'_>) -> Done {
    let mut last = it.reopen()?;
    for (count, ahead) in [(0, None), (1, None), (2, Some(70_000)), (3, Some(0))] {
        let inserted = insert_second(&row(count + 1, NOW));
        let after = ahead.map_or(0, |ahead| last + ahead);
        let steps = match count % 2 {
            0 => vec![inserted, Op::NextEpoch(after)],
            _ => vec![inserted, Op::All(vec![Op::NextEpoch(after)])],
        };
        let begun = match &it.commit_only(&steps)?[..] {
            [Outcome::Inserted, Outcome::Epoch(begun)] => *begun,
            [Outcome::Inserted, Outcome::All(all)] => match all[..] {
                [Outcome::Epoch(begun)] => begun,
                _ => 0,
            },
            _ => 0,
        };
        same("whether it is larger", begun > last && begun > after, true)?;
        last = begun;
    }
    same(
        "whether an opening has a larger one",
        it.reopen()? > last,
        true,
    )
}

pub(super) fn a_row_inserted_twice_is_there_once(it: &mut Subject<'_>) -> Done {
    for row in [row(1, NOW), row(2, NOW + 600_000)] {
        it.does([(insert(&row), Outcome::Inserted)])?;
        it.does([(insert(&row), Outcome::Inserted)])?;
    }
    it.has(&[row(1, NOW)])?;
    it.cancels(&[row(1, NOW), row(2, NOW + 600_000)])?;
    it.is_empty()
}

pub(super) fn a_settled_row_is_gone(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..9).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    it.does([
        (Op::Settle(rows[2].clone()), Outcome::Done),
        (Op::Settle(rows[5].clone()), Outcome::Done),
    ])?;
    it.does([(Op::Settle(rows[2].clone()), Outcome::Done)])?;
    let left = rows.iter().enumerate();
    let left = left.filter(|(at, _)| *at != 2 && *at != 5);
    let left = left.map(|(_, row)| row.clone()).collect();
    same("the rows that are left", it.seconds(MAIL)?, left)
}

pub(super) fn a_settle_of_a_moved_row_does_nothing(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    it.inserts([&row])?;
    it.commit(&[reschedule(&row, NOW + 5_000)])?;
    it.does([(Op::Settle(row.clone()), Outcome::Done)])?;
    let moved = crate::conformance::rows::moved(&row, NOW + 5_000);
    same("the row that was moved", it.seconds(MAIL)?, vec![moved])
}

pub(super) fn a_repeated_commit_is_not_done_again(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    it.commit_only(&[insert_second(&row)])?;
    let steps = [
        Op::Cancel(handle(&row)),
        insert_second(&crate::conformance::rows::row(2, NOW)),
        Op::Retry(crate::conformance::rows::row(2, NOW), due(NOW), second(NOW)),
    ];
    let first = it.commit_as(2, &steps)?;
    let again = it.commit_as(2, &steps)?;
    same("the outcomes of the repeated commit", &again, &first)?;
    let third = it.commit_as(2, &steps)?;
    same("the outcomes of the third time", &third, &first)?;
    let failures: Vec<_> = it.seconds(MAIL)?.iter().map(|row| row.failures).collect();
    same("the failures of the rows", failures, vec![1])?;
    let next = it.commit_as(3, &steps[..1])?;
    same("the next commit", next, vec![Outcome::Cancelled(false)])
}

pub(super) fn the_next_epoch_begins_its_own_commits(it: &mut Subject<'_>) -> Done {
    for count in 1..5 {
        let outcomes = it.commit_as(1, &[insert_second(&row(count, NOW))])?;
        same("the outcomes", outcomes, vec![Outcome::Inserted])?;
        it.reopen()?;
    }
    same("the number of rows", it.seconds(MAIL)?.len(), 4)
}

pub(super) fn steps_are_done_in_order(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    let later = crate::conformance::rows::moved(&row, NOW + 600_000);
    it.does([
        (Op::Cancel(handle(&row)), Outcome::Cancelled(false)),
        (insert_second(&row), Outcome::Inserted),
        (
            reschedule(&row, NOW + 600_000),
            Outcome::Rescheduled(Some(later)),
        ),
        (Op::Cancel(handle(&row)), Outcome::Cancelled(true)),
        (Op::Cancel(handle(&row)), Outcome::Cancelled(false)),
        (insert_second(&row), Outcome::Inserted),
    ])?;
    it.has(&[row])
}

pub(super) fn an_empty_commit_does_nothing(it: &mut Subject<'_>) -> Done {
    it.does([])?;
    it.is_empty()
}

pub(super) fn a_large_commit_is_whole(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..5_000).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    it.has(&rows)?;
    let steps: Vec<_> = rows.into_iter().map(Op::Settle).collect();
    it.commit(&steps)?;
    it.is_empty()
}
