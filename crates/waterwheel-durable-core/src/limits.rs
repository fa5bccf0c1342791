//! Limits on lengths, and the rules for names.

/// The namespace of handlers whose names contain none.
pub const DEFAULT: &str = "default";

/// The prefix of the setting that has the policy of a namespace, before its name.
pub const POLICY_SETTING: &str = "namespace/";

/// The prefix of the setting that exists while a namespace is paused, before its name.
pub const PAUSED_SETTING: &str = "paused/";

/// The maximum length of the name of a handler, in bytes.
pub const NAME_LIMIT: usize = 255;

/// The maximum length of the name of a namespace: together with the shortest handler name, it has the maximum length of a name.
pub const LONGEST_NAMESPACE: usize = NAME_LIMIT - 2;

/// A prefix that no handler name has, so that each handler has only one name.
pub const BEFORE_DEFAULT: &str = "default/";

/// How much of a name is shown in a message.
const LONGEST_SHOWN: usize = 64;

/// The beginning of a name, for use in a message.
pub fn shown(name: &str) -> String {
    name.chars().take(LONGEST_SHOWN).collect()
}

/// Whether this is a valid handler name: `name`, or `namespace/name`, without NUL, which a database may not be able to store in a text.
pub fn is_handler_name(name: &str) -> bool {
    let is_whole = match name.split_once('/') {
        // Names in the default namespace have no `/`, so that each handler has only one name.
        Some((DEFAULT, _)) => false,
        Some((namespace, name)) => is_namespace_name(namespace) && is_namespace_name(name),
        None => true,
    };
    is_whole && is_name(name)
}

/// Whether this is a valid name of a calendar.
pub fn is_name(name: &str) -> bool {
    (1..=NAME_LIMIT).contains(&name.len()) && !name.contains('\0')
}

/// Whether this is a valid name of a namespace, or of a handler in it.
pub fn is_namespace_name(name: &str) -> bool {
    is_name(name) && !name.contains('/')
}

/// The maximum length of a tag, in bytes.
pub const TAG_LIMIT: usize = 255;

/// Whether this is a valid tag.
pub fn is_tag(tag: &str) -> bool {
    (1..=TAG_LIMIT).contains(&tag.len()) && !tag.contains('\0')
}

/// The maximum length of a payload together with its key, tag and retries: 16 MiB. A commit contains the timers of many callers, and one
/// that is too large for the store would make the others fail with it.
pub const PAYLOAD_LIMIT: usize = 16 << 20;

/// The maximum length of the payload of a calendar: 64 KiB. It is written with each occurrence, and again with the
/// progress of the calendar.
pub const CALENDAR_PAYLOAD_LIMIT: usize = 64 << 10;

/// The maximum number of missed occurrences that are delivered: see [`Misfire::CatchUpTo`](crate::engine::calendar::Misfire::CatchUpTo).
pub const MISFIRE_LIMIT: u32 = 1_000;
