//! What do users have of a service?

mod builder;
mod delivery;
mod durable;
mod insert;

pub use builder::Builder;
pub use delivery::Delivery;
#[cfg(feature = "json")]
pub use delivery::InvalidPayload;
pub use durable::Durable;
pub use insert::Insert;
