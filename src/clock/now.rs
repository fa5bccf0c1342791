//! The machine's clock and tokio's. In a model both are the model's, which stands still until it is moved.

#[cfg(waterwheel_loom)]
pub(crate) use super::model::{machine_now, tokio_now};
#[cfg(not(waterwheel_loom))]
pub(crate) use real::{machine_now, tokio_now};

#[cfg(not(waterwheel_loom))]
mod real {
    #[inline]
    pub(crate) fn machine_now() -> std::time::Instant {
        std::time::Instant::now()
    }

    /// Now, by the clock of the runtime that the thread is in.
    #[inline]
    pub(crate) fn tokio_now() -> tokio::time::Instant {
        tokio::time::Instant::now()
    }
}
