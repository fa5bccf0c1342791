//! What is measured: one file a workload, each at the sizes that BENCH asks for, and with the targets set for it.

mod cancel;
mod churn;
mod delay_queue;
mod fire;
mod fresh_task;
mod growth;
mod herd;
mod idle;
mod interval;
mod memory;
mod postpone;
mod rpc;
pub(crate) mod simulate;
mod timeout;
mod wheel;

use waterwheel_suite::{Absent, Metric, Target};

use crate::entrant::Entrant;

/// One workload at one size.
pub(crate) struct Workload {
    pub(crate) title: String,
    /// What is done, in one line.
    pub(crate) work: String,
    pub(crate) metrics: &'static [Metric],
    /// The first is the one that the others are held against.
    pub(crate) entrants: Vec<Entrant>,
    /// Who cannot take part.
    pub(crate) absent: Vec<Absent>,
}

/// Where a round takes long and the next is much like it: at most so many, by how a title begins.
const FEWER_ROUNDS: [(&str, usize); 3] = [
    (idle::NAME, idle::ROUNDS),
    (memory::NAME, memory::ROUNDS),
    (growth::NAME, growth::ROUNDS),
];

impl Workload {
    /// How many rounds of those that were asked for are taken.
    pub(crate) fn rounds(&self, asked: usize) -> usize {
        let fewer = FEWER_ROUNDS
            .iter()
            .find(|(name, _)| self.title.starts_with(name));
        fewer.map_or(asked, |(_, most)| asked.min(*most))
    }
}

/// Every workload at every size, in the order of the report; smaller and fewer if `quick`.
pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let all = [
        cancel::all(quick),
        fresh_task::all(quick),
        churn::all(quick),
        postpone::all(quick),
        timeout::all(quick),
        herd::all(quick),
        fire::all(quick),
        idle::all(quick),
        interval::all(quick),
        memory::all(quick),
        rpc::all(quick),
        simulate::all(quick),
        wheel::all(quick),
        delay_queue::all(quick),
        growth::all(quick),
    ];
    all.into_iter().flatten().collect()
}

/// What the project set itself, in the same order.
pub(crate) fn targets() -> Vec<Target> {
    let all = [
        cancel::targets(),
        fresh_task::targets(),
        churn::targets(),
        postpone::targets(),
        timeout::targets(),
        herd::targets(),
        fire::targets(),
        idle::targets(),
        interval::targets(),
        memory::targets(),
        rpc::targets(),
        simulate::targets(),
        wheel::targets(),
    ];
    all.into_iter().flatten().collect()
}
