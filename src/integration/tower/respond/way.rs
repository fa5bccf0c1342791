use std::error::Error;
use std::iter::successors;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::RespondBody;
use crate::error::{self, Elapsed};
use crate::integration::tower::grpc::{self, Status};

/// How an error becomes a response.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// With this status if a limit has passed.
    Http(StatusCode),
    Grpc,
}

impl Way {
    /// The way for a request with these headers: gRPC for a request of gRPC alone.
    pub(super) fn of_request(self, headers: &HeaderMap) -> Way {
        match self {
            Way::Grpc if !grpc::is_type_of(headers) => Way::Http(StatusCode::GATEWAY_TIMEOUT),
            way => way,
        }
    }

    /// Prepares the headers of a response whose body may end otherwise than the inner service says. Trailers before the end of the
    /// announced length are an error of the protocol.
    pub(super) fn prepare(self, headers: &mut HeaderMap) {
        if let Way::Grpc = self {
            headers.remove(CONTENT_LENGTH);
        }
    }

    /// The response in place of an error, if it is one of this crate's.
    pub(super) fn response<B>(
        self,
        error: &(dyn Error + 'static),
    ) -> Option<Response<RespondBody<B>>> {
        let status = status_of(error)?;
        let mut response = Response::new(RespondBody::empty(self));
        match (self, status) {
            (Way::Http(code), Status::DeadlineExceeded) => *response.status_mut() = code,
            (Way::Http(_), Status::Unavailable) => {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            // "Trailers-Only" of gRPC over HTTP/2: status 200, the type, the trailers among the headers, and the end of the stream.
            (Way::Grpc, status) => {
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(grpc::TYPE));
                grpc::set_status(headers, status);
            }
        }
        Some(response)
    }

    /// The trailers in place of an error of a body, if it is one of this crate's and there may be any.
    pub(super) fn trailers(self, error: &(dyn Error + 'static)) -> Option<HeaderMap> {
        match self {
            Way::Http(_) => None,
            Way::Grpc => {
                let mut trailers = HeaderMap::new();
                grpc::set_status(&mut trailers, status_of(error)?);
                Some(trailers)
            }
        }
    }
}

/// The status of an error of this crate, which others may be wrapped around, as tower's `Buffer` does. An error of bad arguments has
/// none: it is a bug of the server, and the same request would fail again.
fn status_of(error: &(dyn Error + 'static)) -> Option<Status> {
    successors(Some(error), |error| (*error).source()).find_map(|error| {
        match error.downcast_ref::<Elapsed>() {
            Some(elapsed) if elapsed.was_stopped() => Some(Status::Unavailable),
            Some(_) => Some(Status::DeadlineExceeded),
            None => {
                let error = error.downcast_ref::<error::Error>()?;
                (!error.is_invalid()).then_some(Status::Unavailable)
            }
        }
    })
}
