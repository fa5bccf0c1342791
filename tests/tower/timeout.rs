//! A limit for a response of any kind.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use http::Request;
use tower::{Layer, Service, ServiceExt, service_fn};
use waterwheel::error::{Elapsed, Error};
use waterwheel::rpc::Deadline;
use waterwheel::tower::{
    BoxError, ClientDeadlineLayer, DeadlineLayer, HttpTimeoutLayer, Timeout, TimeoutLayer,
};
use waterwheel::{Duration, Instant, Timer, sleep};

use crate::bodies::Broken;
use crate::services::{Slow, at_once, stuck_service};
use crate::support::{
    HOUR, assert_settled, current_thread, in_an_ending_runtime, ms, on_manual_clock, own_timer,
    poll_once, waiting,
};

/// Waits for this time, and responds with it.
async fn wait(millis: u64) -> Result<u64, Broken> {
    sleep(ms(millis)).await;
    Ok(millis)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cut_at_its_limit_and_not_before() {
    let mut service = TimeoutLayer::new(ms(10)).layer(service_fn(wait));
    assert_eq!(service.call(9).await.unwrap(), 9);
    let start = Instant::now();
    let error = service.call(11).await.unwrap_err();
    assert_eq!(start.elapsed(), ms(10));
    let elapsed: Box<Elapsed> = error.downcast().unwrap();
    assert!(!elapsed.was_stopped());
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_drops_what_is_inside() {
    let (stuck, life) = stuck_service();
    let mut service = Timeout::new(stuck, ms(10));
    let call = waiting(Box::pin(service.call(())));
    assert_eq!(Timer::current().metrics().pending(), 1);
    drop(call);
    assert_eq!(life.strong_count(), 0);
    assert_settled(&Timer::current());
    // A call that is cut is dropped at once.
    let (stuck, life) = stuck_service();
    let mut service = Timeout::new(stuck, ms(10));
    let mut call = pin!(service.call(()));
    assert!(call.as_mut().await.is_err());
    assert_eq!(life.strong_count(), 0, "while the outer future is kept");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_inner_service_passes_through() {
    let mut service = Timeout::new(service_fn(async |()| Err::<(), _>(Broken)), ms(10));
    let error = service.call(()).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Broken));
    let mut service = Timeout::new(Slow::Broken, ms(10));
    let error = service.ready().await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Broken));
}

#[tokio::test(start_paused = true)]
async fn time_to_become_ready_is_not_counted() {
    let start = Instant::now();
    let mut service = Timeout::new(Slow::Readying(sleep(ms(50))), ms(10));
    let ready = service.ready().await.unwrap();
    assert!(ready.call(()).await.is_ok());
    assert_eq!(start.elapsed(), ms(55));
}

#[tokio::test(start_paused = true)]
async fn a_limit_beyond_all_instants_means_never() {
    let mut service = Timeout::new(service_fn(wait), Duration::MAX);
    let call = waiting(Box::pin(service.call(5)));
    // The one timer is the handler's.
    assert_eq!(Timer::current().metrics().pending(), 1);
    assert_eq!(call.await.unwrap(), 5);
    let timer = own_timer();
    let mut service = TimeoutLayer::new(Duration::MAX)
        .on(&timer)
        .layer(service_fn(wait));
    assert_eq!(service.call(5).await.unwrap(), 5);
    assert_eq!(timer.metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_lets_what_is_ready_pass() {
    let mut service = Timeout::new(service_fn(async |()| Ok::<_, Broken>(7)), Duration::ZERO);
    assert_eq!(service.call(()).await.unwrap(), 7);
    let mut service = Timeout::new(service_fn(wait), Duration::ZERO);
    assert!(service.call(60_000).await.unwrap_err().is::<Elapsed>());
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_takes_nothing_new_refuses_the_call() {
    let timer = Timer::builder().max_pending(1).start().unwrap();
    let calls = Rc::new(Cell::new(0));
    let count = Rc::clone(&calls);
    let handler = service_fn(move |millis| {
        count.set(count.get() + 1);
        wait(millis)
    });
    let mut service = TimeoutLayer::new(ms(10)).on(&timer).layer(handler);
    let first = service.call(5);
    let shed = service.call(5).await.unwrap_err();
    assert!(shed.downcast_ref::<Error>().unwrap().is_at_capacity());
    assert_eq!(first.await.unwrap(), 5);
    // The response has released its place.
    assert_eq!(service.call(5).await.unwrap(), 5);
    timer.shutdown();
    let stopped = service.call(5).await.unwrap_err();
    assert!(stopped.downcast_ref::<Error>().unwrap().is_shutdown());
    assert_eq!(calls.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_full_or_stopped_refuses_every_call() {
    let full = Timer::builder().max_pending(1).start().unwrap();
    let _place = full.sleep(ms(10));
    for (refused, error) in refusals(Some(&full)).await {
        assert!(error.is_at_capacity(), "{refused}");
    }
    Timer::current().shutdown();
    for (refused, error) in refusals(None).await {
        assert!(error.is_shutdown(), "{refused}");
    }
}

/// The errors of calls through each layer, on this timer or on that of the runtime.
async fn refusals(timer: Option<&Timer>) -> Vec<(&'static str, Error)> {
    let handler = || at_once(|_| panic!("it is not called"));
    let request = || Request::new(());
    let deadline = Deadline::after(ms(10));
    let (mut timeout, mut never) = (TimeoutLayer::new(ms(10)), TimeoutLayer::new(Duration::MAX));
    let (mut http, mut frames) = (HttpTimeoutLayer::new(ms(10)), HttpTimeoutLayer::new(HOUR));
    let (mut server, mut client) = (DeadlineLayer::new().cap(ms(10)), ClientDeadlineLayer::new());
    if let Some(timer) = timer {
        (timeout, never) = (timeout.on(timer), never.on(timer));
        (http, frames) = (http.on(timer), frames.on(timer));
        (server, client) = (server.on(timer), client.on(timer));
    }
    let frames = frames.frame_timeout(ms(10));
    let mut client = client.layer(handler());
    let sent = deadline.sync_scope(|| client.call(request()));
    let mut outcomes = vec![
        (
            "timeout",
            timeout.layer(handler()).call(request()).await.map(drop),
        ),
        (
            "http",
            http.layer(handler()).call(request()).await.map(drop),
        ),
        (
            "frames",
            frames.layer(handler()).call(request()).await.map(drop),
        ),
        (
            "server",
            server.layer(handler()).call(request()).await.map(drop),
        ),
        ("client", sent.await.map(drop)),
    ];
    if timer.is_none() {
        outcomes.push((
            "never",
            never.layer(handler()).call(request()).await.map(drop),
        ));
    }
    let error = |(layer, outcome): (_, Result<(), BoxError>)| {
        (layer, *outcome.unwrap_err().downcast::<Error>().unwrap())
    };
    outcomes.into_iter().map(error).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_timer_is_stopped_says_so() {
    let timer = own_timer();
    let mut service = TimeoutLayer::new(ms(10)).on(&timer).layer(service_fn(wait));
    let call = waiting(Box::pin(service.call(60_000)));
    timer.shutdown();
    let error = call.await.unwrap_err();
    assert!(error.downcast_ref::<Elapsed>().unwrap().was_stopped());
}

#[test]
fn a_limit_runs_by_the_clock_of_its_timer() {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    let (stuck, _life) = stuck_service();
    let mut service = TimeoutLayer::new(ms(10)).on(&timer).layer(stuck);
    let mut call = waiting(Box::pin(service.call(())));
    clock.advance(ms(9));
    assert!(poll_once(&mut call).is_pending());
    clock.advance(ms(1));
    assert!(poll_once(&mut call).is_ready());
}

#[test]
fn a_call_in_a_task_of_an_ending_runtime_is_not_cut() {
    in_an_ending_runtime(|| {
        let stuck = service_fn(|()| std::future::pending::<Result<(), Broken>>());
        let mut limited = Timeout::new(stuck, HOUR);
        assert!(poll_once(&mut Box::pin(limited.call(()))).is_pending());
        let _scoped = waiting(Box::pin(Deadline::after(HOUR).scope(limited.call(()))));
    });
}
