//! Shows one timer.

use serde::Serialize;
use waterwheel_durable_core::store::{Dead, Handle, Id, Level, Row, Scope};
use waterwheel_durable_sqlite::{Keyed, Pending, Reader};

use super::calendars::json;
use super::dead::{Listed as DeadListed, attempts};
use super::policy::summary;
use crate::arguments::{Name, Show};
use crate::failure::Failure;
use crate::output::Output;
use crate::page;
use crate::timer::{Timer, level};
use crate::{text, time};

/// The maximum number of bytes of a payload that are shown.
const PAYLOAD: usize = 4_000;

#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Info {
    Pending {
        #[serde(flatten)]
        timer: Timer,
        level: &'static str,
    },
    Dead(DeadListed),
}

pub(crate) fn run(reader: &Reader, args: &Show, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let (found, dead_letter) = match (&args.name, &args.handler) {
        (Some(Name::Handle(handle)), _) => by_handle(reader, handle)?,
        (Some(Name::Id(id)), _) => by_id(reader, *id)?,
        (None, Some(handler)) => {
            let key = args.key.as_ref().or(args.key_hex.as_ref());
            let key = key.map_or(&[][..], |key| &key.0);
            (Some(by_key(reader, handler, key)?), None)
        }
        (None, None) => (None, None),
    };
    let (row, state) = match (&found, &dead_letter) {
        (Some(found), _) => (&found.row, lies(found.bucket.level)),
        (None, Some(dead_letter)) => (&dead_letter.row, "a dead letter".to_owned()),
        (None, None) => return Err(missing(args.name.as_ref())),
    };
    if args.json.json {
        let shown = match (&found, &dead_letter) {
            (None, Some(dead_letter)) => Info::Dead(DeadListed::new(dead_letter)),
            (found, _) => Info::Pending {
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
    if row.has_moved() {
        line("first due", &time::iso(row.first_due))?;
    }
    match &dead_letter {
        Some(_) => line("attempts", &attempts(row).to_string())?,
        None => line("failures", &row.failures.to_string())?,
    }
    if row.start_count() > 0 {
        line("starts", &row.start_count().to_string())?;
    }
    if let Some(dead_letter) = &dead_letter {
        let died = format!(
            "{} ({})",
            time::iso(dead_letter.at),
            time::from(now, dead_letter.at)
        );
        line("died", &died)?;
        line("error", &text::clean(&dead_letter.error))?;
    }
    if let Some(key) = &row.key {
        line("key", &text::one_line(key, PAYLOAD))?;
    }
    if let Some(tag) = row.tag() {
        line("tag", &text::clean(tag))?;
    }
    let retries = row.extras.as_ref().and_then(|it| it.retries.as_deref());
    if let Some(retries) = retries {
        line("retries", &text::clean(&summary(&json(retries))))?;
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

/// A pending timer, or a dead letter.
type Found = (Option<Pending>, Option<Dead>);

fn by_handle(reader: &Reader, handle: &Handle) -> Result<Found, Failure> {
    Ok(match reader.find(handle)? {
        Some(found) => (Some(found), None),
        None => (None, reader.dead_letter(handle.id)?),
    })
}

fn by_id(reader: &Reader, id: Id) -> Result<Found, Failure> {
    // A lookup of a dead letter by its id is fast.
    Ok(match reader.dead_letter(id)? {
        Some(dead_letter) => (None, Some(dead_letter)),
        None => (reader.search(id)?, None),
    })
}

fn by_key(reader: &Reader, handler: &str, key: &[u8]) -> Result<Pending, Failure> {
    page::is_known(reader, &Scope::Handler(handler))?;
    let shown = text::one_line(key, PAYLOAD);
    let why = match reader.find_key(handler, key)? {
        Some(Keyed {
            pending: Some(found),
            ..
        }) => return Ok(found),
        Some(Keyed { handle, .. }) => format!(
            "the timer {} of {handler} with the key {shown:?} was delivered; its key stays taken until the retention of its namespace ends",
            handle.id
        ),
        None => format!(
            "no timer of {handler} has the key {shown:?}: it was delivered, cancelled or given up, or never inserted"
        ),
    };
    Err(Failure::because(why))
}

fn missing(name: Option<&Name>) -> Failure {
    let id = match name {
        Some(Name::Handle(handle)) => handle.id,
        Some(Name::Id(id)) => *id,
        None => Id::NONE,
    };
    Failure::because(format!(
        "there is no timer or dead letter {id}: it was delivered, cancelled or discarded, or never existed"
    ))
}
