//! The client's side of a deadline that travels.

mod layer;
mod service;

pub use layer::ClientDeadlineLayer;
pub use service::ClientDeadline;
