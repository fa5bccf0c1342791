//! From tables to panels of bars: what all bar charts have in common.

use waterwheel_suite::{Series, Table};

use crate::bars::{Bar, BarGroup, Panel};
use crate::looks::look;
use crate::tables::{self, Missing};

/// One panel: a metric, and the tables that are variants of one load.
pub(crate) struct Load<'a> {
    pub(crate) heading: String,
    pub(crate) metric: &'static str,
    pub(crate) variants: Vec<&'a Table>,
}

/// The panels, and who is in them. All panels have the same contestants, ours first.
pub(crate) fn panels<'a>(loads: &[Load<'a>]) -> Result<(Vec<Panel>, Vec<&'a str>), Missing> {
    let names = contestants(loads.iter().flat_map(|load| &load.variants).copied());
    let panels = loads.iter().map(|load| panel(load, &names));
    Ok((panels.collect::<Result<_, _>>()?, names))
}

/// Whether a floor stands beside the contestants.
pub(crate) fn has_floor(loads: &[Load<'_>]) -> bool {
    let mut tables = loads.iter().flat_map(|load| &load.variants);
    tables.any(|table| table.series.iter().any(is_floor))
}

/// Who takes part in one of these tables, ours first.
pub(crate) fn contestants<'a>(tables: impl Iterator<Item = &'a Table>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for series in tables.flat_map(|table| &table.series) {
        if !is_floor(series) && !names.contains(&&*series.name) {
            names.push(&series.name);
        }
    }
    // Stable: who is not known stays in the order of the report.
    names.sort_by_key(|name| look(name).0);
    names
}

fn is_floor(series: &Series) -> bool {
    series.name.starts_with("floor")
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
        look: look(name).1,
        whole: look(name).1.ours || *name == "tokio",
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
    let floor = if name == "ambient" {
        "floor, ambient"
    } else {
        "floor"
    };
    Some(Bar {
        spread: spread(name)?,
        floor: spread(floor).map(|floor| floor.median),
    })
}
