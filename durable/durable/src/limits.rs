//! How long may something be?

/// The longest name of a handler, in bytes.
pub const NAME_LIMIT: usize = 255;

/// The longest name of a namespace: with the shortest name of a handler, it is as long as a name may be.
pub(crate) const LONGEST_NAMESPACE: usize = NAME_LIMIT - 2;

/// The longest payload, with its key: 16 MiB. A commit has the timers of many callers, and one that is too large for the store would take the others down with it.
pub const PAYLOAD_LIMIT: usize = 16 << 20;
