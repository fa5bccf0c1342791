//! Is a command carried out here, or by the process that has the file open?
//!
//! If no process has the file open, this one opens the store and carries out all commands in one commit. Otherwise it sends them to that process, which answers
//! each. A command that is not taken in time is withdrawn, so that it is not carried out later.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use waterwheel_durable_core::limits::{DEFAULT, PAUSED_SETTING, POLICY_SETTING};
use waterwheel_durable_core::policy::Policy;
use waterwheel_durable_core::store::{
    Bucket, Command, Due, Handle, Notice, Op, Outcome, PolicyChange, Setting, Store,
    refused_by_transfer,
};
use waterwheel_durable_sqlite::{
    CommandResult, Holder, OpenError, Reader, Sqlite, SqliteStore, send_commands,
};

use crate::arguments::Wait;
use crate::failure::{Failure, chain, say};
use crate::time::now;

/// The result of a command: the handle of the timer that it has inserted, if that is what it does.
pub(crate) type Carried = Result<Option<Handle>, NotDone>;

/// Why a command was not carried out.
#[derive(Debug)]
pub(crate) struct NotDone {
    pub(crate) why: String,
    /// Whether the timer that it names is gone or has fired. Other commands may still be carried out.
    pub(crate) is_gone: bool,
}

impl NotDone {
    fn because(why: String) -> NotDone {
        let is_gone = false;
        NotDone { why, is_gone }
    }
}

/// How long to wait before a retry.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a timer that is not in the file was neither cancelled nor moved.
pub(crate) const NOT_PENDING: &str = "no pending timer has this id: it was delivered, cancelled or given up, or never existed (`show` finds dead letters, `discard` deletes them)";

/// Carries out commands, or sends them to the process that has the file open.
pub(crate) fn submit(
    reader: &Reader,
    commands: &[Command],
    wait: &Wait,
) -> Result<Vec<Carried>, Failure> {
    let (begun, limit) = (Instant::now(), wait.limit);
    let results = loop {
        if let Some(carried) = here(reader, commands, begun + limit, wait.accept_loss)? {
            return Ok(carried);
        }
        let results = send_commands(
            reader.path(),
            commands,
            limit.saturating_sub(begun.elapsed()),
        )?;
        // Commands are withdrawn early if the process has ended.
        if results.iter().any(|it| *it != CommandResult::Withdrawn) || begun.elapsed() >= limit {
            break results;
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
    let ends = results.into_iter().map(|results| match results {
        CommandResult::Answered(answer) if &*answer == Command::DONE => Ok(None),
        CommandResult::Answered(answer) => {
            let inserted = answer.strip_prefix(Command::INSERTED);
            match inserted.and_then(|handle| handle.parse().ok()) {
                Some(handle) => Ok(Some(handle)),
                None => Err(NotDone {
                    is_gone: [Command::GONE, Command::FIRED].contains(&&*answer),
                    why: answer.to_string(),
                }),
            }
        }
        CommandResult::Withdrawn => Err(NotDone::because(format!(
            "{holder} has the file open and did not respond within {} s: the request was withdrawn and will not be applied (`--wait SECONDS` waits longer)",
            limit.as_secs_f64()
        ))),
        CommandResult::Unknown => Err(NotDone::because(format!(
            "{holder} accepted the request but did not answer: the change may or may not have been made; look before you repeat it"
        ))),
    });
    Ok(ends.collect())
}

/// Carries out commands in this process. Returns `None` if another process has or may have the file open: the lock file may belong to another user.
fn here(
    reader: &Reader,
    commands: &[Command],
    until: Instant,
    accept_loss: bool,
) -> Result<Option<Vec<Carried>>, Failure> {
    if reader.holder() != Holder::None {
        return Ok(None);
    }
    let file = Sqlite::new(reader.path()).brief();
    let mut store = match file.accept_loss(accept_loss).open() {
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
    if let Some(why) = refused_by_transfer(&settings) {
        return Err(Failure::because(why));
    }
    let mut steps = Vec::new();
    let refused: Vec<Option<NotDone>> = commands
        .iter()
        .map(|command| match step(command, &settings) {
            Ok(step) => {
                steps.push(step);
                None
            }
            Err(why) => Some(NotDone { why, is_gone: true }),
        })
        .collect();
    // No id is assigned, so this does not count as an opening: the store is not begun.
    let mut outcomes = commit(&mut store, &steps, until)?.into_iter();
    let ends = commands.iter().zip(refused).map(|(command, refused)| {
        if let Some(refused) = refused {
            return Err(refused);
        }
        let is_done = match outcomes.next() {
            Some(Outcome::Cancelled(is_done)) => is_done,
            Some(Outcome::Redriven(row) | Outcome::Rescheduled(row)) => row.is_some(),
            _ => true,
        };
        match is_done {
            true => Ok(None),
            false => Err(why_not(command)),
        }
    });
    Ok(Some(ends.collect()))
}

/// Commits, and retries while the commit is refused because another command is writing.
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

/// The step that carries out a command, or why there is none.
fn step(command: &Command, settings: &[Setting]) -> Result<Op, String> {
    let set = |setting: &str, name: &str, value: Option<Arc<[u8]>>| {
        let mut known = namespaces(settings.iter().map(|it| &*it.name));
        match known.any(|it| it == name) {
            true => Ok(Op::Set(format!("{setting}{name}").into(), value)),
            false => Err(format!(
                "there is no namespace {name:?}: `namespaces` lists them"
            )),
        }
    };
    let reschedule = |handle: &Handle, due: Due| {
        let bucket = Bucket::of(due, now());
        Ok(Op::Reschedule(handle.clone(), due, bucket))
    };
    match command {
        Command::Cancel(handle) => Ok(Op::Cancel(handle.clone())),
        Command::Reschedule(handle, due) => reschedule(handle, *due),
        Command::RunNow(handle) => reschedule(handle, now()),
        Command::Insert(_) => Err(
            "no service has the file open: start it first, because it assigns the id".to_owned(),
        ),
        Command::Redrive(id) => {
            let due = now();
            Ok(Op::Redrive(*id, due, Bucket::of(due, due)))
        }
        Command::Discard(id) => Ok(Op::Discard(*id)),
        Command::Pause(name) => set(PAUSED_SETTING, name, Some([].into())),
        Command::Resume(name) => set(PAUSED_SETTING, name, None),
        Command::Policy(change) => {
            let PolicyChange {
                namespace,
                before,
                policy,
            } = &**change;
            let step = set(POLICY_SETTING, namespace, Some(policy.to_stored().into()))?;
            let current = match value(settings, POLICY_SETTING, namespace) {
                Some(stored) => Policy::from_stored(stored),
                None => Some(Policy::default()),
            };
            match current.as_ref() == Some(before) {
                true => Ok(step),
                false => Err(Command::POLICY_CHANGED.to_owned()),
            }
        }
    }
}

/// Returns the value of the setting whose name is `name` after this prefix.
pub(crate) fn value<'a>(settings: &'a [Setting], prefix: &str, name: &str) -> Option<&'a [u8]> {
    let is_it = |setting: &&Setting| setting.name.strip_prefix(prefix) == Some(name);
    settings.iter().find(is_it).map(|setting| &*setting.value)
}

/// The namespaces that a service would know, according to the names of its settings.
pub(crate) fn namespaces<'a>(
    settings: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let named = settings.filter_map(|name| name.strip_prefix(POLICY_SETTING));
    named.chain([DEFAULT])
}

/// Why a step of a timer or a dead letter has found nothing.
fn why_not(command: &Command) -> NotDone {
    let why = match command {
        Command::Redrive(_) | Command::Discard(_) => {
            "there is no such dead letter: it was redriven or discarded, or never existed"
        }
        _ => NOT_PENDING,
    };
    NotDone {
        why: why.to_owned(),
        is_gone: true,
    }
}
