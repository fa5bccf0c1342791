use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::way::Way;
use crate::integration::tower::BoxError;

pin_project! {
    /// The response body of [`Respond`](crate::tower::Respond): the inner body, or an empty one. Requires the feature `tower`.
    ///
    /// For gRPC, if a limit makes the inner body fail, the inner body is dropped, and this body ends with trailers that have the
    /// status. The length of such a body is therefore not known in advance.
    #[must_use = "a body does nothing unless it is polled"]
    #[derive(Debug)]
    pub struct RespondBody<B> {
        // `None` if the response is one in place of an error, and after the trailers in place of one.
        #[pin]
        inner: Option<B>,
        way: Way,
    }
}

impl<B> RespondBody<B> {
    pub(super) fn new(inner: B, way: Way) -> RespondBody<B> {
        let inner = Some(inner);
        RespondBody { inner, way }
    }

    pub(super) fn empty(way: Way) -> RespondBody<B> {
        RespondBody { inner: None, way }
    }

    /// Returns a reference to the inner body.
    ///
    /// Returns `None` if the response replaces an error, or once trailers have replaced the end of the body.
    pub fn get_ref(&self) -> Option<&B> {
        self.inner.as_ref()
    }

    /// Returns a mutable reference to the inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn get_mut(&mut self) -> Option<&mut B> {
        self.inner.as_mut()
    }

    /// Returns a pinned reference to the inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut B>> {
        self.project().inner.as_pin_mut()
    }

    /// Consumes the `RespondBody`, and returns the unchanged inner body, or `None` as for [`get_ref`](RespondBody::get_ref).
    pub fn into_inner(self) -> Option<B> {
        self.inner
    }
}

impl<B> Body for RespondBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(inner.poll_frame(context)) {
            Some(Err(error)) => {
                let error = error.into();
                let trailers = this.way.trailers(&*error);
                if trailers.is_some() {
                    this.inner.set(None);
                }
                Some(trailers.map(Frame::trailers).ok_or(error))
            }
            Some(Ok(frame)) => Some(Ok(frame)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.inner, self.way) {
            // It may be cut, and then its trailers must not come before what was announced.
            (Some(inner), Way::Grpc) if !inner.is_end_stream() => SizeHint::default(),
            (Some(inner), _) => inner.size_hint(),
            (None, _) => SizeHint::with_exact(0),
        }
    }
}
