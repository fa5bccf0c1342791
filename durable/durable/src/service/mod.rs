//! What do users have of a service?

mod builder;
#[cfg(feature = "calendar")]
mod calendars;
mod delivered;
mod delivery;
mod durable;
mod find;
mod insert;
mod letters;
mod namespace;

pub use builder::Builder;
pub use delivered::Delivered;
pub use delivery::Delivery;
pub use delivery::InvalidPayload;
pub use durable::Durable;
pub use insert::Insert;
pub use namespace::Namespace;
