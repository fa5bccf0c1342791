//! The methods that `waterwheel::ext` adds to futures and streams, beside tokio-stream's own. Time is virtual.

#[path = "../support/mod.rs"]
mod support;

mod beside_tokio_stream;
mod chunks_timeout;
mod future;
mod throttle;
mod timeout;
mod timeout_repeating;
