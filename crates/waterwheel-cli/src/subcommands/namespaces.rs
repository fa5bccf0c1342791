//! Which namespaces does the file have, and how are they served?

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use waterwheel_durable_core::limits::{PAUSED_SETTING, POLICY_SETTING};
use waterwheel_durable_core::store::Scope;
use waterwheel_durable_sqlite::{Count, Reader};

use super::calendars::{self, Calendar, json};
use super::policy::summary;
use super::stats::Counts;
use crate::arguments::Json;
use crate::failure::Failure;
use crate::output::Output;
use crate::submit::{namespaces, value};
use crate::table::{self, Column};
use crate::{text, time};

const COLUMNS: [Column; 7] = [
    Column::cut("NAMESPACE", 12),
    Column::number("PENDING"),
    Column::number("OVERDUE"),
    Column::text("OLDEST"),
    Column::number("DEAD"),
    Column::text("PAUSED"),
    Column::cut("POLICY", 12),
];

const CALENDAR_COLUMNS: [Column; 5] = [
    Column::cut("CALENDAR", 12),
    Column::cut("EXPRESSION", 12),
    Column::cut("ZONE", 12),
    Column::cut("HANDLER", 12),
    Column::text("LAST"),
];

#[derive(Serialize)]
struct Listed {
    namespaces: Vec<Namespace>,
    calendars: Vec<Calendar>,
}

#[derive(Serialize)]
struct Namespace {
    namespace: String,
    is_created: bool,
    is_paused: bool,
    policy: Option<Value>,
    #[serde(flatten)]
    counts: Counts,
    handlers: Vec<String>,
}

pub(crate) fn run(reader: &Reader, args: &Json, output: &mut Output) -> Result<(), Failure> {
    let now = time::now();
    let settings = reader.settings()?;
    let counts = reader.count(now)?;
    let created: Vec<_> = namespaces(settings.iter().map(|it| &*it.name)).collect();
    let of_handlers = counts.iter().map(|it| Scope::namespace_of(&it.handler));
    let names: BTreeSet<&str> = created.iter().copied().chain(of_handlers).collect();
    let list = names.into_iter().map(|name| {
        let scope = Scope::Namespace(name);
        let own = counts
            .iter()
            .filter(move |count| scope.contains(&count.handler));
        Namespace {
            namespace: name.to_owned(),
            is_created: created.contains(&name),
            is_paused: value(&settings, PAUSED_SETTING, name).is_some(),
            policy: value(&settings, POLICY_SETTING, name).map(json),
            counts: Counts::of(own.clone(), now),
            handlers: own.map(|count: &Count| count.handler.to_string()).collect(),
        }
    });
    let list: Vec<_> = list.collect();
    let calendars = calendars::among(&settings);
    if args.json {
        return output.json(&Listed {
            namespaces: list,
            calendars,
        });
    }
    let cells = |it: &Namespace| {
        vec![
            text::clean(&it.namespace),
            it.counts.pending.to_string(),
            it.counts.overdue.to_string(),
            it.counts.oldest(now),
            it.counts.dead.to_string(),
            if it.is_paused { "yes" } else { "-" }.to_owned(),
            match &it.policy {
                Some(policy) => text::clean(&summary(policy)),
                None if it.is_created => "-".to_owned(),
                None => "not created".to_owned(),
            },
        ]
    };
    let rows: Vec<_> = list.iter().map(cells).collect();
    table::print(output, &COLUMNS, &rows)?;
    if !calendars.is_empty() {
        output.line("")?;
        let rows: Vec<_> = calendars.iter().map(Calendar::cells).collect();
        table::print(output, &CALENDAR_COLUMNS, &rows)?;
    }
    Ok(())
}
