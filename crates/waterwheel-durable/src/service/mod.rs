//! The public interface of the service.

mod archived;
mod builder;
mod bulk;
#[cfg(feature = "calendar")]
mod calendars;
mod dead_letters;
mod delivery;
mod durable;
mod insert;
mod namespace;
mod pending;

pub use archived::Archived;
pub use builder::Builder;
pub use delivery::Delivery;
pub use delivery::InvalidPayload;
pub use durable::Durable;
pub use insert::Insert;
pub use namespace::Namespace;
