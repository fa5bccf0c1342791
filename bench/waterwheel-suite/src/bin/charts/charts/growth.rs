//! How a cost grows with the number of pending timers, with the threads, with the share that fires, and with the delays.
//!
//! A table of `growth` is one panel. Each of its metrics is a step, and each contestant a line through them. The steps are
//! evenly spaced: most are ten times the one before.

use waterwheel_bench_kit::chart::curves::{self, Axis, Curve, Panel, Point, Rounds};
use waterwheel_bench_kit::chart::{Chart, Kind, short_count};
use waterwheel_suite::{Better, Results, Table};

use crate::looks::look;
use crate::source::{Source, contestants};
use crate::tables::{self, Missing};

/// The growing quantity, in the title of its table.
struct Growing {
    title: &'static str,
    heading: &'static str,
    /// The unit of the steps.
    axis: &'static str,
    /// The parts of each step's name that the axis already shows.
    noise: &'static [&'static str],
}

const ALL: [Growing; 4] = [
    Growing {
        title: "growth: population",
        heading: "arm + cancel, 1 thread",
        axis: "other pending timers (log scale)",
        noise: &[" pending"],
    },
    Growing {
        title: "growth: threads",
        heading: "arm + cancel, all threads together",
        axis: "threads",
        noise: &[" threads", " thread"],
    },
    Growing {
        title: "growth: share that fires",
        heading: "CPU time to arm a timer and fire or cancel it",
        axis: "share of timers that fire (not to scale)",
        noise: &[" fire"],
    },
    Growing {
        title: "growth: delay spread",
        heading: "replace the oldest timer, 1 thread",
        axis: "spread of the deadlines (not to scale)",
        noise: &[],
    },
];
const PLOT_HEIGHT: f64 = 170.0;
/// Most of the figure does not come from the timer, and is the same for all.
const CPU_TIME: &str = "CPU time: 100 000 timers per second. Includes one allocation per timer, and waking two tasks every millisecond to arm them.";

/// The chart of the sizes that were run.
pub(crate) fn chart(results: &Results) -> Result<(Chart, Source), Missing> {
    let run: Vec<(&Growing, &Table)> = ALL
        .iter()
        .filter_map(|growing| Some((growing, tables::table(results, growing.title).ok()?)))
        .collect();
    let panels: Vec<Panel> = run
        .iter()
        .filter_map(|(growing, table)| growing.panel(table, results.conditions.cores))
        .collect();
    if panels.is_empty() {
        return Err(Missing("workload \"growth\"".to_owned()));
    }
    let (body, height) = curves::draw(&panels, 2, PLOT_HEIGHT);
    let chart = Chart {
        title: "How the cost of a timer grows".to_owned(),
        subtitle: "With the pending timers, the threads, the share that fires and the spread of deadlines. Whiskers: lowest to highest round.".to_owned(),
        legend: curves::legend(panels.iter().flat_map(|panel| &panel.curves)),
        body,
        height,
        notes: vec![CPU_TIME.to_owned()],
    };
    let source = Source::of(run.iter().map(|(_, table)| *table));
    Ok((chart, source))
}

impl Growing {
    /// A panel. `None` if nothing was measured.
    fn panel(&self, table: &Table, cores: usize) -> Option<Panel> {
        let unit = table.metrics.first()?;
        let better = match unit.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
        };
        let curves: Vec<Curve> = contestants([table].into_iter())
            .into_iter()
            .map(|name| curve(table, name))
            .collect();
        Some(Panel {
            heading: self.heading.to_owned(),
            remark: format!("{}, {better}", unit.unit),
            x: self.steps(table),
            y: Axis::from_zero(&curves)?,
            shaded: oversubscribed(table.metrics.iter().map(|step| &*step.name), cores),
            curves,
        })
    }

    fn steps(&self, table: &Table) -> Axis {
        let names = table.metrics.iter().map(|metric| self.step(&metric.name));
        Axis {
            kind: Kind::Linear,
            ends: (0.0, table.metrics.len().saturating_sub(1).max(1) as f64),
            ticks: names
                .enumerate()
                .map(|(index, name)| (index as f64, name))
                .collect(),
            label: self.axis.to_owned(),
        }
    }

    /// The label of a step: `1000000 pending` is `1 M` on the axis, and `1 ms to 30 days` loses its spaces.
    fn step(&self, name: &str) -> String {
        let short = self
            .noise
            .iter()
            .find_map(|noise| name.strip_suffix(noise))
            .unwrap_or(name);
        short
            .parse()
            .map_or_else(|_| short.replace(" to ", "–"), short_count)
    }
}

/// The first step that has more threads than the machine has cores.
fn oversubscribed<'a>(
    mut steps: impl Iterator<Item = &'a str>,
    cores: usize,
) -> Option<(f64, String)> {
    let threads = |step: &str| step.strip_suffix(" threads")?.parse::<usize>().ok();
    let first = steps.position(|step| threads(step) > Some(cores))?;
    Some((
        first as f64 - 0.5,
        format!("oversubscribed ({cores} cores)"),
    ))
}

fn curve(table: &Table, name: &str) -> Curve {
    let point = |metric| {
        let spread = tables::spread(table.series(name)?, metric)?;
        Some(Point {
            x: metric as f64,
            y: spread.median,
            ends: (spread.min, spread.max),
        })
    };
    Curve {
        look: look(name),
        points: (0..table.metrics.len()).filter_map(point).collect(),
        rounds: Rounds::Whiskers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_short_and_lose_nothing() {
        let step = |growing: &Growing, name| growing.step(name).replace('\u{a0}', " ");
        let [population, threads, fires, spread] = &ALL;
        assert_eq!(step(population, "10000000 pending"), "10 M");
        assert_eq!(step(threads, "1 thread"), "1");
        assert_eq!(step(fires, "50 % fire"), "50 %");
        assert_eq!(step(spread, "1 ms to 30 days"), "1 ms–30 days");
    }

    #[test]
    fn more_threads_than_cores_are_oversubscribed() {
        let threads = ["1 thread", "2 threads", "3 threads", "4 threads"];
        let from = |steps: &[&'static str], cores| {
            oversubscribed(steps.iter().copied(), cores).map(|(from, _)| from)
        };
        assert_eq!(from(&threads, 2), Some(1.5));
        assert_eq!(from(&threads, 4), None);
        assert_eq!(from(&["1000 pending"], 2), None);
    }
}
