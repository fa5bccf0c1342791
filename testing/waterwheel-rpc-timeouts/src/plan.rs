//! The load that both clocks get. The same seed makes the same plan, call by call.

use std::time::Duration;

use waterwheel_bench_kit::random;

use crate::flags::Flags;
use crate::slices::Slices;

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) connections: u32,
    /// Calls in flight on each connection. As soon as one ends, its caller makes the next.
    pub(crate) concurrency: u32,
    /// Connections that send one frame only, so that the idle deadline closes them.
    pub(crate) silent: u32,
    pub(crate) timeout: Duration,
    pub(crate) idle: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) slices: Slices,
    /// The number of clocks that take turns.
    pub(crate) clocks: u32,
}

impl Plan {
    pub(crate) fn new(flags: &Flags) -> Self {
        // A third of a clock's share at most, so that silent connections are closed within the run.
        let idle = Duration::from_secs(1).min(flags.share() / 3);
        Plan {
            seed: flags.seed,
            connections: flags.connections,
            concurrency: flags.concurrency,
            silent: silent_beside(flags.connections),
            timeout: flags.timeout,
            idle,
            heartbeat: idle / 4,
            slices: Slices::new(flags.length, flags.timeout),
            clocks: flags.clocks(),
        }
    }

    /// How the server treats a call. It depends on the seed and the call alone. Neither the clock under test nor the order in
    /// which calls arrive changes it.
    pub(crate) fn fate(&self, call: CallId) -> Fate {
        let mut random = random::generator(self.seed, call.0);
        let timeout = self.timeout;
        let kind = random.u32(0..1000);
        let mut reply = |range| Fate::Reply(random::duration(&mut random, range));
        match kind {
            0..880 => reply(timeout / 250..timeout / 5),
            880..980 => reply(timeout / 5..timeout * 3 / 4),
            // The call has timed out by then, so the client must drop the reply.
            980..990 => reply(timeout * 5 / 4..timeout * 2),
            _ => Fate::Silence,
        }
    }
}

pub(crate) fn silent_beside(connections: u32) -> u32 {
    connections.div_ceil(20)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Reply(Duration),
    Silence,
}

/// Unique in a run: the connection in the upper half, its call number in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId(pub(crate) u64);

impl CallId {
    pub(crate) fn new(connection: u32, call: u32) -> Self {
        CallId(u64::from(connection) << 32 | u64::from(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_the_call_alone_decide_a_fate() {
        let plan = Plan::new(&Flags::default());
        let again = Plan::new(&Flags::default());
        let other = Plan::new(&Flags {
            seed: 2,
            ..Flags::default()
        });
        let fates = |plan: &Plan| -> Vec<Fate> {
            (0..100)
                .map(|call| plan.fate(CallId::new(7, call)))
                .collect()
        };
        assert_eq!(fates(&plan), fates(&again));
        assert_ne!(fates(&plan), fates(&other));
    }

    #[test]
    fn about_two_calls_in_a_hundred_outlast_the_timeout() {
        let plan = Plan::new(&Flags::default());
        let outlasting = (0..100_000)
            .filter(|&call| match plan.fate(CallId::new(3, call)) {
                Fate::Reply(delay) => delay >= plan.timeout,
                Fate::Silence => true,
            })
            .count();
        assert!((1_800..2_200).contains(&outlasting), "{outlasting}");
    }
}
