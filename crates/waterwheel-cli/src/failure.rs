//! Failures of the command, and their messages.

use std::error::Error;
use std::io;
use std::path::Path;

use waterwheel_durable_core::store::TransferError;
use waterwheel_durable_postgres::DatabaseError;

use crate::text;

/// The exit code for invalid arguments.
pub(crate) const USAGE: u8 = 2;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the output has gone: there is nothing more to do or to report.
    Closed,
    /// The output cannot be written.
    Output(io::Error),
    /// The output was closed, or cannot be written because of this error, while a command was changing something.
    CutOff(Option<io::Error>),
    /// An error of the file.
    File(Box<dyn Error>),
    /// An error whose message names the store.
    Named(Box<dyn Error>),
    /// The failures were already reported, one for each timer.
    Said,
}

impl Failure {
    pub(crate) fn because(why: impl Into<String>) -> Failure {
        Failure::File(why.into().into())
    }

    /// Reports the failure, with all causes.
    pub(crate) fn report(&self, file: &Path) {
        let file = text::place(file);
        match self {
            Failure::Closed | Failure::Said => {}
            Failure::Output(error) => say(&unwritten(error)),
            Failure::CutOff(error) => {
                let why = error
                    .as_ref()
                    .map_or_else(|| "the output was closed".to_owned(), unwritten);
                say(&format!(
                    "{why}: changes that were not printed may or may not have been made; look before you repeat the command"
                ));
            }
            Failure::Named(error) => say(&chain(&**error)),
            Failure::File(error) => say(&format!("{file}: {}", chain(&**error))),
        }
    }
}

fn unwritten(error: &io::Error) -> String {
    format!("cannot write to the standard output: {error}")
}

/// An error and its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors already contain their cause in their own text.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Writes to the standard error, and ignores an error: a closed standard error is no reason to panic.
pub(crate) fn say(text: &str) {
    use std::io::Write;

    let text = text::clean(text);
    let _: io::Result<()> = writeln!(io::stderr(), "waterwheel: {text}");
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Output(error),
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        Failure::Named(error.into())
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Failure {
        Failure::Named(error.into())
    }
}

macro_rules! of_the_file {
    ($($error:ty)+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::File(error.into())
            }
        })+
    };
}

of_the_file! {
    waterwheel_durable_core::store::StoreError
    waterwheel_durable_sqlite::SendError
    waterwheel_durable_sqlite::BackupError
    waterwheel_durable_sqlite::OpenError
    waterwheel_durable_sqlite::ReadError
}
