//! The server's side of a deadline: from the header, the cap and the caller's scope.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use tower::{Layer, Service, ServiceExt, service_fn};
use tracing_subscriber::filter::LevelFilter;
use waterwheel::error::Elapsed;
use waterwheel::rpc::Deadline;
use waterwheel::tower::DeadlineLayer;
use waterwheel::{Duration, Instant, ManualClock, Timer};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Broken, Script, read};
use crate::report::Report;
use crate::services::{self, at_once, once, stuck_service};
use crate::support::{
    alone, assert_settled, current_thread, ms, on_manual_clock, paused, poll_once, waiting,
};

/// Headers that set no deadline.
const BAD: [&[u8]; 11] = [
    b"",
    b"m",
    b"1",
    b"123456789m",
    b"+1m",
    b"1 m",
    b" 1m",
    b"-1S",
    b"1.5S",
    b"1s",
    b"1\xff",
];

fn request(timeout: impl AsRef<[u8]>) -> Request<()> {
    services::request("grpc-timeout", timeout)
}

/// The time left in the handler of such a request.
async fn left(layer: &DeadlineLayer, request: Request<()>) -> Option<Duration> {
    let mut seen = None;
    let handler = at_once(|_| {
        seen = Some(Deadline::current().remaining());
        Script::new([])
    });
    layer.layer(handler).call(request).await.unwrap();
    seen.expect("it is called")
}

#[tokio::test(start_paused = true)]
async fn the_smaller_of_header_and_cap_counts() {
    let layer = DeadlineLayer::new().cap(ms(500));
    assert_eq!(left(&layer, request("250m")).await, Some(ms(250)));
    assert_eq!(left(&layer, request("2S")).await, Some(ms(500)));
    assert_eq!(left(&layer, Request::new(())).await, Some(ms(500)));
    let free = DeadlineLayer::new();
    assert_eq!(left(&free, request("2S")).await, Some(ms(2000)));
    assert_eq!(left(&free, Request::new(())).await, None);
    let beyond = DeadlineLayer::new().cap(Duration::MAX);
    assert_eq!(left(&beyond, Request::new(())).await, None);
    assert_eq!(left(&beyond, request("1m")).await, Some(ms(1)));
    assert!(left(&free, request("99999999H")).await > Some(ms(1)));
}

#[tokio::test(start_paused = true)]
async fn a_bad_header_sets_no_deadline() {
    let capped = DeadlineLayer::new().cap(ms(500));
    for bad in BAD {
        assert_eq!(left(&DeadlineLayer::new(), request(bad)).await, None);
        assert_eq!(left(&capped, request(bad)).await, Some(ms(500)));
    }
    assert_eq!(Timer::current().metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_nested_deadlines_wins() {
    let layer = DeadlineLayer::new().cap(ms(500));
    let outer = Deadline::after(ms(100));
    assert_eq!(
        outer.scope(left(&layer, request("250m"))).await,
        Ok(Some(ms(100)))
    );
    assert_eq!(
        outer.scope(left(&layer, request("50m"))).await,
        Ok(Some(ms(50)))
    );
    // Likewise with two layers, whichever is the outer one.
    for (outer, inner) in [(30, 60), (60, 30)] {
        let outer = DeadlineLayer::new().cap(ms(outer));
        let inner = DeadlineLayer::new().cap(ms(inner));
        let start = Instant::now();
        let (mut stuck, life) = stuck_service();
        let handler = service_fn(|request: Request<()>| {
            assert_eq!(Deadline::current().remaining(), Some(ms(30)));
            stuck.call(request)
        });
        let mut service = outer.layer(inner.layer(handler));
        let error = service.call(Request::new(())).await.unwrap_err();
        assert!(error.is::<Elapsed>());
        assert_eq!((start.elapsed(), life.strong_count()), (ms(30), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_scope_goes_with_the_body() {
    let script = Script::new([Wait(ms(300)), Data("late")]);
    let mut service = DeadlineLayer::new().layer(at_once(once(script)));
    let start = Instant::now();
    let call = async { service.call(request("250m")).await };
    let response = Deadline::after(ms(100)).scope(call).await.unwrap();
    let read = read(&mut response.unwrap().into_body()).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!(start.elapsed(), ms(100));
}

/// The current deadlines, by place.
type Seen = Arc<Mutex<Vec<(&'static str, Option<Duration>)>>>;

/// A body that notes the current deadline when it is polled.
struct Noting(Seen);

impl Body for Noting {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        note(&self.0, "body");
        Poll::Ready(None)
    }
}

fn note(seen: &Seen, place: &'static str) {
    seen.lock()
        .unwrap()
        .push((place, Deadline::current().remaining()));
}

#[tokio::test(start_paused = true)]
async fn call_future_and_body_find_the_deadline() {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let handler = service_fn(move |_: Request<()>| {
        note(&log, "call");
        let log = Arc::clone(&log);
        poll_fn(move |_| {
            note(&log, "future");
            Poll::Ready(Ok::<_, Broken>(Response::new(Noting(Arc::clone(&log)))))
        })
    });
    let mut service = DeadlineLayer::new().layer(handler);
    let call = service.call(request("250m"));
    assert_eq!(Deadline::current(), Deadline::never());
    let mut body = call.await.unwrap().into_body();
    assert_eq!(Deadline::current(), Deadline::never());
    // Polled by another task, as hyper does.
    let read = tokio::spawn(async move { read(&mut body).await });
    assert!(read.await.unwrap().error.is_none());
    assert_eq!(Deadline::current(), Deadline::never());
    let left = Some(ms(250));
    let expected = [("call", left), ("future", left), ("body", left)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_cut_before_its_headers_and_in_its_body() {
    let (handler, life) = stuck_service();
    let mut service = DeadlineLayer::new().layer(handler);
    let start = Instant::now();
    let mut call = Box::pin(service.call(request("250m")));
    assert!(call.as_mut().await.unwrap_err().is::<Elapsed>());
    assert_eq!((start.elapsed(), life.strong_count()), (ms(250), 0));
    assert_settled(&Timer::current());
    let script = Script::new([Data("a"), Wait(ms(300)), Data("late")]);
    let life = script.life();
    let mut service = DeadlineLayer::new().layer(at_once(once(script)));
    let start = Instant::now();
    let mut body = service.call(request("250m")).await.unwrap().into_body();
    let read = read(&mut body).await;
    assert_eq!((&*read.data, read.is_cut()), ("a", true));
    assert_eq!((start.elapsed(), life.strong_count()), (ms(250), 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_any_deadline_takes_no_timer() {
    let script = Script::new([Wait(ms(86_400_000)), Data("late")]);
    let timer = Timer::builder().start().unwrap();
    let mut service = DeadlineLayer::new().on(&timer).layer(at_once(once(script)));
    let mut body = service.call(Request::new(())).await.unwrap().into_body();
    assert_eq!(read(&mut body).await.data, "late");
    assert_eq!(timer.metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_too_late_is_refused() {
    let refuses = async |layer: DeadlineLayer, request: Request<()>| {
        let mut service = layer.layer(at_once(|_| panic!("it is not called")));
        let error = service.call(request).await.unwrap_err();
        assert!(error.is::<Elapsed>());
    };
    let layer = DeadlineLayer::new();
    refuses(layer.clone(), request("0n")).await;
    refuses(layer.clone(), request("00000000H")).await;
    refuses(layer.clone().cap(ms(0)), Request::new(())).await;
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    refuses(layer.clone().on(&timer), request("0n")).await;
    let passed = Deadline::at(Instant::now() - ms(5));
    let scope = passed.scope(refuses(layer.clone(), request("1S")));
    assert_eq!(scope.await, Ok(()));
    assert_eq!(Timer::current().metrics().armed(), 0);
    assert_eq!(
        left(&layer, request("1n")).await,
        Some(Duration::from_nanos(1))
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_at_its_deadline_passes() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let mut service = DeadlineLayer::new().on(&timer).layer(at_once(|_| {
        clock.advance(ms(300));
        Script::new([])
    }));
    assert!(service.call(request("250m")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn of_several_headers_the_first_counts() {
    let layer = DeadlineLayer::new();
    for (headers, expected) in [
        (["250m", "100m"], Some(ms(250))),
        (["100m", "250m"], Some(ms(100))),
        (["later", "100m"], None),
    ] {
        let request = Request::builder()
            .header("grpc-timeout", headers[0])
            .header("grpc-timeout", headers[1]);
        let left = left(&layer, request.body(()).unwrap()).await;
        assert_eq!(left, expected, "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_what_is_inside_pass_through_a_deadline() {
    let broken = service_fn(async |_: Request<()>| Err::<Response<Script>, _>(Broken));
    let mut service = DeadlineLayer::new().cap(ms(10)).layer(broken);
    assert!(
        service
            .call(Request::new(()))
            .await
            .unwrap_err()
            .is::<Broken>()
    );
    let unready = tower::util::MapErr::new(services::Slow::Broken, |error: Broken| error);
    let unready = unready.map_request(|_: Request<()>| ());
    let mut service = DeadlineLayer::new().cap(ms(10)).layer(unready);
    assert!(service.ready().await.unwrap_err().is::<Broken>());
}

#[test]
fn a_deadline_is_by_the_clock_of_its_timer() {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    clock.advance(ms(86_400_000));
    let ((mut stuck, _life), mut seen) = (stuck_service(), None);
    let handler = service_fn(|request: Request<()>| {
        seen = Deadline::current().remaining_at(clock.now());
        stuck.call(request)
    });
    let mut service = DeadlineLayer::new().on(&timer).layer(handler);
    let mut call = waiting(Box::pin(service.call(request("250m"))));
    clock.advance(ms(249));
    assert!(poll_once(&mut call).is_pending());
    clock.advance(ms(1));
    assert!(poll_once(&mut call).is_ready());
    drop(call);
    drop(service);
    assert_eq!(seen, Some(ms(250)));
}

#[test]
fn a_bad_header_is_reported_and_a_good_one_is_not() {
    alone(|| {
        let report = Report::start(LevelFilter::DEBUG);
        paused().block_on(async {
            let layer = DeadlineLayer::new();
            left(&layer, request("250m")).await;
            left(&layer, Request::new(())).await;
            assert_eq!(report.take(), "");
            for bad in BAD {
                left(&layer, request(bad)).await;
                assert_eq!(report.take().lines().count(), 1, "{bad:?}");
            }
            left(&layer, request("later")).await;
            let said = report.take();
            for part in [
                "DEBUG waterwheel::",
                "no deadline",
                "\"later\"",
                "does not end with a known unit",
            ] {
                assert!(said.contains(part), "{part} in {said}");
            }
            left(&layer, request("x".repeat(10_000))).await;
            let said = report.take();
            let cut = format!("\"{}\"", "x".repeat(16));
            assert!(said.contains(&cut) && said.len() < 1_000, "{said}");
        });
    });
}
