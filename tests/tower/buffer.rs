//! tower's `Buffer` under the layers and above them: its worker task calls the inner service, and the caller polls the response.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::buffer::Buffer;
use tower::{Layer, Service, ServiceExt};
use waterwheel::error::Elapsed;
use waterwheel::rpc::Deadline;
use waterwheel::tower::{
    ClientDeadlineLayer, DeadlineLayer, HttpTimeout, HttpTimeoutLayer, RespondLayer,
};
use waterwheel::{Duration, Instant, Sleep, Timer, sleep};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Broken, Script, read};
use crate::support::{assert_settled, ms};

/// A service that is ready after 50 ms and responds after 5 more, with a body that trickles. It notes its observations.
struct Late {
    ready: Sleep,
    found: Found,
}

type Found = Arc<Mutex<Vec<Finding>>>;

#[derive(Debug, PartialEq)]
enum Finding {
    /// The header `grpc-timeout`, and the time left until the deadline in `call`.
    Call(Option<String>, Option<Duration>),
    /// The time left until the deadline in the future, at its first poll.
    Future(Option<Duration>),
}

impl Late {
    fn new() -> (Late, Found) {
        let found = Found::default();
        let ready = sleep(ms(50));
        let late = Late {
            ready,
            found: Arc::clone(&found),
        };
        (late, found)
    }
}

impl Service<Request<()>> for Late {
    type Response = Response<Script>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Script>, Broken>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Pin::new(&mut self.ready).poll(context).map(Ok)
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let header = request.headers().get("grpc-timeout");
        let header = header.map(|it| it.to_str().unwrap().to_owned());
        let note = |found: &Found, finding| found.lock().unwrap().push(finding);
        let left = Deadline::current().remaining();
        note(&self.found, Finding::Call(header, left));
        let found = Arc::clone(&self.found);
        Box::pin(async move {
            let left = Deadline::current().remaining();
            note(&found, Finding::Future(left));
            sleep(ms(5)).await;
            let trickle = (0..60).flat_map(|_| [Wait(ms(3)), Data("a")]);
            Ok(Response::new(Script::new(trickle)))
        })
    }
}

/// Calls a service once it is ready.
async fn call<S: Service<Request<()>>>(mut service: S) -> Result<S::Response, S::Error> {
    service.ready().await?.call(Request::new(())).await
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_a_buffer_is_cut_and_not_made() {
    let (late, found) = Late::new();
    let start = Instant::now();
    let buffered = HttpTimeoutLayer::new(ms(10)).layer(Buffer::new(late, 1));
    assert!(call(buffered.clone()).await.unwrap_err().is::<Elapsed>());
    assert_eq!(start.elapsed(), ms(10));
    sleep(ms(38)).await;
    assert!(call(buffered).await.is_ok());
    assert_eq!(start.elapsed(), ms(55));
    assert_eq!(found.lock().unwrap().len(), 2, "one call: {found:?}");
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_limit_inside_of_a_buffer_begins_with_the_workers_call() {
    let (late, _) = Late::new();
    let start = Instant::now();
    let response = call(Buffer::new(HttpTimeout::new(late, ms(10)), 1)).await;
    assert_eq!(start.elapsed(), ms(55));
    let read = read(&mut response.unwrap().into_body()).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, start.elapsed()), ("a", ms(60)));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_through_a_buffer_is_cut() {
    let (late, _) = Late::new();
    let start = Instant::now();
    let buffered = HttpTimeoutLayer::new(ms(60)).layer(Buffer::new(late, 1));
    let response = call(buffered).await.unwrap();
    let read = read(&mut response.into_body()).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, start.elapsed()), ("a", ms(60)));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_passes_within_a_buffer_becomes_a_response() {
    let (late, _) = Late::new();
    let buffered = Buffer::new(HttpTimeout::new(late, ms(1)), 1);
    let respond = RespondLayer::gateway_timeout().layer(buffered);
    assert_eq!(call(respond).await.unwrap().status(), 504);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_the_future_behind_a_buffer_not_the_call() {
    let (late, found) = Late::new();
    let capped = DeadlineLayer::new().cap(ms(100));
    call(capped.layer(Buffer::new(late, 1))).await.unwrap();
    let expected = [Finding::Call(None, None), Finding::Future(Some(ms(50)))];
    assert_eq!(*found.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_outside_of_a_buffer_sends_its_deadline() {
    let (late, found) = Late::new();
    let client = ClientDeadlineLayer::new().layer(Buffer::new(late, 1));
    let scope = Deadline::after(ms(100)).scope(call(client));
    assert!(scope.await.unwrap().is_ok());
    // The header is not reduced by the wait in the buffer.
    let header = Some("100000u".to_owned());
    let expected = [Finding::Call(header, None), Finding::Future(Some(ms(50)))];
    assert_eq!(*found.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_inside_of_a_buffer_knows_no_deadline() {
    let (late, found) = Late::new();
    let client = Buffer::new(ClientDeadlineLayer::new().layer(late), 1);
    let scope = Deadline::after(ms(100)).scope(call(client));
    assert!(scope.await.unwrap().is_ok());
    assert_eq!(found.lock().unwrap()[0], Finding::Call(None, None));
}
