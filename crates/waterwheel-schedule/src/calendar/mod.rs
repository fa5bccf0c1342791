//! Schedules by the calendar: cron expressions in time zones, with a policy for the days on which the clock is put forward or back.
//!
//! ```
//! use waterwheel_schedule::calendar::Schedule;
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
//! # Expressions
//!
//! Five fields, with blanks between them, or six with the second first:
//!
//! | field | values | also |
//! |---|---|---|
//! | second, 0 if there are five fields | 0–59 | |
//! | minute | 0–59 | |
//! | hour | 0–23 | |
//! | day of month | 1–31 | `L`, the last; `15W`, the day from Monday to Friday nearest to the 15th, in the same month; `LW`, the last from Monday to Friday; `?`, as `*` |
//! | month | 1–12, JAN–DEC | |
//! | day of week | 0–7, SUN–SAT; 0 and 7 are Sunday, and so is `SUN-SUN`, while `0-7` is the whole week | `TUE#2`, the second Tuesday of the month; `FRIL` or `5#L`, the last Friday; `?`, as `*` |
//! | year, if [`ScheduleOptions::years`] allows it | 1–5000 | |
//!
//! A field is `*`, or a list of values, ranges and steps: `1,15`, `9-17`, `*/15`, `10-40/10`, `MON-FRI`, `MON,WED#1`. Names take either case.
//! Or the whole is a nickname: `@hourly`, `@daily` or `@midnight`, `@weekly` (Sunday), `@monthly`, `@yearly` or `@annually`.
//!
//! **A day matches either field** if both are restricted, as in crontab(5): `0 0 13 * FRI` is each 13th and each Friday. A field that begins
//! with `*` is not restricted, so beside `*/2` a day must match both. `0 0 13 * +FRI` is Friday the 13th.
//!
//! **A step begins anew** with each hour, day, month or year: `*/45` is the minutes 0 and 45. For a period that does not divide the hour, use
//! a fixed rate. A step that is as large as its field, or larger, as in `*/60`, would match the first value alone. It is refused, unless
//! [`ScheduleOptions::wide_steps`] allows it.
//!
//! # When the clock is put forward or back
//!
//! *Fixed times* have no `*` and no `/` in the minute and the hour: `30 2 * * *`, `0,30 2 * * *`, `0 9-17 * * *`. All others are *wildcards*,
//! which follow the wall clock.
//!
//! |  | fixed times | wildcards |
//! |---|---|---|
//! | a time that does not exist (the clock is put forward over it) | runs at the first instant that does | does not run |
//! | a time that comes twice (the clock is put back over it) | runs the first time | runs both times |
//!
//! - **My job of 2:30 on the day on which 2:00 is followed by 3:00?** It runs at 3:00.
//! - **And if it is due at 2:00, 2:30 and 3:00?** It runs at 3:00, once.
//! - **My job of 2:30 on the day on which 3:00 is followed by 2:00?** It runs at the first 2:30.
//! - **`*/15 * * * *` on these days?** Every 15 minutes, also through the change: 1:45 and then 3:00 in spring; 2:45 and then 2:00 in autumn.
//! - **`30 * * * *`?** Each hour that the clock shows, at half past. A day of 23 hours has 23 runs, and one of 25 has 25.
//! - **`30 2-4 * * *`?** Its hours are fixed: it runs three times on each day, one of them at 3:00 in spring. `30 2-4/1 * * *` is a wildcard.
//! - **A day without midnight**, as in Santiago? `@daily` runs at 1:00, the first instant of that day.
//! - **A gap across midnight**, as in Nuuk, or a whole day that a zone leaves out? A fixed time runs at the end of the gap, which is the next day.
//!   `30 23 * * SAT` then runs on a Sunday.
//! - **The seconds?** They play no part in it: `*/20 30 2 * * *` are three fixed times. In a gap they are one run.
//! - **And in UTC?** There are no changes. A job that must run every 24 hours needs `UTC`, or a fixed rate.
//!
//! # Zones
//!
//! Offsets come from the time zone database, by [jiff] 0.2: the system's if there is one. The feature `bundled-zones` adds a copy to the
//! program (some 400 kB) for machines without one, such as a container made from `scratch`; there, `cron` alone gives
//! [`ScheduleError::NoZoneData`]. A copy grows old with the program, so the system's is preferred. To use one in particular, hand
//! [`Schedule::parse_in`] its zone.
//!
//! jiff's [`Timestamp`] and [`TimeZone`] are in the signatures here. `calendar::jiff` is the jiff they are from, so a
//! caller needs no dependency of the same version. `SystemTime` converts to and from `Timestamp`.
//!
//! # The parts
//!
//! | file | what it knows |
//! |---|---|
//! | `schedule`, `options`, `upcoming` | what a caller has |
//! | `error`, `field` | what is wrong, and what to write instead |
//! | `fields` | how an expression becomes croner's fields |
//! | `never` | which schedules never come |
//! | `pattern`, `days`, `bits` | the next wall-clock time that matches |
//! | `policy` | which instants a wall-clock time is |
//! | `zones` | where zones come from |
//!
//! [croner](https://docs.rs/croner) reads the fields and has the rule for a day. Its own search treats lists and ranges of times as wildcards,
//! and goes through the years in steps of a second to a day; so the search and the policy are here. The policy is Vixie cron's, made exact.
//!
//! [`Timestamp`]: jiff::Timestamp
//! [`TimeZone`]: jiff::tz::TimeZone

pub use jiff;

mod bits;
mod days;
mod error;
mod field;
mod fields;
mod never;
mod options;
mod pattern;
mod policy;
mod schedule;
mod upcoming;
mod zones;

pub use error::ScheduleError;
pub use field::Field;
pub use options::ScheduleOptions;
pub use schedule::Schedule;
pub use upcoming::Upcoming;
