//! Interleaved rounds: A B C A B C …, so that the drift of a shared machine affects all rows alike.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use waterwheel_postgres_server::Server;

use crate::conditions;
use crate::flags::Flags;
use crate::postgres;
use crate::results::{Measured, Results};
use crate::round;
use crate::rows::{self, File, Rounds, Row};
use crate::sample::Sample;
use crate::targets;

const FEW: usize = 3;

/// Plays all rounds of the requested rows.
pub(crate) fn run(flags: &Flags) -> Result<Results, String> {
    fs::create_dir_all(flags.folder()).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let needs_server = |row: &Row| row.in_postgres && is_asked(flags, row);
    let server = match rows::ALL.iter().any(needs_server) {
        true => Some(postgres::start().map_err(|error| error.to_string())?),
        false => None,
    };
    let mut results = Results {
        conditions: conditions::read(flags),
        rows: Vec::new(),
        seconds: 0.0,
    };
    for file in [File::New, File::Pending, File::Grown, File::Keyed] {
        if file == File::Keyed {
            let _ = fs::remove_dir_all(flags.folder().join("pending"));
        }
        let is_asked = |row: &&Row| row.file == file && is_asked(flags, row);
        let asked: Vec<&Row> = rows::ALL.iter().filter(is_asked).collect();
        for number in 0..flags.rounds() {
            for row in asked.iter().filter(|row| is_in(row.rounds, number)) {
                play(flags, row, server.as_ref(), &mut results);
            }
        }
    }
    let _ = fs::remove_dir_all(flags.folder().join("keyed"));
    results.seconds = start.elapsed().as_secs_f64();
    Ok(results)
}

/// Whether a row is requested, or needed by a requested row: that one's file is built by it, or its figures are compared to it.
fn is_asked(flags: &Flags, row: &Row) -> bool {
    let needs = |only: &str| {
        let row_of = |it: &&Row| it.name == only;
        let asked = rows::ALL.iter().find(row_of);
        let targets = targets::ENGINE.iter().chain(&*targets::SERVICE);
        let targets = targets.chain(&*targets::POSTGRES);
        let mut beside = targets.filter(|it| it.row == only);
        asked.and_then(Row::built_by) == Some(row.name)
            || only == "restart" && row.name == "overdue"
            || beside.any(|it| it.beside() == Some(row.name))
    };
    let only = &flags.only;
    match only.is_empty() {
        // Beside the rows that they are compared to.
        true if flags.postgres => {
            let mut beside = targets::POSTGRES.iter();
            row.in_postgres || beside.any(|it| it.beside() == Some(row.name))
        }
        true => !row.in_postgres,
        false => only.iter().any(|only| only == row.name || needs(only)),
    }
}

fn is_in(rounds: Rounds, number: usize) -> bool {
    match rounds {
        Rounds::All | Rounds::Before => true,
        Rounds::Few => number < FEW,
        Rounds::Once => number == 0,
    }
}

fn play(flags: &Flags, row: &Row, server: Option<&Server>, results: &mut Results) {
    let folder = folder(flags, row);
    let is_new = row.built_by().is_none_or(|builder| row.name == builder);
    if is_new {
        let _ = fs::remove_dir_all(&folder);
    }
    let start = Instant::now();
    let played = fs::create_dir_all(&folder).map_err(|error| error.to_string());
    let url = |()| match server.filter(|_| row.in_postgres) {
        Some(server) => postgres::database(server, database(row.file), is_new).map(Some),
        None => Ok(None),
    };
    let played = played.and_then(url).and_then(|url| match row.name {
        "syncs" => round::play_traced(flags, row.name, &folder),
        _ => round::play(flags, row.name, &folder, url.as_deref()).map(Some),
    });
    if row.file == File::New {
        let _ = fs::remove_dir_all(&folder);
    }
    if results.row(row.name).is_none() {
        results.rows.push(Measured {
            row: row.name.to_owned(),
            ..Measured::default()
        });
    }
    let mut rows = results.rows.iter_mut();
    let measured = rows.find(|it| it.row == row.name).expect("it is there");
    let seconds = start.elapsed().as_secs_f64();
    match played {
        Ok(Some(sample)) => {
            eprintln!("{:18} {seconds:5.1} s: {}", row.name, in_short(&sample));
            measured.samples.push(sample);
        }
        Ok(None) => eprintln!("{:18} {seconds:5.1} s: nothing here counts syncs", row.name),
        Err(why) => {
            eprintln!("{:18} {seconds:5.1} s: FAILED: {why}", row.name);
            measured.failures.push(why);
        }
    }
}

fn folder(flags: &Flags, row: &Row) -> PathBuf {
    let name = database(row.file);
    match row.in_postgres {
        true => flags.folder().join("postgres").join(name),
        false => flags.folder().join(name),
    }
}

/// The name of a folder or database.
fn database(file: File) -> &'static str {
    match file {
        File::New => "new",
        File::Pending | File::Grown => "pending",
        File::Keyed => "keyed",
    }
}

fn in_short(sample: &Sample) -> String {
    let values = sample.values.iter();
    let values: Vec<_> = values
        .map(|(name, value)| format!("{name} {value:.1}"))
        .collect();
    values.join(", ")
}
