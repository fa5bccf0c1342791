//! Everything is moved from one store to another, wherever that is interrupted.

use std::sync::Arc;

use waterwheel_durable_core::conformance::mixed;
use waterwheel_durable_core::store::{
    ArchiveCursor, Due, Id, Level, MemoryStore, Op, Outcome, PageLimit, Row, Scope, Store,
    StoreError, TransferError, abandon_transfer, forward, refused_by_transfer, transfer_by,
};

/// A store whose process ends at some commit.
struct Mortal {
    inner: MemoryStore,
    /// How many commits are carried out before it ends.
    left: usize,
    /// Whether the commit at which it ends is carried out too.
    commits: bool,
}

impl Mortal {
    fn new(inner: MemoryStore) -> Mortal {
        let (left, commits) = (usize::MAX, false);
        Mortal {
            inner,
            left,
            commits,
        }
    }
}

impl Store for Mortal {
    forward!(it => it.inner; begin maintain reads);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        if self.left == 0 {
            if self.commits {
                self.inner.commit(number, steps)?;
            }
            return Err(StoreError::indeterminate("killed"));
        }
        self.left -= 1;
        self.inner.commit(number, steps)
    }
}

/// A store with some of everything.
fn filled(seed: u64) -> MemoryStore {
    let mut store = MemoryStore::new();
    mixed(&mut store, seed, 200);
    let due = Due::from_millis(1_800_000_000_000);
    let mut steps = vec![
        Op::Set("policy".into(), Some(b"{}".as_slice().into())),
        Op::Set("clean".into(), Some(b"1".as_slice().into())),
    ];
    for count in 0..20 {
        let id = Id::new(2, count).unwrap();
        let mut row = Row::new(id, due, "other", b"payload".to_vec());
        // All of them have the same one.
        row.key = Some(b"key".as_slice().into());
        (row.failures, row.first_due) = (3, Due::from_millis(1_700_000_000_000));
        steps.push(Op::Insert(row.clone(), Level::Second.bucket(due)));
        let (at, error) = (due, "it said no".into());
        steps.push(match count {
            19 => Op::Archive(row, at),
            _ => Op::Bury { row, at, error },
        });
    }
    store.commit(201, &steps).unwrap();
    store
}

/// All that is in a store, and is found there.
fn picture(store: &mut MemoryStore) -> Vec<String> {
    let mut all = Vec::new();
    let page = store.handles(Scope::All, None, usize::MAX).unwrap();
    for (cursor, handle) in page.handles {
        let row = store.get(&handle).unwrap().unwrap();
        let found = row.key.as_ref().map(|key| store.find(&handle.handler, key));
        let tagged = row.tag().map(|tag| store.tagged(tag, Id::NONE, usize::MAX));
        all.push(format!("{cursor:?} {row:?} {found:?} {tagged:?}"));
    }
    let limit = PageLimit::rows(usize::MAX);
    let dead = store.dead(Scope::All, Id::NONE, limit).unwrap();
    all.extend(dead.dead.iter().map(|it| format!("{it:?}")));
    for handler in store.handlers().unwrap() {
        let archived = store.archived(&handler, ArchiveCursor::START, i64::MAX, usize::MAX);
        let archived = archived.unwrap();
        all.extend(archived.iter().map(|(_, it)| format!("{handler} {it:?}")));
    }
    let settings = store.settings().unwrap().into_iter();
    let settings = settings.filter(|it| !["transfer", "clean"].contains(&&*it.name));
    all.extend(settings.map(|it| format!("{it:?}")));
    all.push(format!("{:?}", store.counts().unwrap()));
    all
}

/// Few rows in a commit, so that each part takes several.
const LIMIT: PageLimit = PageLimit::rows(3);

fn moved(source: &mut dyn Store, target: &mut dyn Store) -> Result<String, TransferError> {
    moved_to("the new one", source, target)
}

fn moved_to(
    name: &str,
    source: &mut dyn Store,
    target: &mut dyn Store,
) -> Result<String, TransferError> {
    let names = ("the old one", name);
    let moved = transfer_by(LIMIT, source, target, names, &mut |_| {})?;
    Ok(moved.to_string())
}

/// Whether a service may use a store.
fn refusal(store: &mut dyn Store) -> Option<String> {
    refused_by_transfer(&store.settings().unwrap())
}

#[test]
fn everything_is_moved() {
    for seed in 0..20 {
        let (mut source, mut target) = (filled(seed), MemoryStore::new());
        let before = picture(&mut source);
        let told = moved(&mut source, &mut target).unwrap();
        assert_eq!(picture(&mut target), before, "seed {seed}");
        assert!(
            told.starts_with(&format!("{} timers, ", target.len())),
            "{told}"
        );
        assert_eq!(refusal(&mut target), None);
        let text = "its timers were moved to the new one: use that store";
        assert_eq!(refusal(&mut source).unwrap(), text);
        // Ids are not assigned again.
        assert!(target.begin().unwrap() > source.begin().unwrap());
        // It is done.
        assert_eq!(moved(&mut source, &mut target).unwrap(), told);
        let error = moved_to("a third one", &mut source, &mut MemoryStore::new());
        let text = "the old one: its timers were moved to the new one: use that store";
        assert_eq!(error.unwrap_err().to_string(), text);
        assert!(abandon_transfer(&mut source, "it").is_err());
    }
}

#[test]
fn an_interrupted_transfer_continues() {
    for commits in [false, true] {
        let mut is_interrupted = 0;
        for end in 0.. {
            let mut source = Mortal::new(filled(1));
            let mut target = Mortal::new(MemoryStore::new());
            let before = picture(&mut source.inner);
            (target.left, target.commits) = (end, commits);
            if moved(&mut source, &mut target).is_ok() {
                break;
            }
            is_interrupted += 1;
            // Services are kept out, of one that is empty as well.
            assert!(
                refusal(&mut source)
                    .unwrap()
                    .contains("moved to the new one")
            );
            // Unless its first commit was not carried out, or its last one was.
            assert!(end == 0 || commits || refusal(&mut target).is_some());
            target.left = usize::MAX;
            moved(&mut source, &mut target).unwrap();
            assert_eq!(picture(&mut target.inner), before, "at commit {end}");
            assert_eq!(refusal(&mut target), None);
        }
        assert!(is_interrupted > 30, "{is_interrupted}");
    }
}

#[test]
fn an_end_of_the_source_interrupts_nothing_either() {
    for (end, commits) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut source = Mortal::new(filled(2));
        let mut target = MemoryStore::new();
        let before = picture(&mut source.inner);
        (source.left, source.commits) = (end, commits);
        moved(&mut source, &mut target).unwrap_err();
        source.left = usize::MAX;
        moved(&mut source, &mut target).unwrap();
        assert_eq!(picture(&mut target), before);
        assert_eq!(refusal(&mut target), None);
        assert!(refusal(&mut source).is_some());
    }
}

#[test]
fn a_store_with_timers_is_no_target() {
    let (mut source, mut target) = (filled(3), filled(4));
    let error = moved(&mut source, &mut target).unwrap_err();
    assert_eq!(error.to_string(), "the new one: it is not empty");
    assert_eq!(refusal(&mut source), None);
}

#[test]
fn only_its_own_stores_continue_a_transfer() {
    let mut source = Mortal::new(filled(5));
    let mut target = Mortal::new(MemoryStore::new());
    target.left = 3;
    moved(&mut source, &mut target).unwrap_err();
    target.left = usize::MAX;
    let into = "the new one: timers are being moved into it";
    let begun = "the old one: its timers are being moved to the new one";
    let other = moved_to("a third one", &mut source, &mut MemoryStore::new());
    let error = other.unwrap_err().to_string();
    assert!(error.starts_with(begun), "{error}");
    for mut other in [filled(6), MemoryStore::new()] {
        let error = moved(&mut other, &mut target).unwrap_err().to_string();
        assert!(error.starts_with(into), "{error}");
    }
    // Given up, and begun again with another target.
    abandon_transfer(&mut source, "the old one").unwrap();
    assert_eq!(refusal(&mut source), None);
    let error = abandon_transfer(&mut source, "the old one").unwrap_err();
    let text = "the old one: no transfer from it is in progress";
    assert_eq!(error.to_string(), text);
    assert!(moved(&mut source, &mut target).is_err());
    moved(&mut source, &mut MemoryStore::new()).unwrap();
}

#[test]
fn a_target_that_loses_something_is_noticed() {
    struct Lossy(MemoryStore);

    impl Store for Lossy {
        forward!(it => it.0; begin maintain reads);

        fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
            let steps: Vec<Op> = steps.iter().cloned().map(without_payload).collect();
            self.0.commit(number, &steps)
        }
    }

    fn without_payload(op: Op) -> Op {
        match op {
            Op::Insert(row, bucket) => {
                let payload: Arc<[u8]> = Arc::from([]);
                Op::Insert(Row { payload, ..row }, bucket)
            }
            Op::All(steps) => Op::All(steps.into_iter().map(without_payload).collect()),
            op => op,
        }
    }

    let (mut source, mut target) = (filled(7), Lossy(MemoryStore::new()));
    let error = moved(&mut source, &mut target).unwrap_err().to_string();
    assert!(
        error.contains("the source has ") && error.contains("but the target "),
        "{error}"
    );
    assert!(refusal(&mut source).is_some() && refusal(&mut target).is_some());
}

/// A store with a deadline, for example.
#[test]
fn what_is_refused_is_written_in_smaller_parts() {
    struct Small(MemoryStore);

    impl Store for Small {
        forward!(it => it.0; begin maintain reads);

        fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
            let inserts = |steps: &[Op]| {
                steps
                    .iter()
                    .filter(|it| matches!(it, Op::Insert(..)))
                    .count()
            };
            let all = steps.iter().map(|it| match it {
                Op::All(steps) => inserts(steps),
                _ => 0,
            });
            match all.sum::<usize>() > 1 {
                true => Err(StoreError::definite("too late")),
                false => self.0.commit(number, steps),
            }
        }
    }

    let (mut source, mut target) = (filled(10), Small(MemoryStore::new()));
    let before = picture(&mut source);
    moved(&mut source, &mut target).unwrap();
    assert_eq!(picture(&mut target.0), before);
}

/// A store that is full for a while.
#[test]
fn a_full_target_takes_the_rest_later() {
    struct Full {
        inner: MemoryStore,
        refuses: u32,
    }

    impl Store for Full {
        forward!(it => it.inner; begin maintain reads);

        fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
            if self.refuses > 0 && number > 3 {
                self.refuses -= 1;
                // As a file does: inserts are refused one by one, unless they are in an `All`.
                if matches!(steps, [Op::All(_)]) {
                    return Err(StoreError::definite("no space"));
                }
                self.inner.set_full(true);
                let outcomes = self.inner.commit(number, steps);
                self.inner.set_full(false);
                return outcomes;
            }
            self.inner.commit(number, steps)
        }
    }

    let mut source = filled(8);
    let before = picture(&mut source);
    let mut target = Full {
        inner: MemoryStore::new(),
        refuses: 3,
    };
    let error = moved(&mut source, &mut target).unwrap_err().to_string();
    assert!(error.contains("no space"), "{error}");
    moved(&mut source, &mut target).unwrap();
    assert_eq!(picture(&mut target.inner), before);
}
