//! How many timers does the file have, and how large is it?

use serde::Serialize;
use waterwheel_durable_core::store::{Due, Level, Scope};
use waterwheel_durable_sqlite::{Count, Extent, Holder, Reader};

use crate::arguments::Json;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{self, Column};
use crate::timer::level;
use crate::{text, time};

const LEVELS: [Level; 5] = [
    Level::Second,
    Level::Minute,
    Level::Hour,
    Level::Day,
    Level::Month,
];

const COLUMNS: [Column; 8] = [
    Column::cut("HANDLER", 16),
    Column::number("PENDING"),
    Column::number("OVERDUE"),
    Column::text("OLDEST"),
    Column::number("FAILED"),
    Column::number("DEAD"),
    Column::number("KEPT"),
    Column::text("NEXT"),
];

#[derive(Serialize)]
struct Stats {
    file: String,
    now: String,
    version: i64,
    epoch: u64,
    holder: HolderJson,
    bytes: u64,
    wal_bytes: u64,
    used_bytes: u64,
    free_bytes: u64,
    #[serde(flatten)]
    all: Counts,
    handlers: Vec<Handler>,
}

#[derive(Serialize)]
struct HolderJson {
    state: &'static str,
    process: Option<u32>,
}

#[derive(Serialize)]
struct Handler {
    handler: String,
    namespace: String,
    #[serde(flatten)]
    counts: Counts,
}

/// Counts of a handler, of a namespace, or of all.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) pending: u64,
    pub(super) overdue: u64,
    pub(super) oldest_overdue: Option<String>,
    pub(super) failed: u64,
    pub(super) dead: u64,
    archived: u64,
    pub(super) first_due: Option<String>,
    levels: serde_json::Map<String, serde_json::Value>,
    #[serde(skip)]
    pub(super) first: Option<Due>,
}

impl Counts {
    /// The sum of these counts.
    pub(super) fn of<'a>(counts: impl Iterator<Item = &'a Count> + Clone, now: Due) -> Counts {
        let sum = |of: fn(&Count) -> u64| counts.clone().map(of).sum();
        let first = counts.clone().filter_map(|count| count.first).min();
        let overdue = first.filter(|first| *first <= now);
        let levels = LEVELS.into_iter().map(|it| {
            let at: u64 = counts.clone().map(|count| count.at(it)).sum();
            (level(it).to_owned(), at.into())
        });
        Counts {
            pending: sum(Count::pending),
            overdue: sum(|count| count.overdue),
            oldest_overdue: overdue.map(time::iso),
            failed: sum(|count| count.failed),
            dead: sum(|count| count.dead),
            archived: sum(|count| count.archived),
            first_due: first.map(time::iso),
            levels: levels.collect(),
            first,
        }
    }

    /// For people: how long the oldest timer has been overdue, and when the next one is due.
    pub(super) fn oldest(&self, now: Due) -> String {
        let oldest = self.first.filter(|first| *first <= now);
        oldest.map_or_else(|| "-".to_owned(), |oldest| time::from(now, oldest))
    }
}

pub(crate) fn run(reader: &Reader, args: &Json, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let (extent, holder) = (reader.extent()?, reader.holder());
    let counts = reader.count(now)?;
    let all = Counts::of(counts.iter(), now);
    if args.json {
        let handlers = counts.iter().map(|count| Handler {
            handler: count.handler.to_string(),
            namespace: Scope::namespace_of(&count.handler).to_owned(),
            counts: Counts::of([count].into_iter(), now),
        });
        return output.json(&Stats {
            file: reader.path().display().to_string(),
            now: time::iso(now),
            version: extent.version,
            epoch: extent.epoch,
            holder: for_programs(&holder),
            bytes: extent.bytes,
            wal_bytes: extent.wal_bytes,
            used_bytes: extent.used_bytes,
            free_bytes: extent.free_bytes,
            all,
            handlers: handlers.collect(),
        });
    }
    head(output, reader, &extent, &holder, now)?;
    output.line(&format!(
        "{} pending, {} overdue, {} failed before, {} dead, {} archived",
        all.pending, all.overdue, all.failed, all.dead, all.archived
    ))?;
    if counts.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let rows: Vec<_> = counts.iter().map(|count| cells(count, now)).collect();
    table::print(output, &COLUMNS, &rows)?;
    let levels = LEVELS.map(|it| {
        let at: u64 = counts.iter().map(|count| count.at(it)).sum();
        format!("{} {at}", level(it))
    });
    output.line("")?;
    output.line(&format!("by bucket: {}", levels.join(", ")))
}

fn head(
    output: &mut Output,
    reader: &Reader,
    extent: &Extent,
    holder: &Holder,
    now: Due,
) -> Result<(), Failure> {
    output.line(&text::clean(&reader.path().display().to_string()))?;
    output.line(&format!(
        "{}, tables of version {}, epoch {}, {}",
        time::iso(now),
        extent.version,
        extent.epoch,
        for_people(holder),
    ))?;
    output.line(&format!(
        "{} in the file, {} of it free; {} in the WAL",
        size(extent.used_bytes),
        size(extent.free_bytes),
        size(extent.wal_bytes),
    ))
}

fn cells(count: &Count, now: Due) -> Vec<String> {
    let counts = Counts::of([count].into_iter(), now);
    vec![
        text::clean(&count.handler),
        counts.pending.to_string(),
        counts.overdue.to_string(),
        counts.oldest(now),
        counts.failed.to_string(),
        counts.dead.to_string(),
        counts.archived.to_string(),
        match counts.first {
            Some(first) if first > now => time::from(now, first),
            Some(_) => "now".to_owned(),
            None => "-".to_owned(),
        },
    ]
}

fn for_programs(holder: &Holder) -> HolderJson {
    let (state, process) = match holder {
        Holder::None => ("none", None),
        Holder::Process(process) => ("process", *process),
        Holder::Unknown => ("unknown", None),
    };
    HolderJson { state, process }
}

fn for_people(holder: &Holder) -> String {
    match holder {
        Holder::None => "held by no process".to_owned(),
        Holder::Process(Some(process)) if holder.is_stopped() => {
            format!("held by process {process}, which is stopped")
        }
        Holder::Process(Some(process)) => format!("held by process {process}"),
        Holder::Process(None) => "held by another process".to_owned(),
        Holder::Unknown => {
            "held by an unknown process or none: its lock file cannot be read".to_owned()
        }
    }
}

/// A size in the unit that fits.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
