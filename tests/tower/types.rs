//! Auto traits, sizes, `Clone` and `Debug` of the public types.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::{Pending, pending};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::rc::Rc;

use http::{Request, Response};
use tower::retry::backoff::MakeBackoff;
use tower::{Layer, Service, service_fn};
use waterwheel::tower::backoff::{ExponentialBackoff, ExponentialBackoffMaker, InvalidBackoff};
use waterwheel::tower::future::{HttpResponseFuture, RespondFuture, ResponseFuture};
use waterwheel::tower::{
    BoxError, ClientDeadline, ClientDeadlineLayer, DeadlineLayer, HttpTimeout, HttpTimeoutLayer,
    LimitedBody, Middleware, Respond, RespondBody, RespondLayer, ServerDeadline, Timeout,
    TimeoutLayer,
};
use waterwheel::{Duration, Timer};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Broken, Script, poll_body, read};
use crate::services::{at_once, once, request};
use crate::support::{assert_settled, ms};

type Sendable = Pending<u8>;
type Local = Rc<u8>;
type Pinned = (PhantomPinned, u8);

#[test]
fn auto_traits_are_what_they_are_meant_to_be() {
    assert_auto_traits! {
        TimeoutLayer: true true true;
        HttpTimeoutLayer: true true true;
        DeadlineLayer: true true true;
        ClientDeadlineLayer: true true true;
        RespondLayer: true true true;
        Timeout<Sendable>: true true true;
        Timeout<Local>: false false true;
        Timeout<Cell<u8>>: true false true;
        HttpTimeout<Sendable>: true true true;
        HttpTimeout<Local>: false false true;
        ServerDeadline<Sendable>: true true true;
        ServerDeadline<Local>: false false true;
        ClientDeadline<Sendable>: true true true;
        ClientDeadline<Local>: false false true;
        Respond<Sendable>: true true true;
        Respond<Local>: false false true;
        ResponseFuture<Sendable>: true true true;
        ResponseFuture<Local>: false false true;
        ResponseFuture<Cell<u8>>: true false true;
        ResponseFuture<Pinned>: true true false;
        HttpResponseFuture<Sendable>: true true true;
        HttpResponseFuture<Local>: false false true;
        HttpResponseFuture<Cell<u8>>: true false true;
        HttpResponseFuture<Pinned>: true true false;
        RespondFuture<Sendable>: true true true;
        RespondFuture<Local>: false false true;
        RespondFuture<Pinned>: true true false;
        LimitedBody<Sendable>: true true true;
        LimitedBody<Local>: false false true;
        LimitedBody<Cell<u8>>: true false true;
        LimitedBody<Pinned>: true true false;
        RespondBody<Sendable>: true true true;
        RespondBody<Local>: false false true;
        RespondBody<Pinned>: true true false;
        ExponentialBackoffMaker: true true true;
        ExponentialBackoffMaker<Local>: false false true;
        ExponentialBackoff: true true true;
        ExponentialBackoff<Cell<u8>>: true true true;
        ExponentialBackoff<Local>: false false true;
        InvalidBackoff: true true true;
        BoxError: true true true;
    }
}

#[test]
fn a_limit_adds_little_to_what_it_limits() {
    // A `Sleep`, a deadline, the time for a frame or a timer, a flag; and whether the limited body still exists.
    assert!(size_of::<LimitedBody<[usize; 4]>>() <= 32 + 72 + 8);
    // In addition to these, the reason why the service was not called.
    assert!(size_of::<ResponseFuture<[usize; 4]>>() <= 32 + 88 + 8);
    assert_eq!(
        size_of::<HttpResponseFuture<u8>>(),
        size_of::<ResponseFuture<u8>>()
    );
    assert!(size_of::<RespondBody<[usize; 4]>>() <= 32 + 16);
    assert!(size_of::<TimeoutLayer>() <= 24);
    assert!(size_of::<HttpTimeoutLayer>() <= 40);
}

/// Checks an HTTP service that can be cloned, and its clones.
fn check<L>(layer: L)
where
    L: Layer<Never> + Clone + Debug,
    L::Service: Service<Request<()>, Error = BoxError> + Clone + Debug,
    <L::Service as Service<Request<()>>>::Future: Debug,
{
    let mut service = layer.clone().layer(Never).clone();
    let call = service.call(Request::new(()));
    for (printed, what) in [
        (format!("{layer:?}"), "Layer"),
        (format!("{service:?}"), "Never"),
        (format!("{call:?}"), "Pending"),
    ] {
        assert!(printed.contains(what), "{printed}");
    }
}

/// A service that never responds.
#[derive(Debug, Clone)]
struct Never;

impl Service<Request<()>> for Never {
    type Response = Response<Script>;
    type Error = Broken;
    type Future = Pending<Result<Response<Script>, Broken>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Broken>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        pending()
    }
}

#[tokio::test(start_paused = true)]
async fn layers_services_and_futures_are_cloned_and_printed() {
    let timer = Timer::builder().start().unwrap();
    check(TimeoutLayer::new(ms(10)));
    check(TimeoutLayer::new(ms(10)).on(&timer));
    check(HttpTimeoutLayer::new(ms(10)));
    check(HttpTimeoutLayer::new(ms(10)).on(&timer));
    const BOTH: HttpTimeoutLayer = HttpTimeoutLayer::new(ms(10)).frame_timeout(ms(5));
    check(BOTH.on(&timer));
    check(DeadlineLayer::new());
    check(DeadlineLayer::default().cap(ms(10)).on(&timer));
    check(ClientDeadlineLayer::new());
    check(ClientDeadlineLayer::default().on(&timer));
    check(RespondLayer::gateway_timeout());
    check(RespondLayer::request_timeout());
    check(RespondLayer::grpc());
    let maker = ExponentialBackoffMaker::default().on(&timer);
    let backoff = maker.clone().make_backoff();
    assert!(format!("{maker:?}{:?}", backoff.clone()).contains("50ms"));
}

#[tokio::test(start_paused = true)]
async fn bodies_are_printed_and_hand_out_what_is_inside() {
    let handler = service_fn(async |_: Request<()>| Ok::<_, Broken>(Response::new("a".to_owned())));
    let limited = HttpTimeoutLayer::new(ms(10)).layer(handler);
    let mut service = RespondLayer::grpc().layer(limited);
    let mut body = service.call(Request::new(())).await.unwrap().into_body();
    let printed = format!("{body:?}");
    assert!(printed.contains("RespondBody") && printed.contains("LimitedBody"));
    assert_eq!(body.get_ref().unwrap().get_ref().unwrap(), "a");
    body.get_mut().unwrap().get_mut().unwrap().push('b');
    let limited = Pin::new(&mut body).get_pin_mut().unwrap();
    limited.get_pin_mut().unwrap().push('c');
    assert_eq!(body.into_inner().unwrap().into_inner().unwrap(), "abc");

    // Without its limit, which drops its timer.
    let waiting = at_once(once(Script::new([Wait(ms(60))])));
    let mut limited = HttpTimeout::new(waiting, ms(10));
    let mut body = limited.call(Request::new(())).await.unwrap().into_body();
    assert!(poll_body(&mut body).is_pending());
    drop(body.into_inner());
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_cut_is_not_handed_out() {
    let steps = [Wait(ms(60)), Data("late")];
    let handler = at_once(once(Script::new(steps)));
    let mut limited = HttpTimeoutLayer::new(ms(10)).layer(handler);
    let mut body = limited.call(Request::new(())).await.unwrap().into_body();
    assert!(body.get_ref().is_some());
    assert!(read(&mut body).await.error.is_some());
    assert!(body.get_ref().is_none() && body.get_mut().is_none());
    assert!(Pin::new(&mut body).get_pin_mut().is_none());
    assert!(body.into_inner().is_none());

    // Likewise for a body that replaces an error, or the end of a gRPC body.
    let mut cut = RespondLayer::grpc().layer(HttpTimeout::new(Never, ms(10)));
    let body = cut
        .call(request("content-type", "application/grpc"))
        .await
        .unwrap()
        .into_body();
    assert!(body.get_ref().is_none() && body.into_inner().is_none());
    let limited = HttpTimeout::new(at_once(once(Script::new(steps))), ms(10));
    let mut cut = RespondLayer::grpc().layer(limited);
    let mut body = cut
        .call(request("content-type", "application/grpc"))
        .await
        .unwrap()
        .into_body();
    assert!(body.get_ref().is_some());
    assert!(read(&mut body).await.trailers.is_some());
    assert!(body.get_mut().is_none() && Pin::new(&mut body).get_pin_mut().is_none());
}

/// Checks each way to reach the inner service.
fn hands_out<L>(mut service: Middleware<Never, L>) {
    let _: (Never, &mut Never) = (service.get_ref().clone(), service.get_mut());
    let Never = service.into_inner();
}

#[test]
fn services_hand_out_what_is_inside() {
    hands_out(Timeout::new(Never, Duration::MAX));
    hands_out(HttpTimeout::new(Never, Duration::MAX));
    hands_out(DeadlineLayer::new().layer(Never));
    hands_out(ClientDeadlineLayer::new().layer(Never));
    hands_out(RespondLayer::grpc().layer(Never));
}
