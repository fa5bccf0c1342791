//! How long may something be?

/// The longest name of a handler, in bytes.
pub const NAME_LIMIT: usize = 255;
