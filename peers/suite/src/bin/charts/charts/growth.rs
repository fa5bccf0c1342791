//! How a cost grows: with the timers that are pending, with the threads, with the share that fires, with the delays.

use waterwheel_suite::{Results, Table};

use super::grouped::contestants;
use crate::card::Chart;
use crate::curves::{self, Axis, AxisKind, Curve, Panel, Point};
use crate::figures::short_count;
use crate::looks::{look, packages};
use crate::tables::{self, Missing};

/// One row of tables: those whose titles begin alike, in the order of the report.
struct Family {
    heading: &'static str,
    /// What all titles begin with; the rest is the place on the axis.
    prefix: &'static str,
    axis: &'static str,
}

const FAMILIES: [Family; 4] = [
    Family {
        heading: "with the timers pending",
        prefix: "growth, population ",
        axis: "timers pending",
    },
    Family {
        heading: "with the threads",
        prefix: "growth, threads ",
        axis: "threads",
    },
    Family {
        heading: "with the share that fires",
        prefix: "growth, fires ",
        axis: "share of the timers that fire",
    },
    Family {
        heading: "with the spread of the delays",
        prefix: "growth, spread ",
        axis: "delays, from equal to far apart",
    },
];
const METRIC: &str = "one operation, per thread";
const PLOT_HEIGHT: f64 = 170.0;

pub(crate) fn chart(results: &Results) -> Result<Chart, Missing> {
    let rows: Vec<(&Family, Vec<&Table>)> = FAMILIES
        .iter()
        .map(|family| (family, family.tables(results)))
        .filter(|(_, tables)| tables.len() > 1)
        .collect();
    if rows.is_empty() {
        return Err(Missing("workload \"growth\"".to_owned()));
    }
    let panels = rows
        .iter()
        .map(|(family, tables)| family.panel(tables))
        .collect::<Result<Vec<_>, _>>()?;
    let (body, height) = curves::draw(&panels, 2, PLOT_HEIGHT);
    let everyone = contestants(rows.iter().flat_map(|(_, tables)| tables.iter().copied()));
    Ok(Chart {
        title: "How the cost of a timer grows: time an operation, on each thread".to_owned(),
        subtitle:
            "Lower is better, flat is best. Whiskers reach from the least to the greatest round."
                .to_owned(),
        legend: curves::legend(panels.iter().flat_map(|panel| &panel.curves)),
        body,
        height,
        notes: Vec::new(),
        packages: packages(&everyone),
    })
}

impl Family {
    fn tables<'a>(&self, results: &'a Results) -> Vec<&'a Table> {
        let tables = results.tables.iter();
        tables
            .filter(|table| table.title.starts_with(self.prefix))
            .collect()
    }

    fn panel(&self, tables: &[&Table]) -> Result<Panel, Missing> {
        let metrics: Vec<usize> = tables
            .iter()
            .map(|table| tables::metric(table, METRIC))
            .collect::<Result<_, _>>()?;
        let curve = |name: &str| {
            let at = |(index, table): (usize, &&Table)| {
                let spread = tables::spread(table.series(name)?, metrics[index])?;
                Some(Point {
                    x: index as f64,
                    y: spread.median,
                    ends: (spread.min, spread.max),
                })
            };
            Curve {
                look: look(name).1,
                points: tables.iter().enumerate().filter_map(at).collect(),
                marked: true,
            }
        };
        let names = contestants(tables.iter().copied());
        let curves: Vec<Curve> = names.into_iter().map(curve).collect();
        let y = Axis::log_time(curves.iter().flat_map(Curve::reach))
            .ok_or_else(|| Missing(format!("figures in {:?}", self.prefix)))?;
        Ok(Panel {
            heading: self.heading.to_owned(),
            x: self.steps(tables),
            y,
            curves,
        })
    }

    /// Evenly, in the order of the tables: most of these steps are of ten times.
    fn steps(&self, tables: &[&Table]) -> Axis {
        let label = |(index, table): (usize, &&Table)| {
            let rest = &table.title[self.prefix.len()..];
            let text = rest.parse().map_or_else(|_| rest.to_owned(), short_count);
            (index as f64, text)
        };
        Axis {
            kind: AxisKind::Linear,
            ends: (0.0, (tables.len() - 1) as f64),
            ticks: tables.iter().enumerate().map(label).collect(),
            label: self.axis.to_owned(),
        }
    }
}
