//! Percentiles and curves of lateness.

use waterwheel_bench_kit::quantile;

use crate::sample::Sample;

const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// The number of points on the curve for each nine.
const A_NINE: u32 = 20;

/// Notes the percentiles in ms, and the curve, of lateness values in µs.
pub(crate) fn note(of: &str, mut micros: Vec<i64>, sample: &mut Sample) {
    micros.sort_unstable();
    let quantile = |share| quantile(&micros, share).map_or(f64::NAN, |it| it as f64);
    for (name, share) in SHARES {
        sample.set(&format!("{of} {name} ms"), quantile(share) / 1e3);
    }
    // An equal number of points for each nine: on a linear scale the tail would be a single point.
    let points = (0..=4 * A_NINE).map(|step| {
        let share = 1.0 - 10_f64.powf(-f64::from(step) / f64::from(A_NINE));
        (quantile(share), share)
    });
    sample.curves.insert(of.to_owned(), points.collect());
}
