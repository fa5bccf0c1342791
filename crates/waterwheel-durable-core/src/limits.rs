//! How long may something be, and what is a name?

/// The namespace of handlers without another one.
pub const DEFAULT: &str = "default";

/// The prefix of the setting that has the policy of a namespace, before its name.
pub const POLICY_SETTING: &str = "namespace/";

/// The prefix of the setting that exists while a namespace is paused, before its name.
pub const PAUSED_SETTING: &str = "paused/";

/// The maximum length of the name of a handler, in bytes.
pub const NAME_LIMIT: usize = 255;

/// The longest name of a namespace: with the shortest name of a handler, it is as long as a name may be.
pub const LONGEST_NAMESPACE: usize = NAME_LIMIT - 2;

/// No name of a handler begins so: each has one name.
pub const BEFORE_DEFAULT: &str = "default/";

/// How much of a name a message shows.
const LONGEST_SHOWN: usize = 64;

/// The beginning of a name, for a message.
pub fn shown(name: &str) -> String {
    name.chars().take(LONGEST_SHOWN).collect()
}

/// Whether this is a handler's name: `name`, or `namespace/name`.
pub fn is_handler_name(name: &str) -> bool {
    let is_whole = match name.split_once('/') {
        // Those of the default one have no `/`, so that each has one name.
        Some((DEFAULT, _)) => false,
        Some((namespace, name)) => is_namespace_name(namespace) && is_namespace_name(name),
        None => true,
    };
    is_whole && (1..=NAME_LIMIT).contains(&name.len())
}

/// Whether this is the name of a namespace, or of a handler in it.
pub fn is_namespace_name(name: &str) -> bool {
    (1..=NAME_LIMIT).contains(&name.len()) && !name.contains('/')
}

/// The maximum length of a payload together with its key: 16 MiB. A commit contains the timers of many callers, and one
/// that is too large for the store would make the others fail with it.
pub const PAYLOAD_LIMIT: usize = 16 << 20;

/// The maximum length of the payload of a calendar: 64 KiB. It is written with each occurrence, and again with the
/// progress of the calendar.
pub const CALENDAR_PAYLOAD_LIMIT: usize = 64 << 10;

/// The maximum number of missed occurrences that are delivered: see [`Misfire::CatchUpTo`](crate::engine::calendar::Misfire::CatchUpTo).
pub const MISFIRE_LIMIT: u32 = 1_000;
