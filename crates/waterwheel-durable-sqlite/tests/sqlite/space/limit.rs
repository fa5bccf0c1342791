//! What happens to a file that may not grow?

use super::*;

const LIMIT: usize = 4 << 20;

/// A store whose file has a limit, on a disk that has space.
fn limited(bytes: usize) -> Subject {
    Subject::new(|disk| {
        disk.set_capacity(usize::MAX, 0);
        open_as(disk, |options| {
            options.limit = Some(bytes as u64);
            options.long_wal = 64;
        })
    })
}

impl Subject {
    fn file(&self) -> usize {
        self.disk.read(FILE).map_or(0, |bytes| bytes.len())
    }

    /// Inserts until that is refused.
    fn insert_all(&mut self) {
        for _ in 0..200 {
            let inserts: Vec<_> = (0..200).map(|_| self.next_insert()).collect();
            let outcomes = self.commit(&inserts).unwrap();
            let full = outcomes.iter().position(|it| *it == Outcome::Full);
            if let Some(first) = full {
                // No later insert is written: once refused, inserts stay refused for a while.
                assert!(outcomes[first..].iter().all(|it| *it == Outcome::Full));
                self.next -= (outcomes.len() - first) as u64;
            }
            if full == Some(0) {
                return;
            }
        }
        panic!("it is never full");
    }
}

#[test]
fn a_limited_file_refuses_inserts_and_does_the_rest() {
    let mut it = limited(LIMIT);
    it.insert_all();
    let count = it.next - it.first;
    // Each takes some 250 bytes.
    assert!(count > 12_000, "{count} timers are there");
    let reserve = it.reserve();
    // Each of these steps takes space: a dead letter, a move, an archived timer, a setting.
    for number in it.first..it.first + 80 {
        let row = row(number, 200);
        let later = Due::from_millis(row.due.as_millis() + 100_000_000);
        let step = match number % 4 {
            0 => Op::Bury {
                row,
                at: later,
                error: "no".into(),
            },
            1 => Op::Retry(row, later, Level::Second.bucket(later)),
            2 => Op::Archive(row, later),
            _ => Op::Set(format!("namespace/{number}").into(), Some([7; 200].into())),
        };
        let refused = it.next_insert();
        it.next -= 1;
        let outcomes = it.commit(&[step, refused]).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
        assert!(it.file() <= LIMIT, "{} bytes", it.file());
    }
    assert_eq!(it.reserve(), reserve, "it is of no use here");
    it.first += 80;
    // A little must be freed before the next insert is accepted: otherwise each settled timer would make room for one.
    let mut settled = 0;
    while it.insert() == Outcome::Full {
        it.settle().unwrap();
        settled += 1;
    }
    println!("{count} timers, {settled} settled");
    assert!((60..2_000).contains(&settled), "{settled} were settled");
    assert_eq!(it.insert(), Outcome::Inserted);
}

#[test]
fn rows_with_pages_of_their_own_leave_the_last_eighth_alone() {
    let mut it = limited(LIMIT);
    // A few bytes too long to fit on the row's own page.
    let inserts: Vec<_> = (0..1_000)
        .map(|number| insert(10_000 + number, 1_010))
        .collect();
    let outcomes = it.commit(&inserts).unwrap();
    let count = outcomes
        .iter()
        .filter(|it| **it == Outcome::Inserted)
        .count();
    assert!((400..1_000).contains(&count), "{count} were inserted");
    assert!(it.file() <= LIMIT / 8 * 7, "{} bytes", it.file());
}

#[test]
fn a_cascade_needs_no_space_for_all_its_rows_twice() {
    for payload in [1_010, 8_000, 64_000] {
        let mut it = limited(LIMIT);
        let hour = 7_200_000;
        let bucket = Level::Hour.bucket(Due::from_millis(hour));
        let inserts = (0..1_000).map(|number| {
            let due = Due::from_millis(hour + number * 3_600);
            let id = Id::from_stored(10_000 + number.unsigned_abs());
            Op::Insert(Row::new(id, due, "handler", vec![1; payload]), bucket)
        });
        let inserts: Vec<_> = inserts.collect();
        let outcomes = it.commit(&inserts).unwrap();
        let count = outcomes.iter().filter(|it| **it == Outcome::Inserted);
        let count = count.count() as i64;
        assert!((40..1_000).contains(&count), "{count} of {payload} bytes");
        let (now, limit) = (Due::from_millis(0), PageLimit::rows(4_096));
        it.commit(&[Op::Cascade { bucket, now, limit }]).unwrap();
        let moved = query(&it.disk, "SELECT count(*) FROM timers WHERE level = 1");
        assert_eq!(moved, count);
    }
}

/// A store whose file has reached its maximum number of pages.
fn at_its_limit() -> Subject {
    let mut it = limited(LIMIT);
    it.insert_all();
    // Like the inserts of a calendar, which may use the reserved part.
    let refused = (0..10_000).find_map(|_| {
        let together = Op::All(vec![it.next_insert()]);
        it.commit(&[together]).err()
    });
    assert!(refused.unwrap().is_definite());
    it.next -= 1;
    it
}

#[test]
fn inserts_give_way_to_what_is_committed_with_them() {
    let mut it = at_its_limit();
    // There is no maintenance, so the file keeps its maximum length.
    let mut commit = |steps: &[Op]| {
        it.commits += 1;
        it.store.commit(it.commits, steps)
    };
    // There is room for one timer of 190 KB, even once the limit is met, but not for another 850 KB.
    let number = it.next + 1_000_000;
    while commit(&[insert(number, 400_000)]).unwrap() == [Outcome::Full] {
        let settled = commit(&[Op::Settle(row(it.first, 200))]);
        assert_eq!(settled.unwrap(), [Outcome::Done]);
        it.first += 1;
    }
    let settled = commit(&[Op::Settle(row(number, 400_000))]);
    assert_eq!(settled.unwrap(), [Outcome::Done]);
    let together = Op::All(vec![insert(number + 1, 850_000)]);
    let outcomes = commit(&[insert(number + 2, 190_000), together]).unwrap();
    assert_eq!(
        outcomes,
        [Outcome::Full, Outcome::All(vec![Outcome::Inserted])]
    );
    assert!(it.file() <= LIMIT, "{} bytes", it.file());
}

#[test]
fn a_full_disk_is_known_in_a_file_at_its_limit() {
    let it = at_its_limit();
    // The WAL is empty after that, and takes the space for its growth.
    drop(it.store);
    let mut store = open_as(&it.disk, |options| {
        options.limit = Some(LIMIT as u64);
        options.full = HOUR;
    })
    .unwrap();
    store.begin().unwrap();
    it.disk.fill();
    assert!(it.disk.read(RESERVE).is_some());
    // Without maintenance, the WAL grows in the space of the reserve: by three pages with each commit.
    let timers = (it.first..).take(12);
    for (commit, number) in (1..).zip(timers) {
        let steps = [Op::Settle(row(number, 200)), insert(1_000_000, 200)];
        let outcomes = store.commit(commit, &steps).unwrap();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    }
    assert!(it.disk.read(RESERVE).is_none());
}

#[test]
fn a_file_at_its_limit_settles_and_keeps_its_reserve() {
    let mut it = at_its_limit();
    let reserve = it.reserve();
    assert!(reserve > 0);
    for _ in 0..200 {
        assert_eq!(it.insert(), Outcome::Full);
        it.settle().unwrap();
        assert!(it.file() <= LIMIT, "{} bytes", it.file());
    }
    assert_eq!(it.reserve(), reserve);
    it.expect_timers();
}

#[test]
fn a_file_that_is_longer_than_its_limit_becomes_no_longer() {
    let mut it = limited(LIMIT);
    it.insert_all();
    let (disk, first, next) = (it.disk.clone(), it.first, it.next);
    drop(it.store);
    let length = disk.read(FILE).unwrap().len();
    let mut store = open_as(&disk, |options| options.limit = Some(200_000)).unwrap();
    store.begin().unwrap();
    let mut number = 0;
    for id in first..next {
        number += 1;
        let steps = [Op::Settle(row(id, 200)), insert(100_000 + id, 200)];
        let outcomes = store.commit(number, &steps).unwrap();
        store.maintain().unwrap();
        assert!(disk.read(FILE).unwrap().len() <= length);
        if outcomes[1] == Outcome::Inserted {
            let left = next - id;
            assert!(left < 1_000, "with {left} of 200 bytes each");
            return;
        }
    }
    panic!("it takes no insert");
}
