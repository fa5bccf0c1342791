use std::error::Error;
use std::fmt;

use super::field::Field;

/// More than every value of each field takes, and few enough to read at once.
pub(super) const MAX_LENGTH: usize = 1024;

/// Why there is no [`Schedule`](super::Schedule) for an expression and a zone. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression is empty.
    Empty,
    /// The expression is longer than 1024 bytes.
    #[non_exhaustive]
    TooLong {
        /// How many bytes it has.
        length: usize,
    },
    /// The expression has a character that is not ASCII.
    #[non_exhaustive]
    NotAscii {
        /// The first of them.
        character: char,
    },
    /// The expression begins with `@`, and is none of the nicknames.
    #[non_exhaustive]
    UnknownNickname {
        /// The expression.
        nickname: Box<str>,
    },
    /// The expression has too few fields, or too many.
    #[non_exhaustive]
    FieldCount {
        /// How many it has.
        found: usize,
    },
    /// A field is wrong by itself.
    #[non_exhaustive]
    Field {
        /// Which one; the first, if several are wrong.
        field: Field,
        /// What stands there.
        text: Box<str>,
        /// What could stand there.
        advice: &'static str,
    },
    /// No month of the expression has a day of the expression, as in `0 0 30 2 *`.
    Never,
    /// The time zone database has no zone of that name.
    #[non_exhaustive]
    UnknownZone {
        /// The name.
        name: Box<str>,
    },
    /// There is no time zone database to look the name up in.
    #[non_exhaustive]
    NoZoneData {
        /// The name.
        name: Box<str>,
    },
}

impl ScheduleError {
    /// The field that is wrong, if it is a single one.
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        match self {
            ScheduleError::Field { field, .. } => Some(*field),
            _ => None,
        }
    }

    /// Whether the zone was refused, and not the expression.
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
                "the expression is empty: write five fields, as in `0 9 * * TUE`, every Tuesday at 9",
            ),
            ScheduleError::TooLong { length } => write!(
                f,
                "the expression has {length} bytes, and at most {MAX_LENGTH} are read: \
                 write ranges and steps, or several expressions"
            ),
            ScheduleError::NotAscii { character } => write!(
                f,
                "the expression has {character:?}: write digits, English names and `* , - / ? L W # +`"
            ),
            ScheduleError::UnknownNickname { nickname } => write!(
                f,
                "{nickname:?} is no nickname: write `@yearly`, `@annually`, `@monthly`, `@weekly`, \
                 `@daily`, `@midnight` or `@hourly`"
            ),
            ScheduleError::FieldCount { found } => {
                write!(
                    f,
                    "the expression has {found} fields: write five (minute, hour, day of month, month, \
                     day of week), or six with the second before them"
                )?;
                if *found == 7 {
                    f.write_str("; `ScheduleOptions::years` allows the year as a seventh")?;
                }
                Ok(())
            }
            ScheduleError::Field {
                field,
                text,
                advice,
            } => write!(f, "the {field} {text:?} is wrong: {advice}"),
            ScheduleError::Never => f.write_str(
                "the schedule never comes: no month of the expression, in no year, has a day of the \
                 expression; the 29th of February does come",
            ),
            ScheduleError::UnknownZone { name } => write!(
                f,
                "the time zone database has no {name:?}: write a name such as `Europe/Berlin`, or `UTC`"
            ),
            ScheduleError::NoZoneData { name } => write!(
                f,
                "there is no time zone database to look {name:?} up in: install the system's `tzdata`, \
                 turn the feature `bundled-zones` on, or hand a zone to `Schedule::parse_in`"
            ),
        }
    }
}

impl Error for ScheduleError {}
