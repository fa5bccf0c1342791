use std::fmt;

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A field of a cron expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The second, which only expressions with at least six fields have.
    Second,
    /// The minute.
    Minute,
    /// The hour.
    Hour,
    /// The day of the month.
    DayOfMonth,
    /// The month.
    Month,
    /// The day of the week.
    DayOfWeek,
    /// The year, which only [`ScheduleOptions::years`](super::ScheduleOptions::years) allows.
    Year,
}

impl Field {
    /// All fields in their order.
    pub(super) const ALL: [Field; 7] = [
        Field::Second,
        Field::Minute,
        Field::Hour,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
        Field::Year,
    ];

    /// The number of a month or weekday by its upper-case name.
    pub(super) fn number_of(self, name: &str) -> Option<usize> {
        match self {
            Field::Month => MONTHS.iter().position(|it| *it == name).map(|it| it + 1),
            Field::DayOfWeek => WEEKDAYS.iter().position(|it| *it == name),
            _ => None,
        }
    }

    /// The number of values of the field. A step of at least this size matches only the first value.
    fn size(self) -> u64 {
        match self {
            Field::Second | Field::Minute => 60,
            Field::Hour => 24,
            Field::DayOfMonth => 31,
            Field::Month => 12,
            Field::DayOfWeek => 7,
            Field::Year => 5_000,
        }
    }

    /// Whether a step in `text` is larger than the field, as in `*/60` minutes.
    pub(super) fn has_wide_step(self, text: &str) -> bool {
        text.split(',').any(|item| {
            let step = item.split_once('/').and_then(|(_, step)| step.parse().ok());
            step.is_some_and(|step: u64| step >= self.size())
        })
    }

    /// Returns how to correct `text`, which is invalid.
    pub(super) fn advice(self, text: &str) -> &'static str {
        let text = &*text.to_ascii_uppercase();
        let items = || text.split(',');
        if items().any(str::is_empty) {
            "a list needs a value on both sides of each comma"
        } else if items().any(is_zero_step) {
            "a step must be 1 or more"
        } else if items().any(is_step_of_one_value) {
            "a step needs a range, as in `*/5` or `10-59/5`"
        } else if items().any(|item| self.is_backward(item)) {
            match self {
                Field::Month => {
                    "a range cannot go backwards: split it in two, such as `NOV-DEC,JAN-FEB` instead of `NOV-FEB`"
                }
                Field::DayOfWeek => {
                    "a range cannot go backwards: split it in two, such as `FRI-SAT,SUN-MON` instead of `FRI-MON`"
                }
                _ => {
                    "a range cannot go backwards: split it in two, such as `22-23,0-5` instead of `22-5`"
                }
            }
        } else if self.has_wide_step(text) {
            self.instead_of_wide_step()
        } else if has_two_last_days(text) {
            "`L` and `LW` cannot be combined in a list: write two expressions"
        } else {
            self.values()
        }
    }

    /// Whether a range goes from a value to one before it. The Sunday that ends a range comes after Saturday.
    fn is_backward(self, item: &str) -> bool {
        let range = item.split(['/', '#']).next().unwrap_or(item);
        let Some((start, end)) = range.split_once('-') else {
            return false;
        };
        let number = |value: &str| value.parse().ok().or_else(|| self.number_of(value));
        match (number(start), number(end)) {
            (Some(_), Some(0)) if end == "SUN" => false,
            (Some(start), Some(end)) => start > end,
            _ => false,
        }
    }

    /// The likely meaning of a step that is larger than the field.
    fn instead_of_wide_step(self) -> &'static str {
        match self {
            Field::Second => {
                "a step of 60 or more matches only one second per minute: write `0` to run once a minute, use a step in the minutes, or \
                 use a fixed rate for a period such as 90 seconds"
            }
            Field::Minute => {
                "a step of 60 or more matches only one minute per hour: write `0` to run once an hour, use a step in the hours, as in \
                 `0 */2 * * *`, or use a fixed rate for a period such as 90 minutes"
            }
            Field::Hour => {
                "a step of 24 or more matches only one hour per day: write `0` to run once a day, use a step in the days, as in \
                 `0 0 */2 * *`, or use a fixed rate for a period such as 36 hours"
            }
            Field::DayOfMonth => {
                "a step of 31 or more matches only one day per month: write `1` to run once a month, or use a fixed rate for a period such as 45 days"
            }
            Field::Month => {
                "a step of 12 or more matches only one month per year: write `1` to run once a year"
            }
            Field::DayOfWeek => {
                "a step of 7 or more matches only one day per week: write `SUN` to run once a week, or use a fixed rate for a period such as 10 days"
            }
            Field::Year => "a step of 5000 or more matches only one year: write that year",
        }
    }

    fn values(self) -> &'static str {
        match self {
            Field::Second => "a second must be 0-59, as in `30`, `0,30`, `10-20`, `*/15` or `*`",
            Field::Minute => "a minute must be 0-59, as in `30`, `0,30`, `10-20`, `*/15` or `*`",
            Field::Hour => "an hour must be 0-23, as in `9`, `9,17`, `9-17`, `*/6` or `*`",
            Field::DayOfMonth => {
                "a day of the month must be 1-31, `L` (the last day), `LW` (the last weekday, Monday \
                 to Friday) or `15W` (the weekday nearest to the 15th), as in `1,15`, `1-7`, `*/2` or `*`"
            }
            Field::Month => "a month must be 1-12 or JAN-DEC, as in `1,7`, `MAR-OCT`, `*/3` or `*`",
            Field::DayOfWeek => {
                "a day of the week must be 0-7 (0 and 7 are Sunday) or SUN-SAT, as in `MON-FRI` or \
                 `*`; `FRI#1` to `FRI#5` are the first to the fifth Friday of a month, and `FRIL` is the last"
            }
            Field::Year => "a year must be 1-5000, as in `2030`, `2030-2035`, `2030-2040/2` or `*`",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day of month",
            Field::Month => "month",
            Field::DayOfWeek => "day of week",
            Field::Year => "year",
        })
    }
}

fn is_zero_step(item: &str) -> bool {
    matches!(item.split_once('/'), Some((_, step)) if !step.is_empty() && step.bytes().all(|it| it == b'0'))
}

fn is_step_of_one_value(item: &str) -> bool {
    matches!(item.split_once('/'), Some((start, _)) if start != "*" && !start.contains('-'))
}

/// Whether a list contains `L` and `LW`: croner would read `L,LW` as `LW`.
pub(super) fn has_two_last_days(list: &str) -> bool {
    let has = |last: &str| list.split(',').any(|it| it.eq_ignore_ascii_case(last));
    has("L") && has("LW")
}
