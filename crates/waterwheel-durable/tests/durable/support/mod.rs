//! Helpers shared by the tests.

mod shelf;

use std::future::Future;
use std::ops::DerefMut;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};
use waterwheel_durable::{
    Builder, Delivery, Drain, Durable, Event, Failure, HandlerOptions, Id, Insert, Inserted,
    NewTimer, Shift, Sqlite,
};

pub(crate) use shelf::{Fault, Shelf};

/// Defines a test on each flavor of runtime, from an `async fn` with its name.
macro_rules! on_both_flavors {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test]
            async fn current_thread() {
                super::$name().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn multi_thread() {
                super::$name().await;
            }
        })*
    };
}

/// Anything that takes longer counts as hanging. No test measures time by this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn soon() -> SystemTime {
    SystemTime::now() + millis(30)
}

pub(crate) fn in_an_hour() -> SystemTime {
    SystemTime::now() + HOUR
}

/// Waits for a future, and panics if it hangs.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller} hangs"),
        }
    }
}

/// Waits until a condition holds, and panics if it never does.
#[track_caller]
pub(crate) fn until(holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let mut holds = holds;
    within(async move {
        while !holds() {
            tokio::time::sleep(millis(1)).await;
        }
    })
}

pub(crate) async fn shut_down(timers: &Durable) {
    let stopped = within(timers.shutdown(Drain::within(PATIENCE))).await;
    assert_eq!(stopped.unwrap().abandoned, 0);
}

/// A service with an in-memory store.
pub(crate) async fn in_memory() -> (Durable, Shelf) {
    in_memory_by(Durable::builder()).await
}

pub(crate) async fn in_memory_by(builder: Builder) -> (Durable, Shelf) {
    let shelf = Shelf::default();
    let timers = within(builder.store(shelf.clone()).open()).await.unwrap();
    (timers, shelf)
}

/// A builder whose events are sent to the returned receiver.
pub(crate) fn reported(builder: Builder) -> (Builder, mpsc::UnboundedReceiver<Event>) {
    let (sender, events) = mpsc::unbounded_channel();
    let builder = builder.on_event(move |event| drop(sender.send(event.clone())));
    (builder, events)
}

/// A builder with clocks that can be moved.
pub(crate) fn shifted() -> (Builder, Arc<Shift>) {
    let shift = Arc::new(Shift::default());
    (Durable::builder().shifted_clocks(Arc::clone(&shift)), shift)
}

/// The service's present time.
pub(crate) fn present(shift: &Shift) -> SystemTime {
    let micros = Duration::from_micros(shift.wall().unsigned_abs());
    match shift.wall() >= 0 {
        true => SystemTime::now() + micros,
        false => SystemTime::now() - micros,
    }
}

/// Polls a future once, outside of any task.
pub(crate) fn polled<F: Future>(mut future: Pin<impl DerefMut<Target = F>>) -> Poll<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    future.as_mut().poll(&mut context)
}

pub(crate) async fn added(insert: Insert<'_>) -> Inserted {
    within(insert.insert()).await.unwrap()
}

/// A service on a new file.
pub(crate) async fn on_file() -> (Place, Durable) {
    let place = Place::new();
    let timers = place.open().await;
    (place, timers)
}

/// Inserts timers that are due soon, at the same time.
pub(crate) async fn insert(timers: &Durable, handler: &str, count: usize) {
    let due = soon();
    let batch = (0..count).map(|_| NewTimer::at(handler, due));
    within(timers.insert_many(batch)).await.unwrap();
}

/// A temporary folder for a file.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("timers.db")
    }

    pub(crate) async fn open(&self) -> Durable {
        self.open_by(Durable::builder()).await
    }

    /// Shuts a service down, and opens the file again.
    pub(crate) async fn reopen(&self, timers: Durable) -> Durable {
        shut_down(&timers).await;
        drop(timers);
        self.open().await
    }

    pub(crate) async fn open_by(&self, builder: Builder) -> Durable {
        within(builder.store(Sqlite::new(self.file())).open())
            .await
            .unwrap()
    }
}

/// A timer as a handler has received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) attempt: u32,
    pub(crate) due: SystemTime,
    pub(crate) payload: Arc<[u8]>,
    /// When it was called, by the machine's clock.
    pub(crate) at: SystemTime,
}

impl Seen {
    pub(crate) fn of(delivery: &Delivery) -> Seen {
        Seen {
            id: delivery.id(),
            attempt: delivery.attempt(),
            due: delivery.due(),
            payload: Arc::clone(delivery.payload()),
            at: SystemTime::now(),
        }
    }
}

/// The deliveries of a handler.
pub(crate) struct Deliveries(mpsc::UnboundedReceiver<Seen>);

impl Deliveries {
    /// The deliveries of a new handler that always succeeds.
    pub(crate) fn of(timers: &Durable, handler: &str) -> Deliveries {
        Deliveries::ended(timers, handler, |_| Ok(()))
    }

    /// The deliveries of a new handler that ends like this.
    pub(crate) fn ended(
        timers: &Durable,
        handler: &str,
        end: impl Fn(&Delivery) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Deliveries {
        let (sender, receiver) = mpsc::unbounded_channel();
        timers.handle(handler, move |delivery| {
            let _ = sender.send(Seen::of(&delivery));
            let end = end(&delivery);
            async { end }
        });
        Deliveries(receiver)
    }

    pub(crate) async fn next(&mut self) -> Seen {
        within(self.0.recv()).await.expect("the handler is there")
    }

    /// Same as [`next`](Deliveries::next), outside of a runtime.
    pub(crate) async fn next_untimed(&mut self) -> Seen {
        self.0.recv().await.expect("the handler is there")
    }

    pub(crate) async fn take(&mut self, count: usize) -> Vec<Seen> {
        let mut all = Vec::new();
        while all.len() < count {
            all.push(self.next().await);
        }
        all
    }

    /// The deliveries up to now.
    pub(crate) fn so_far(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }

    /// All deliveries that come before the handler is dropped, which happens when the service ends.
    pub(crate) async fn rest(mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(seen) = within(self.0.recv()).await {
            all.push(seen);
        }
        all
    }
}

/// A handler that waits for permission to continue.
pub(crate) struct Gate {
    begun: Arc<Semaphore>,
    pub(crate) go_on: Arc<Semaphore>,
    ended: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn of(timers: &Durable, handler: &str) -> Gate {
        Gate::with(timers, handler, HandlerOptions::default())
    }

    /// A gate with a timer that is already with its handler.
    pub(crate) async fn begun(timers: &Durable, handler: &str) -> (Gate, Inserted) {
        let gate = Gate::of(timers, handler);
        let timer = added(timers.at(handler, soon())).await;
        gate.has_begun().await;
        (gate, timer)
    }

    pub(crate) fn with(timers: &Durable, handler: &str, options: HandlerOptions) -> Gate {
        let gate = Gate {
            begun: Arc::new(Semaphore::new(0)),
            go_on: Arc::new(Semaphore::new(0)),
            ended: Arc::default(),
        };
        let (begun, go_on) = (Arc::clone(&gate.begun), Arc::clone(&gate.go_on));
        let ended = Arc::clone(&gate.ended);
        timers.handle_with(handler, options, move |_| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            let ended = Arc::clone(&ended);
            async move {
                begun.add_permits(1);
                go_on.acquire().await?.forget();
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        });
        gate
    }

    pub(crate) async fn has_begun(&self) {
        within(self.begun.acquire()).await.unwrap().forget();
    }

    /// The number of handlers that have begun, in addition to those that were waited for.
    pub(crate) fn begun_more(&self) -> usize {
        self.begun.available_permits()
    }

    /// The number of handlers that have continued to their end.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

struct Rouse(std::sync::mpsc::Sender<()>);

impl Wake for Rouse {
    fn wake(self: Arc<Rouse>) {
        let _ = self.0.send(());
    }
}

/// Waits for a future on this thread, without a runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let (sender, woken) = std::sync::mpsc::channel();
    let waker = Waker::from(Arc::new(Rouse(sender)));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        woken.recv_timeout(PATIENCE).expect("it hangs");
    }
}
