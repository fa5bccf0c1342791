use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::FromSql;

use crate::protocol::{Failure, Rejection};

/// A request failed.
#[derive(Debug)]
pub(crate) enum Error {
    /// The connection is lost, or the reply did not come in time.
    Lost(Arc<str>),
    /// The server has refused a statement.
    Refused(Box<DbError>),
    /// The reply has other columns than expected.
    Unexpected(Arc<str>),
}

/// Returns a column of a row.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Error> {
    row.try_get(at)
        .map_err(|error| Error::Unexpected(error.to_string().into()))
}

impl Error {
    pub(crate) fn no_reply(within: Duration) -> Error {
        Error::Lost(format!("no reply within {within:?}").into())
    }

    /// The error of a statement after which the connection is not used again.
    pub(crate) fn lost(self) -> Error {
        Error::Lost(Failure::from(self).why())
    }

    /// Whether a unique constraint was violated, and which.
    fn violated(&self) -> Option<&str> {
        match self {
            Error::Refused(error) if error.code().code() == "23505" => error.constraint(),
            _ => None,
        }
    }

    /// Returns why a commit was not carried out.
    pub(crate) fn rejection(self) -> Rejection {
        if let Some(constraint) = self.violated() {
            return match constraint {
                "commits_pkey" => Rejection::Repeated,
                _ => Rejection::KeyTaken,
            };
        }
        let code = match &self {
            Error::Refused(error) => error.code().code(),
            _ => "",
        };
        match code {
            "WW001" => Rejection::Fenced,
            "WW002" => Rejection::OtherTimeline,
            "WW003" => Rejection::Gap,
            _ => Failure::from(self).into(),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        let Some(refused) = error.as_db_error() else {
            return Error::Lost(words(&error).into());
        };
        // A fatal error ends the backend. A server that is in recovery, or read-only, is not the server that we want.
        let is_fatal = matches!(
            refused.parsed_severity(),
            Some(Severity::Fatal | Severity::Panic)
        );
        let is_other = ["25006", "57P01", "57P02", "57P03"].contains(&refused.code().code());
        match is_fatal || is_other {
            true => Error::Lost(refused.to_string().into()),
            false => Error::Refused(Box::new(refused.clone())),
        }
    }
}

/// An error and its causes.
pub(crate) fn words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", words(source)),
        None => error.to_string(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Lost(why) => Failure::Disconnected(why),
            Error::Refused(error) => {
                // Without the details, which may contain a row.
                let code = error.code().code();
                Failure::Refused(format!("{} ({code})", error.message()).into())
            }
            Error::Unexpected(why) => Failure::Refused(why),
        }
    }
}
