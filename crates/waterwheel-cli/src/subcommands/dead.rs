//! Lists the dead letters.

use serde::Serialize;
use waterwheel_durable_core::store::{Dead as DeadLetter, Id, Row};
use waterwheel_durable_sqlite::Reader;

use super::list::PAYLOAD;
use crate::arguments::Dead;
use crate::failure::Failure;
use crate::output::Output;
use crate::page;
use crate::table::{self, Column};
use crate::timer::Timer;
use crate::{text, time};

const COLUMNS: [Column; 6] = [
    Column::text("DIED"),
    Column::text("ID"),
    Column::cut("HANDLER", 12),
    Column::number("ATTEMPTS"),
    Column::cut("ERROR", 12),
    Column::cut("PAYLOAD", 10),
];

#[derive(Serialize)]
struct Page {
    dead: Vec<Listed>,
    next: Option<String>,
}

/// A dead letter for programs.
#[derive(Serialize)]
pub(super) struct Listed {
    #[serde(flatten)]
    timer: Timer,
    attempts: u32,
    died: String,
    died_ms: i64,
    error: String,
}

impl Listed {
    pub(super) fn new(dead_letter: &DeadLetter) -> Listed {
        Listed {
            timer: Timer::new(&dead_letter.row, dead_letter.at),
            attempts: attempts(&dead_letter.row),
            died: time::iso(dead_letter.at),
            died_ms: dead_letter.at.as_millis(),
            error: dead_letter.error.to_string(),
        }
    }
}

/// The number of attempts of a dead letter: its failures before the last one, and the last one.
pub(super) fn attempts(row: &Row) -> u32 {
    row.failures.saturating_add(1)
}

pub(crate) fn run(reader: &Reader, args: &Dead, output: &mut Output) -> Result<(), Failure> {
    let after = args.after.unwrap_or(Id::NONE);
    let limit = page::limit(args.page.limit as usize);
    let scope = args.of.scope();
    page::is_known(reader, &scope)?;
    let page = reader.dead(&scope, after, limit)?;
    let last = page::last(&page, limit, DeadLetter::bytes);
    let next = last.map(|last| last.row.id.to_string());
    if args.json.json {
        let dead = page.iter().map(Listed::new).collect();
        return output.json(&Page { dead, next });
    }
    let cells = |DeadLetter { row, at, error }: &DeadLetter| {
        vec![
            time::iso(*at),
            row.id.to_string(),
            text::clean(&row.handler),
            attempts(row).to_string(),
            text::one_line(error.as_bytes(), PAYLOAD),
            text::one_line(&row.payload, PAYLOAD),
        ]
    };
    let rows: Vec<_> = page.iter().map(cells).collect();
    if rows.is_empty() {
        return output.line("there are no dead letters");
    }
    table::print(output, &COLUMNS, &rows)?;
    match next {
        Some(next) => output.line(&format!("there may be more: --after {next}")),
        None => Ok(()),
    }
}
