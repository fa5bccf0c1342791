//! Services that what is tested stands around.

use std::future::{Future, Ready, pending, ready};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::runtime::Handle;
use tower::Service;
use tower::util::ServiceFn;
use waterwheel::Sleep;

use crate::bodies::{Broken, Script};
use crate::support::{HOUR, ms};

/// A response at once.
type AtOnce = Ready<Result<Response<Script>, Broken>>;

/// An HTTP service whose handler this is, with a response at once.
pub(crate) fn at_once<F>(mut handler: F) -> ServiceFn<impl FnMut(Request<()>) -> AtOnce + use<F>>
where
    F: FnMut(Request<()>) -> Script,
{
    tower::service_fn(move |request| ready(Ok(Response::new(handler(request)))))
}

/// The body of this script, once.
pub(crate) fn once(script: Script) -> impl FnMut(Request<()>) -> Script {
    let mut script = Some(script);
    move |_| script.take().expect("one call")
}

/// A future that is never ready, and the count of references that goes with it. In an hour of a runtime's time it panics.
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

/// A service that is ready after 50 ms, or never as it is broken, and that responds after 5 ms.
#[derive(Debug)]
pub(crate) enum Slow {
    Readying(Sleep),
    Broken,
}

impl Service<()> for Slow {
    type Response = Response<Script>;
    type Error = Broken;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Script>, Broken>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self {
            Slow::Readying(sleep) => std::pin::Pin::new(sleep).poll(context).map(Ok),
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
