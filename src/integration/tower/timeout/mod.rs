//! A time limit for a response of any kind.

mod layer;
mod service;

pub use layer::TimeoutLayer;
pub use service::Timeout;
