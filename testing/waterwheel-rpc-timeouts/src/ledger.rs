//! The counts of one clock's calls and timers. `check` verifies them at the end.
//!
//! A caller opens a call before it arms the timeout, and gets a [`Ticket`]. It consumes the ticket when the call ends, so a call
//! ends once at most. A ticket that is dropped instead counts as abandoned. Counts alone would not show that one call ended twice
//! and another never, so the ledger also sums the ids of opened and of ended calls.
//!
//! The client and the server write to the same ledger, so that `check` can compare their counts. The memory does not grow with
//! the number of calls.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use waterwheel_bench_kit::{Counts, Histogram, random};

use crate::plan::CallId;

/// Declares the counters once: atomic in the [`Ledger`], plain numbers in the [`Tally`].
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct Ledger {
            $($(#[$doc])* pub(crate) $name: Counter,)*
            lateness: Histogram,
        }

        /// The ledger at one moment. It is consistent once all tasks that write to it have ended.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Tally {
            $($(#[$doc])* pub(crate) $name: u64,)*
            /// The lateness of the timeouts: from the deadline until the caller ran.
            pub(crate) lateness: Counts,
        }

        impl Ledger {
            pub(crate) fn tally(&self) -> Tally {
                Tally {
                    $($name: self.$name.0.load(Relaxed),)*
                    lateness: self.lateness.counts(),
                }
            }
        }

        impl Tally {
            /// The counts since `earlier`, an older tally of the same ledger.
            pub(crate) fn since(&self, earlier: &Tally) -> Tally {
                Tally {
                    $($name: self.$name.wrapping_sub(earlier.$name),)*
                    lateness: self.lateness.since(&earlier.lateness),
                }
            }
        }
    };
}

counters! {
    calls,
    replies,
    timeouts,
    /// Calls that ended because their connection was lost.
    errors,
    abandoned,
    early_timeouts,
    opened_ids,
    ended_ids,
    /// Replies to calls that had timed out.
    late_replies,
    heartbeats,
    connections_lost,
    silent_closed,
    silent_closed_early,
    /// Frames that reached the server. Each postponed an idle deadline.
    frames,
    replies_sent,
    delays_armed,
    delays_fired,
    delays_cancelled,
    early_delays,
}

/// Relaxed: `check` reads it after it has waited for the tasks that count, and other readers need no exact numbers.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        // This wraps around, as the sums of ids need.
        self.0.fetch_add(count, Relaxed);
    }
}

impl Ledger {
    /// Opens a call. Call this before the timeout is made: then the timeout's deadline is not before the one in the ticket.
    pub(crate) fn open(&self, call: CallId, limit: Duration) -> Ticket<'_> {
        self.calls.add(1);
        self.opened_ids.add(scrambled(call));
        Ticket {
            ledger: self,
            call,
            deadline: Instant::now() + limit,
            ended: false,
        }
    }
}

/// One call in flight.
#[must_use]
pub(crate) struct Ticket<'a> {
    ledger: &'a Ledger,
    call: CallId,
    deadline: Instant,
    ended: bool,
}

impl Ticket<'_> {
    pub(crate) fn replied(self) {
        self.ledger.replies.add(1);
        self.end();
    }

    pub(crate) fn timed_out(self) {
        match Instant::now().checked_duration_since(self.deadline) {
            Some(lateness) => self.ledger.lateness.add(lateness),
            None => self.ledger.early_timeouts.add(1),
        }
        self.ledger.timeouts.add(1);
        self.end();
    }

    pub(crate) fn failed(self) {
        self.ledger.errors.add(1);
        self.end();
    }

    fn end(mut self) {
        self.ended = true;
        self.ledger.ended_ids.add(scrambled(self.call));
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.ledger.abandoned.add(1);
        }
    }
}

/// Ids are consecutive, so different sets of them often have the same sum. Scrambled ids do not.
fn scrambled(call: CallId) -> u64 {
    random::generator(0, call.0).u64(..)
}

impl Tally {
    pub(crate) fn ended(&self) -> u64 {
        self.replies + self.timeouts + self.errors + self.abandoned
    }

    pub(crate) fn in_flight(&self) -> u64 {
        // Tasks may write while this reads, so a call may seem to end before it began.
        self.calls.saturating_sub(self.ended())
    }

    /// The timers of calls and of the server's delays. A timeout is armed when its call is sent.
    pub(crate) fn armed(&self) -> u64 {
        self.calls + self.delays_armed
    }

    pub(crate) fn cancelled(&self) -> u64 {
        self.replies + self.errors + self.abandoned + self.delays_cancelled
    }

    pub(crate) fn fired(&self) -> u64 {
        self.timeouts + self.delays_fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_tallies_excludes_what_came_before() {
        let ledger = Ledger::default();
        let long_ago = Duration::from_secs(7);
        ledger.lateness.add(long_ago);
        ledger.open(CallId(1), Duration::ZERO).timed_out();
        let before = ledger.tally();
        let nothing = before.since(&before);
        assert_eq!((nothing.calls, nothing.timeouts), (0, 0));
        assert_eq!(nothing.lateness.quantiles(), None);

        ledger.open(CallId(2), long_ago).replied();
        let short = Duration::from_nanos(7);
        ledger.lateness.add(short);
        let since = ledger.tally().since(&before);
        assert_eq!((since.calls, since.replies, since.timeouts), (1, 1, 0));
        let quantiles = since.lateness.quantiles().expect("one value");
        assert_eq!([quantiles.p50, quantiles.p99, quantiles.max], [short; 3]);
    }
}
