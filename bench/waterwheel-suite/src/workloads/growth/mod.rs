//! `growth`: how the cost grows with something else. A cliff would show here.
//!
//! | table | growing quantity | steps |
//! |:--|:--|:--|
//! | `growth: population` | timers that are pending throughout | 1 k … 10 M |
//! | `growth: threads` | threads that arm and cancel | 1 … twice the processors |
//! | `growth: share that fires` | timers that are not cancelled | 0 … 100 % |
//! | `growth: delay spread` | how far apart the deadlines are | all equal … 1 ms to 30 days |
//!
//! Each step is a metric of the table, so that a row is a curve and a sample contains all its points.

mod climb;
mod fired;
mod population;
mod spread;
mod threads;

use crate::workload::Workload;

pub(crate) use climb::NAME;

/// The number of rounds. Each round takes many samples.
pub(crate) const ROUNDS: usize = 5;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    vec![
        population::workload(quick),
        threads::workload(quick),
        fired::workload(quick),
        spread::workload(quick),
    ]
}
