//! What is made of many latenesses: some percentiles and a curve.

use waterwheel_bench_kit::quantile;
use waterwheel_suite::Curve;

/// Points of the curve up to 0.99, evenly.
const BODY: u32 = 100;
/// Points for each further nine, of which there are three: on a linear scale the tail would be one point.
const A_NINE: u32 = 20;

/// In nanoseconds, sorted.
pub(crate) struct Lateness(Vec<u64>);

impl Lateness {
    pub(crate) fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// In microseconds: what each of these shares of the timers keeps within.
    pub(crate) fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        shares.map(|share| self.quantile(share))
    }

    /// The lateness in µs, and the share of the timers that are no later.
    pub(crate) fn curve(&self) -> Curve {
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

    /// In microseconds; NaN if no timer fired.
    fn quantile(&self, share: f64) -> f64 {
        quantile(&self.0, share).map_or(f64::NAN, |nanos| nanos as f64 / 1e3)
    }
}
