//! What is left after a power cut on a full disk?

use super::*;

/// The progress of a script that a power cut may interrupt.
#[derive(Debug, Default)]
struct Known {
    /// The numbers of the acknowledged timers.
    acknowledged: Vec<u64>,
    /// The possible results of the commit in progress: without its inserts if it finds no space, and with them if it does.
    under_way: Vec<Vec<u64>>,
    full: usize,
    recovered: usize,
}

impl Known {
    /// Inserts and settles on a disk that becomes full, is opened again, and has space again. Ends when the power is cut.
    fn live(&mut self, disk: &Disk) -> Option<()> {
        let mut store = self.open(disk)?;
        let mut number = 0;
        for round in 0..3_u64 {
            for step in 0..9 {
                number += 1;
                match step {
                    2 if round == 0 => drop(disk.fill()),
                    5 if round == 1 => {
                        // The store shuts down cleanly while the disk is full.
                        drop(store);
                        store = self.open(disk)?;
                        number = 1;
                    }
                    0 if round == 2 => disk.set_foreign(0),
                    _ => {}
                }
                self.commit(&mut store, number, round * 100 + step)?;
            }
        }
        Some(())
    }

    fn open(&self, disk: &Disk) -> Option<SqliteStore> {
        let mut store = open_as(disk, |options| {
            options.full = Duration::ZERO;
            options.long_wal = 12;
            options.reserve = (32 << 10, 64 << 10);
        })
        .ok()?;
        store.begin().ok()?;
        Some(store)
    }

    fn commit(&mut self, store: &mut SqliteStore, number: u64, id: u64) -> Option<()> {
        let (one, two) = (id * 10 + 1_000, id * 10 + 1_001);
        let mut steps = Vec::new();
        let mut settled = self.acknowledged.clone();
        if settled.len() > 12 {
            steps.extend(settled.drain(..2).map(|id| Op::Settle(row(id, 700))));
        }
        let inserted = [&settled[..], &[one, two]].concat();
        steps.extend([insert(one, 700), insert(two, 700)]);
        self.under_way = vec![settled.clone(), inserted.clone()];
        let outcomes = store.commit(number, &steps);
        match outcomes {
            Ok(outcomes) if outcomes.ends_with(&[Outcome::Inserted, Outcome::Inserted]) => {
                self.recovered += usize::from(self.full > 0);
                self.acknowledged = inserted;
            }
            Ok(outcomes) => {
                assert!(outcomes.ends_with(&[Outcome::Full, Outcome::Full]));
                self.full += 1;
                self.acknowledged = settled;
            }
            Err(error) if error.is_definite() => panic!("{error:?}"),
            Err(_) => return None,
        }
        self.under_way.clear();
        match store.maintain() {
            Err(error) if !error.is_definite() => None,
            _ => Some(()),
        }
    }

    fn may_be(&self, left: &Vec<u64>) -> bool {
        *left == self.acknowledged || self.under_way.contains(left)
    }
}

#[test]
fn a_power_cut_at_any_moment_of_a_full_disk_loses_nothing() {
    let small = |copies| {
        let disk = disk();
        disk.set_capacity(300 << 10, 0);
        disk.set_copies_on_write(copies);
        disk
    };
    for copies in [false, true] {
        let whole = small(copies);
        let mut known = Known::default();
        known.live(&whole).unwrap();
        assert!(known.full > 5 && known.recovered > 2, "{known:?}");
        let calls = whole.calls();
        println!("{calls} calls, {known:?}");
        assert!(calls > 200, "{calls}");
        let mut cuts = 0;
        for after in 0..calls {
            // Alternately before and after the call takes effect.
            for after_it in [after.is_multiple_of(2)] {
                let disk = small(copies);
                disk.cut_at(any_call(after), after_it);
                let mut known = Known::default();
                let lived = known.live(&disk);
                let content = disk.content();
                let choose = |choice: &mut dyn Choice| {
                    disk.put(content.clone());
                    disk.restart(choice);
                    let left = left(&disk);
                    assert!(
                        known.may_be(&left),
                        "cut at {after}, {after_it}: {left:?} is left of {known:?}"
                    );
                };
                // Tries the worst case, and some of the others.
                choose(&mut Each::new(512));
                for seed in 0..2 {
                    choose(&mut Chance::new(
                        &mut Rng::with_seed(after * 8 + seed),
                        calls,
                    ));
                }
                cuts += u64::from(lived.is_none());
            }
        }
        assert!(cuts > calls / 2, "{cuts} cuts in {calls} calls");
    }
}

#[test]
fn a_store_opens_after_a_power_cut_on_a_full_disk() {
    // The reserve is used up, and the WAL was not copied.
    let mut it = Subject::new(open_impatient);
    it.disk.fill();
    while it.insert() == Outcome::Inserted {}
    for _ in 0..20 {
        it.settle().unwrap();
    }
    it.disk.cut_now();
    drop(it.store);
    it.disk.restart(&mut Each::new(4_096));
    it.store = open_impatient(&it.disk).unwrap();
    it.store.begin().unwrap();
    it.commits = 0;
    it.expect_timers();
    for _ in 0..50 {
        it.settle().unwrap();
        assert_eq!(it.insert(), Outcome::Full);
    }
    it.disk.set_foreign(0);
    assert_eq!(it.insert(), Outcome::Inserted);
}
