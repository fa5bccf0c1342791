use std::time::{Duration, SystemTime};

/// A clock that sleeps can be set by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// Since 1970; the present may move back.
    Wall,
    /// Since an instant before the first sleep, the time in which the machine was suspended included where the system counts it.
    Boot,
}

impl Face {
    pub(super) fn now(self) -> Duration {
        match self {
            Face::Wall => since_1970(SystemTime::now()),
            Face::Boot => boot::now(),
        }
    }
}

/// What is before 1970 has passed in any case.
pub(super) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(target_os = "linux")]
mod boot {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn now() -> Duration {
        // Never negative: it counts from the boot.
        clock_gettime(ClockId::Boottime)
            .try_into()
            .unwrap_or_default()
    }
}

/// Whether the time in suspension counts depends on the system's `Instant`.
#[cfg(not(target_os = "linux"))]
mod boot {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    pub(super) fn now() -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}
