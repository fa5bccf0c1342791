//! The bar charts: from tables to panels.

use waterwheel_bench_kit::chart::bars::{self, Axes, Bar, BarGroup, Panel};
use waterwheel_bench_kit::chart::{Chart, count};
use waterwheel_suite::{Results, Table};

use crate::looks::look;
use crate::source::{Source, contestants};
use crate::tables::{self, Missing};

type Drawn = Result<(Chart, Source), Missing>;

/// Arming and cancelling, the complete life of most timers, with nothing else pending and with many others.
pub(crate) fn cancel(results: &Results) -> Drawn {
    let threads = ["1 thread", "2 threads"];
    let load = |pending: usize, heading| {
        let titles = threads.map(|threads| format!("cancel, {threads}, {pending} pending"));
        let variants = titles.iter().map(|title| tables::table(results, title));
        Ok(Load {
            heading,
            metric: "one operation, per thread",
            variants: variants.collect::<Result<_, _>>()?,
        })
    };
    let others = format!("{} others pending", count(100_000));
    let bars = Bars {
        title: "Arm and cancel a 30 s sleep: nanoseconds on each thread".to_owned(),
        subtitle: "One operation creates the sleep, polls it once and drops it. Lower is better.",
        loads: vec![
            load(0, "nothing else pending".to_owned())?,
            load(100_000, others)?,
        ],
        variants: &threads,
        axes: Axes::Shared,
        notes: &[],
        floor: "Floor: one clock read, two uncontended lock pairs, one waker, one slab entry; for the drop-in also one lookup of the runtime.",
    };
    bars.chart()
}

/// The largest herd of the run: the tasks that sleep until the same instant, and the concurrent heartbeat that must not be held up.
pub(crate) fn herd(results: &Results) -> Drawn {
    let sizes = tables::sizes(results, "herd, ", " tasks")?;
    let (tasks, table) = sizes[sizes.len() - 1];
    let load = |heading: &str, metric| Load {
        heading: heading.to_owned(),
        metric,
        variants: vec![table],
    };
    let bars = Bars {
        title: format!(
            "{} tasks wake at the same instant: milliseconds",
            count(tasks)
        ),
        subtitle: "All sleep until the same deadline, while another task keeps a 1 ms heartbeat. Lower is better.",
        loads: vec![
            load("longest gap of the heartbeat", "longest heartbeat gap"),
            load("until all tasks have run", "until all ran"),
        ],
        variants: &[],
        axes: Axes::Separate,
        notes: &[],
        floor: "",
    };
    bars.chart()
}

/// The heap that a pending timer occupies.
pub(crate) fn memory(results: &Results) -> Drawn {
    let load = |(timers, table)| Load {
        heading: format!("{} pending", count(timers)),
        metric: "live heap, future + entry",
        variants: vec![table],
    };
    let sizes = tables::sizes(results, "memory, ", " timers")?;
    let bars = Bars {
        title: "Heap memory per pending sleep: bytes".to_owned(),
        subtitle: "The boxed future, and its share of what the timer keeps for all pending sleeps. Lower is better.",
        loads: sizes.into_iter().map(load).collect(),
        variants: &[],
        axes: Axes::Shared,
        // The reason why the panels differ.
        notes: &[
            "A slab grows in steps and so has free slots: how many depends on the number of timers.",
        ],
        floor: "Floor: a boxed future with its deadline, and a waker in a slab.",
    };
    bars.chart()
}

/// A chart before its contents are drawn.
struct Bars<'a> {
    title: String,
    subtitle: &'a str,
    loads: Vec<Load<'a>>,
    /// The names of a load's variants, one table each.
    variants: &'a [&'a str],
    axes: Axes,
    notes: &'a [&'a str],
    /// The name of the floor.
    floor: &'a str,
}

/// One panel: a metric, and the tables that are variants of one load.
struct Load<'a> {
    heading: String,
    metric: &'static str,
    variants: Vec<&'a Table>,
}

impl Bars<'_> {
    /// Draws the chart, all of whose panels have the same contestants.
    fn chart(self) -> Drawn {
        let tables = self.loads.iter().flat_map(|load| &load.variants).copied();
        let names = contestants(tables.clone());
        let panels = self.loads.iter().map(|load| panel(load, &names));
        let panels = panels.collect::<Result<Vec<_>, _>>()?;
        let (body, height) = bars::draw(&panels, self.axes);
        let floor = panels.iter().any(Panel::has_floor).then_some(self.floor);
        let notes = self.notes.iter().copied().chain(floor).map(str::to_owned);
        let chart = Chart {
            title: self.title,
            subtitle: self.subtitle.to_owned(),
            legend: bars::legend(&panels, self.variants),
            body,
            height,
            notes: notes.chain(bars::note(&panels, self.axes)).collect(),
        };
        Ok((chart, Source::of(tables)))
    }
}

fn panel(load: &Load<'_>, names: &[&str]) -> Result<Panel, Missing> {
    let metrics = load
        .variants
        .iter()
        .map(|table| Ok((*table, tables::metric(table, load.metric)?)));
    let metrics = metrics.collect::<Result<Vec<_>, Missing>>()?;
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

/// The bar of a contestant. `None` if it has no figure here.
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
