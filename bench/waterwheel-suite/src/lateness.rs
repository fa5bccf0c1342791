//! Percentiles and curves of lateness.

use waterwheel_bench_kit::quantile;
use waterwheel_suite::{Curve, Sample};

/// The number of points of the curve up to 0.99, evenly spaced.
const BODY: u32 = 100;
/// The number of points for each of the three further nines: on a linear scale the tail would be a single point.
const A_NINE: u32 = 20;

/// The fates of timers.
#[derive(Default)]
pub(crate) struct Fired {
    /// The lateness values in nanoseconds.
    pub(crate) late: Vec<u64>,
    pub(crate) early: u64,
    pub(crate) lost: u64,
}

impl Fired {
    /// Adds a timer, and when it fired, if it did.
    pub(crate) fn add(&mut self, deadline: u64, fired: Option<u64>) {
        let Some(fired) = fired else {
            self.lost += 1;
            return;
        };
        self.early += u64::from(fired < deadline);
        self.late.push(fired.saturating_sub(deadline));
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.late.extend(other.late);
        self.early += other.early;
    }

    /// A sample of the percentiles, the given figures, and the number of early timers.
    pub(crate) fn sample(
        self,
        shares: &[f64],
        figures: impl IntoIterator<Item = f64>,
        with_curve: bool,
    ) -> Sample {
        let lateness = Lateness::new(self.late);
        let mut values: Vec<_> = shares.iter().map(|it| lateness.quantile(*it)).collect();
        values.extend(figures);
        values.push(self.early as f64);
        Sample {
            values,
            early: self.early,
            lost: self.lost,
            curves: Vec::from_iter(with_curve.then(|| lateness.curve())),
            ..Sample::default()
        }
    }
}

/// Sorted lateness values in nanoseconds.
struct Lateness(Vec<u64>);

impl Lateness {
    fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// The lateness in µs, and the share of the timers that are no later.
    fn curve(&self) -> Curve {
        let body = (1..=BODY).map(|step| 0.99 * f64::from(step) / f64::from(BODY));
        let tail = (1..=3 * A_NINE).map(|step| {
            let nines = 2.0 + f64::from(step) / f64::from(A_NINE);
            1.0 - 10_f64.powf(-nines)
        });
        let points = body
            .chain(tail)
            .chain([1.0])
            .map(|share| (self.quantile(share), share));
        Curve {
            name: "lateness".into(),
            points: points.collect(),
        }
    }

    /// A quantile in microseconds; NaN if no timer fired.
    fn quantile(&self, share: f64) -> f64 {
        quantile(&self.0, share).map_or(f64::NAN, |nanos| nanos as f64 / 1e3)
    }
}
