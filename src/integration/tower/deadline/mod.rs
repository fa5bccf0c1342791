//! The server's side of a deadline that travels.

mod layer;
mod service;

pub use layer::DeadlineLayer;
pub use service::ServerDeadline;
