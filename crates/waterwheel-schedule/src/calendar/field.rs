use std::fmt;

/// A field of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The second, if there are six fields.
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
    /// The year, with [`ScheduleOptions::years`](super::ScheduleOptions::years).
    Year,
}

impl Field {
    /// In their order.
    pub(super) const ALL: [Field; 7] = [
        Field::Second,
        Field::Minute,
        Field::Hour,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
        Field::Year,
    ];

    /// What to write instead of `text`, which is wrong.
    pub(super) fn advice(self, text: &str) -> &'static str {
        let items = || text.split(',');
        if items().any(str::is_empty) {
            "a list has an item on both sides of each comma"
        } else if items().any(is_zero_step) {
            "a step is 1 or more"
        } else if items().any(is_step_of_one_value) {
            "a step needs a range, as in `*/5` or `10-59/5`"
        } else if items().any(is_backward) {
            "a range goes upwards, so write it in two: `22-23,0-5` instead of `22-5`"
        } else if has_two_last_days(text) {
            "`L` and `LW` are not read in one list, so write two expressions"
        } else {
            self.values()
        }
    }

    fn values(self) -> &'static str {
        match self {
            Field::Second => "a second is 0-59, as in `30`, `0,30`, `10-20`, `*/15` or `*`",
            Field::Minute => "a minute is 0-59, as in `30`, `0,30`, `10-20`, `*/15` or `*`",
            Field::Hour => "an hour is 0-23, as in `9`, `9,17`, `9-17`, `*/6` or `*`",
            Field::DayOfMonth => {
                "a day of the month is 1-31, `L` (the last), `LW` (the last from Monday to Friday) or \
                 `15W` (that which is nearest to the 15th), as in `1,15`, `1-7`, `*/2` or `*`"
            }
            Field::Month => "a month is 1-12 or JAN-DEC, as in `1,7`, `MAR-OCT`, `*/3` or `*`",
            Field::DayOfWeek => {
                "a day of the week is 0-7 (0 and 7 are Sunday) or SUN-SAT, as in `MON-FRI` or `*`, with \
                 `#1` to `#5` for the first to the fifth in a month, and `FRIL` for the last"
            }
            Field::Year => "a year is 1-5000, as in `2030`, `2030-2035`, `2030-2040/2` or `*`",
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

fn is_backward(item: &str) -> bool {
    let range = item.split(['/', '#']).next().unwrap_or(item);
    let Some((start, end)) = range.split_once('-') else {
        return false;
    };
    matches!((start.parse::<u16>(), end.parse::<u16>()), (Ok(start), Ok(end)) if start > end)
}

/// croner takes `L,LW` for `LW`.
pub(super) fn has_two_last_days(list: &str) -> bool {
    let has = |last: &str| list.split(',').any(|it| it.eq_ignore_ascii_case(last));
    has("L") && has("LW")
}
