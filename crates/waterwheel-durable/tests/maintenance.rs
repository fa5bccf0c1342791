//! A store's maintenance after a commit delays no answer.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use waterwheel_durable::store::{MemoryStore, Op, Outcome, Store, StoreError, forward};
use waterwheel_durable::{Durable, Error, NewTimer};

/// A store that reports its maintenance, and waits until the test says how that ends.
struct Slow {
    inner: MemoryStore,
    refuses: bool,
    begins: Sender<()>,
    ends: Receiver<Result<(), StoreError>>,
}

impl Store for Slow {
    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        match self.refuses {
            true => Err(StoreError::definite("the disk is full")),
            false => self.inner.commit(number, steps),
        }
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        self.begins.send(()).unwrap();
        self.ends.recv().unwrap_or(Ok(()))
    }

    forward!(this => this.inner; begin reads);
}

/// A service, a receiver of its store's maintenance reports, and a sender that lets it continue.
async fn service(refuses: bool) -> (Durable, Receiver<()>, Sender<Result<(), StoreError>>) {
    let (begins, begun) = channel();
    let (end, ends) = channel();
    let store = Slow {
        inner: MemoryStore::new(),
        refuses,
        begins,
        ends,
    };
    let timers = Durable::builder().store(store).open().await.unwrap();
    (timers, begun, end)
}

fn timer() -> NewTimer {
    NewTimer::after("mail", Duration::from_secs(3_600))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_before_the_maintenance_of_the_store() {
    for refuses in [false, true] {
        let (timers, begun, end) = service(refuses).await;
        for _ in 0..3 {
            // The store continues once the answer has arrived.
            let inserted = timers.insert_many([timer()]);
            let inserted = tokio::time::timeout(Duration::from_secs(60), inserted).await;
            let inserted = inserted.expect("the answer waits for the store");
            assert_eq!(inserted.is_err(), refuses, "{inserted:?}");
            begun.recv_timeout(Duration::from_secs(60)).unwrap();
            end.send(Ok(())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_in_maintenance_has_failed() {
    let (timers, begun, end) = service(false).await;
    timers.insert_many([timer()]).await.unwrap();
    begun.recv_timeout(Duration::from_secs(60)).unwrap();
    // The next insert is requested during maintenance, or after it.
    let (next, ()) = tokio::join!(timers.insert_many([timer()]), async {
        let error = StoreError::indeterminate("a sync has failed");
        end.send(Err(error)).unwrap();
    });
    let words = next.unwrap_err();
    assert!(words.to_string().contains("a sync has failed"), "{words:?}");
    assert!(matches!(words, Error::Failed(_) | Error::Unknown(_)));
    let refused = timers.insert_many([timer()]).await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
    assert!(begun.try_recv().is_err(), "nothing more is asked of it");
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_becomes_shorter_while_nothing_is_done() {
    use waterwheel_durable::store::{Due, Id, Level, Row};
    use waterwheel_durable_sqlite::{Reader, SqliteStore};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timers.db");
    let mut store = SqliteStore::open(&path).unwrap();
    store.begin().unwrap();
    let row = |number: u64| {
        let due = Due::from_millis(4_000_000_000_000 + number as i64);
        Row::new(Id::from_stored(number), due, "mail", [7; 3_000])
    };
    let rows: Vec<Row> = (1..=3_000).map(row).collect();
    let inserts = rows
        .iter()
        .map(|row| Op::Insert(row.clone(), Level::Second.bucket(row.due)));
    store.commit(1, &inserts.collect::<Vec<_>>()).unwrap();
    let settles = rows.iter().map(|row| Op::Settle(row.clone()));
    store.commit(2, &settles.collect::<Vec<_>>()).unwrap();
    drop(store);
    let used = || Reader::open(&path).unwrap().extent().unwrap().used_bytes;
    let before = used();
    assert!(before > 9_000_000, "{before} bytes");
    let timers = Durable::open(&path).await.unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(120);
    while used() > 5_000_000 {
        assert!(std::time::Instant::now() < end, "{} bytes", used());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(timers);
}
