//! The client's side of a deadline: into the header.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;

use http::{HeaderMap, Request, Response};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tower::retry::{Policy, RetryLayer};
use tower::{Layer, Service, ServiceBuilder, service_fn};
use waterwheel::error::Elapsed;
use waterwheel::rpc::Deadline;
use waterwheel::tower::{ClientDeadlineLayer, DeadlineLayer};
use waterwheel::{Duration, Instant, ManualClock, Sleep, Timer, sleep};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Broken, Script, read};
use crate::services::{at_once, once, stuck_service};
use crate::support::{
    assert_settled, current_thread, ms, multi_thread, on_manual_clock, poll_once, within,
};

/// The header that a client sends.
async fn sent(headers: HeaderMap) -> Option<String> {
    let mut sent = None;
    let server = at_once(|request| {
        let values: Vec<_> = request.headers().get_all("grpc-timeout").iter().collect();
        assert!(values.len() <= 1);
        sent = values
            .first()
            .map(|value| value.to_str().unwrap().to_owned());
        Script::new([])
    });
    let mut client = ClientDeadlineLayer::new().layer(server);
    let mut request = Request::new(());
    *request.headers_mut() = headers;
    client.call(request).await.unwrap();
    drop(client);
    sent
}

fn header(timeout: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-timeout", timeout.parse().unwrap());
    headers
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_sent_rounded_down() {
    for (left, expected) in [
        (Duration::from_nanos(1), "1n"),
        (ms(250), "250000u"),
        (Duration::from_nanos(1_234_567_899), "1234567u"),
        (Duration::from_secs(86_400 * 30), "2592000S"),
    ] {
        let sent = Deadline::at(Instant::now() + left).scope(sent(HeaderMap::new()));
        assert_eq!(sent.await.unwrap().unwrap(), expected, "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_that_asks_for_less_stays() {
    let deadline = Deadline::after(ms(250));
    for (before, expected) in [
        ("200m", "200m"),
        ("250m", "250m"),
        ("251m", "250000u"),
        ("later", "250000u"),
    ] {
        let sent = deadline.scope(sent(header(before)));
        assert_eq!(sent.await.unwrap().unwrap(), expected, "{before}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_headers_the_smallest_is_sent() {
    let deadline = Deadline::after(ms(250));
    for (before, expected) in [
        (["300m", "200m", "100m"], "100m"),
        (["100m", "later", "200m"], "100m"),
        (["later", "", "200m"], "200m"),
        (["300m", "1S", "later"], "250000u"),
    ] {
        let mut headers = HeaderMap::new();
        for value in before {
            headers.append("grpc-timeout", value.parse().unwrap());
        }
        let sent = deadline.scope(sent(headers));
        assert_eq!(sent.await.unwrap().unwrap(), expected, "{before:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_a_request_stays_as_it_is() {
    assert_eq!(sent(HeaderMap::new()).await, None);
    assert_eq!(sent(header("1H")).await.unwrap(), "1H");
    assert_eq!(sent(header("later")).await.unwrap(), "later");
    assert_eq!(Timer::current().metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_makes_no_call() {
    let server = at_once(|_| panic!("it is not called"));
    let mut client = ClientDeadlineLayer::new().layer(server);
    for passed in [Instant::now(), Instant::now() - ms(5)] {
        let call = Deadline::at(passed).sync_scope(|| client.call(Request::new(())));
        let error = call.await.unwrap_err();
        assert!(error.is::<Elapsed>());
    }
    // In a scope, the scope ends the call.
    let passed = Deadline::at(Instant::now() - ms(5));
    let scope = passed.scope(async {
        let result = client.call(Request::new(())).await.map(drop);
        panic!("the handler goes on with {result:?}");
    });
    assert!(scope.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_too_late_is_left_to_the_server() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let goes_on = Cell::new(false);
    let handler = service_fn(async |_: Request<()>| {
        let called = at_once(|_| panic!("it is not called"));
        let mut client = ClientDeadlineLayer::new().layer(called);
        clock.advance(ms(10));
        let _error = client.call(Request::new(())).await;
        goes_on.set(true);
        Ok::<_, Broken>(Response::new(Script::new([])))
    });
    let mut server = DeadlineLayer::new().cap(ms(10)).on(&timer).layer(handler);
    let answer = server.call(Request::new(())).await;
    assert!(!goes_on.get(), "the handler goes on");
    assert!(answer.unwrap_err().is::<Elapsed>());
}

#[tokio::test(start_paused = true)]
async fn a_call_in_its_scope_is_dropped_with_the_scope() {
    let (server, life) = stuck_service();
    let mut client = ClientDeadlineLayer::new().layer(server);
    let start = Instant::now();
    let scope = Deadline::after(ms(10)).scope(async {
        let result = client.call(Request::new(())).await.map(drop);
        panic!("the handler goes on with {result:?}");
    });
    assert!(scope.await.is_err());
    assert_eq!((start.elapsed(), life.strong_count()), (ms(10), 0));
    // Only the timer of the scope is used.
    assert_eq!(assert_settled(&Timer::current()).armed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_leaves_its_scope_is_cut() {
    let (server, life) = stuck_service();
    let mut client = ClientDeadlineLayer::new().layer(server);
    let start = Instant::now();
    let mut call = Deadline::after(ms(10)).sync_scope(|| Box::pin(client.call(Request::new(()))));
    // A scope that ends later does not end the call in time.
    let later = Deadline::after(ms(60)).scope(async {
        let error = call.as_mut().await.map(drop).unwrap_err();
        (error.is::<Elapsed>(), start.elapsed())
    });
    assert_eq!(later.await, Ok((true, ms(10))));
    assert_eq!(life.strong_count(), 0);
}

// The one that ends first counts, wherever the inner one was made.
#[tokio::test(start_paused = true)]
async fn a_call_in_nested_scopes_is_dropped_with_the_first_to_end() {
    for (outer, inner, is_made_within) in [(60, 10, true), (60, 10, false), (10, 60, false)] {
        let (server, life) = stuck_service();
        let mut client = ClientDeadlineLayer::new().layer(server);
        let start = Instant::now();
        let [outer, inner] = [outer, inner].map(|after| Deadline::at(start + ms(after)));
        let handler = async {
            let result = client.call(Request::new(())).await.map(drop);
            panic!("the handler goes on with {result:?}");
        };
        let ended = if is_made_within {
            outer.scope(async { inner.scope(handler).await }).await
        } else {
            outer.scope(inner.scope(handler)).await
        };
        assert!(ended.and_then(|inner| inner).is_err());
        assert_eq!((start.elapsed(), life.strong_count()), (ms(10), 0));
    }
}

/// Polls a future within a function that has a deadline, which does not end it.
async fn within_function<F: Future>(
    deadline: Deadline,
    timer: Option<&Timer>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let poll = || future.as_mut().poll(context);
        match timer {
            Some(timer) => deadline.sync_scope_on(timer, poll),
            None => deadline.sync_scope(poll),
        }
    })
    .await
}

// A function in a scope that ends later, and a scope that ends later in a function.
#[tokio::test(start_paused = true)]
async fn a_call_that_a_functions_deadline_limits_is_cut() {
    let timer = Timer::current();
    for timer in [None, Some(&timer)] {
        for is_function_inner in [false, true] {
            let (server, life) = stuck_service();
            let mut client = ClientDeadlineLayer::new().layer(server);
            let start = Instant::now();
            let [function, scope] = [10, 60].map(|after| Deadline::at(start + ms(after)));
            let call = async { client.call(Request::new(())).await.map(drop) };
            let ended = if is_function_inner {
                scope.scope(within_function(function, timer, call)).await
            } else {
                within_function(function, timer, scope.scope(call)).await
            };
            let error = ended.expect("the scope ends later").unwrap_err();
            assert!(error.is::<Elapsed>());
            assert_eq!((start.elapsed(), life.strong_count()), (ms(10), 0));
        }
    }
}

/// Retries after a pause, for as long as a server is broken.
#[derive(Clone)]
struct Persistent;

impl<T, E> Policy<Request<()>, T, E> for Persistent {
    type Future = Sleep;

    fn retry(&mut self, _: &mut Request<()>, result: &mut Result<T, E>) -> Option<Sleep> {
        result.is_err().then(|| sleep(ms(40)))
    }

    fn clone_request(&mut self, request: &Request<()>) -> Option<Request<()>> {
        Some(request.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn within_retry_each_attempt_sends_what_is_left_then() {
    for (before, expected) in [
        (HeaderMap::new(), ["100000u", "60000000n", "20000000n"]),
        (header("70m"), ["70m", "60000000n", "20000000n"]),
    ] {
        let sent = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&sent);
        let server = service_fn(move |request: Request<()>| {
            log.borrow_mut()
                .push(request.headers()["grpc-timeout"].clone());
            let is_third = log.borrow().len() == 3;
            ready(match is_third {
                true => Ok(Response::new(Script::new([]))),
                false => Err(Broken),
            })
        });
        let mut client = ServiceBuilder::new()
            .layer(RetryLayer::new(Persistent))
            .layer(ClientDeadlineLayer::new())
            .service(server);
        let mut request = Request::new(());
        *request.headers_mut() = before;
        let call = async { client.call(request).await.map(drop) };
        let answer = Deadline::after(ms(100)).scope(call).await;
        answer.expect("in time").expect("an answer");
        assert_eq!(*sent.borrow(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_end_with_the_scope() {
    let failing = service_fn(async |_: Request<()>| Err::<Response<Script>, _>(Broken));
    let mut client = ServiceBuilder::new()
        .layer(RetryLayer::new(Persistent))
        .layer(ClientDeadlineLayer::new())
        .service(failing);
    let start = Instant::now();
    let call = async { client.call(Request::new(())).await.map(drop) };
    assert!(Deadline::after(ms(100)).scope(call).await.is_err());
    assert_eq!(start.elapsed(), ms(100));
}

#[test]
fn a_blocking_call_is_cut_though_no_scope_ends_it() {
    // Likewise in a scope that is busy with it.
    for within_a_scope in [false, true] {
        let answer = within(ms(20_000), move || {
            let runtime = multi_thread(2);
            let blocking = async move {
                let (server, _life) = stuck_service();
                let mut client = ClientDeadlineLayer::new().layer(server);
                let deadline = match within_a_scope {
                    true => Deadline::current(),
                    false => Deadline::after(ms(20)),
                };
                let call = || Handle::current().block_on(client.call(Request::new(())));
                block_in_place(|| deadline.sync_scope(call)).map(drop)
            };
            runtime.block_on(async {
                let task = match within_a_scope {
                    true => Deadline::after(ms(20)).scope(blocking).await,
                    false => Ok(tokio::spawn(blocking).await.unwrap()),
                };
                task.unwrap().unwrap_err()
            })
        });
        assert!(answer.is::<Elapsed>());
    }
}

#[test]
fn a_blocking_call_that_comes_too_late_fails() {
    let answer = within(ms(20_000), || {
        let server = at_once(|_| panic!("it is not called"));
        let mut client = ClientDeadlineLayer::new().layer(server);
        let runtime = multi_thread(1);
        let passed = Deadline::at(Instant::now());
        let call = || runtime.block_on(async { client.call(Request::new(())).await.map(drop) });
        passed.sync_scope(call).unwrap_err()
    });
    assert!(answer.is::<Elapsed>());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_leaves_its_scope_is_cut() {
    let script = Script::new([Data("a"), Wait(ms(60)), Data("late")]);
    let life = script.life();
    let mut client = ClientDeadlineLayer::new().layer(at_once(once(script)));
    let start = Instant::now();
    let call = async { client.call(Request::new(())).await };
    let response = Deadline::after(ms(10)).scope(call).await.unwrap().unwrap();
    let mut body = response.into_body();
    let read = tokio::spawn(async move { (read(&mut body).await, body) });
    let (read, _body) = read.await.unwrap();
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, start.elapsed()), ("a", ms(10)));
    assert_eq!(life.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_servers_ends_at_the_clients_deadline() {
    let (mut stuck, life) = stuck_service();
    let last = service_fn(|request: Request<()>| {
        assert_eq!(Deadline::current().remaining(), Some(ms(40)));
        stuck.call(request)
    });
    let last = DeadlineLayer::new().cap(ms(5_000)).layer(last);
    let mut next = Some(ClientDeadlineLayer::new().layer(last));
    let first = service_fn(|_: Request<()>| {
        let mut next = next.take().unwrap();
        async move {
            sleep(ms(10)).await;
            let _response = next.call(Request::new(())).await;
            pending::<Result<Response<Script>, Broken>>().await
        }
    });
    let first = DeadlineLayer::new().cap(ms(5_000)).layer(first);
    let mut client = ClientDeadlineLayer::new().layer(first);
    let start = Instant::now();
    let call = async { client.call(Request::new(())).await.map(drop) };
    let outcome = Deadline::after(ms(50)).scope(call).await;
    // The deadlines are at one instant, and the server of the first call is polled first. The client's layer leaves the end to the scope.
    assert!(outcome.expect("an answer").unwrap_err().is::<Elapsed>());
    assert_eq!((start.elapsed(), life.strong_count()), (ms(50), 0));
}

#[test]
fn what_is_left_is_by_the_clock_of_its_timer() {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    clock.advance(ms(86_400_000));
    let server = at_once(|request| {
        assert_eq!(request.headers()["grpc-timeout"], "250000u");
        Script::new([Wait(ms(1))])
    });
    let mut client = ClientDeadlineLayer::new().on(&timer).layer(server);
    let deadline = Deadline::at(clock.now() + ms(250));
    let mut call = deadline.sync_scope_on(&timer, || client.call(Request::new(())));
    assert!(poll_once(&mut call).is_ready());
    clock.advance(ms(250));
    let mut call = deadline.sync_scope_on(&timer, || client.call(Request::new(())));
    let std::task::Poll::Ready(Err(error)) = poll_once(&mut call) else {
        panic!("the deadline has passed");
    };
    assert!(error.is::<Elapsed>());
}
