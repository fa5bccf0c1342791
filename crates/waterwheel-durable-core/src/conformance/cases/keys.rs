//! Which timer a business key belongs to.

use std::slice::from_ref;

use crate::store::{Bucket, Erased, Handle, Level, Op, Outcome, Row};

use crate::conformance::rows::{
    DISTANCES, MAIL, NOW, due, handle, id, insert, insert_second, keyed, of, reschedule, row,
    second,
};
use crate::conformance::subject::{Done, Subject, same};

pub(super) fn a_key_belongs_to_one_timer(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let key = [count as u8; 3];
        let first = keyed(&key, row(count, NOW + distance));
        it.does([(insert(&first), Outcome::Inserted)])?;
        for other in [0, 600_000] {
            let other = keyed(&key, row(count + 100, NOW + other));
            it.does([(insert(&other), Outcome::Exists(handle(&first)))])?;
        }
    }
    same("the number of rows", it.seconds(MAIL)?.len(), 1)
}

pub(super) fn a_key_of_a_moved_timer_names_its_first_handle(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[reschedule(&first, NOW + 600_000)])?;
    let other = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    it.cancels([&first])
}

pub(super) fn a_key_may_be_empty(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"", row(1, NOW));
    it.does([(insert_second(&first), Outcome::Inserted)])?;
    it.does([(insert_second(&row(2, NOW)), Outcome::Inserted)])?;
    it.does([(insert_second(&row(3, NOW)), Outcome::Inserted)])?;
    let other = keyed(b"", row(4, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    let expected = vec![first, row(2, NOW), row(3, NOW)];
    same("the rows", it.seconds(MAIL)?, expected)
}

pub(super) fn a_key_may_be_long(it: &mut Subject<'_>) -> Done {
    // Nothing that can be compressed.
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[0]
    };
    let long: Vec<u8> = (0..100_000).map(|_| next()).collect();
    let first = keyed(&long, row(1, NOW));
    it.does([(insert_second(&first), Outcome::Inserted)])?;
    let shorter = keyed(&long[1..], row(2, NOW));
    it.does([(insert_second(&shorter), Outcome::Inserted)])?;
    let other = keyed(&long, row(3, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    let found = it.find(MAIL, &long)?;
    same("the timer with the key", found, Some(handle(&first)))?;
    let (at, error) = (due(NOW), "refused".into());
    it.does([(
        Op::Bury {
            row: first,
            at,
            error,
        },
        Outcome::Done,
    )])?;
    let (handler, key) = (MAIL.into(), long.into());
    let erased = Erased {
        dead_letters: 1,
        is_archived: false,
    };
    it.does([(Op::Erase { handler, key }, Outcome::Erased(erased))])
}

pub(super) fn steps_with_a_key_are_done_in_order(it: &mut Subject<'_>) -> Done {
    let [first, second, third] = [1, 2, 3].map(|count| keyed(b"key", row(count, NOW)));
    let other = row(4, NOW);
    it.inserts([&first, &other])?;
    // A store that carries out similar steps together may free the key too early, or too late.
    it.does([
        (Op::Cancel(handle(&other)), Outcome::Cancelled(true)),
        (insert_second(&second), Outcome::Exists(handle(&first))),
        (Op::Cancel(handle(&first)), Outcome::Cancelled(true)),
        (insert_second(&third), Outcome::Inserted),
        (insert_second(&second), Outcome::Exists(handle(&third))),
        (Op::Settle(third.clone()), Outcome::Done),
        (insert_second(&second), Outcome::Inserted),
    ])?;
    it.has(&[second])
}

pub(super) fn a_key_is_of_one_handler(it: &mut Subject<'_>) -> Done {
    for (count, handler) in (1..).zip(["a", "b", "c"]) {
        let row = of(handler, keyed(b"key", row(count, NOW)));
        it.does([(insert_second(&row), Outcome::Inserted)])?;
    }
    let first = of("b", keyed(b"key", row(2, NOW)));
    let other = of("b", keyed(b"key", row(9, NOW)));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])
}

pub(super) fn a_settle_frees_the_key(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[Op::Settle(first)])?;
    it.does([(
        insert_second(&keyed(b"key", row(2, NOW))),
        Outcome::Inserted,
    )])
}

pub(super) fn a_cancel_frees_the_key(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let row = keyed(b"key", row(count, NOW + distance));
        it.does([(insert(&row), Outcome::Inserted)])?;
        it.cancels([&row])?;
    }
    Ok(())
}

pub(super) fn a_retry_keeps_the_key(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    let later = NOW + 5_000;
    it.commit(&[Op::Retry(first.clone(), due(later), second(later))])?;
    let other = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    let keys: Vec<_> = it.seconds(MAIL)?.into_iter().map(|row| row.key).collect();
    same("the keys of the rows", keys, vec![first.key])
}

pub(super) fn a_key_survives_a_cascade(it: &mut Subject<'_>) -> Done {
    let at = NOW + 600_000;
    let first = keyed(b"key", row(1, at));
    it.commit(&[insert(&first)])?;
    let bucket: Bucket = Level::Minute.bucket(due(at));
    it.cascade(bucket, bucket.cascades_at(), 10)?;
    it.has(from_ref(&first))?;
    let other = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    it.cancels([&first])?;
    it.does([(insert_second(&other), Outcome::Inserted)])
}

pub(super) fn the_same_timer_may_insert_its_key_again(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.does([(insert_second(&first), Outcome::Inserted)])?;
    it.does([(insert_second(&first), Outcome::Inserted)])?;
    it.has(&[first])
}

/// Checks that a timer is found by its key, with this handle, and by no other key or handler.
fn is_found(it: &mut Subject<'_>, row: &Row, expected: Option<Handle>) -> Done {
    let key = row.key.as_deref().unwrap_or_default();
    same("the timer of a key", it.find(MAIL, key)?, expected)?;
    same("of another key", it.find(MAIL, b"another")?, None)?;
    same("of another handler", it.find("call", key)?, None)?;
    same("of no handler", it.find("none", key)?, None)
}

pub(super) fn a_timer_is_found_by_its_key(it: &mut Subject<'_>) -> Done {
    it.commit(&[insert_second(&of("call", row(99, NOW)))])?;
    for (count, distance) in (1..).zip(DISTANCES) {
        let first = keyed(b"", row(count, NOW + distance));
        is_found(it, &first, None)?;
        it.commit(&[insert(&first)])?;
        is_found(it, &first, Some(handle(&first)))?;
        // In each level, by its original handle.
        for (other, distance) in (50..).zip(DISTANCES) {
            let moves = [
                reschedule(&first, NOW + distance),
                insert_second(&row(other, NOW)),
            ];
            it.commit(&moves)?;
            is_found(it, &first, Some(handle(&first)))?;
        }
        it.cancels([&first])?;
        is_found(it, &first, None)?;
    }
    Ok(())
}

pub(super) fn a_key_that_is_only_archived_finds_no_timer(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[Op::Archive(first.clone(), due(NOW))])?;
    is_found(it, &first, None)?;
    let other = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&other), Outcome::Exists(handle(&first)))])?;
    is_found(it, &first, None)
}

pub(super) fn a_key_that_is_free_finds_no_timer(it: &mut Subject<'_>) -> Done {
    let bury = |row: Row| Op::Bury {
        row,
        at: due(NOW),
        error: "no".into(),
    };
    for (count, end) in (1..).zip([Op::Settle, bury] as [fn(Row) -> Op; 2]) {
        let first = keyed(b"key", row(count, NOW));
        it.inserts([&first])?;
        is_found(it, &first, Some(handle(&first)))?;
        it.commit(&[end(first.clone())])?;
        is_found(it, &first, None)?;
    }
    // A dead letter that is redriven has no key.
    it.commit(&[Op::Redrive(id(2), due(NOW), second(NOW))])?;
    is_found(it, &keyed(b"key", row(2, NOW)), None)
}
