//! The targets that the project set itself, and how a run is judged by them.

use waterwheel_bench_kit::Spread;

use crate::{Outcome, Series, Table, Verdict};

/// A target of one contestant in one workload.
#[derive(Clone, Debug)]
pub struct Target {
    /// The title of the table.
    pub title: String,
    /// The name of one of its metrics.
    pub metric: &'static str,
    /// The name of one of its contestants.
    pub of: &'static str,
    /// The wanted figure.
    pub want: Want,
}

/// A wanted figure, and the figure of the rounds that is compared to it.
#[derive(Clone, Debug)]
pub enum Want {
    /// At least this many times better than another contestant: the median of the rounds' ratios.
    Times {
        /// The other contestant.
        than: &'static str,
        /// The least acceptable ratio.
        at_least: f64,
    },
    /// At most this many times the cost of another contestant: the median of the rounds' ratios.
    Share {
        /// The other contestant.
        of: &'static str,
        /// The greatest acceptable ratio.
        at_most: f64,
    },
    /// At most this much more than another contestant, in the metric's unit: the median of the rounds' differences.
    More {
        /// The other contestant.
        than: &'static str,
        /// The greatest acceptable difference.
        at_most: f64,
    },
    /// A figure: its median.
    AtMost(f64),
    /// At most this many times the cost in another table: its median here over its median there.
    Grows {
        /// The title of the other table.
        from: String,
        /// The greatest acceptable ratio.
        at_most: f64,
    },
    /// A count that is 0 in every round: a median would hide a single round in which it is not.
    Zero,
}

impl Target {
    /// A target for a contestant in a metric of a table.
    pub fn new(
        title: impl Into<String>,
        metric: &'static str,
        of: &'static str,
        want: Want,
    ) -> Self {
        Self {
            title: title.into(),
            metric,
            of,
            want,
        }
    }

    /// The contestant that it is compared to, if there is one.
    pub fn other(&self) -> Option<&'static str> {
        match self.want {
            Want::Times { than: other, .. }
            | Want::Share { of: other, .. }
            | Want::More { than: other, .. } => Some(other),
            Want::AtMost(_) | Want::Grows { .. } | Want::Zero => None,
        }
    }

    /// The titles of the tables that it needs.
    pub fn titles(&self) -> Vec<&str> {
        match &self.want {
            Want::Grows { from, .. } => vec![&self.title, from],
            _ => vec![&self.title],
        }
    }

    /// Judges it by these tables.
    pub fn verdict(self, tables: &[Table]) -> Verdict {
        let measured = self.measured(tables);
        let outcome = match measured {
            _ if self.is_void(tables) => Outcome::Void,
            None => Outcome::NotRun,
            Some(spread) if self.want.is_met_by(spread) => Outcome::Pass,
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

    /// The wanted ratio, difference or figure; `None` if a part of it did not run.
    fn measured(&self, tables: &[Table]) -> Option<Spread> {
        let find = |title: &str| tables.iter().find(|table| table.title == title);
        let table = find(&self.title)?;
        let metric = table.metric(self.metric)?;
        let this = table.series(self.of)?;
        Some(match &self.want {
            Want::Times { than, .. } => table.times_better(this, table.series(than)?, metric),
            Want::Share { of, .. } => table.times_better(table.series(of)?, this, metric),
            Want::More { than, .. } => table.more(this, table.series(than)?, metric),
            Want::AtMost(_) | Want::Zero => this.spread(metric),
            Want::Grows { from, .. } => {
                let from = find(from)?;
                let before = from.series(self.of)?.spread(from.metric(self.metric)?);
                let after = this.spread(metric);
                // The rounds of two tables cannot be paired.
                let times = |after, before| table.metrics[metric].better.times(before, after);
                Spread::of(vec![
                    times(after.min, before.max),
                    times(after.median, before.median),
                    times(after.max, before.min),
                ])
            }
        })
    }

    /// Whether timers of one of the compared contestants broke the contract here, or a sample of it failed. This
    /// does not invalidate a count that must be 0.
    fn is_void(&self, tables: &[Table]) -> bool {
        let names = [Some(self.of), self.other()];
        let concerns = |name: &str| names.contains(&Some(name));
        let titles = self.titles();
        tables
            .iter()
            .filter(|table| titles.contains(&&*table.title))
            .any(|table| {
                let broke = |series: &Series| concerns(&series.name) && series.faults() > 0;
                let counts = !matches!(self.want, Want::Zero);
                counts && table.series.iter().any(broke)
                    || table.failures.iter().any(|failure| concerns(&failure.name))
            })
    }
}

impl Want {
    /// At least this many times better than another contestant.
    pub const fn times(than: &'static str, at_least: f64) -> Self {
        Self::Times { than, at_least }
    }

    /// At most this many times the cost of another contestant.
    pub const fn share(of: &'static str, at_most: f64) -> Self {
        Self::Share { of, at_most }
    }

    fn is_met_by(&self, Spread { median, max, .. }: Spread) -> bool {
        match *self {
            Self::Times { at_least, .. } => median >= at_least,
            Self::Share { at_most, .. }
            | Self::More { at_most, .. }
            | Self::Grows { at_most, .. }
            | Self::AtMost(at_most) => median <= at_most,
            Self::Zero => max == 0.0,
        }
    }

    fn text(&self, unit: &str) -> String {
        match self {
            Self::Times { than, at_least } => format!("at least {at_least} x better than {than}"),
            Self::Share { of, at_most } => format!("at most {at_most} x {of}"),
            Self::More { than, at_most } => format!("at most {at_most} {unit} more than {than}"),
            Self::AtMost(at_most) => format!("at most {at_most} {unit}"),
            Self::Grows { from, at_most } => format!("at most {at_most} x that of `{from}`"),
            Self::Zero => "0 in every round".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Metric, Sample};

    fn table(title: &str, series: &[(&'static str, &[f64])]) -> Table {
        let sample = |&value: &f64| Sample::of(vec![value]);
        let series = series.iter().map(|&(name, values)| Series {
            samples: values.iter().map(sample).collect(),
            ..Series::new(name)
        });
        Table {
            title: title.to_owned(),
            metrics: vec![Metric::lower("cost", "ns")],
            series: series.collect(),
            ..Table::default()
        }
    }

    fn verdict(want: Want, tables: &[Table]) -> (Outcome, Option<f64>) {
        let target = Target {
            title: "here".to_owned(),
            metric: "cost",
            of: "own",
            want,
        };
        let verdict = target.verdict(tables);
        (
            verdict.outcome,
            verdict.measured.map(|spread| spread.median),
        )
    }

    const TWICE_AS_GOOD: Want = Want::times("tokio", 2.0);

    #[test]
    fn ratios_and_differences_are_of_pairs_and_a_count_is_of_the_worst_round() {
        // By round 3, 1 and 2; the medians are both 20.
        let ratios: &[(&str, &[f64])] =
            &[("tokio", &[30.0, 20.0, 20.0]), ("own", &[10.0, 20.0, 10.0])];
        // By round 4, 9 and 5; the medians are 20 and 26.
        let differences: &[(&str, &[f64])] =
            &[("tokio", &[30.0, 20.0, 21.0]), ("own", &[34.0, 29.0, 26.0])];
        let more = |at_most| Want::More {
            than: "tokio",
            at_most,
        };
        let grows = |at_most| Want::Grows {
            from: "there".to_owned(),
            at_most,
        };
        let grown: &[(&str, &[f64])] = &[("own", &[12.0, 12.0, 90.0])];
        let there = table("there", &[("own", &[10.0, 10.0, 11.0])]);
        for (rows, want, outcome, measured) in [
            (ratios, TWICE_AS_GOOD, Outcome::Pass, Some(2.0)),
            (ratios, Want::share("tokio", 0.5), Outcome::Pass, Some(0.5)),
            (ratios, Want::share("tokio", 0.4), Outcome::Miss, Some(0.5)),
            (differences, more(5.0), Outcome::Pass, Some(5.0)),
            (differences, more(4.9), Outcome::Miss, Some(5.0)),
            (&[], more(5.0), Outcome::NotRun, None),
            (grown, grows(1.2), Outcome::Pass, Some(1.2)),
            (grown, grows(1.1), Outcome::Miss, Some(1.2)),
            (
                &[("own", &[0.0, 0.0])],
                Want::Zero,
                Outcome::Pass,
                Some(0.0),
            ),
            (
                &[("own", &[0.0, 1.0, 0.0])],
                Want::Zero,
                Outcome::Miss,
                Some(0.0),
            ),
        ] {
            let found = verdict(want.clone(), &[table("here", rows), there.clone()]);
            assert_eq!(found, (outcome, measured), "{want:?} of {rows:?}");
        }
        let here = table("here", grown);
        assert_eq!(verdict(grows(1.2), &[here]), (Outcome::NotRun, None));
        let unknown = table("here", &[("own", &[f64::NAN])]);
        assert_eq!(verdict(Want::Zero, &[unknown]).0, Outcome::Miss);
    }

    #[test]
    fn who_broke_the_contract_voids_only_what_is_held_against_it() {
        let rows: &[(&str, &[f64])] = &[("tokio", &[9.0]), ("own", &[3.0]), ("third", &[1.0])];
        for (faulty, want, outcome) in [
            (0, TWICE_AS_GOOD, Outcome::Void),
            (1, TWICE_AS_GOOD, Outcome::Void),
            (2, TWICE_AS_GOOD, Outcome::Pass),
            (1, Want::Zero, Outcome::Miss),
        ] {
            let mut tables = [table("here", rows)];
            tables[0].series[faulty].samples[0].early = 1;
            assert_eq!(verdict(want, &tables).0, outcome, "{faulty}");
        }
        // A failed sample differs from a workload that did not run.
        let mut tables = [table("here", &rows[..1])];
        assert_eq!(verdict(TWICE_AS_GOOD, &tables).0, Outcome::NotRun);
        tables[0].failures.push(Failure {
            name: "own".to_owned(),
            why: "killed".to_owned(),
        });
        assert_eq!(verdict(TWICE_AS_GOOD, &tables).0, Outcome::Void);
    }
}
