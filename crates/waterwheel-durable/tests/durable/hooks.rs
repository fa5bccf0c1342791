//! The event hook, and wakers, may do anything.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use waterwheel_durable::{Dead, Drain, Durable, Event};

use crate::support::*;

#[tokio::test]
async fn a_hook_that_panics_harms_no_timer() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let timers = Durable::builder().on_event(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        resume_unwind(Box::new("a bug"));
    });
    let timers = within(timers.store(Shelf::default()).open()).await.unwrap();
    let mut dead = Deliveries::ended(&timers, "dead", |_| Err(Dead::because("no")));
    let mut deliveries = Deliveries::of(&timers, "mail");
    for events in 1..=5 {
        timers.at("dead", soon()).insert().await.unwrap();
        dead.next().await;
        until(|| count.load(Ordering::SeqCst) == events).await;
        timers.at("mail", soon()).insert().await.unwrap();
        deliveries.next().await;
    }
    shut_down(&timers).await;
}

#[tokio::test]
async fn a_hook_may_use_the_service() {
    let service: Arc<OnceLock<Durable>> = Arc::default();
    let seen = Arc::new(AtomicUsize::new(0));
    let (hooked, counted) = (Arc::clone(&service), Arc::clone(&seen));
    let runtime = tokio::runtime::Handle::current();
    let timers = Durable::builder().on_event(move |event| {
        let Some(timers) = hooked.get().cloned() else {
            return;
        };
        // No lock is held.
        assert!(!timers.metrics().has_failed);
        if let Event::Unhandled { handler, .. } = event {
            timers.handle(handler, |_| async { Ok(()) });
        }
        counted.fetch_add(1, Ordering::SeqCst);
        runtime.spawn(async move { timers.after("mail", HOUR).insert().await });
    });
    let shelf = Shelf::default();
    let timers = within(timers.store(shelf.clone()).open()).await.unwrap();
    service.set(timers.clone()).unwrap();
    timers.at("surprise", soon()).insert().await.unwrap();
    // It was delivered, and only the timer that the hook inserted is left.
    until(|| seen.load(Ordering::SeqCst) == 1 && shelf.len() == 1).await;
    until(|| timers.metrics().in_memory == 0).await;
    shut_down(&timers).await;
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Bomb>) {
        resume_unwind(Box::new("a bug"));
    }
}

#[tokio::test]
async fn a_waker_that_panics_harms_no_other_caller() {
    let (timers, shelf) = in_memory().await;
    let mut deliveries = Deliveries::of(&timers, "mail");
    let bomb = Waker::from(Arc::new(Bomb));
    for _ in 0..5 {
        let commits = shelf.hold();
        let begun = timers.at("mail", in_an_hour()).insert();
        let mut begun = Box::pin(begun);
        let poll = begun.as_mut().poll(&mut Context::from_waker(&bomb));
        assert!(poll.is_pending());
        until(|| shelf.commits() > commits).await;
        // In one commit with others, and ahead of them.
        let mut inserts: Vec<_> = (0..9)
            .map(|_| Box::pin(timers.at("mail", soon()).insert()))
            .collect();
        for (at, insert) in inserts.iter_mut().enumerate() {
            let waker = if at % 3 == 0 { &bomb } else { Waker::noop() };
            let poll = insert.as_mut().poll(&mut Context::from_waker(waker));
            assert!(matches!(poll, Poll::Pending));
        }
        shelf.go_on();
        for insert in inserts {
            within(insert).await.unwrap();
        }
        deliveries.take(9).await;
    }
    // Also for one that is answered by the end of the service.
    let commits = shelf.hold();
    let mut first = Box::pin(timers.at("mail", in_an_hour()).insert());
    assert!(
        first
            .as_mut()
            .poll(&mut Context::from_waker(&bomb))
            .is_pending()
    );
    until(|| shelf.commits() > commits).await;
    let mut dead = Box::pin(timers.dead_letters(None, 1));
    assert!(
        dead.as_mut()
            .poll(&mut Context::from_waker(&bomb))
            .is_pending()
    );
    shelf.go_on();
    let stopped = within(timers.shutdown(Drain::within(HOUR))).await;
    assert!(stopped.is_ok());
}

struct CountedBomb(Arc<AtomicUsize>);

impl Wake for CountedBomb {
    fn wake(self: Arc<CountedBomb>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        resume_unwind(Box::new("a bug"));
    }
}

#[tokio::test]
async fn a_waker_that_panics_ends_no_shutdown_and_no_opening() {
    let count = Arc::new(AtomicUsize::new(0));
    let bomb = Waker::from(Arc::new(CountedBomb(Arc::clone(&count))));
    let mut bombed = Context::from_waker(&bomb);
    let place = Place::new();
    let mut opening = Box::pin(Durable::open(place.file()));
    assert!(opening.as_mut().poll(&mut bombed).is_pending());
    until(|| count.load(Ordering::SeqCst) == 1).await;
    let timers = within(opening).await.unwrap();
    let (gate, _) = Gate::begun(&timers, "mail").await;
    // Many of them, because wakers are called in batches.
    let mut all: Vec<_> = (0..100)
        .map(|_| Box::pin(timers.shutdown(Drain::within(HOUR))))
        .collect();
    for stopping in &mut all {
        assert!(stopping.as_mut().poll(&mut bombed).is_pending());
    }
    let calm = tokio::spawn({
        let timers = timers.clone();
        async move { timers.shutdown(Drain::within(HOUR)).await }
    });
    tokio::task::yield_now().await;
    gate.go_on.add_permits(1);
    assert!(within(calm).await.unwrap().is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 101);
    for stopping in all {
        assert!(within(stopping).await.is_ok());
    }
}

#[tokio::test]
async fn what_a_hook_holds_and_what_was_loaded_go_with_the_service() {
    let place = Place::new();
    let service: Arc<OnceLock<Durable>> = Arc::default();
    let hooked = Arc::clone(&service);
    let timers = place
        .open_by(Durable::builder().on_event(move |_| assert!(hooked.get().is_some())))
        .await;
    service.set(timers.clone()).unwrap();
    let watched = Arc::downgrade(&service);
    drop(service);
    timers.handle("mail", |_| async { Ok(()) });
    let payload: Arc<[u8]> = Arc::from([7; 100]);
    let loaded = Arc::downgrade(&payload);
    // In memory as soon as it is inserted, and not due before the end.
    let due = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
    added(timers.at("mail", due).bytes(payload)).await;
    assert!(watched.upgrade().is_some());
    shut_down(&timers).await;
    assert!(watched.upgrade().is_none() && loaded.upgrade().is_none());
    assert_eq!(timers.metrics().in_memory, 0);
}
