use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;

use super::RespondBody;
use super::way::Way;
use crate::integration::tower::BoxError;

pin_project! {
    /// The future of [`Respond`](crate::tower::Respond). Requires the feature `tower`.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct RespondFuture<F> {
        #[pin]
        inner: F,
        way: Way,
    }
}

impl<F> RespondFuture<F> {
    pub(super) fn new(inner: F, way: Way) -> RespondFuture<F> {
        RespondFuture { inner, way }
    }
}

impl<F, B, E> Future for RespondFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RespondBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let way = *this.way;
        Poll::Ready(match ready!(this.inner.poll(context)) {
            Ok(mut response) => {
                way.prepare(response.headers_mut());
                Ok(response.map(|body| RespondBody::new(body, way)))
            }
            Err(error) => {
                let error = error.into();
                way.response(&*error).ok_or(error)
            }
        })
    }
}
