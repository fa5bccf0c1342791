//! A time limit for an HTTP response, its body included.

mod layer;
mod service;

pub use layer::HttpTimeoutLayer;
pub use service::HttpTimeout;
