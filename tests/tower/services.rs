//! Services that the tested layers wrap.

use std::future::{Future, Ready, pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::runtime::Handle;
use tower::util::ServiceFn;
use tower::{Layer, Service};
use waterwheel::tower::{HttpTimeoutLayer, LimitedBody};
use waterwheel::{Duration, Instant, ManualClock, Sleep, Timer};

use crate::bodies::{Broken, Read, Script, Step, poll_body, read};
use crate::support::{HOUR, assert_settled, current_thread, ms, on_manual_clock, poll_once};

type Responded = Result<Response<Script>, Broken>;

/// A request with this header.
pub(crate) fn request(header: &str, value: impl AsRef<[u8]>) -> Request<()> {
    let builder = Request::builder().header(header, value.as_ref());
    builder.body(()).unwrap()
}

/// A response at once.
type AtOnce = Ready<Responded>;

/// An HTTP service with this handler, which responds at once.
pub(crate) fn at_once<F>(mut handler: F) -> ServiceFn<impl FnMut(Request<()>) -> AtOnce + use<F>>
where
    F: FnMut(Request<()>) -> Script,
{
    tower::service_fn(move |request| ready(Ok(Response::new(handler(request)))))
}

/// Returns the body of this script, once.
pub(crate) fn once(script: Script) -> impl FnMut(Request<()>) -> Script {
    let mut script = Some(script);
    move |_| script.take().expect("one call")
}

/// A future that is never ready, and a weak reference that tells whether it exists. After an hour of a runtime's time it panics.
pub(crate) fn stuck<T>() -> (impl Future<Output = T>, Weak<()>) {
    let alive = Arc::new(());
    let life = Arc::downgrade(&alive);
    let stuck = async move {
        let _alive = alive;
        if Handle::try_current().is_ok() {
            tokio::time::sleep(HOUR).await;
            panic!("it was not cut");
        }
        pending().await
    };
    (stuck, life)
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A service that never responds to its one call, and a weak reference that tells whether that call exists.
pub(crate) fn stuck_service<R>() -> (ServiceFn<impl FnMut(R) -> Boxed<Responded>>, Weak<()>) {
    let (future, life) = stuck();
    let mut future = Some(Box::pin(future) as Boxed<Responded>);
    let call = move |_| future.take().expect("one call");
    (tower::service_fn(call), life)
}

/// The body of a response to which this layer is applied. The service responds at once.
pub(crate) async fn body_by(layer: &HttpTimeoutLayer, script: Script) -> LimitedBody<Script> {
    let mut service = layer.layer(at_once(once(script)));
    service.call(Request::new(())).await.unwrap().into_body()
}

/// The result of this body with a limit, and when.
pub(crate) async fn limited(
    layer: &HttpTimeoutLayer,
    steps: impl IntoIterator<Item = Step>,
) -> (Read, Duration) {
    let start = Instant::now();
    let script = Script::new(steps);
    let life = script.life();
    let mut body = body_by(layer, script).await;
    assert!(!body.is_end_stream());
    let read = read(&mut body).await;
    let after = start.elapsed();
    if read.is_cut() {
        assert_eq!(life.strong_count(), 0, "while the outer body is kept");
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert!(matches!(poll_body(&mut body), Poll::Ready(None)));
    }
    assert_settled(&Timer::current());
    (read, after)
}

/// A body with a limit, on a manual clock.
pub(crate) fn by_hand(
    layer: HttpTimeoutLayer,
    script: Script,
    then: impl FnOnce(&ManualClock, &mut LimitedBody<Script>),
) {
    let runtime = current_thread();
    let (clock, timer) = on_manual_clock(&runtime);
    let mut service = layer.on(&timer).layer(at_once(once(script)));
    let Poll::Ready(Ok(response)) = poll_once(&mut service.call(Request::new(()))) else {
        panic!("it responds at once");
    };
    then(&clock, &mut response.into_body());
}

/// A service that is ready after 50 ms, or never as it is broken, and that responds after 5 ms.
#[derive(Debug)]
pub(crate) enum Slow {
    Readying(Sleep),
    Broken,
}

impl Service<()> for Slow {
    type Response = Response<Script>;
    type Error = Broken;
    type Future = Boxed<Responded>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self {
            Slow::Readying(sleep) => Pin::new(sleep).poll(context).map(Ok),
            Slow::Broken => Poll::Ready(Err(Broken)),
        }
    }

    fn call(&mut self, (): ()) -> Self::Future {
        Box::pin(async {
            waterwheel::sleep(ms(5)).await;
            Ok(Response::new(Script::new([])))
        })
    }
}
