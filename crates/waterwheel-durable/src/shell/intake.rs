//! How many bytes of inserts may wait for their commits?
//!
//! They have a part of [`max_bytes_in_memory`](crate::Builder::max_bytes_in_memory) to themselves, so that timers that wait for a handler that hangs keep no insert
//! out: what an insert waits for is a commit, and nothing else. Inserts are let in by the order in which they have come. The permit of one stays beside the
//! channel of its answer, so it is given back however the request ends, also if its caller has gone.

use std::iter::Peekable;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waterwheel_durable_core::store::Row;

use crate::error::Error;
use waterwheel_durable_core::engine::ROW_BYTES;

/// The part that inserts have: one of so many.
const PARTS: usize = 4;

#[derive(Debug)]
pub(crate) struct Intake {
    free: Arc<Semaphore>,
    max: u32,
}

impl Intake {
    /// Splits what may be in memory. Returns what is left for the timers that are loaded as well.
    pub(crate) fn part_of(max_bytes: usize) -> (Intake, usize) {
        let max = u32::try_from(max_bytes / PARTS).unwrap_or(u32::MAX).max(1);
        let max = max.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let free = Arc::new(Semaphore::new(max as usize));
        (Intake { free, max }, max_bytes - max_bytes / PARTS)
    }

    /// How much a timer takes. One that is larger than all there is takes all of it.
    pub(crate) fn bytes(&self, timer: &Row) -> u32 {
        let bytes = ROW_BYTES + timer.bytes();
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max)
    }

    /// The next timers of a batch that are inserted at once: so many at most, and half of what may wait, so that the next ones are let in while these are written.
    pub(crate) fn part_of_batch(
        &self,
        batch: &mut Peekable<impl Iterator<Item = Row>>,
        max: usize,
    ) -> Vec<Row> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        let mut fits = |timer: &Row| {
            bytes += self.bytes(timer);
            bytes <= self.max / 2
        };
        while part.len() < max {
            match batch.next_if(|timer| fits(timer) || part.is_empty()) {
                Some(timer) => part.push(timer),
                None => break,
            }
        }
        part
    }

    /// Waits until so much may wait for a commit.
    pub(super) async fn admit(&self, bytes: u32) -> Result<OwnedSemaphorePermit, Error> {
        let free = Arc::clone(&self.free);
        free.acquire_many_owned(bytes)
            .await
            .map_err(|_| Error::ShuttingDown)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::{Duration, SystemTime};

    use futures::future::join_all;
    use futures::poll;
    use waterwheel_durable_core::store::{MemoryStore, Store};

    use super::super::shared::View;
    use super::PARTS;
    use crate::{Drain, Durable, NewTimer};
    use waterwheel_durable_core::engine::DEFAULT;

    const PAYLOAD: usize = 10_000;
    /// So many of them fit.
    const FIT: usize = 9;

    async fn service() -> Durable {
        let builder = Durable::builder().max_bytes_in_memory(100_000 * PARTS);
        builder.open_store(MemoryStore::new()).await.unwrap()
    }

    fn new_timer() -> NewTimer {
        let later = SystemTime::now() + Duration::from_secs(3_600);
        NewTimer::at("mail", later).bytes([7; PAYLOAD])
    }

    /// How many inserts are with the service, and how many bytes are free.
    fn taken(timers: &Durable) -> (usize, usize) {
        let free = timers.shared.intake.free.available_permits();
        (timers.shared.inspect(|view| view.waiting()), free)
    }

    /// Holds the store's thread up until the sender is dropped.
    fn hold_up(timers: &Durable) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel();
        let shared = Arc::clone(&timers.shared);
        tokio::spawn(async move {
            let wait = move |_: &mut dyn Store| {
                let _ = released.recv();
                Ok(())
            };
            shared.read(wait).await
        });
        release
    }

    #[tokio::test]
    async fn what_waits_for_a_commit_is_bounded() {
        let timers = service().await;
        let release = hold_up(&timers);
        tokio::task::yield_now().await;
        let insert = || Box::pin(timers.insert(new_timer()));
        let mut gone: Vec<_> = (0..FIT).map(|_| insert()).collect();
        for insert in &mut gone {
            assert!(poll!(insert).is_pending());
        }
        let mut others = Box::pin(join_all((0..100).map(|_| insert())));
        let mut waits = insert();
        let mut batch = Box::pin(timers.insert_many((0..100).map(|_| new_timer())));
        assert!(poll!(&mut others).is_pending() && poll!(&mut waits).is_pending());
        assert!(poll!(&mut batch).is_pending());
        assert_eq!(taken(&timers).0, FIT);
        // What the service has is written, whether or not its caller still waits. What waits to be let in is not.
        drop((gone, waits));
        assert_eq!(taken(&timers).0, FIT);
        drop(release);
        let (others, batch) = tokio::join!(others, batch);
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(batch.unwrap().len(), 100);
        let inserted = |view: &View<'_>| {
            view.engine()
                .namespaces()
                .get(DEFAULT)
                .unwrap()
                .counts
                .inserted
        };
        assert_eq!(timers.shared.inspect(inserted), FIT as u64 + 200);
        assert_eq!(taken(&timers), (0, 100_000));
    }

    #[tokio::test]
    async fn a_timer_that_takes_more_than_all_is_inserted() {
        let timers = service().await;
        let large = || NewTimer::at("mail", SystemTime::now()).bytes([7; 60_000]);
        let builder = Durable::builder().max_bytes_in_memory(0);
        let min = builder.open_store(MemoryStore::new()).await.unwrap();
        for timers in [timers, min] {
            let all = join_all((0..20).map(|_| timers.insert(large()))).await;
            assert!(all.iter().all(Result::is_ok));
            let batch = timers.insert_many((0..20).map(|_| large())).await;
            assert_eq!(batch.unwrap().len(), 20);
        }
    }

    #[tokio::test]
    async fn inserts_that_wait_end_with_the_service() {
        let timers = service().await;
        let release = hold_up(&timers);
        tokio::task::yield_now().await;
        let inserts = join_all((0..100).map(|_| timers.insert(new_timer())));
        let mut inserts = Box::pin(inserts);
        assert!(poll!(&mut inserts).is_pending());
        let limit = Drain::within(Duration::ZERO);
        let (ended, _) = tokio::join!(inserts, async {
            let shutdown = timers.shutdown(limit);
            drop(release);
            shutdown.await
        });
        let is_inserted = ended.iter().filter(|it| it.is_ok()).count();
        assert!((FIT..100).contains(&is_inserted), "{is_inserted}");
    }
}
