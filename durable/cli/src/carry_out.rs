//! Is an order carried out here, or by the process that has the file open?
//!
//! If no process has it, this one opens the store, and one commit carries out all orders. Else they are handed to the process, which answers each. What it has
//! not taken in time is withdrawn, so that it is not carried out later.

use std::thread;
use std::time::{Duration, Instant};

use waterwheel_store::{Bucket, Notice, Op, Order, Outcome, Store};
use waterwheel_store_sqlite::{
    Asked, Holder, OpenError, Options, Reader, SqliteStore, VERSION, ask,
};

use crate::arguments::Wait;
use crate::failure::{Failure, chain, say};
use crate::time::now;

/// What came of an order.
pub(crate) type Carried = Result<(), NotDone>;

/// Why an order is not carried out.
#[derive(Debug)]
pub(crate) struct NotDone {
    pub(crate) why: String,
    /// What it names is not there any more, or has fired: others may be carried out.
    pub(crate) is_gone: bool,
}

impl NotDone {
    fn because(why: String) -> NotDone {
        let is_gone = false;
        NotDone { why, is_gone }
    }
}

/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(20);

/// Before the name of a namespace: the setting with its policy, and the one that is there while it is paused.
pub(crate) const POLICY: &str = "namespace/";
pub(crate) const PAUSED: &str = "paused/";

/// The namespace that there always is.
pub(crate) const DEFAULT: &str = "default";

/// Why a timer is not cancelled, if it is not in the file.
pub(crate) const NOT_PENDING: &str = "no pending timer has this id: it was delivered, cancelled or given up, or never existed (`show` finds dead letters, `discard` deletes them)";

/// Carries out orders, or has them carried out.
pub(crate) fn carry_out(
    reader: &Reader,
    orders: &[Order],
    wait: &Wait,
) -> Result<Vec<Carried>, Failure> {
    let version = reader.extent()?.version;
    if version < VERSION {
        return Err(Failure::because(format!(
            "the file has tables of version {version}, and this command can only change version {VERSION}: start a service of the same release on it, which upgrades the file"
        )));
    }
    let (begun, limit) = (Instant::now(), wait.limit);
    let asked = loop {
        if let Some(carried) = here(reader, orders, begun + limit, wait.accept_loss)? {
            return Ok(carried);
        }
        let asked = ask(reader.path(), orders, limit.saturating_sub(begun.elapsed()))?;
        // They are withdrawn early if the process has ended.
        if asked.iter().any(|it| *it != Asked::Withdrawn) || begun.elapsed() >= limit {
            break asked;
        }
    };
    let holder = reader.holder();
    let holder = match &holder {
        Holder::Process(Some(process)) if holder.is_stopped() => {
            format!("process {process}, which is stopped (`kill -CONT {process}` resumes it),")
        }
        Holder::Process(Some(process)) => format!("process {process}"),
        _ => "another process".to_owned(),
    };
    let ends = asked.into_iter().map(|asked| match asked {
        Asked::Answered(answer) if &*answer == Order::DONE => Ok(()),
        Asked::Answered(answer) => Err(NotDone {
            is_gone: [Order::GONE, Order::FIRED].contains(&&*answer),
            why: answer.to_string(),
        }),
        Asked::Withdrawn => Err(NotDone::because(format!(
            "{holder} has the file open and did not respond within {} s: the request was withdrawn and will not be applied (`--wait SECONDS` waits longer)",
            limit.as_secs_f64()
        ))),
        Asked::Unknown => Err(NotDone::because(format!(
            "{holder} accepted the request but did not answer: the change may or may not have been made; look before you repeat it"
        ))),
    });
    Ok(ends.collect())
}

/// Carries out orders in this process. `None` if another one has the file open, or may have: its lock file may be another user's.
fn here(
    reader: &Reader,
    orders: &[Order],
    until: Instant,
    accept_loss: bool,
) -> Result<Option<Vec<Carried>>, Failure> {
    if reader.holder() != Holder::None {
        return Ok(None);
    }
    let options = Options::default().brief().accept_loss(accept_loss);
    let mut store = match SqliteStore::open_with(reader.path(), &options) {
        Ok(store) => store,
        Err(OpenError::Held { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    for notice in store.notices() {
        if let Notice::AcknowledgedLost { loss, .. } = notice {
            say(&format!("continuing without the lost commits: {loss}"));
        }
    }
    let settings = store.settings()?;
    let known: Vec<_> = namespaces(settings.iter().map(|it| &*it.name)).collect();
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
    let mut outcomes = commit(&mut store, &steps, until)?.into_iter();
    let ends = orders.iter().zip(has_step).map(|(order, has_step)| {
        let is_done = match has_step.then(|| outcomes.next()).flatten() {
            Some(Outcome::Cancelled(is_done)) => is_done,
            Some(Outcome::Redriven(row)) => row.is_some(),
            Some(_) => true,
            None => false,
        };
        if is_done { Ok(()) } else { Err(why_not(order)) }
    });
    Ok(Some(ends.collect()))
}

/// What is refused for now, because another command writes at that moment, is tried again.
fn commit(store: &mut SqliteStore, steps: &[Op], until: Instant) -> Result<Vec<Outcome>, Failure> {
    loop {
        match store.commit(1, steps) {
            Err(error) if error.is_definite() && Instant::now() < until => thread::sleep(PAUSE),
            Err(error) => {
                let cure = match error.is_definite() {
                    true => "try again with a longer `--wait`",
                    false => {
                        "check the system log for problems with its disk, and look before you repeat the command"
                    }
                };
                return Err(Failure::because(format!("{}: {cure}", chain(&error))));
            }
            Ok(outcomes) => return Ok(outcomes),
        }
    }
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
        Order::Discard(id) => Some(Op::Discard(*id)),
        Order::Pause(name) => pause(name, true),
        Order::Resume(name) => pause(name, false),
    }
}

/// The namespaces that a service would know, by the names of its settings.
pub(crate) fn namespaces<'a>(
    settings: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let named = settings.filter_map(|name| name.strip_prefix(POLICY));
    named.chain([DEFAULT])
}

fn why_not(order: &Order) -> NotDone {
    let why = match order {
        Order::Cancel(_) => NOT_PENDING.to_owned(),
        Order::Redrive(_) | Order::Discard(_) => {
            "there is no such dead letter: it was redriven or discarded, or never existed"
                .to_owned()
        }
        Order::Pause(name) | Order::Resume(name) => {
            format!("there is no namespace {name:?}: `namespaces` lists them")
        }
    };
    let is_gone = true;
    NotDone { why, is_gone }
}
