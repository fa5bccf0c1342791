//! The end of a service with its last handle, and with its runtime.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use waterwheel_durable::{Drain, Durable, Error, Event, HandlerOptions, NewTimer, Sqlite};

use crate::failures::the_dead_letter;
use crate::support::*;

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn two_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Waits until the file can be opened.
async fn opens(place: &Place) -> Durable {
    opens_by(place, Durable::builder).await
}

async fn opens_by(place: &Place, builder: impl Fn() -> waterwheel_durable::Builder) -> Durable {
    within(async {
        loop {
            match builder().store(Sqlite::new(place.file())).open().await {
                Ok(timers) => break timers,
                Err(error) => assert!(error.is_held(), "{error}"),
            }
            tokio::time::sleep(millis(1)).await;
        }
    })
    .await
}

#[tokio::test]
async fn the_file_is_closed_after_the_last_handle() {
    let (place, timers) = on_file().await;
    let _deliveries = Deliveries::of(&timers, "mail");
    let kept = timers.at("mail", in_an_hour()).insert().await.unwrap();
    let clone = timers.clone();
    drop(timers);
    clone.at("mail", in_an_hour()).insert().await.unwrap();
    drop(clone);
    let timers = opens(&place).await;
    let cancelled = within(timers.cancel(&kept)).await;
    assert_eq!(cancelled, Ok(waterwheel_durable::Cancelled::Done));
    shut_down(&timers).await;
}

#[tokio::test]
async fn the_last_handle_waits_for_deliveries_and_begins_none() {
    let place = Place::new();
    let (builder, shift) = shifted();
    let timers = place.open_by(builder).await;
    let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (Arc::clone(&begun), Arc::clone(&go_on));
    // A delivery has a handle of the service that does not keep it alive.
    let (sender, mut refused) = tokio::sync::mpsc::unbounded_channel();
    timers.handle("mail", move |delivery| {
        let (begun, go_on) = gates.clone();
        let sender = sender.clone();
        async move {
            begun.add_permits(1);
            go_on.acquire().await?.forget();
            sender.send(delivery.timers().at("mail", soon()).insert().await)?;
            Ok(())
        }
    });
    let first = timers.at("mail", soon()).insert().await.unwrap();
    within(begun.acquire()).await.unwrap().forget();
    let second = timers.at("mail", in_an_hour()).insert().await.unwrap();
    drop(timers);
    // The other timer comes due meanwhile.
    shift.suspend(2 * 3_600_000_000);
    assert!(Durable::open(place.file()).await.is_err());
    go_on.add_permits(10);
    let refused = within(refused.recv()).await.unwrap();
    assert_eq!(refused, Err(Error::ShuttingDown));
    let builder = || Durable::builder().shifted_clocks(Arc::clone(&shift));
    let timers = opens_by(&place, builder).await;
    assert_eq!(begun.available_permits(), 0);
    let mut deliveries = Deliveries::of(&timers, "mail");
    let seen = deliveries.next().await;
    assert!(seen.id == second.handle().id && seen.id != first.handle().id);
    shut_down(&timers).await;
    assert!(deliveries.rest().await.is_empty());
}

#[test]
fn a_runtime_that_ends_leaves_no_caller_waiting() {
    for runtime in [one_thread(), two_threads()] {
        let other = two_threads();
        let (timers, shelf) = runtime.block_on(in_memory());
        let _deliveries = Deliveries::of(&timers, "mail");
        shelf.hold();
        // Each request is made here, and awaited elsewhere.
        let insert = |key: u32| {
            let timers = timers.clone();
            let mut caller = Box::pin(async move {
                let timer = timers.at("mail", in_an_hour()).key(key.to_be_bytes());
                timer.insert().await
            });
            assert!(polled(caller.as_mut()).is_pending());
            other.spawn(caller)
        };
        let first = insert(0);
        other.block_on(until(|| shelf.commits() == 1));
        let others: Vec<_> = (1..50).map(insert).collect();
        let dead = other.spawn({
            let timers = timers.clone();
            async move { timers.dead_letters(None, 1).await }
        });
        let stopping = other.spawn({
            let timers = timers.clone();
            async move { timers.shutdown(Drain::within(HOUR)).await.map(drop) }
        });
        // In the middle of these requests, and of a commit. The rest wait for the next commit, which does not come.
        runtime.shutdown_background();
        other.block_on(until(|| {
            // Refused without waiting, once nothing more is asked of the store.
            let dead = Box::pin(timers.dead_letters(None, 1));
            polled(dead) == Poll::Ready(Err(Error::ShuttingDown))
        }));
        shelf.go_on();
        assert!(other.block_on(within(first)).unwrap().is_ok());
        for caller in others {
            let answer = other.block_on(within(caller)).unwrap();
            // Never sent, or not answered.
            let is_end = matches!(answer, Err(Error::ShuttingDown | Error::Unknown(_)));
            assert!(is_end, "{answer:?}");
        }
        assert_eq!(shelf.len(), 1);
        let _either = other.block_on(within(dead)).unwrap();
        assert_eq!(other.block_on(within(stopping)).unwrap(), Ok(()));
        let late = block_on(timers.at("mail", soon()).insert());
        assert_eq!(late, Err(Error::ShuttingDown));
    }
}

#[test]
fn a_runtime_that_never_ran_the_driver_leaves_no_caller_waiting() {
    let place = Place::new();
    let runtime = one_thread();
    let timers = {
        let _inside = runtime.enter();
        block_on(Durable::open(place.file())).unwrap()
    };
    // Nothing drives the runtime, and an insert needs no task.
    let timer = block_on(timers.at("mail", in_an_hour()).insert());
    assert!(timer.is_ok());
    drop(runtime);
    let late = block_on(timers.at("mail", in_an_hour()).insert());
    assert_eq!(late, Err(Error::ShuttingDown));
    let again = two_threads();
    let opened = again.block_on(opens(&place));
    again.block_on(shut_down(&opened));
}

#[test]
fn what_was_with_a_handler_as_the_runtime_ended_is_delivered_again() {
    let place = Place::new();
    let runtime = two_threads();
    let timers = runtime.block_on(place.open());
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    timers.handle("mail", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    });
    let batch = (0..10).map(|_| NewTimer::at("mail", soon()));
    let inserted = runtime.block_on(timers.insert_many(batch)).unwrap();
    runtime.block_on(until(|| begun.load(Ordering::SeqCst) == 10));
    drop(runtime);

    let runtime = one_thread();
    let delivered = runtime.block_on(async {
        let timers = opens(&place).await;
        let mut deliveries = Deliveries::of(&timers, "mail");
        let mut delivered = Vec::new();
        for _ in 0..10 {
            delivered.push(deliveries.next().await.id);
        }
        shut_down(&timers).await;
        delivered
    });
    assert!(
        inserted
            .iter()
            .all(|it| delivered.contains(&it.handle().id))
    );
}

#[test]
#[should_panic(expected = "there is no reactor running")]
fn a_service_is_opened_inside_of_a_runtime() {
    let _ = block_on(Durable::builder().store(Shelf::default()).open());
}

#[test]
fn an_open_that_is_dropped_closes_the_file() {
    let place = Place::new();
    let runtime = two_threads();
    runtime.block_on(async {
        for _ in 0..20 {
            let mut opening = Box::pin(Durable::open(place.file()));
            drop(polled(opening.as_mut()));
            drop(opening);
            shut_down(&opens(&place).await).await;
        }
    });
}

#[test]
fn a_service_is_shut_down_from_outside_of_its_runtime() {
    let place = Place::new();
    for flavor in [one_thread, two_threads] {
        let runtime = flavor();
        let timers = runtime.block_on(place.open());
        timers.handle("hangs", |_| std::future::pending());
        runtime.block_on(async {
            timers.at("hangs", soon()).insert().await.unwrap();
            until(|| timers.metrics().running > 0).await;
        });
        let driven = std::thread::spawn({
            let gone = timers.clone();
            move || block_on(gone.shutdown(Drain::within(millis(20))))
        });
        // A runtime of one thread runs while it is blocked on.
        let inside = runtime.block_on(within(timers.shutdown(Drain::within(HOUR))));
        let outside = driven.join().unwrap();
        assert!(inside.is_ok() && outside.is_ok_and(|it| it.abandoned > 0));
    }
}

#[test]
fn a_service_is_shut_down_after_its_runtime_has_ended() {
    for _ in 0..50 {
        let place = Place::new();
        let runtime = two_threads();
        let timers = runtime.block_on(place.open());
        runtime.shutdown_background();
        let stopped = block_on(timers.shutdown(Drain::within(HOUR)));
        assert_eq!(stopped.map(|it| it.abandoned), Ok(0));
        // The lock was released.
        let other = one_thread();
        let again = other.block_on(place.open());
        other.block_on(shut_down(&again));
    }
}

#[tokio::test]
async fn a_service_needs_no_timer_of_the_runtimes() {
    for drains in [false, true] {
        let place = Place::new();
        let timers = place.open_by(Durable::builder().retry_delays([])).await;
        match drains {
            true => drop(waterwheel::Timer::current().drain()),
            false => drop(waterwheel::Timer::current().shutdown()),
        }
        let mut deliveries = Deliveries::of(&timers, "mail");
        let limited = HandlerOptions::default().attempt_limit(millis(10));
        timers.handle_with("slow", limited, |_| std::future::pending());
        let late = timers.at("mail", soon()).insert().await.unwrap();
        timers.at("slow", soon()).insert().await.unwrap();
        assert_eq!(deliveries.next().await.id, late.handle().id);
        let (_, error) = the_dead_letter(&timers).await;
        assert_eq!(error, "the attempt did not end within 10ms");
        timers.handle("hangs", |_| std::future::pending());
        timers.at("hangs", soon()).insert().await.unwrap();
        until(|| timers.metrics().running == 1).await;
        let stopped = within(timers.shutdown(Drain::within(millis(10)))).await;
        assert_eq!(stopped.unwrap().abandoned, 1);
        // Another service can be opened there.
        shut_down(&place.open().await).await;
    }
}

#[test]
fn the_end_of_the_runtime_is_an_event() {
    for flavor in [one_thread, two_threads] {
        for shuts_down in [false, true] {
            let runtime = flavor();
            let (sender, events) = std::sync::mpsc::channel();
            let builder = Durable::builder().on_event(move |event| {
                let _ = sender.send(event.clone());
            });
            let timers = runtime.block_on(builder.store(Shelf::default()).open());
            let timers = timers.unwrap();
            if shuts_down {
                runtime.block_on(shut_down(&timers));
            }
            drop(runtime);
            let stopped = block_on(timers.shutdown(Drain::within(HOUR)));
            assert!(stopped.is_ok());
            let expected = if shuts_down {
                vec![]
            } else {
                vec![Event::RuntimeEnded]
            };
            // The hook is gone by now, and with it the sender.
            assert_eq!(events.iter().collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_shutdown_is_bounded_though_handlers_block_all_threads() {
    for (flavor, workers) in [(one_thread as fn() -> Runtime, 1), (two_threads, 2)] {
        let place = Place::new();
        let runtime = flavor();
        let timers = runtime.block_on(place.open());
        let begun = Arc::new(AtomicUsize::new(0));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let (counted, blocked) = (Arc::clone(&begun), Mutex::new(blocked));
        timers.handle("blocks", move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = blocked.lock().unwrap().recv();
            async { Ok(()) }
        });
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let driven = std::thread::spawn(move || runtime.block_on(ended));
        let other = two_threads();
        // Each insert turns the engine, so the delivery of the others depends on no thread of the runtime.
        other.block_on(within(async {
            while begun.load(Ordering::SeqCst) < workers {
                timers.at("blocks", soon()).insert().await.unwrap();
                tokio::time::sleep(millis(5)).await;
            }
        }));
        let stopped = block_on(timers.shutdown(Drain::within(millis(20))));
        assert!(stopped.unwrap().abandoned >= workers);
        // The file is free, although they still block.
        let again = other.block_on(place.open());
        other.block_on(shut_down(&again));
        drop(release);
        end.send(()).unwrap();
        driven.join().unwrap().unwrap();
    }
}

#[test]
fn a_shutdown_is_bounded_though_nothing_drives_the_runtime() {
    let runtime = one_thread();
    let (timers, _) = runtime.block_on(in_memory());
    timers.handle("mail", |_| async { Ok(()) });
    // Each insert turns the engine, so one timer is handed to a handler that never begins.
    let start = Instant::now();
    while timers.metrics().running == 0 {
        assert!(start.elapsed() < PATIENCE, "no handler is handed a timer");
        block_on(timers.at("mail", std::time::SystemTime::now()).insert()).unwrap();
    }
    let stopped = block_on(timers.shutdown(Drain::within(millis(20))));
    assert!(stopped.unwrap().abandoned >= 1);
    drop(runtime);
}

#[test]
fn a_request_is_unknown_if_the_runtime_ends_before_the_answer() {
    let runtime = one_thread();
    let (timers, shelf) = runtime.block_on(in_memory());
    shelf.hold();
    let mut asked = Box::pin(timers.at("mail", in_an_hour()).insert());
    assert!(polled(asked.as_mut()).is_pending());
    // Behind a commit that does not end.
    let mut waiting = Box::pin(timers.at("mail", in_an_hour()).insert());
    assert!(polled(waiting.as_mut()).is_pending());
    drop(runtime);
    shelf.go_on();
    assert!(block_on(asked).is_ok());
    let unknown = block_on(waiting).unwrap_err();
    assert!(matches!(unknown, Error::Unknown(_)) && !unknown.is_definite());
    // After the end, it is certain that nothing was written.
    let late = block_on(timers.at("mail", in_an_hour()).insert()).unwrap_err();
    assert!(late == Error::ShuttingDown && late.is_definite());
    assert_eq!(shelf.len(), 1);
}
