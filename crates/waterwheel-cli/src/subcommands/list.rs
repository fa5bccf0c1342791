//! Lists the pending timers.

use serde::Serialize;
use waterwheel_durable_core::store::Due;
use waterwheel_durable_sqlite::{Pending, Reader};

use crate::arguments::List;
use crate::failure::Failure;
use crate::output::Output;
use crate::page;
use crate::table::{self, Column};
use crate::timer::{Timer, level};
use crate::{text, time};

const COLUMNS: [Column; 6] = [
    Column::text("DUE"),
    Column::text("IN"),
    Column::text("ID"),
    Column::cut("HANDLER", 16),
    Column::number("FAILED"),
    Column::cut("PAYLOAD", 10),
];

/// The maximum number of bytes of a payload that are read for a column.
pub(super) const PAYLOAD: usize = 400;

#[derive(Serialize)]
struct Page {
    timers: Vec<Listed>,
    next: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    timer: Timer,
    level: &'static str,
}

pub(crate) fn run(reader: &Reader, args: &List, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let until = if args.overdue {
        now
    } else {
        Due::from_millis(i64::MAX)
    };
    let after = args.after.unwrap_or(Reader::START);
    let limit = page::limit(args.page.limit as usize);
    let scope = args.of.scope();
    page::is_known(reader, &scope)?;
    let page = reader.pending(&scope, after, until, limit)?;
    let last = page::last(&page, limit, |it| it.row.bytes());
    let next = last.map(|last| format!("{}@{}", last.row.id, last.row.due.as_millis()));
    if args.json.json {
        let listed = |pending: &Pending| Listed {
            timer: Timer::new(&pending.row, now),
            level: level(pending.bucket.level),
        };
        let timers = page.iter().map(listed).collect();
        return output.json(&Page { timers, next });
    }
    let cells = |Pending { row, .. }: &Pending| {
        vec![
            time::iso(row.due),
            time::from(now, row.due),
            row.id.to_string(),
            text::clean(&row.handler),
            row.failures.to_string(),
            text::one_line(&row.payload, PAYLOAD),
        ]
    };
    let rows: Vec<_> = page.iter().map(cells).collect();
    if rows.is_empty() {
        return output.line(if args.overdue {
            "no timer is overdue"
        } else {
            "no timer is pending"
        });
    }
    table::print(output, &COLUMNS, &rows)?;
    match next {
        Some(next) => output.line(&format!("there may be more: --after {next}")),
        None => Ok(()),
    }
}
