//! The headers of gRPC over HTTP/2: the timeout of a request, the status of a response.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use tokio::time::Duration;

use crate::rpc::grpc_timeout::{self, InvalidTimeout};

pub(super) const TYPE: &str = "application/grpc";

const TIMEOUT: &str = "grpc-timeout";
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    DeadlineExceeded,
    Unavailable,
}

/// Whether the content is of gRPC's type, or of one that begins with it, as `application/grpc+proto`.
pub(super) fn is_type_of(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.and_then(|kind| kind.get(..TYPE.len()));
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(TYPE.as_bytes()))
}

/// The timeout that a request asks for, by the first header of that name. A bad one sets none, and is reported by `tracing`.
pub(super) fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    let header = headers.get(TIMEOUT)?;
    match grpc_timeout::parse(header) {
        Ok(timeout) => Some(timeout),
        Err(error) => {
            report(header, error);
            None
        }
    }
}

/// A peer writes the header, so it could fill a log whose level is higher, or that had the whole header.
#[cfg(feature = "tracing")]
fn report(header: &HeaderValue, error: InvalidTimeout) {
    let bytes = header.as_bytes();
    let header = bytes[..bytes.len().min(16)].escape_ascii();
    tracing::debug!(
        header = %format_args!("\"{header}\""),
        %error,
        "ignored an invalid grpc-timeout header: it sets no deadline"
    );
}

#[cfg(not(feature = "tracing"))]
fn report(_: &HeaderValue, _: InvalidTimeout) {}

/// Asks for a timeout, rounded down, or for less if the request asks for less already. It leaves one header: of several, servers
/// do not agree on which counts.
pub(super) fn set_timeout(headers: &mut HeaderMap, timeout: Duration) {
    let present = headers.get_all(TIMEOUT).iter();
    let present = present.filter_map(|header| Some((grpc_timeout::parse(header).ok()?, header)));
    let value = match present.min_by_key(|(asked, _)| *asked) {
        Some((asked, header)) if asked <= timeout => header.clone(),
        _ => HeaderValue::from_bytes(grpc_timeout::format(timeout).as_ref())
            .expect("digits and a letter"),
    };
    headers.insert(TIMEOUT, value);
}

/// Sets the status: in the headers of a response without a body, or in trailers.
pub(super) fn set_status(headers: &mut HeaderMap, status: Status) {
    let (code, message) = match status {
        Status::DeadlineExceeded => ("4", "the deadline has passed"),
        Status::Unavailable => ("14", "the server is shutting down or overloaded"),
    };
    headers.insert(STATUS, HeaderValue::from_static(code));
    headers.insert(MESSAGE, HeaderValue::from_static(message));
}
