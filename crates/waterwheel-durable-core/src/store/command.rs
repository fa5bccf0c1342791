use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Handle, Id};

/// A command from another process to the service that has the store open: see [`Store::commands`](crate::store::Store::commands).
/// Its text form is `cancel HANDLE` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Cancel a timer.
    Cancel(Handle),
    /// Make a dead letter a timer again.
    Redrive(Id),
    /// Delete a dead letter.
    Discard(Id),
    /// Pause the deliveries of this namespace.
    Pause(Arc<str>),
    /// Resume the deliveries of this namespace.
    Resume(Arc<str>),
}

/// Answers of the service. Any other text says why the command was not carried out.
impl Command {
    /// The command was carried out.
    pub const DONE: &str = "done";
    /// The timer to cancel has fired.
    pub const FIRED: &str = "not cancelled: its handler is running, or has just returned; if that attempt fails, the timer is pending again, so repeat the command";
    /// The timer or dead letter does not exist.
    pub const GONE: &str = "there is no such timer or dead letter";
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Cancel(handle) => write!(f, "cancel {handle}"),
            Command::Redrive(id) => write!(f, "redrive {id}"),
            Command::Discard(id) => write!(f, "discard {id}"),
            Command::Pause(namespace) => write!(f, "pause {namespace}"),
            Command::Resume(namespace) => write!(f, "resume {namespace}"),
        }
    }
}

/// The text is not a valid [`Command`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidCommand;

impl fmt::Display for InvalidCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid command: expected `cancel HANDLE`, `redrive ID`, `discard ID`, `pause NAMESPACE` or `resume NAMESPACE`",
        )
    }
}

impl std::error::Error for InvalidCommand {}

impl FromStr for Command {
    type Err = InvalidCommand;

    fn from_str(text: &str) -> Result<Command, InvalidCommand> {
        let (what, of) = text.split_once(' ').ok_or(InvalidCommand)?;
        match what {
            "cancel" => of.parse().map(Command::Cancel).map_err(|_| InvalidCommand),
            "redrive" => of.parse().map(Command::Redrive).map_err(|_| InvalidCommand),
            "discard" => of.parse().map(Command::Discard).map_err(|_| InvalidCommand),
            "pause" if !of.is_empty() => Ok(Command::Pause(of.into())),
            "resume" if !of.is_empty() => Ok(Command::Resume(of.into())),
            _ => Err(InvalidCommand),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_is_written() {
        let handle: Handle = "10000000007@5@billing/notify".parse().unwrap();
        for command in [
            Command::Cancel(handle.clone()),
            Command::Redrive(handle.id),
            Command::Discard(handle.id),
            Command::Pause("billing".into()),
            Command::Resume("a name".into()),
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
        ] {
            assert_eq!(wrong.parse::<Command>(), Err(InvalidCommand), "{wrong}");
        }
    }
}
