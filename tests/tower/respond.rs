//! Responses instead of errors.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use tower::{Layer, Service, ServiceExt, service_fn};
use waterwheel::Timer;
use waterwheel::error::{Elapsed, Error};
use waterwheel::tower::{
    BoxError, DeadlineLayer, HttpTimeoutLayer, RespondBody, RespondLayer, TimeoutLayer,
};

use crate::bodies::Step::{Data, Fail, Trailers, Wait};
use crate::bodies::{Broken, Read, Script, read};
use crate::services::{Slow, at_once, once, request, stuck, stuck_service};
use crate::support::ms;

/// A gRPC request.
fn call() -> Request<()> {
    request("content-type", "application/grpc")
}

type Responded = Result<Response<RespondBody<Script>>, BoxError>;

fn layers() -> [RespondLayer; 3] {
    [
        RespondLayer::gateway_timeout(),
        RespondLayer::request_timeout(),
        RespondLayer::grpc(),
    ]
}

/// The response that replaces this error.
async fn response_to(layer: &RespondLayer, error: impl FnOnce() -> BoxError) -> Responded {
    let mut error = Some(error);
    let failing = service_fn(|_: Request<()>| {
        let error = error.take().unwrap()();
        async { Err::<Response<Script>, _>(error) }
    });
    layer.layer(failing).call(call()).await
}

/// The error of a timeout.
async fn elapsed() -> BoxError {
    let (future, _life) = stuck::<()>();
    Box::new(waterwheel::timeout(ms(1), future).await.unwrap_err())
}

/// The status of a response, in HTTP and in gRPC.
fn statuses<B: Body<Error: Into<BoxError>>>(
    response: Result<Response<RespondBody<B>>, BoxError>,
) -> (u16, Option<String>) {
    let response = response.unwrap();
    let body = response.body();
    assert!(body.is_end_stream(), "the headers are the end");
    assert_eq!(body.size_hint().exact(), Some(0));
    let status = response.headers().get("grpc-status");
    let status = status.map(|status| status.to_str().unwrap().to_owned());
    let kind = response.headers().get("content-type");
    assert_eq!(
        kind.map(|kind| kind.as_bytes()),
        status.as_ref().map(|_| &b"application/grpc"[..])
    );
    assert_eq!(
        response.headers().contains_key("grpc-message"),
        status.is_some()
    );
    (response.status().as_u16(), status)
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_has_passed_becomes_a_response() {
    let [gateway, request, grpc] = layers();
    for (layer, expected) in [
        (gateway, (504, None)),
        (request, (408, None)),
        (grpc, (200, Some("4".to_owned()))),
    ] {
        let error = elapsed().await;
        assert_eq!(statuses(response_to(&layer, || error).await), expected);
        // Likewise if it is among the sources of an error.
        let error = Around(Box::new(Around(elapsed().await)));
        assert_eq!(
            statuses(response_to(&layer, || error.into()).await),
            expected
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_of_grpc_gets_a_response_of_http() {
    let answer = async |request: Request<()>| {
        let limit = HttpTimeoutLayer::new(ms(10)).layer(stuck_service().0);
        let response = RespondLayer::grpc().layer(limit).call(request).await;
        statuses(response)
    };
    let grpc = (200, Some("4".to_owned()));
    for kind in [
        "application/grpc",
        "application/grpc+proto",
        "Application/GRPC; a=b",
    ] {
        assert_eq!(answer(request("content-type", kind)).await, grpc, "{kind}");
    }
    for kind in [
        "",
        "application/json",
        "application/grp",
        "text/plain application/grpc",
    ] {
        assert_eq!(
            answer(request("content-type", kind)).await,
            (504, None),
            "{kind}"
        );
    }
    assert_eq!(answer(Request::new(())).await, (504, None));
    // Its body has no trailers either.
    let script = Script::new([Data("a"), Wait(ms(60)), Data("late")]);
    let limit = HttpTimeoutLayer::new(ms(10)).layer(at_once(once(script)));
    let response = RespondLayer::grpc()
        .layer(limit)
        .call(Request::new(()))
        .await;
    let read = read(&mut response.unwrap().into_body()).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, read.trailers), ("a", None));
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_was_stopped_is_no_limit_that_passed() {
    let [gateway, request, grpc] = layers();
    for (layer, expected) in [
        (gateway, (503, None)),
        (request, (503, None)),
        (grpc, (200, Some("14".to_owned()))),
    ] {
        let timer = Timer::builder().max_pending(1).start().unwrap();
        let (future, _life) = stuck::<()>();
        let stopped = timer.timeout(ms(1), future);
        let full = timer.try_sleep(ms(1)).unwrap_err();
        timer.shutdown();
        let stopped = stopped.await.unwrap_err();
        let refused = timer.try_sleep(ms(1)).unwrap_err();
        for error in [full.into(), stopped.into(), refused.into()] {
            assert_eq!(statuses(response_to(&layer, || error).await), expected);
        }
    }
}

/// An error around another one, like that of tower's `Buffer`.
#[derive(Debug)]
struct Around(BoxError);

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service failed")
    }
}

impl std::error::Error for Around {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn other_errors_pass_through() {
    for layer in layers() {
        let error = response_to(&layer, || Broken.into()).await.unwrap_err();
        assert!(error.is::<Broken>());
        let wrapped = response_to(&layer, || Around(Broken.into()).into()).await;
        assert!(wrapped.unwrap_err().is::<Around>());
        let error = Timer::current().try_interval(ms(0)).unwrap_err();
        let error = response_to(&layer, || error.into()).await.unwrap_err();
        assert!(error.downcast_ref::<Error>().unwrap().is_invalid());
        let mut unready = layer.layer(Slow::Broken.map_request(|_: Request<()>| ()));
        assert!(unready.ready().await.unwrap_err().is::<Broken>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_grpc_that_may_be_cut_has_no_length() {
    for (layer, kept) in layers().into_iter().zip([true, true, false]) {
        let handler = service_fn(async |_: Request<()>| {
            let body = http_body_util::Full::new(Bytes::from_static(b"four"));
            let response = Response::builder().header("content-length", "4");
            Ok::<_, Broken>(response.body(body).unwrap())
        });
        let mut service = layer.layer(HttpTimeoutLayer::new(ms(10)).layer(handler));
        let response = service.call(call()).await.unwrap();
        assert_eq!(response.headers().contains_key("content-length"), kept);
        let hint = response.body().size_hint();
        let expected = if kept { (4, Some(4)) } else { (0, None) };
        assert_eq!((hint.lower(), hint.upper()), expected);
        let mut body = response.into_body();
        assert_eq!(read(&mut body).await.data, "four");
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}

/// The result of a body with a limit of 10 ms.
async fn body_by(layer: &RespondLayer, script: Script) -> Read {
    let limited = HttpTimeoutLayer::new(ms(10)).layer(at_once(once(script)));
    let mut service = layer.layer(limited);
    let response = service.call(call()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("grpc-status"));
    let mut body = response.into_body();
    let read = read(&mut body).await;
    // A body that was cut has no further frames.
    let has_elapsed = |error: &BoxError| error.is::<Elapsed>();
    let was_cut = read.trailers.is_some() || read.error.as_ref().is_some_and(has_elapsed);
    assert_eq!(body.is_end_stream(), was_cut);
    read
}

#[tokio::test(start_paused = true)]
async fn a_body_of_grpc_that_is_cut_ends_with_a_status() {
    let script = Script::new([Data("a"), Wait(ms(60)), Trailers]);
    let life = script.life();
    let read = body_by(&RespondLayer::grpc(), script).await;
    assert!(read.error.is_none());
    assert_eq!(read.data, "a");
    assert_eq!(read.trailers.unwrap()["grpc-status"], "4");
    assert_eq!(life.strong_count(), 0);
}

/// A body that fails with a limit's error, and continues to exist.
struct Failing {
    error: Option<BoxError>,
    _alive: Arc<()>,
}

impl Body for Failing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Err(self
            .error
            .take()
            .expect("polled after its error"))))
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_after_the_status() {
    let alive = Arc::new(());
    let mut failing = Some(Failing {
        error: Some(elapsed().await),
        _alive: Arc::clone(&alive),
    });
    let handler = service_fn(|_: Request<()>| {
        let failing = failing.take().unwrap();
        async { Ok::<_, Broken>(Response::new(failing)) }
    });
    let mut service = RespondLayer::grpc().layer(handler);
    let response = service.call(call()).await.unwrap();
    let mut body = response.into_body();
    assert!(!body.is_end_stream());
    let read = read(&mut body).await;
    assert_eq!(read.trailers.unwrap()["grpc-status"], "4");
    assert!(body.is_end_stream());
    assert_eq!(Arc::strong_count(&alive), 1, "the body is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_http_that_is_cut_fails() {
    for layer in &layers()[..2] {
        let read = body_by(layer, Script::new([Data("a"), Wait(ms(60)), Trailers])).await;
        assert!(read.error.unwrap().is::<Elapsed>());
        assert_eq!((&*read.data, read.trailers), ("a", None));
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_other_response_passes_through() {
    for layer in layers() {
        let mut service = layer.layer(at_once(once(Script::new([Data("a"), Data("b"), Trailers]))));
        let mut body = service.call(call()).await.unwrap().into_body();
        let whole = read(&mut body).await;
        assert!(whole.error.is_none());
        assert_eq!(whole.trailers.unwrap()["grpc-status"], "0");
        assert_eq!(whole.data, "ab");
        let broken = body_by(&layer, Script::new([Data("a"), Fail])).await;
        assert!(broken.error.unwrap().is::<Broken>());
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_each_layer_become_responses() {
    let stuck = || stuck_service().0;
    let grpc = RespondLayer::grpc();
    let mut timeout = grpc.layer(TimeoutLayer::new(ms(10)).layer(stuck()));
    let mut http = grpc.layer(HttpTimeoutLayer::new(ms(10)).layer(stuck()));
    let mut server = grpc.layer(DeadlineLayer::new().cap(ms(10)).layer(stuck()));
    for headers in [
        timeout.call(call()).await.unwrap().into_parts().0.headers,
        http.call(call()).await.unwrap().into_parts().0.headers,
        server.call(call()).await.unwrap().into_parts().0.headers,
    ] {
        assert_eq!(headers["grpc-status"], "4");
    }
}
