//! Where a moved timer is, and whether its handle still finds it.

use std::slice::from_ref;

use crate::store::{Extras, Id, Op, Outcome, Row};

use crate::conformance::rows::{
    DISTANCES, MAIL, NOW, bucket, due, handle, insert, insert_second, keyed, moved, of, reschedule,
    row, second,
};
use crate::conformance::subject::{Done, Subject, same};

pub(super) fn a_timer_is_cancelled_in_each_level(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..)
        .zip(DISTANCES)
        .map(|(count, distance)| row(count, NOW + distance))
        .collect();
    let steps: Vec<_> = rows.iter().map(insert).collect();
    it.commit(&steps)?;
    it.cancels(&rows)?;
    it.is_empty()
}

pub(super) fn a_cancel_of_no_timer_says_so(it: &mut Subject<'_>) -> Done {
    it.does([(Op::Cancel(handle(&row(1, NOW))), Outcome::Cancelled(false))])?;
    it.commit(&[insert_second(&row(1, NOW))])?;
    for other in [row(2, NOW), row(3, NOW + 600_000)] {
        it.does([(Op::Cancel(handle(&other)), Outcome::Cancelled(false))])?;
    }
    it.has(&[row(1, NOW)])
}

pub(super) fn a_cancel_leaves_its_neighbours(it: &mut Subject<'_>) -> Done {
    for distance in DISTANCES {
        let rows = [1, 2, 3].map(|count| row(count, NOW + distance));
        it.commit(&rows.each_ref().map(insert))?;
        it.cancels([&rows[1]])?;
        it.cancels([&rows[0], &rows[2]])?;
    }
    it.is_empty()
}

pub(super) fn a_timer_moves_between_all_levels(it: &mut Subject<'_>) -> Done {
    let mut count = 0;
    for from in DISTANCES {
        for to in DISTANCES {
            count += 1;
            let row = row(count, NOW + from);
            it.commit(&[insert(&row)])?;
            let expected = moved(&row, NOW + to + 7);
            let outcome = Outcome::Rescheduled(Some(expected.clone()));
            it.does([(reschedule(&row, NOW + to + 7), outcome)])?;
            let to = bucket(NOW + to + 7);
            match to.level {
                crate::store::Level::Second => {
                    it.has(&[expected])?;
                }
                level => {
                    let first = it.first_bucket(level)?;
                    same("the first bucket", first, Some(to.number))?;
                }
            }
            it.cancels([&row])?;
            it.is_empty()?;
        }
    }
    Ok(())
}

/// As when it comes from another store.
pub(super) fn a_timer_that_has_moved_is_inserted_as_it_is(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let mut row = moved(&row(count, NOW), NOW + distance + 1);
        row.key = Some(b"key".as_slice().into());
        row.extras = Extras::new(Some("tag".into()), None);
        (row.failures, row.starts) = (3, 1 << 40 | 2);
        it.does([(insert(&row), Outcome::Inserted)])?;
        same("the timer", it.get(&row)?, Some(row.clone()))?;
        let holder = it.find(MAIL, b"key")?;
        same("the holder of the key", holder, Some(row.handle()))?;
        let tagged = it.tagged("tag", Id::NONE, 9)?;
        same("those with the tag", tagged, vec![row.handle()])?;
        it.does([(Op::Cancel(row.handle()), Outcome::Cancelled(true))])?;
        it.is_empty()?;
        same("the holder of the key", it.find(MAIL, b"key")?, None)?;
    }
    Ok(())
}

pub(super) fn a_moved_timer_is_found_by_its_old_handle(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    it.inserts([&row])?;
    for distance in DISTANCES.into_iter().rev().chain(DISTANCES) {
        let at = NOW + distance + 1;
        let outcome = Outcome::Rescheduled(Some(moved(&row, at)));
        it.does([(reschedule(&row, at), outcome)])?;
    }
    // Also where it was at first.
    it.does([(
        reschedule(&row, NOW),
        Outcome::Rescheduled(Some(row.clone())),
    )])?;
    it.has(from_ref(&row))?;
    it.cancels([&row])?;
    it.is_empty()
}

pub(super) fn a_timer_is_read_by_its_handle(it: &mut Subject<'_>) -> Done {
    let row = keyed(b"order", row(1, NOW));
    same("a timer that does not exist", it.get(&row)?, None)?;
    it.inserts([&row])?;
    same("the timer", it.get(&row)?, Some(row.clone()))?;
    let other = of("call", row.clone());
    same("a timer of another handler", it.get(&other)?, None)?;
    for distance in DISTANCES {
        let at = NOW + distance + 1;
        it.commit(&[reschedule(&row, at)])?;
        same("a moved timer", it.get(&row)?, Some(moved(&row, at)))?;
        same("a timer of another handler", it.get(&other)?, None)?;
    }
    it.commit(&[reschedule(&row, NOW)])?;
    let (at, error) = (due(NOW), "no".into());
    it.commit(&[Op::Bury {
        row: row.clone(),
        at,
        error,
    }])?;
    same("a dead letter", it.get(&row)?, None)?;
    it.commit(&[Op::Redrive(row.id, due(NOW + 5), second(NOW + 5))])?;
    let redriven = Row {
        key: None,
        ..moved(&row, NOW + 5)
    };
    same("a redriven timer", it.get(&row)?, Some(redriven.clone()))?;
    it.commit(&[Op::Archive(redriven, due(NOW + 9))])?;
    same("an archived timer", it.get(&row)?, None)
}

pub(super) fn a_timer_moves_to_its_own_second(it: &mut Subject<'_>) -> Done {
    let row = row(1, 5_000);
    it.inserts([&row])?;
    for at in [5_001, 5_001, 5_999, 5_000] {
        let expected = moved(&row, at);
        let to = Op::Reschedule(handle(&row), due(at), second(at));
        it.does([(to, Outcome::Rescheduled(Some(expected.clone())))])?;
        it.has(&[expected])?;
    }
    // The row as it was loaded before the move.
    it.does([(Op::Settle(row.clone()), Outcome::Done)])?;
    it.is_empty()
}

pub(super) fn a_reschedule_of_no_timer_says_so(it: &mut Subject<'_>) -> Done {
    let gone = row(1, NOW);
    for _ in 0..2 {
        it.does([(reschedule(&gone, NOW + 5_000), Outcome::Rescheduled(None))])?;
        it.is_empty()?;
        it.inserts([&gone])?;
        it.commit(&[Op::Settle(gone.clone())])?;
    }
    Ok(())
}

pub(super) fn a_settled_timer_is_not_found(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    it.inserts([&row])?;
    it.commit(&[reschedule(&row, NOW + 3_000)])?;
    it.commit(&[Op::Settle(moved(&row, NOW + 3_000))])?;
    it.does([(Op::Cancel(handle(&row)), Outcome::Cancelled(false))])?;
    it.does([(reschedule(&row, NOW), Outcome::Rescheduled(None))])?;
    it.is_empty()
}

pub(super) fn a_handle_of_another_handler_finds_no_timer(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let row = row(count * 2, NOW + distance);
        // Whether a handler of this name is known.
        let known = of(
            "call",
            crate::conformance::rows::row(count * 2 + 1, NOW + distance),
        );
        it.commit(&[insert(&row), insert(&known)])?;
        for handler in ["call", "unknown"] {
            let wrong = of(handler, row.clone());
            it.does([
                (Op::Cancel(handle(&wrong)), Outcome::Cancelled(false)),
                (reschedule(&wrong, NOW), Outcome::Rescheduled(None)),
            ])?;
        }
        it.cancels([&row, &known])?;
    }
    it.is_empty()
}

pub(super) fn a_retry_counts_the_failure(it: &mut Subject<'_>) -> Done {
    let mut row = row(1, NOW);
    it.inserts([&row])?;
    for failures in 1..6 {
        let at = row.due.as_millis() + 700;
        it.does([(Op::Retry(row.clone(), due(at), second(at)), Outcome::Done)])?;
        row = moved(&row, at);
        row.failures = failures;
        it.has(from_ref(&row))?;
    }
    it.commit(&[Op::Settle(row)])?;
    it.is_empty()
}

pub(super) fn a_snooze_counts_no_failure(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"order", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[Op::Retry(first.clone(), due(NOW + 5), second(NOW + 5))])?;
    let mut row = Row {
        failures: 1,
        ..moved(&first, NOW + 5)
    };
    for at in [NOW + 9, NOW + 9, NOW + 1_500] {
        it.does([(Op::Start(row.clone()), Outcome::Done)])?;
        it.does([(Op::Snooze(row.clone(), due(at), second(at)), Outcome::Done)])?;
        row = moved(&row, at);
        it.has(from_ref(&row))?;
    }
    let at = NOW + DISTANCES[3];
    it.does([(Op::Snooze(row.clone(), due(at), bucket(at)), Outcome::Done)])?;
    same("a snoozed timer", it.get(&first)?, Some(moved(&row, at)))?;
    it.does([(Op::Snooze(row, due(at), bucket(at)), Outcome::Done)])?;
    it.cancels([&first])?;
    it.is_empty()
}

pub(super) fn a_retry_to_a_coarser_level_is_found_by_its_handle(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let row = row(count, NOW);
        let at = NOW + distance;
        it.inserts([&row])?;
        let retry = Op::Retry(row.clone(), due(at), bucket(at));
        it.does([(retry, Outcome::Done)])?;
        it.cancels([&row])?;
    }
    it.is_empty()
}

pub(super) fn a_retry_of_a_gone_row_does_nothing(it: &mut Subject<'_>) -> Done {
    let retry = Op::Retry(row(1, NOW), due(NOW + 9), second(NOW + 9));
    it.does([(retry, Outcome::Done)])?;
    it.is_empty()
}
