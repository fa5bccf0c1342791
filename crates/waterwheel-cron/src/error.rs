use std::error::Error;
use std::fmt;

use super::field::Field;

/// The maximum length of an expression: enough for every value of each field, and little enough to read at once.
pub(super) const MAX_LENGTH: usize = 1024;

/// The error of parsing a [`Schedule`](super::Schedule): the expression or the time zone is invalid. The message says
/// what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression is empty.
    Empty,
    /// The expression is longer than 1024 bytes.
    #[non_exhaustive]
    TooLong {
        /// The length of the expression in bytes.
        length: usize,
    },
    /// The expression contains a character that is not ASCII.
    #[non_exhaustive]
    NotAscii {
        /// The first such character.
        character: char,
    },
    /// The expression begins with `@`, but is not a known nickname.
    #[non_exhaustive]
    UnknownNickname {
        /// The expression.
        nickname: Box<str>,
    },
    /// The expression has too few or too many fields.
    #[non_exhaustive]
    FieldCount {
        /// The number of fields.
        found: usize,
    },
    /// A field is invalid.
    #[non_exhaustive]
    Field {
        /// The field that is invalid. If several are, the first of them.
        field: Field,
        /// The text of the field.
        text: Box<str>,
        /// The correction to make.
        advice: &'static str,
    },
    /// The schedule never runs, because its days do not occur in its months and years, as in `0 0 30 2 *`.
    Never,
    /// The time zone database has no zone with this name.
    #[non_exhaustive]
    UnknownZone {
        /// The name.
        name: Box<str>,
    },
    /// No time zone database was found to look up the name in.
    #[non_exhaustive]
    NoZoneData {
        /// The name.
        name: Box<str>,
    },
}

impl ScheduleError {
    /// Returns the field that is invalid, if the error is about a single field.
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        match self {
            ScheduleError::Field { field, .. } => Some(*field),
            _ => None,
        }
    }

    /// Returns whether the error is about the time zone, not about the expression.
    #[must_use]
    pub fn is_zone(&self) -> bool {
        matches!(
            self,
            ScheduleError::UnknownZone { .. } | ScheduleError::NoZoneData { .. }
        )
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Empty => f.write_str(
                "the expression is empty: write five fields, such as `0 9 * * TUE` for every Tuesday at 9:00",
            ),
            ScheduleError::TooLong { length } => write!(
                f,
                "the expression has {length} bytes, more than the limit of {MAX_LENGTH}: \
                 use ranges and steps, or split it into several expressions"
            ),
            ScheduleError::NotAscii { character } => write!(
                f,
                "the expression contains {character:?}: use only digits, English names and `* , - / ? L W # +`"
            ),
            ScheduleError::UnknownNickname { nickname } => write!(
                f,
                "{nickname:?} is not a known nickname: write `@yearly`, `@annually`, `@monthly`, \
                 `@weekly`, `@daily`, `@midnight` or `@hourly`"
            ),
            ScheduleError::FieldCount { found } => {
                write!(
                    f,
                    "expected five or six fields, but the expression has {found}: write minute, \
                     hour, day of month, month and day of week, optionally with the second in front"
                )?;
                if *found == 7 {
                    f.write_str("; `ScheduleOptions::years` allows a year at the end")?;
                }
                Ok(())
            }
            ScheduleError::Field {
                field,
                text,
                advice,
            } => write!(f, "the {field} {text:?} is invalid: {advice}"),
            ScheduleError::Never => f.write_str(
                "the schedule never runs, because its days do not occur in its months and years: \
                 change the day, the month or the year",
            ),
            ScheduleError::UnknownZone { name } => write!(
                f,
                "the time zone database has no zone {name:?}: write an IANA name such as `Europe/Berlin`, or `UTC`"
            ),
            ScheduleError::NoZoneData { name } => write!(
                f,
                "no time zone database was found to look up {name:?}: install the system's \
                 `tzdata`, enable the feature `bundled-zones`, or pass a zone to `Schedule::parse_in`"
            ),
        }
    }
}

impl Error for ScheduleError {}
