//! Responses in place of errors: what a client is to learn of a limit that has passed.

mod body;
mod future;
mod layer;
mod service;
mod way;

pub use body::RespondBody;
pub use future::RespondFuture;
pub use layer::RespondLayer;
pub use service::Respond;
