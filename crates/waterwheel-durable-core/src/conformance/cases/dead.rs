//! Dead letters.

use std::slice::from_ref;

use crate::store::{Dead, Erased, Id, Op, Outcome, PageLimit, Row, Scope};

use crate::conformance::rows::{
    DISTANCES, NOW, bucket, due, handle, id, insert_second, keyed, moved, of, row, second,
};
use crate::conformance::subject::{Done, Subject, same};

fn bury(row: &Row) -> Op {
    Op::Bury {
        row: row.clone(),
        at: due(NOW + 77),
        error: "mailbox „full“ \0 ".into(),
    }
}

fn dead_letter(row: &Row) -> Dead {
    Dead {
        row: row.clone(),
        at: due(NOW + 77),
        error: "mailbox „full“ \0 ".into(),
    }
}

pub(super) fn a_buried_row_is_a_dead_letter(it: &mut Subject<'_>) -> Done {
    let mut first = of("other", keyed(b"key", row(1, NOW)));
    first.failures = 5;
    it.inserts([&first, &row(2, NOW)])?;
    it.does([
        (bury(&row(2, NOW)), Outcome::Done),
        (bury(&first), Outcome::Done),
    ])?;
    let expected = vec![dead_letter(&first), dead_letter(&row(2, NOW))];
    same("the dead letters", it.dead()?, expected)?;
    it.is_empty()
}

pub(super) fn a_burial_frees_the_key(it: &mut Subject<'_>) -> Done {
    let first = keyed(b"key", row(1, NOW));
    it.inserts([&first])?;
    it.commit(&[bury(&first)])?;
    let second = keyed(b"key", row(2, NOW));
    it.does([(insert_second(&second), Outcome::Inserted)])?;
    // The redriven timer has no key, and takes none with it.
    it.commit(&[Op::Redrive(first.id, due(NOW), bucket(NOW))])?;
    it.cancels([&first])?;
    let third = keyed(b"key", row(3, NOW));
    it.does([(insert_second(&third), Outcome::Exists(handle(&second)))])
}

pub(super) fn a_burial_of_a_gone_row_does_nothing(it: &mut Subject<'_>) -> Done {
    it.does([(bury(&row(1, NOW)), Outcome::Done)])?;
    same("the dead letters", it.dead()?, Vec::new())
}

pub(super) fn dead_letters_are_listed_in_pages(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..30).map(|count| row(count, NOW)).collect();
    it.inserts(&rows)?;
    let bury: Vec<_> = rows.iter().rev().map(bury).collect();
    it.commit(&bury)?;
    let dead_letters: Vec<_> = rows.iter().map(dead_letter).collect();
    for after in [0, 1, 17, 29, 30] {
        for limit in [1, 5, 100] {
            let rest = dead_letters.iter().skip(after as usize).cloned().collect();
            let limit = PageLimit::rows(limit);
            let page = it.dead_letters_after(Scope::All, id(after), limit)?.dead;
            if page.len() > limit.rows {
                return Err(format!("a page of {limit:?} has {}", page.len()));
            }
            same("all", it.dead_letters(Scope::All, id(after), limit)?, rest)?;
        }
    }
    let page = it.dead_letters_after(Scope::All, id(0), PageLimit::rows(0))?;
    same("a page of none", page.dead, Vec::new())
}

pub(super) fn dead_letters_are_listed_by_handlers(it: &mut Subject<'_>) -> Done {
    let handlers = ["mail", "shop/mail", "shop", "shop2/mail", "shop/close"];
    let names = handlers.into_iter().cycle().take(23);
    let rows: Vec<_> = (1..)
        .zip(names)
        .map(|(count, name)| of(name, row(count, NOW)))
        .collect();
    it.inserts(&rows)?;
    it.commit(&rows.iter().map(bury).collect::<Vec<_>>())?;
    for scope in [
        Scope::All,
        Scope::Handler("shop"),
        Scope::Handler("shop/mail"),
        Scope::Namespace("shop"),
        Scope::Namespace("default"),
        Scope::Handler("none"),
        Scope::Namespace("none"),
    ] {
        for (after, limit) in [(0, 100), (0, 1), (7, 2), (22, 9)] {
            let rest = rows.iter().filter(|row| row.id > id(after));
            let meant = rest.filter(|row| scope.contains(&row.handler));
            let meant: Vec<_> = meant.map(dead_letter).collect();
            let found = it.dead_letters(scope, id(after), PageLimit::rows(limit))?;
            same(&format!("the dead letters of {scope:?}"), found, meant)?;
        }
    }
    Ok(())
}

pub(super) fn a_page_of_dead_letters_ends_with_the_one_that_fills_it(it: &mut Subject<'_>) -> Done {
    let rows: Vec<_> = (1..9)
        .map(|count| Row {
            payload: vec![7; 1_000].into(),
            ..row(count, NOW)
        })
        .collect();
    it.inserts(&rows)?;
    it.commit(&rows.iter().map(bury).collect::<Vec<_>>())?;
    let dead_letters: Vec<_> = rows.iter().map(dead_letter).collect();
    let one = dead_letters.first().map_or(0, Dead::bytes);
    for (bytes, limit) in [(0, 1), (one, 1), (one + 1, 2), (3 * one, 3)] {
        let all = PageLimit { rows: 100, bytes };
        let page = it.dead_letters_after(Scope::All, Id::NONE, all)?.dead;
        if page.is_empty() || page.len() > limit {
            return Err(format!("a page of {bytes} bytes has {}", page.len()));
        }
        let found = it.dead_letters(Scope::All, Id::NONE, all)?;
        same("all", found, dead_letters.clone())?;
    }
    Ok(())
}

pub(super) fn a_redriven_dead_letter_is_a_timer(it: &mut Subject<'_>) -> Done {
    let mut first = keyed(b"key", row(1, NOW));
    first.failures = 3;
    it.inserts([&first])?;
    it.commit(&[bury(&first)])?;
    let mut expected = moved(&first, NOW + 4_000);
    (expected.failures, expected.key) = (0, None);
    let redrive = Op::Redrive(first.id, due(NOW + 4_000), second(NOW + 4_000));
    let outcome = Outcome::Redriven(Some(expected.clone()));
    it.does([(redrive.clone(), outcome)])?;
    it.has(&[expected])?;
    same("the dead letters", it.dead()?, Vec::new())?;
    it.does([(redrive, Outcome::Redriven(None))])
}

pub(super) fn a_redriven_dead_letter_is_found_by_its_old_handle(it: &mut Subject<'_>) -> Done {
    for (count, distance) in (1..).zip(DISTANCES) {
        let (row, at) = (row(count, NOW), NOW + distance);
        it.inserts([&row])?;
        it.commit(&[bury(&row)])?;
        it.commit(&[Op::Redrive(row.id, due(at), bucket(at))])?;
        it.cancels([&row])?;
    }
    it.is_empty()
}

pub(super) fn a_redrive_of_no_dead_letter_says_so(it: &mut Subject<'_>) -> Done {
    it.commit(&[insert_second(&row(1, NOW))])?;
    let redrive = Op::Redrive(id(1), due(NOW), bucket(NOW));
    it.does([(redrive, Outcome::Redriven(None))])?;
    it.has(&[row(1, NOW)])
}

pub(super) fn a_dead_letter_is_not_cancelled(it: &mut Subject<'_>) -> Done {
    let row = row(1, NOW);
    it.inserts([&row])?;
    it.commit(&[bury(&row)])?;
    it.does([(Op::Cancel(handle(&row)), Outcome::Cancelled(false))])?;
    same("the dead letters", it.dead()?, vec![dead_letter(&row)])
}

pub(super) fn a_discarded_dead_letter_is_gone(it: &mut Subject<'_>) -> Done {
    // A timer that has moved, and so has a note elsewhere.
    let (first, other) = (row(1, NOW), row(2, NOW));
    it.inserts([&first, &other])?;
    let retry = Op::Retry(first.clone(), due(NOW + 2_000), second(NOW + 2_000));
    it.commit(&[retry])?;
    let mut moved = moved(&first, NOW + 2_000);
    moved.failures = 1;
    it.commit(&[bury(&moved), bury(&other)])?;
    it.does([
        (Op::Discard(first.id), Outcome::Cancelled(true)),
        (Op::Discard(first.id), Outcome::Cancelled(false)),
        (Op::Discard(id(77)), Outcome::Cancelled(false)),
    ])?;
    let expected = vec![dead_letter(&other)];
    same("the dead letters", it.dead()?, expected)?;
    let redrive = Op::Redrive(first.id, due(NOW), bucket(NOW));
    it.does([(redrive, Outcome::Redriven(None))])
}

pub(super) fn dead_letters_of_a_key_are_erased(it: &mut Subject<'_>) -> Done {
    let erase = Op::Erase {
        handler: "mail".into(),
        key: b"key".as_slice().into(),
    };
    let mut kept = Vec::new();
    for count in 1..7 {
        let row = match count {
            1 => row(count, NOW),
            2 => keyed(b"other", row(count, NOW)),
            3 => of("shop/mail", keyed(b"key", row(count, NOW))),
            _ => keyed(b"key", row(count, NOW)),
        };
        it.inserts([&row])?;
        it.commit(&[bury(&row)])?;
        kept.extend((count < 4).then(|| dead_letter(&row)));
    }
    let pending = keyed(b"key", row(9, NOW));
    it.inserts([&pending])?;
    let erased = |dead_letters| {
        Outcome::Erased(Erased {
            dead_letters,
            is_archived: false,
        })
    };
    it.does([(erase.clone(), erased(3)), (erase, erased(0))])?;
    same("the dead letters", it.dead()?, kept)?;
    it.has(from_ref(&pending))?;
    same(
        "its timer",
        it.find("mail", b"key")?,
        Some(handle(&pending)),
    )
}
