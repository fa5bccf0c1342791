//! A reading of a timer.

use std::time::Duration;

use waterwheel::{DialSnapshot, Lateness, Timer};

use crate::format;

#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The time since the meter began.
    pub(crate) up: Duration,
    pub(crate) name: Option<String>,
    pub(crate) resolution: Duration,
    pub(crate) shards: usize,
    pub(crate) pending: u64,
    pub(crate) due: u64,
    pub(crate) beyond: u64,
    /// The time until the next expiration.
    pub(crate) time_left: Option<Duration>,
    pub(crate) dials: Vec<Dial>,
    pub(crate) totals: Totals,
}

#[derive(Debug, Clone)]
pub(crate) struct Dial {
    pub(crate) name: String,
    pub(crate) slots: DialSnapshot,
}

/// The counters since the timer was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) armed: u64,
    pub(crate) fired: u64,
    pub(crate) cancelled: u64,
    pub(crate) cascaded: u64,
    pub(crate) turns: u64,
    pub(crate) late: Late,
}

/// The distribution of lateness.
#[derive(Debug, Clone, Default)]
pub(crate) struct Late {
    /// The number of all timers.
    pub(crate) count: u64,
    /// The number of timers that were less late than each bound, from the least bound on.
    pub(crate) below: Vec<(Duration, u64)>,
}

impl Reading {
    pub(crate) fn of(timer: &Timer, up: Duration) -> Reading {
        let (snapshot, metrics) = (timer.snapshot(), timer.metrics());
        let dials = snapshot.dials().iter().enumerate();
        Reading {
            up,
            name: snapshot.name().map(str::to_owned),
            resolution: snapshot.resolution(),
            shards: timer.shards(),
            pending: snapshot.pending(),
            due: snapshot.due(),
            beyond: snapshot.beyond(),
            time_left: snapshot.time_left(),
            dials: dials.map(|(at, dial)| Dial::of(at, dial)).collect(),
            totals: Totals {
                armed: metrics.armed(),
                fired: metrics.fired(),
                cancelled: metrics.cancelled(),
                cascaded: metrics.cascaded(),
                turns: metrics.driver_turns(),
                late: Late::of(metrics.lateness()),
            },
        }
    }
}

impl Dial {
    fn of(at: usize, dial: &DialSnapshot) -> Dial {
        let names = ["ms", "s", "min", "h", "d"];
        let is_named = at > 0 || dial.slot_length() == Duration::from_millis(1);
        let name = names.get(at).filter(|_| is_named);
        Dial {
            name: name.map_or_else(
                || format::span(dial.slot_length()).replace(' ', ""),
                |name| (*name).to_owned(),
            ),
            slots: dial.clone(),
        }
    }
}

impl Late {
    fn of(lateness: &Lateness) -> Late {
        Late {
            count: lateness.count(),
            below: lateness.buckets().collect(),
        }
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Late) -> Late {
        let before = |at: usize| earlier.below.get(at).map_or(0, |below| below.1);
        let below = self.below.iter().enumerate();
        Late {
            count: self.count.saturating_sub(earlier.count),
            below: below
                .map(|(at, &(bound, count))| (bound, count.saturating_sub(before(at))))
                .collect(),
        }
    }

    /// The number of timers that were less late than this bound, which is one of the bounds.
    pub(crate) fn below(&self, bound: Duration) -> u64 {
        let found = self.below.iter().find(|below| below.0 == bound);
        found.map_or(0, |below| below.1)
    }

    /// The least bound that this share of the timers stayed below; the greatest one if none suffices. `None` without timers.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let found = self.below.iter().find(|below| below.1 >= rank);
        let bound = found.or(self.below.last()).map(|below| below.0);
        bound.filter(|_| self.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Late, Reading};
    use waterwheel::{ManualClock, Timer};

    #[test]
    fn a_quantile_is_a_bound_and_a_difference_has_what_is_new() {
        let micros = Duration::from_micros;
        let late = |counts: [u64; 3], count| Late {
            count,
            below: [1, 2, 4].map(micros).into_iter().zip(counts).collect(),
        };
        let all = late([50, 98, 99], 100);
        let quantiles = [0.0, 0.5, 0.51, 0.98, 0.99, 1.0].map(|share| all.quantile(share));
        assert_eq!(quantiles, [1, 1, 2, 2, 4, 4].map(|it| Some(micros(it))));
        assert_eq!(late([0; 3], 0).quantile(0.5), None);
        assert_eq!(Late::default().quantile(0.5), None);
        let new = all.since(&late([50, 60, 60], 60));
        assert_eq!(
            (new.count, new.below(micros(1)), new.below(micros(4))),
            (40, 0, 39)
        );
        assert_eq!(all.since(&Late::default()).count, 100);
    }

    #[test]
    fn a_reading_is_of_the_timer_that_it_is_given() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let clock = ManualClock::new();
        let builder = Timer::builder().name("read").clock(clock.clone());
        let timer = builder.start_on(runtime.handle()).unwrap();
        clock.advance(Duration::from_millis(61_417));
        let reading = Reading::of(&timer, Duration::ZERO);
        assert_eq!(
            (reading.name.as_deref(), reading.pending),
            (Some("read"), 0)
        );
        let dials: Vec<_> = reading
            .dials
            .iter()
            .map(|it| (&*it.name, it.slots.hand()))
            .collect();
        assert_eq!(
            dials,
            [("ms", 417), ("s", 1), ("min", 1), ("h", 0), ("d", 0)]
        );
        let timer = Timer::builder().resolution(Duration::from_micros(100));
        let timer = timer.clock(clock).start_on(runtime.handle()).unwrap();
        let reading = Reading::of(&timer, Duration::ZERO);
        assert_eq!(reading.dials[0].name, "100µs");
        assert_eq!(reading.dials[0].slots.slots(), 10_000);
    }
}
