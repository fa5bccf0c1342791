//! From tables to panels of bars: what all bar charts have in common.

use waterwheel_bench_kit::chart::bars::{Bar, BarGroup, Panel};
use waterwheel_suite::Table;

use crate::looks::look;
use crate::source::{Source, contestants};
use crate::tables::{self, Missing};

/// One panel: a metric, and the tables that are variants of one load.
pub(crate) struct Load<'a> {
    pub(crate) heading: String,
    pub(crate) metric: &'static str,
    pub(crate) variants: Vec<&'a Table>,
}

/// All panels have the same contestants.
pub(crate) fn panels(loads: &[Load<'_>]) -> Result<Vec<Panel>, Missing> {
    let names = contestants(tables_of(loads));
    loads.iter().map(|load| panel(load, &names)).collect()
}

/// Where the figures of these panels come from.
pub(crate) fn source(loads: &[Load<'_>]) -> Source {
    Source::of(tables_of(loads))
}

fn tables_of<'a>(loads: &[Load<'a>]) -> impl Iterator<Item = &'a Table> + Clone {
    loads.iter().flat_map(|load| &load.variants).copied()
}

fn panel(load: &Load<'_>, names: &[&str]) -> Result<Panel, Missing> {
    let metrics: Vec<(&Table, usize)> = load
        .variants
        .iter()
        .map(|table| Ok((*table, tables::metric(table, load.metric)?)))
        .collect::<Result<_, Missing>>()?;
    let unit = metrics
        .first()
        .map(|(table, metric)| table.metrics[*metric].unit.to_string());
    let groups = names.iter().map(|name| BarGroup {
        look: look(name),
        whole: look(name).ours || *name == "tokio",
        bars: metrics
            .iter()
            .map(|(table, metric)| bar(table, *metric, name))
            .collect(),
    });
    Ok(Panel {
        heading: load.heading.clone(),
        unit: unit.unwrap_or_default(),
        groups: groups.collect(),
    })
}

/// None if this contestant has no figure here.
fn bar(table: &Table, metric: usize, name: &str) -> Option<Bar> {
    let spread = |name| tables::spread(table.series(name)?, metric);
    let floor = if name == "current" {
        "floor, current"
    } else {
        "floor"
    };
    Some(Bar {
        spread: spread(name)?,
        floor: spread(floor).map(|floor| floor.median),
    })
}
