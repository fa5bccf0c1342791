use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use super::{Due, Extras, Handle, Id, Row};
use crate::limits::{PAYLOAD_LIMIT, is_handler_name, is_tag};
use crate::policy::{Policy, Retries};

/// A command from another process to the service that has the store open: see [`Store::commands`](crate::store::Store::commands).
/// Its text form is `cancel HANDLE` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Cancel a timer.
    Cancel(Handle),
    /// Move a timer to this due time.
    Reschedule(Handle, Due),
    /// Move a timer to the current time. For a timer that is not due yet: one that is due would lose its place in the order of
    /// due times.
    RunNow(Handle),
    /// Insert a timer: its handler, due time, key, extras and payload. The service assigns the id.
    Insert(Row),
    /// Make a dead letter a timer again.
    Redrive(Id),
    /// Delete a dead letter.
    Discard(Id),
    /// Pause the deliveries of this namespace.
    Pause(Arc<str>),
    /// Resume the deliveries of this namespace.
    Resume(Arc<str>),
    /// Replace the policy of a namespace.
    Policy(Box<PolicyChange>),
}

/// A change of the policy of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    /// The name of the namespace.
    pub namespace: Arc<str>,
    /// The policy that the sender has seen. If the namespace has another one by now, nothing is changed.
    pub before: Policy,
    /// The new policy.
    pub policy: Policy,
}

/// Answers of the service. Any other text says why the command was not carried out.
impl Command {
    /// The command was carried out.
    pub const DONE: &str = "done";
    /// The timer of an [`Insert`](Command::Insert) is durable. Its [`Handle`] follows.
    pub const INSERTED: &str = "inserted ";
    /// The timer to cancel or move has fired.
    pub const FIRED: &str = "nothing was done: its handler is running, or has just returned; if that attempt fails, the timer is pending again, so repeat the command";
    /// The policy is not the one that the sender has seen.
    pub const POLICY_CHANGED: &str =
        "nothing was done: the policy was changed by someone else meanwhile, so repeat the command";
    /// The timer or dead letter does not exist.
    pub const GONE: &str = "there is no such timer or dead letter";
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Cancel(handle) => write!(f, "cancel {handle}"),
            Command::Reschedule(handle, due) => {
                write!(f, "reschedule {} {handle}", due.as_millis())
            }
            Command::RunNow(handle) => write!(f, "run-now {handle}"),
            Command::Insert(row) => {
                let word = |bytes: Option<&[u8]>| bytes.map_or_else(|| "-".to_owned(), hex);
                let retries = row.extras.as_ref().and_then(|it| it.retries.as_deref());
                let (key, tag) = (word(row.key.as_deref()), word(row.tag().map(str::as_bytes)));
                let (retries, payload) = (word(retries), hex(&row.payload));
                let due = row.due.as_millis();
                write!(
                    f,
                    "insert {due} {key} {tag} {retries} {payload} {}",
                    row.handler
                )
            }
            Command::Redrive(id) => write!(f, "redrive {id}"),
            Command::Discard(id) => write!(f, "discard {id}"),
            Command::Pause(namespace) => write!(f, "pause {namespace}"),
            Command::Resume(namespace) => write!(f, "resume {namespace}"),
            Command::Policy(change) => {
                let PolicyChange {
                    namespace,
                    before,
                    policy,
                } = &**change;
                // JSON without spaces, because a policy contains no text.
                let [before, policy] = [before, policy].map(Policy::to_stored);
                let [before, policy] = [&before, &policy].map(|it| String::from_utf8_lossy(it));
                write!(f, "policy {before} {policy} {namespace}")
            }
        }
    }
}

/// Bytes in hexadecimal, after an `x`, so that there is a word also for no bytes.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(1 + bytes.len() * 2);
    text.push('x');
    for byte in bytes {
        // Writing to a `String` does not fail.
        let _: fmt::Result = write!(text, "{byte:02x}");
    }
    text
}

fn from_hex(text: &str) -> Option<Arc<[u8]>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|it| it as u8);
    let pairs = text.strip_prefix('x')?.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    pairs.map(byte).collect()
}

/// The text is not a valid [`Command`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidCommand;

impl fmt::Display for InvalidCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid command: expected `cancel HANDLE`, `reschedule DUE HANDLE`, `run-now HANDLE`, `insert DUE KEY TAG RETRIES PAYLOAD HANDLER`, `redrive ID`, `discard ID`, `pause NAMESPACE`, `resume NAMESPACE` or `policy JSON JSON NAMESPACE`",
        )
    }
}

impl std::error::Error for InvalidCommand {}

impl FromStr for Command {
    type Err = InvalidCommand;

    fn from_str(text: &str) -> Result<Command, InvalidCommand> {
        parse(text).ok_or(InvalidCommand)
    }
}

fn parse(text: &str) -> Option<Command> {
    let (verb, rest) = text.split_once(' ')?;
    Some(match verb {
        "cancel" => Command::Cancel(rest.parse().ok()?),
        "reschedule" => {
            let (due, handle) = rest.split_once(' ')?;
            Command::Reschedule(handle.parse().ok()?, Due::from_millis(due.parse().ok()?))
        }
        "run-now" => Command::RunNow(rest.parse().ok()?),
        "insert" => Command::Insert(parse_row(rest)?),
        "redrive" => Command::Redrive(rest.parse().ok()?),
        "discard" => Command::Discard(rest.parse().ok()?),
        "pause" if !rest.is_empty() => Command::Pause(rest.into()),
        "resume" if !rest.is_empty() => Command::Resume(rest.into()),
        "policy" => {
            let mut words = rest.splitn(3, ' ');
            let mut policy = || Policy::from_stored(words.next()?.as_bytes());
            let (before, policy) = (policy()?, policy()?);
            let namespace = words.next().filter(|it| !it.is_empty())?.into();
            Command::Policy(Box::new(PolicyChange {
                namespace,
                before,
                policy,
            }))
        }
        _ => return None,
    })
}

/// Parses `DUE KEY TAG RETRIES PAYLOAD HANDLER`, within the limits of an insert.
fn parse_row(text: &str) -> Option<Row> {
    let mut words = text.splitn(6, ' ');
    let due = Due::from_millis(words.next()?.parse().ok()?);
    let mut word = || match words.next()? {
        "-" => Some(None),
        word => from_hex(word).map(Some),
    };
    let (key, tag, retries, payload) = (word()?, word()?, word()?, word()??);
    let tag = match tag {
        Some(tag) => Some(str::from_utf8(&tag).ok().filter(|it| is_tag(it))?.into()),
        None => None,
    };
    if let Some(retries) = &retries {
        Retries::from_stored(retries)?;
    }
    let handler = words.next().filter(|it| is_handler_name(it))?;
    let mut row = Row::new(Id::NONE, due, handler, payload);
    row.key = key;
    row.extras = Extras::new(tag, retries.map(|it| Box::from(&*it)));
    (row.bytes() <= PAYLOAD_LIMIT).then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Rate;

    #[test]
    fn a_command_is_read_as_it_is_written() {
        let handle: Handle = "10000000007@5@billing/notify at night".parse().unwrap();
        let insert = |key: Option<&[u8]>, payload: &[u8], extras| {
            let mut row = Row::new(Id::NONE, Due::from_millis(-7), "shop/close it", payload);
            row.key = key.map(Arc::from);
            row.extras = extras;
            Command::Insert(row)
        };
        let retries = Retries::RetryDelays(Vec::new()).to_stored();
        let tag = || Some(Box::from("an ordér"));
        let policy = Policy::default()
            .rate(Rate::per_second(100).burst(20))
            .retention(7);
        for command in [
            Command::Cancel(handle.clone()),
            Command::Reschedule(handle.clone(), Due::from_millis(1_800_000_000_000)),
            Command::Reschedule(handle.clone(), Due::from_millis(i64::MIN)),
            Command::RunNow(handle.clone()),
            insert(None, b"", None),
            insert(Some(b""), b"a payload", Extras::new(tag(), None)),
            insert(
                Some(&[0, 255]),
                &[16, 1],
                Extras::new(tag(), Some(retries.into())),
            ),
            Command::Redrive(handle.id),
            Command::Discard(handle.id),
            Command::Pause("billing".into()),
            Command::Resume("a name".into()),
            Command::Policy(Box::new(PolicyChange {
                namespace: "a name".into(),
                before: Policy::default(),
                policy,
            })),
        ] {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        for wrong in [
            "",
            "pause",
            "pause ",
            "resume ",
            "cancel 7",
            "redrive x",
            "stop billing",
            "reschedule 10000000007@5@a",
            "reschedule soon 10000000007@5@a",
            "run-now 7",
            "insert 5 - - - x",
            "insert 5 - - - x ",
            "insert 5 - - - x default/close",
            "insert 5 - - - xg0 close",
            "insert 5 - - - x0 close",
            "insert 5 - - - 00 close",
            "insert 5 - - - - close",
            "insert 5 ff - - x close",
            "insert 5 - x - x close",
            "insert 5 - xff - x close",
            "insert 5 - - x7b7d x close",
            "insert x - - - x close",
            "policy {} {} ",
            "policy {} {}",
            "policy {} shop",
            "policy {} {\"rat\":7} shop",
        ] {
            assert_eq!(wrong.parse::<Command>(), Err(InvalidCommand), "{wrong}");
        }
    }

    #[test]
    fn an_insert_is_within_the_limits() {
        let row = |bytes: usize| Row::new(Id::NONE, Due::from_millis(5), "close", vec![7; bytes]);
        for (bytes, is_read) in [(PAYLOAD_LIMIT, true), (PAYLOAD_LIMIT + 1, false)] {
            let read: Result<Command, _> = Command::Insert(row(bytes)).to_string().parse();
            assert_eq!(read.is_ok(), is_read);
        }
    }
}
