//! What is known of one timer?

use serde::Serialize;
use waterwheel_store::{Id, Level, Row};
use waterwheel_store_sqlite::Reader;

use super::dead::{Listed as DeadListed, attempts};
use super::timer::{Timer, level};
use crate::arguments::{Name, Show};
use crate::failure::Failure;
use crate::output::Output;
use crate::{text, time};

/// How much of a payload is shown.
const PAYLOAD: usize = 4_000;

#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Shown {
    Pending {
        #[serde(flatten)]
        timer: Timer,
        level: &'static str,
    },
    Dead(DeadListed),
}

pub(crate) fn run(reader: &Reader, asked: &Show, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let (id, found) = match &asked.name {
        Name::Handle(handle) => (handle.id, reader.find(handle)?),
        Name::Id(id) => (*id, None),
    };
    // A dead letter is found by its id at once.
    let letter = match found {
        Some(_) => None,
        None => reader.dead_letter(id)?,
    };
    let found = match (found, &letter, &asked.name) {
        (None, None, Name::Id(id)) => reader.search(*id)?,
        (found, ..) => found,
    };
    let (row, state) = match (&found, &letter) {
        (Some(found), _) => (&found.row, lies(found.bucket.level)),
        (None, Some(letter)) => (&letter.row, "a dead letter".to_owned()),
        (None, None) => return Err(missing(id)),
    };
    if asked.json.json {
        let shown = match (&found, &letter) {
            (None, Some(letter)) => Shown::Dead(DeadListed::new(letter)),
            (found, _) => Shown::Pending {
                timer: Timer::new(row, now),
                level: level(found.as_ref().map_or(Level::Second, |it| it.bucket.level)),
            },
        };
        return output.json(&shown);
    }
    let mut line = |name: &str, value: &str| output.line(&format!("{name:<9} {value}"));
    line("id", &row.id.to_string())?;
    line("handle", &text::clean(&row.handle().to_string()))?;
    line("handler", &text::clean(&row.handler))?;
    line("state", &state)?;
    let due = format!("{} ({})", time::iso(row.due), time::from(now, row.due));
    line("due", &due)?;
    match &letter {
        Some(_) => line("attempts", &attempts(row).to_string())?,
        None => line("failures", &row.failures.to_string())?,
    }
    if row.start_count() > 0 {
        line("starts", &row.start_count().to_string())?;
    }
    if let Some(letter) = &letter {
        let died = format!("{} ({})", time::iso(letter.at), time::from(now, letter.at));
        line("died", &died)?;
        line("error", &text::clean(&letter.error))?;
    }
    if let Some(key) = &row.key {
        line("key", &text::one_line(key, PAYLOAD))?;
    }
    line("payload", &payload(row))
}

fn lies(level: Level) -> String {
    match level {
        Level::Second => "pending, ready to be loaded".to_owned(),
        _ => format!("pending, in a bucket of a {}", self::level(level)),
    }
}

fn payload(row: &Row) -> String {
    match row.payload.len() {
        0 => "none".to_owned(),
        bytes if bytes > PAYLOAD => {
            format!("{} ({bytes} bytes)", text::one_line(&row.payload, PAYLOAD))
        }
        _ => text::one_line(&row.payload, PAYLOAD),
    }
}

fn missing(id: Id) -> Failure {
    Failure::because(format!("there is no timer or dead letter {id}"))
}
