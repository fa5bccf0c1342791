use std::time::Duration;

use waterwheel_durable_core::policy::{Backoff, Retries};

/// Options of a handler: see [`Durable::handle_with`](crate::Durable::handle_with).
#[derive(Debug, Clone)]
#[must_use]
pub struct HandlerOptions {
    pub(crate) concurrency: usize,
    pub(crate) attempt_limit: Option<Duration>,
    pub(crate) retries: Option<Retries>,
}

impl Default for HandlerOptions {
    /// Returns the default options: 64 concurrent deliveries, and no attempt limit.
    fn default() -> HandlerOptions {
        HandlerOptions {
            concurrency: 64,
            attempt_limit: None,
            retries: None,
        }
    }
}

impl HandlerOptions {
    /// Sets the number of concurrent deliveries to this handler; at least one. Further deliveries wait, without
    /// delaying other handlers.
    pub fn concurrency(mut self, deliveries: usize) -> HandlerOptions {
        self.concurrency = deliveries.max(1);
        self
    }

    /// Sets the time that an attempt may take, which must not be zero. When it is over, the future is dropped, and the
    /// attempt counts as failed. The future of a handler that blocks its thread cannot be dropped before it returns.
    /// Default: no limit.
    pub fn attempt_limit(mut self, limit: Duration) -> HandlerOptions {
        self.attempt_limit = Some(limit);
        self
    }

    /// Sets the delays after the first, second, … failure of a timer of this handler: at most 1 000 delays of at most a year
    /// each. A failure after the last delay makes it a dead letter. Replaces a [backoff](HandlerOptions::backoff).
    ///
    /// The delays of [a timer](crate::NewTimer::retry_delays) take precedence. Default: those of the
    /// [namespace](crate::Policy::retry_delays). The retries of a handler are not stored: they apply to failures while it is
    /// registered.
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> HandlerOptions {
        self.retries = Some(Retries::RetryDelays(delays.into_iter().collect()));
        self
    }

    /// Sets exponential backoff after the failures of a timer of this handler, in place of
    /// [delays](HandlerOptions::retry_delays).
    pub fn backoff(mut self, backoff: Backoff) -> HandlerOptions {
        self.retries = Some(Retries::Backoff(backoff));
        self
    }
}

/// How long a shutdown waits for running handlers, measured by the machine's clock, regardless of what the runtime
/// does. If several shutdowns run concurrently, the earliest deadline counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Drain(Duration);

impl Drain {
    /// Waits for at most `limit`.
    pub fn within(limit: Duration) -> Drain {
        Drain(limit)
    }

    pub(crate) fn limit(self) -> Duration {
        self.0
    }
}

/// The result of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// The number of deliveries that had not ended in time. Their timers are delivered again when the store is next
    /// opened.
    pub abandoned: usize,
    /// The number of deliveries that had ended, but whose outcome the store refused to write, for example because the
    /// disk was full. Their timers are delivered again as well.
    pub unsettled: usize,
}
