use std::time::Duration;

/// How a handler is called: see [`Durable::handle_with`](crate::Durable::handle_with).
#[derive(Debug, Clone)]
#[must_use]
pub struct HandlerOptions {
    pub(crate) concurrency: usize,
    pub(crate) attempt_limit: Option<Duration>,
}

impl Default for HandlerOptions {
    /// 64 deliveries at a time, without a limit of time.
    fn default() -> HandlerOptions {
        HandlerOptions {
            concurrency: 64,
            attempt_limit: None,
        }
    }
}

impl HandlerOptions {
    /// How many deliveries are with the handler at a time, at least one. The others wait, and delay no other handler's.
    pub fn concurrency(mut self, deliveries: usize) -> HandlerOptions {
        self.concurrency = deliveries.max(1);
        self
    }

    /// How long an attempt may take, longer than zero. Then its future is dropped, and it counts as a failure. The future of a handler that blocks its thread
    /// cannot be dropped before it returns. Default: as long as it takes.
    pub fn attempt_limit(mut self, limit: Duration) -> HandlerOptions {
        self.attempt_limit = Some(limit);
        self
    }
}

/// How long a shutdown waits for handlers that run, by the machine's clock, whatever the runtime does. Of shutdowns at the same time, the first end counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Drain(Duration);

impl Drain {
    /// So long at most.
    pub fn within(limit: Duration) -> Drain {
        Drain(limit)
    }

    pub(crate) fn limit(self) -> Duration {
        self.0
    }
}

/// What came of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// How many deliveries had not ended in time. Their timers are delivered again after the next opening.
    pub abandoned: usize,
    /// How many deliveries had ended, and the store has refused to write that: a full disk, for example. Their timers are delivered again as well.
    pub unsettled: usize,
}
