//! Is an order carried out here, or by the process that has the file open?
//!
//! If no process has it, this one opens the store, and one commit carries out all orders. Else they are handed to the process, which answers each. What it has
//! not taken in time is withdrawn, so that it is not carried out later.

use std::time::Duration;

use waterwheel_store::{Bucket, Op, Order, Outcome, Store};
use waterwheel_store_sqlite::{Asked, Holder, OpenError, Reader, SqliteStore, VERSION, ask};

use crate::failure::Failure;
use crate::time::now;

/// What came of an order: it is done, or why not.
pub(crate) type Carried = Result<(), String>;

/// How many orders are handed over, or committed, at a time.
const AT_ONCE: usize = 500;

/// What a service answers to an order that it has carried out.
const DONE: &str = "done";

/// Before the name of a namespace: the setting with its policy, and the one that is there while it is paused.
pub(crate) const POLICY: &str = "namespace/";
pub(crate) const PAUSED: &str = "paused/";

/// The namespace that there always is.
pub(crate) const DEFAULT: &str = "default";

/// Carries out orders, or has them carried out.
pub(crate) fn carry_out(
    reader: &Reader,
    orders: &[Order],
    limit: Duration,
) -> Result<Vec<Carried>, Failure> {
    let version = reader.extent()?.version;
    if version < VERSION {
        return Err(Failure::because(format!(
            "the file has tables of version {version}; start a service of version {VERSION} on it first"
        )));
    }
    let mut carried = Vec::new();
    for orders in orders.chunks(AT_ONCE) {
        let part = some(reader, orders, limit)?;
        let is_over = part.iter().any(|it| matches!(it, Ended::Withdrawn(_)));
        carried.extend(part.into_iter().map(Ended::carried));
        if is_over {
            break;
        }
    }
    // It would not take these either.
    let rest = orders.len() - carried.len();
    carried.extend((0..rest).map(|_| Err("it was not asked for".to_owned())));
    Ok(carried)
}

enum Ended {
    Carried(Carried),
    /// By which process.
    Withdrawn(String),
}

impl Ended {
    fn carried(self) -> Carried {
        match self {
            Ended::Carried(carried) => carried,
            Ended::Withdrawn(why) => Err(why),
        }
    }
}

fn some(reader: &Reader, orders: &[Order], limit: Duration) -> Result<Vec<Ended>, Failure> {
    if let Some(carried) = here(reader, orders)? {
        return Ok(carried);
    }
    let asked = ask(reader.path(), orders, limit)?;
    let is_withdrawn = asked.iter().all(|it| *it == Asked::Withdrawn);
    // The process may have ended meanwhile.
    if is_withdrawn && let Some(carried) = here(reader, orders)? {
        return Ok(carried);
    }
    let holder = match reader.holder() {
        Holder::Process(Some(process)) => format!("process {process}"),
        _ => "another process".to_owned(),
    };
    let ends = asked.into_iter().map(|asked| match asked {
        Asked::Answered(answer) if &*answer == DONE => Ended::Carried(Ok(())),
        Asked::Answered(answer) => Ended::Carried(Err(answer.to_string())),
        Asked::Withdrawn => Ended::Withdrawn(format!(
            "held by {holder}, which has not answered in {} s; it is not carried out",
            limit.as_secs_f64()
        )),
        Asked::Unknown => Ended::Carried(Err(format!(
            "held by {holder}, which has taken it and has not answered: it may be carried out or not"
        ))),
    });
    Ok(ends.collect())
}

/// Carries out orders in this process. `None` if another one has the file open.
fn here(reader: &Reader, orders: &[Order]) -> Result<Option<Vec<Ended>>, Failure> {
    if matches!(reader.holder(), Holder::Process(_)) {
        return Ok(None);
    }
    let mut store = match SqliteStore::open(reader.path()) {
        Ok(store) => store,
        Err(OpenError::Held { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let settings = store.settings()?;
    let known = namespaces(&settings);
    let mut steps = Vec::new();
    // An order without a step names a namespace that there is not.
    let has_step: Vec<bool> = orders
        .iter()
        .map(|order| {
            let step = step(order, &known);
            let has_step = step.is_some();
            steps.extend(step);
            has_step
        })
        .collect();
    // No id is given, so this is no opening that counts: the store is not begun.
    let mut outcomes = store.commit(1, &steps)?.into_iter();
    let ends = orders.iter().zip(has_step).map(|(order, has_step)| {
        let is_done = match has_step.then(|| outcomes.next()).flatten() {
            Some(Outcome::Cancelled(is_done)) => is_done,
            Some(Outcome::Redriven(row)) => row.is_some(),
            Some(_) => true,
            None => false,
        };
        Ended::Carried(if is_done { Ok(()) } else { Err(why_not(order)) })
    });
    Ok(Some(ends.collect()))
}

fn step(order: &Order, known: &[&str]) -> Option<Op> {
    let pause = |name: &str, is_paused: bool| {
        let value = is_paused.then(|| [].as_slice().into());
        let is_known = known.contains(&name);
        is_known.then(|| Op::Set(format!("{PAUSED}{name}").into(), value))
    };
    match order {
        Order::Cancel(handle) => Some(Op::Cancel(handle.clone())),
        Order::Redrive(id) => {
            let due = now();
            Some(Op::Redrive(*id, due, Bucket::of(due, due)))
        }
        Order::Pause(name) => pause(name, true),
        Order::Resume(name) => pause(name, false),
    }
}

/// The namespaces that a service would know.
pub(crate) fn namespaces(settings: &[waterwheel_store::Setting]) -> Vec<&str> {
    let named = settings
        .iter()
        .filter_map(|it| it.name.strip_prefix(POLICY));
    named.chain([DEFAULT]).collect()
}

fn why_not(order: &Order) -> String {
    match order {
        Order::Cancel(_) => "there is no such timer".to_owned(),
        Order::Redrive(_) => "there is no such dead letter".to_owned(),
        Order::Pause(name) | Order::Resume(name) => format!("there is no namespace {name:?}"),
    }
}
