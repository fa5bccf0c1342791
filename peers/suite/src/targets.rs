//! What the project set itself, and whether a run has it. A verdict, not a gate.

use waterwheel_suite::{Outcome, Spread, Table, Verdict};

use crate::alt_timer;
use crate::contestant::{Ambient, Own, Sleeps};
use crate::report::spread_text;
use crate::workloads::{self, Workload};

/// What one contestant is to reach in one workload.
#[derive(Clone)]
pub(crate) struct Target {
    /// Title of the table.
    pub(crate) title: String,
    /// Name of one of its metrics.
    pub(crate) metric: &'static str,
    /// Name of one of its contestants.
    pub(crate) of: &'static str,
    pub(crate) want: Want,
}

#[derive(Clone)]
pub(crate) enum Want {
    /// To be so many times better than another contestant: the median of the rounds' ratios.
    Times { than: &'static str, at_least: f64 },
    /// To cost at most so many times what another contestant costs: the median of the rounds' ratios.
    Share { of: &'static str, at_most: f64 },
    /// A figure: its median.
    AtMost(f64),
    /// To cost at most so many times what it costs in another table: its median here over its median there.
    Grows { from: String, at_most: f64 },
}

/// What is wanted of a timer of one's own.
pub(crate) fn of_own(title: &str, metric: &'static str, want: Want) -> Target {
    Target {
        title: title.to_owned(),
        metric,
        of: Own::<true>::NAME,
        want,
    }
}

/// So many times better than another contestant: by a timer of one's own, and by the ambient one.
pub(crate) fn both_beat(
    than: &'static str,
    title: &str,
    metric: &'static str,
    [own, ambient]: [f64; 2],
) -> [Target; 2] {
    [(Own::<true>::NAME, own), (Ambient::NAME, ambient)].map(|(of, at_least)| Target {
        title: title.to_owned(),
        metric,
        of,
        want: Want::Times { than, at_least },
    })
}

/// A verdict on each target.
pub(crate) fn verdicts(tables: &[Table]) -> Vec<Verdict> {
    let verdict = |target: Target| target.verdict(tables);
    workloads::targets().into_iter().map(verdict).collect()
}

/// What a target names and no workload has: a slip that would end as "not run" for ever.
pub(crate) fn slips() -> Vec<String> {
    let workloads: Vec<Workload> = [false, true].into_iter().flat_map(workloads::all).collect();
    let mut slips = Vec::new();
    for Target {
        title,
        metric,
        of,
        want,
    } in workloads::targets()
    {
        let other = match want {
            Want::Times { than: other, .. } | Want::Share { of: other, .. } => other,
            Want::AtMost(_) | Want::Grows { .. } => of,
        };
        let titles = match want {
            Want::Grows { from, .. } => vec![title, from],
            _ => vec![title],
        };
        for title in titles {
            let Some(workload) = workloads.iter().find(|workload| workload.title == title) else {
                slips.push(format!("no workload {title:?}"));
                continue;
            };
            if workload.metrics.iter().all(|m| m.name != metric) {
                slips.push(format!("{title:?} has no metric {metric:?}"));
            }
            for name in [of, other] {
                if name != alt_timer::NAME && workload.entrants.iter().all(|e| e.name != name) {
                    slips.push(format!("{title:?} has no contestant {name:?}"));
                }
            }
        }
    }
    slips
}

impl Target {
    fn verdict(self, tables: &[Table]) -> Verdict {
        let measured = self.measured(tables);
        let outcome = match measured {
            None => Outcome::NotRun,
            Some(_) if self.is_void(tables) => Outcome::Void,
            Some(Spread { median, .. }) if self.want.is_met_by(median) => Outcome::Pass,
            Some(_) => Outcome::Miss,
        };
        let table = tables.iter().find(|table| table.title == self.title);
        let metric = table.and_then(|table| table.metric(self.metric).map(|i| &table.metrics[i]));
        let unit = metric.map_or("", |metric| &metric.unit);
        Verdict {
            wanted: self.want.text(unit),
            title: self.title,
            metric: self.metric.to_owned(),
            of: self.of.to_owned(),
            measured,
            outcome,
        }
    }

    /// A ratio or a figure, as wanted; none where something of it did not run.
    fn measured(&self, tables: &[Table]) -> Option<Spread> {
        let find = |title: &str| tables.iter().find(|table| table.title == title);
        let table = find(&self.title)?;
        let metric = table.metric(self.metric)?;
        let this = table.series(self.of)?;
        Some(match &self.want {
            Want::Times { than, .. } => table.times_better(this, table.series(than)?, metric),
            Want::Share { of, .. } => table.times_better(table.series(of)?, this, metric),
            Want::AtMost(_) => this.spread(metric),
            Want::Grows { from, .. } => {
                let from = find(from)?;
                let before = from.series(self.of)?.spread(from.metric(self.metric)?);
                let after = this.spread(metric);
                // The rounds of two tables are no pairs.
                let times = |after, before| table.metrics[metric].better.times(before, after);
                Spread::of(vec![
                    times(after.min, before.max),
                    times(after.median, before.median),
                    times(after.max, before.min),
                ])
            }
        })
    }

    /// Whether timers broke the contract where this was measured.
    fn is_void(&self, tables: &[Table]) -> bool {
        let from = match &self.want {
            Want::Grows { from, .. } => from,
            _ => &self.title,
        };
        tables
            .iter()
            .any(|table| table.faults() > 0 && [&self.title, from].contains(&&table.title))
    }
}

impl Want {
    fn is_met_by(&self, median: f64) -> bool {
        match *self {
            Self::Times { at_least, .. } => median >= at_least,
            Self::Share { at_most, .. } | Self::Grows { at_most, .. } | Self::AtMost(at_most) => {
                median <= at_most
            }
        }
    }

    fn text(&self, unit: &str) -> String {
        match self {
            Self::Times { than, at_least } => format!("at least {at_least} x better than {than}"),
            Self::Share { of, at_most } => format!("at most {at_most} x {of}"),
            Self::AtMost(at_most) => format!("at most {at_most} {unit}"),
            Self::Grows { from, at_most } => format!("at most {at_most} x that of `{from}`"),
        }
    }
}

/// Prints a line for each target.
pub(crate) fn print(verdicts: &[Verdict]) {
    println!("\n## Targets\n");
    println!("| workload: metric | contestant | wanted | measured (min..max) | verdict |");
    println!("|:--|:--|:--|--:|:--|");
    for verdict in verdicts {
        let Verdict {
            title,
            metric,
            of,
            wanted,
            ..
        } = verdict;
        let measured = verdict.measured.map_or("-".to_owned(), spread_text);
        let outcome = match verdict.outcome {
            Outcome::Pass => "PASS",
            Outcome::Miss => "MISS",
            Outcome::NotRun => "not run",
            Outcome::Void => "VOID: see the faults",
        };
        println!("| {title}: {metric} | {of} | {wanted} | {measured} | {outcome} |");
    }
    let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
    println!(
        "\n{} PASS, {} MISS, {} VOID, {} not run",
        count(Outcome::Pass),
        count(Outcome::Miss),
        count(Outcome::Void),
        count(Outcome::NotRun)
    );
}
