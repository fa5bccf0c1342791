use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use waterwheel_durable_core::engine::planted::{self, Planted};

#[cfg(doc)]
use super::Beat;

/// How long a lease lasts, and the durations that follow from it.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// How long a standby has to see the same counter before it takes over.
    pub ttl: Duration,
    /// The minimum number of commit rows that an opening keeps; at least one.
    pub kept_commits: u64,
}

impl Terms {
    /// How long an owner counts on its lease: the rates of two clocks may differ by a tenth.
    #[must_use]
    pub fn trusted(self) -> Duration {
        match planted::is(Planted::TrustedForTtl) {
            true => self.ttl,
            false => self.ttl * 9 / 10,
        }
    }

    /// The time between heartbeats.
    #[must_use]
    pub fn beat_every(self) -> Duration {
        self.ttl / 6
    }

    /// The time between heartbeats of a standby, which a planned hand-over takes at most.
    #[must_use]
    pub fn standby_beat_every(self) -> Duration {
        self.ttl / 12
    }

    /// The time after which a commit or a read has failed. It may carry megabytes.
    #[must_use]
    pub fn commit_within(self) -> Duration {
        self.ttl
    }

    /// The time after which a heartbeat or another call has failed. A lease outlasts one failed heartbeat.
    #[must_use]
    pub fn call_within(self) -> Duration {
        self.ttl / 3
    }

    /// How long a transaction may be idle before the server ends it.
    #[must_use]
    pub fn idle_within(self) -> Duration {
        self.ttl / 3
    }

    /// The time after which the blockers of a statement are terminated.
    #[must_use]
    pub fn blocked_within(self) -> Duration {
        self.ttl / 6
    }

    /// The time between attempts to connect.
    #[must_use]
    pub fn reconnect_every(self) -> Duration {
        self.ttl / 30
    }
}

/// Tells whether an opening may deliver now. It is shared by [`Ownership`](super::Ownership), which extends it, by the
/// [`Writer`](super::Writer), which ends it, and by those who deliver, who look at it before each delivery.
#[derive(Debug, Clone, Default)]
pub struct Lease(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// In microseconds since boot. It only grows.
    until: AtomicU64,
    has_ended: AtomicBool,
    /// Whether a failover may have lost commits of the opening.
    is_unconfirmed: AtomicBool,
    /// Whether the partition was handed over, or may be at the moment.
    hands_over: AtomicBool,
    /// Whether no deliveries may begin, because the database is a restored copy.
    is_suspended: AtomicBool,
    is_closed: AtomicBool,
    closed: Notify,
}

impl Lease {
    /// Returns whether no other node can have taken the partition over by this time since boot.
    #[must_use]
    pub fn is_held(&self, now: Duration) -> bool {
        let until = Duration::from_micros(self.0.until.load(Ordering::Acquire));
        now < until && !self.has_ended()
    }

    /// Returns whether deliveries may begin at this time since boot: it is held, and they are not [suspended](Beat::is_suspended).
    #[must_use]
    pub fn allows_deliveries(&self, now: Duration) -> bool {
        self.is_held(now) && !self.is_suspended()
    }

    /// Returns whether deliveries are [suspended](Beat::is_suspended).
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.0.is_suspended.load(Ordering::Acquire)
    }

    /// Sets whether deliveries are suspended. Returns whether they were.
    pub(super) fn set_suspended(&self, is_suspended: bool) -> bool {
        self.0.is_suspended.swap(is_suspended, Ordering::AcqRel)
    }

    /// Returns whether it has ended for good: another node has taken over, or may do so.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }

    /// The lease lasts until this time, at least, unless it has ended.
    pub(super) fn extend(&self, until: Duration) {
        let micros = u64::try_from(until.as_micros()).unwrap_or(u64::MAX);
        self.0.until.fetch_max(micros, Ordering::AcqRel);
    }

    /// Ends the lease for good.
    pub(super) fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
    }

    /// Returns whether a failover may have lost commits of this opening: [`Writer::confirm`](super::Writer::confirm) finds out.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.0.is_unconfirmed.load(Ordering::Acquire)
    }

    pub(super) fn set_unconfirmed(&self, is_unconfirmed: bool) {
        self.0
            .is_unconfirmed
            .store(is_unconfirmed, Ordering::Release);
    }

    /// Returns whether a hand-over is in progress or done: handlers may be running although the partition was given back.
    pub(super) fn hands_over(&self) -> bool {
        self.0.hands_over.load(Ordering::Acquire)
    }

    pub(super) fn set_hands_over(&self, hands_over: bool) {
        self.0.hands_over.store(hands_over, Ordering::Release);
    }

    /// Tells [`Ownership`](super::Ownership) that the engine of this opening has ended. It begins another opening as soon as
    /// possible.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.closed.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire)
    }

    /// Waits until it is closed.
    pub(super) async fn closed(&self) {
        while !self.is_closed() {
            self.0.closed.notified().await;
        }
    }
}
