//! A distribution with a stretched tail: each further nine has equal room, as in `HdrHistogram`'s plots. An ordinary curve hides
//! everything past p99 in its last pixel.

use super::curves::{Axis, Curve, Point, Rounds};
use super::look::Look;
use super::scale::Kind;
use crate::Spread;

pub const PLOT_HEIGHT: f64 = 230.0;

const STEPS: u32 = 80;
const LAST: f64 = 0.9999;

/// The value that each share stays within, from a tenth to all but one in ten thousand. `None` if a share has no value.
pub fn curve(look: Look, value: impl Fn(f64) -> Option<Spread>) -> Option<Curve> {
    let point = |step: u32| {
        let nines = nines(0.1) + (nines(LAST) - nines(0.1)) * f64::from(step) / f64::from(STEPS);
        let spread = value(1.0 - 10_f64.powf(-nines))?;
        Some(Point {
            x: nines,
            y: spread.median,
            ends: (spread.min, spread.max),
        })
    };
    let points: Option<Vec<_>> = (0..=STEPS).map(point).collect();
    Some(Curve {
        look,
        points: points?,
        rounds: Rounds::Band,
    })
}

/// The number of nines of a share: 0.9 has one, 0.99 two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

pub fn axis(label: &str) -> Axis {
    let tick = |percent: f64| (nines(percent / 100.0), format!("{percent}"));
    Axis {
        kind: Kind::Linear,
        ends: (0.0, nines(LAST)),
        ticks: [50.0, 90.0, 99.0, 99.9, 99.99].map(tick).to_vec(),
        label: label.to_owned(),
    }
}
