//! Limits how many bytes of inserts may wait for their commits.
//!
//! Inserts have their own share of [`max_bytes_in_memory`](crate::Builder::max_bytes_in_memory), so timers waiting for a hanging handler do not block inserts: an
//! insert waits for a commit and nothing else. Inserts are admitted in the order in which they arrive. The permit of an insert is kept with the
//! channel of its answer, so it is returned however the request ends, even if its caller is gone.

use std::iter::Peekable;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waterwheel_durable_core::store::Row;

use crate::error::Error;
use waterwheel_durable_core::engine::ROW_BYTES;

/// The share of inserts is one part out of this many.
const PARTS: usize = 4;

#[derive(Debug)]
pub(crate) struct Intake {
    free: Arc<Semaphore>,
    max: u32,
}

impl Intake {
    /// Splits the memory between inserts and loaded timers. Returns the intake, and what is left for loaded timers.
    pub(crate) fn part_of(max_bytes: usize) -> (Intake, usize) {
        let max = u32::try_from(max_bytes / PARTS).unwrap_or(u32::MAX).max(1);
        let max = max.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let free = Arc::new(Semaphore::new(max as usize));
        (Intake { free, max }, max_bytes - max_bytes / PARTS)
    }

    /// The bytes that a timer takes, at most the whole share.
    pub(crate) fn bytes(&self, timer: &Row) -> u32 {
        let bytes = ROW_BYTES + timer.bytes();
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max)
    }

    /// Takes the next part of a batch: at most `max` timers and half of the share, so that the next part can be admitted while this one is written.
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

    /// Waits until this many bytes may wait for a commit.
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
    /// The number of such timers that fit.
    const FIT: usize = 9;

    async fn service() -> Durable {
        let builder = Durable::builder().max_bytes_in_memory(100_000 * PARTS);
        builder.store(MemoryStore::new()).open().await.unwrap()
    }

    fn new_timer() -> NewTimer {
        let later = SystemTime::now() + Duration::from_secs(3_600);
        NewTimer::at("mail", later).bytes([7; PAYLOAD])
    }

    /// The number of inserts in the service, and the number of free bytes.
    fn taken(timers: &Durable) -> (usize, usize) {
        let free = timers.shared.intake.free.available_permits();
        (timers.shared.inspect(|view| view.waiting()), free)
    }

    /// Blocks the store's thread until the sender is dropped.
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
        // Admitted inserts are written, whether or not their callers still wait. Inserts waiting for admission are not.
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
        let min = builder.store(MemoryStore::new()).open().await.unwrap();
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
