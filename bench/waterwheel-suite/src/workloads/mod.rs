//! The list of all workloads: one file each, with its sizes in the report, and its targets.
//!
//! Only this file names every workload. A workload uses the vocabulary of `targets`. `targets`, `rounds` and `process` name
//! no workload: they get everything that they need.

mod cancel;
mod churn;
mod delay_queue;
mod fire;
mod foreign_cancel;
mod fresh_task;
mod growth;
mod herd;
mod idle;
mod interval;
mod memory;
mod postpone;
mod rate;
mod rpc;
mod schedule;
mod service;
mod simulate;
mod slack;
mod timeout;
mod touch;
mod wheel;

use waterwheel_suite::Target;

use crate::alt_timer;
use crate::workload::Workload;

/// The workloads that take fewer rounds than requested, by the beginning of their titles: a round takes long, and
/// rounds vary little.
const FEWER_ROUNDS: [(&str, usize); 5] = [
    (idle::NAME, idle::ROUNDS),
    (interval::LONE, interval::LONE_ROUNDS),
    (slack::FIRED, slack::ROUNDS),
    (memory::NAME, memory::ROUNDS),
    (growth::NAME, growth::ROUNDS),
];

/// The workloads that take one round in a quick run, by the beginning of their titles: a sample is mostly waiting, or takes seconds.
const ONE_QUICK_ROUND: [&str; 4] = [rate::NAME, interval::LONE, service::NAME, slack::FIRED];

/// Builds the programs that a workload starts.
type Build = fn() -> Result<(), String>;

/// The workloads that start programs of other packages, by the beginning of their titles.
const BUILDS: [(&str, Build); 2] = [
    (service::NAME, service::build),
    (simulate::NAME, simulate::build),
];

/// The number of rounds of the workload with this title, if `asked` were requested.
pub(crate) fn rounds(title: &str, asked: usize, quick: bool) -> usize {
    let begins = |name: &&str| title.starts_with(name);
    if quick && ONE_QUICK_ROUND.iter().any(begins) {
        return 1;
    }
    let fewer = FEWER_ROUNDS.iter().find(|(name, _)| begins(name));
    fewer.map_or(asked, |(_, most)| asked.min(*most))
}

/// Whether the workload with this title starts a program that has to be built first.
pub(crate) fn is_built_first(title: &str) -> bool {
    BUILDS.iter().any(|(name, _)| title.starts_with(name))
}

/// Builds the programs that the workloads of these titles start.
pub(crate) fn build(titles: &[String]) -> Result<(), String> {
    let starts = |name| titles.iter().any(|title| title.starts_with(name));
    let mut wanted = BUILDS.into_iter().filter(|&(name, _)| starts(name));
    wanted.try_for_each(|(_, build)| build())
}

type Part = (fn(bool) -> Vec<Workload>, fn() -> Vec<Target>);

/// In the order of the report: the workloads, fewer and smaller in a quick run, and the targets that the project set itself.
const PARTS: [Part; 21] = [
    (cancel::all, cancel::targets),
    (fresh_task::all, fresh_task::targets),
    (foreign_cancel::all, Vec::new),
    (churn::all, churn::targets),
    (postpone::all, postpone::targets),
    (touch::all, touch::targets),
    (timeout::all, timeout::targets),
    (herd::all, herd::targets),
    (fire::all, fire::targets),
    (slack::all, slack::targets),
    (rate::all, rate::targets),
    (idle::all, idle::targets),
    (interval::all, interval::targets),
    (memory::all, memory::targets),
    (rpc::all, Vec::new),
    (service::all, service::targets),
    (simulate::all, simulate::targets),
    (wheel::all, wheel::targets),
    (delay_queue::all, delay_queue::targets),
    (schedule::all, schedule::targets),
    (growth::all, Vec::new),
];

/// Every workload at every size; fewer and smaller if `quick`.
pub(crate) fn all(quick: bool) -> Vec<Workload> {
    PARTS.iter().flat_map(|(all, _)| all(quick)).collect()
}

/// All targets.
pub(crate) fn targets() -> Vec<Target> {
    PARTS.iter().flat_map(|(_, targets)| targets()).collect()
}

/// Targets that name no workload: a misspelt name, whose verdict would always be "not run".
pub(crate) fn slips() -> Vec<String> {
    let workloads: Vec<Workload> = [false, true].into_iter().flat_map(all).collect();
    let mut slips = Vec::new();
    for target in targets() {
        let metric = target.metric;
        for title in target.titles() {
            let Some(workload) = workloads.iter().find(|workload| workload.title == title) else {
                slips.push(format!("no workload {title:?}"));
                continue;
            };
            if workload.metrics.iter().all(|m| m.name != metric) {
                slips.push(format!("{title:?} has no metric {metric:?}"));
            }
            for name in [Some(target.of), target.other()].into_iter().flatten() {
                if name != alt_timer::NAME && workload.entrants.iter().all(|e| e.name != name) {
                    slips.push(format!("{title:?} has no contestant {name:?}"));
                }
            }
        }
    }
    slips
}
