//! Moves everything into another store.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use waterwheel_durable_core::store::{Contents, Store, abandon_transfer, transfer};
use waterwheel_durable_sqlite::SqliteStore;

use super::database::database;
use crate::arguments::{Database, Move};
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::text;

/// How often the progress is shown on a terminal.
const SHOWS_EVERY: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Moved {
    timers: u64,
    dead_letters: u64,
    archived: u64,
    settings: u64,
}

pub(crate) fn run(source: &Path, args: &Move, output: &mut Output) -> Result<(), Failure> {
    let from = text::place(source);
    if database(source, &args.database).is_none() && !source.is_file() {
        return Err(Failure::because("there is no such file"));
    }
    let mut store = open(source, &args.database)?;
    // Without one, it is given up.
    let Some(target) = &args.target else {
        abandon_transfer(&mut *store, &from)?;
        return output.line("services may open it again");
    };
    let to = text::place(target);
    let mut other = open(target, &args.database)?;
    let mut shown = Instant::now();
    let mut show = |contents: Contents| {
        if shown.elapsed() >= SHOWS_EVERY && io::stderr().is_terminal() {
            shown = Instant::now();
            say(&contents.to_string());
        }
    };
    let moved = transfer(&mut *store, &mut *other, (&from, &to), &mut show)?;
    match args.json.json {
        true => output.json(&Moved {
            timers: moved.timers,
            dead_letters: moved.dead,
            archived: moved.archived,
            settings: moved.settings,
        }),
        false => output.line(&format!("{to} has {moved}")),
    }
}

fn open(place: &Path, args: &Database) -> Result<Box<dyn Store>, Failure> {
    Ok(match database(place, args) {
        Some(postgres) => {
            let opened = postgres.wait_at_most(Duration::ZERO).open();
            Box::new(opened.map_err(|error| Failure::Named(error.into()))?)
        }
        None => {
            let named = |error| format!("{}: {error}", text::place(place));
            let opened = SqliteStore::open(place);
            Box::new(opened.map_err(|error| Failure::Named(named(error).into()))?)
        }
    })
}
