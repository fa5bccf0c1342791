//! Bodies that follow a script, and that know whether they were dropped.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use waterwheel::error::Elapsed;
use waterwheel::tower::BoxError;
use waterwheel::{Duration, Sleep};

/// An error of the inner service's own.
#[derive(Debug, PartialEq)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

impl std::error::Error for Broken {}

/// The next step of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Wait(Duration),
    Data(&'static str),
    Trailers,
    Fail,
    Endless,
}

/// A body that takes these steps.
#[derive(Debug)]
pub(crate) struct Script {
    steps: VecDeque<Step>,
    wait: Option<Sleep>,
    /// Whether `is_end_stream` is true after the last step.
    knows_its_end: bool,
    alive: Arc<()>,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Script {
        Script {
            steps: steps.into_iter().collect(),
            wait: None,
            knows_its_end: false,
            alive: Arc::new(()),
        }
    }

    pub(crate) fn knowing_its_end(mut self) -> Script {
        self.knows_its_end = true;
        self
    }

    /// A weak reference to a value that lives as long as the body.
    pub(crate) fn life(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(Step::Wait(duration)) = self.steps.front() {
            let duration = *duration;
            let wait = self.wait.get_or_insert_with(|| waterwheel::sleep(duration));
            ready!(Pin::new(wait).poll(context));
            self.wait = None;
            self.steps.pop_front();
        }
        Poll::Ready(match self.steps.pop_front() {
            None => None,
            Some(Step::Wait(_)) => panic!("two waits in a row"),
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))),
            Some(Step::Trailers) => {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", "0".parse().unwrap());
                Some(Ok(Frame::trailers(trailers)))
            }
            Some(Step::Fail) => Some(Err(Broken)),
            Some(Step::Endless) => {
                self.steps.push_front(Step::Endless);
                Some(Ok(Frame::data(Bytes::from_static(b"more"))))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.steps.is_empty()
    }
}

/// The frames of a body until it ended or failed.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) data: String,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) error: Option<BoxError>,
}

impl Read {
    /// Whether a limit has passed. No test that calls this stops the timer.
    pub(crate) fn is_cut(&self) -> bool {
        let elapsed = self.error.as_ref().and_then(|it| it.downcast_ref());
        elapsed.is_some_and(|elapsed: &Elapsed| !elapsed.was_stopped())
    }
}

/// Reads a body until it ends or fails.
pub(crate) async fn read<B>(body: &mut B) -> Read
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let mut read = Read {
        data: String::new(),
        trailers: None,
        error: None,
    };
    while let Some(frame) = http_body_util::BodyExt::frame(body).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => read.data += std::str::from_utf8(&data).unwrap(),
            Ok(Err(frame)) => read.trailers = frame.into_trailers().ok(),
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
    }
    read
}

/// The result of polling a body.
pub(crate) type Polled<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

/// Polls a body once.
pub(crate) fn poll_body<B: Body + Unpin>(body: &mut B) -> Polled<B> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}
