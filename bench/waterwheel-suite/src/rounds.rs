//! Interleaved rounds: A B C A B C …, so that the drift of a shared machine affects all contestants alike.

use std::time::Instant;

use waterwheel_suite::{Failure, Series, Table};

use crate::alt_timer;
use crate::contestant::{Sleeps, Tokio};
use crate::entrant::Entrant;
use crate::process::Program;
use crate::workload::Workload;

/// The programs that take the samples.
pub(crate) struct Programs {
    pub(crate) this: Program,
    pub(crate) alt_timer: Option<Program>,
}

impl Programs {
    /// Takes all samples of a workload.
    pub(crate) fn run(&self, workload: Workload, rounds: usize) -> Table {
        let mut table = Table {
            title: workload.title,
            work: workload.work,
            metrics: workload.metrics.to_vec(),
            series: Vec::new(),
            absent: workload.absent,
            seconds: 0.0,
            failures: Vec::new(),
        };
        let start = Instant::now();
        let alt_is_absent = table.absent.iter().any(|it| it.name == alt_timer::NAME);
        let alt_timer = self.alt_timer.as_ref().filter(|_| !alt_is_absent);
        let mut turns = Vec::new();
        for Entrant { name, .. } in workload.entrants {
            turns.push((name, name, &self.this));
            if let Some(alt) = alt_timer.filter(|_| name == Tokio::NAME) {
                turns.push((alt_timer::NAME, name, alt));
            }
        }
        table.series = turns.iter().map(|&(row, ..)| Series::new(row)).collect();
        for _ in 0..rounds {
            for ((row, name, program), series) in turns.iter().zip(&mut table.series) {
                match program.sample(&table.title, name) {
                    Ok(sample) => series.samples.push(sample),
                    Err(why) => table.failures.push(Failure {
                        name: (*row).to_owned(),
                        why,
                    }),
                }
            }
        }
        table.seconds = start.elapsed().as_secs_f64();
        // A ratio pairs the samples of one round, so a contestant with a failed sample has no row.
        table.series.retain(|series| series.samples.len() == rounds);
        for series in &mut table.series {
            let metrics = 0..table.metrics.len();
            series.spreads = metrics.map(|metric| series.spread(metric)).collect();
        }
        table
    }
}
