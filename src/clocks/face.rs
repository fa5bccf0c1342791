use std::time::{Duration, SystemTime};

/// A clock that sleeps can be set by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// Since 1970; the present may move back.
    Wall,
    /// Since an instant before the first sleep, the time in which the machine was suspended included where the system counts it.
    Boot,
}

pub(super) fn wall_now() -> Duration {
    since_1970(SystemTime::now())
}

/// What is before 1970 has passed in any case.
pub(super) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
