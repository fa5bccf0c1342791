//! Cron schedules: cron expressions in time zones, with a policy for the days on which daylight saving time begins or ends.
//!
//! ```
//! use waterwheel_cron::Schedule;
//!
//! let schedule = Schedule::parse("0,30 2 * * *", "Europe/Berlin")?;
//! // On 29 March 2026 the clock goes from 2:00 to 3:00, so both times run at 3:00, once.
//! let next: Vec<_> = schedule
//!     .upcoming("2026-03-28T12:00+01:00".parse()?)
//!     .take(3)
//!     .map(|it| it.to_zoned(schedule.zone().clone()).strftime("%d %b %H:%M").to_string())
//!     .collect();
//! assert_eq!(next, ["29 Mar 03:00", "30 Mar 02:00", "30 Mar 02:30"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cron expressions
//!
//! A cron expression has five fields separated by blanks, or six fields with the second first:
//!
//! | field | values | also |
//! |---|---|---|
//! | second (0 if there are five fields) | 0–59 | |
//! | minute | 0–59 | |
//! | hour | 0–23 | |
//! | day of month | 1–31 | `L`, `LW`, `15W`, `?` |
//! | month | 1–12, JAN–DEC | |
//! | day of week | 0–7, SUN–SAT | `TUE#2`, `FRIL`, `5#L`, `?` |
//! | year (if [`ScheduleOptions::years`] allows it) | 1–5000 | |
//!
//! - A field is `*`, or a list of values, ranges and steps: `1,15`, `9-17`, `*/15`, `10-40/10`, `MON-FRI`, `MON,WED#1`. Names are not case
//!   sensitive, and `?` means `*`.
//! - In the day of the month, `L` is the last day, `LW` the last weekday (Monday to Friday), and `15W` the weekday that
//!   is nearest to the 15th in the same month.
//! - In the day of the week, 0 and 7 are Sunday. `TUE#2` is the second Tuesday of the month, and `FRIL` or `5#L` the
//!   last Friday. `SUN-SUN` is Sunday, while `0-7` is the whole week. If you know Quartz: its 1 is Sunday, here 1 is
//!   Monday.
//! - Instead of fields, an expression can be a nickname: `@hourly`, `@daily` or `@midnight`, `@weekly` (on Sunday),
//!   `@monthly`, `@yearly` or `@annually`.
//!
//! **A day matches either day field** if both are restricted, as in crontab(5): `0 0 13 * FRI` is every 13th and every Friday. A field that
//! begins with `*` is not restricted, so if one of the fields is `*/2`, a day must match both. `0 0 13 * +FRI` is Friday the 13th.
//!
//! **A step starts over** with each hour, day, month or year: `*/45` is the minutes 0 and 45. For a period that does
//! not divide the hour, use a fixed rate. A step that is as large as its field or larger, such as `*/60`, would match
//! only the first value. It is refused, unless [`ScheduleOptions::wide_steps`] allows it.
//!
//! # Daylight saving time
//!
//! When the clock is put forward, some times of the day do not exist; when it is put back, some come twice. The policy
//! depends on whether the times of an expression are fixed. *Fixed times* have no `*` and no `/` in the minute and the
//! hour, as in `30 2 * * *`, `0,30 2 * * *` and `0 9-17 * * *`. All others are *wildcards*, which follow the wall
//! clock.
//!
//! |  | fixed times | wildcards |
//! |---|---|---|
//! | a time that does not exist (the clock is put forward over it) | runs at the first instant that exists | does not run |
//! | a time that comes twice (the clock is put back over it) | runs the first time | runs both times |
//!
//! - **A job at 2:30, on the day on which 2:00 is followed by 3:00?** It runs at 3:00.
//! - **A job at 2:00, 2:30 and 3:00, on that day?** It runs at 3:00, once.
//! - **A job at 2:30, on the day on which 3:00 is followed by 2:00?** It runs at the first 2:30.
//! - **`*/15 * * * *` on these days?** Every 15 minutes, also across the change: 1:45 and then 3:00 in spring, 2:45 and
//!   then 2:00 in autumn.
//! - **`30 * * * *`?** At half past each hour that the clock shows. A day of 23 hours has 23 runs, and a day of 25 hours has 25.
//! - **`30 2-4 * * *`?** Its hours are fixed: it runs three times every day, one of them at 3:00 in spring. `30 2-4/1 * * *` is a wildcard.
//! - **A day without midnight**, as in Santiago? `@daily` runs at 1:00, the first instant of that day.
//! - **A gap across midnight**, as in Nuuk, or a whole day that a zone leaves out? A fixed time runs at the end of the
//!   gap, which is on the next day. `30 23 * * SAT` then runs on a Sunday.
//! - **Seconds?** They do not count for this distinction: `*/20 30 2 * * *` is three fixed times. In a gap, they are one run.
//! - **UTC?** It has no changes. A job that must run every 24 hours needs `UTC`, or a fixed rate.
//!
//! # Time zones
//!
//! Offsets come from the time zone database, via [jiff] 0.2, which uses the database of the system if there is one. The
//! feature `bundled-zones` adds a copy to the program (about 400 kB), for machines without a database, such as a
//! container built from `scratch`; with `cron` alone, parsing fails there with [`ScheduleError::NoZoneData`]. Since a
//! copy becomes outdated, the database of the system is preferred. To use a database of your own, pass one of its zones
//! to [`Schedule::parse_in`].
//!
//! jiff's [`Timestamp`] and [`TimeZone`] appear in the signatures of this module. It re-exports the jiff that they come
//! from as `calendar::jiff`, so a caller needs no dependency of the same version. `SystemTime` converts to and from
//! `Timestamp`.
//!
//! [`Timestamp`]: jiff::Timestamp
//! [`TimeZone`]: jiff::tz::TimeZone

// | file | contents |
// |---|---|
// | `schedule` | the public types: schedules, options, an iterator; time zones by name |
// | `error`, `field` | errors, and the advice on what to write instead |
// | `expression` | the translation of an expression to croner's fields |
// | `pattern`, `days` | the next and the previous wall-clock time that matches, and whether there is one |
// | `dst` | the instants of a wall-clock time |
//
// croner reads the fields and has the rule for a day. Its own search treats lists and ranges of times as wildcards, and goes through the years
// in steps of a second to a day; so the search and the policy are here. The policy is Vixie cron's, made exact.

#![forbid(unsafe_code)]

pub use jiff;

mod days;
mod dst;
mod error;
mod expression;
mod field;
mod pattern;
mod schedule;

pub use error::ScheduleError;
pub use field::Field;
pub use schedule::{Schedule, ScheduleOptions, Upcoming};
