//! The machine's clock and tokio's. In a model both are the model's, which stands still until it is moved.

#[cfg(waterwheel_loom)]
pub(crate) use super::model::{machine_now, start, tokio_now};
#[cfg(not(waterwheel_loom))]
pub(crate) use real::{machine_now, start, tokio_now};

/// An instant of the machine's clock as a number, the same for all timers of the process. Zero if it is before the first that was
/// asked for; at most `u64::MAX - 1`.
pub(crate) fn nanos_since_start(at: std::time::Instant) -> u64 {
    let nanos = at.saturating_duration_since(start()).as_nanos();
    u64::try_from(nanos).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

#[cfg(not(waterwheel_loom))]
mod real {
    use std::sync::OnceLock;

    #[inline]
    pub(crate) fn machine_now() -> std::time::Instant {
        std::time::Instant::now()
    }

    pub(crate) fn start() -> std::time::Instant {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        *START.get_or_init(machine_now)
    }

    /// Now, by the clock of the runtime that the thread is in.
    #[inline]
    pub(crate) fn tokio_now() -> tokio::time::Instant {
        tokio::time::Instant::now()
    }
}
