//! Translates an expression to croner's syntax: the fields are counted and checked, and names become numbers.
//!
//! croner replaces names wherever they occur, even in `MON * * * *` and `0 0 1 JAN2 *`, reads an empty list as "no value", and does not name
//! the field in its errors. So each value is checked here, and if croner still refuses an expression, its fields are tried one by one.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::error::{MAX_LENGTH, ScheduleError};
use super::field::{Field, has_two_last_days};

/// The seven fields in croner's spelling, in the order of [`Field::ALL`].
#[derive(Debug)]
pub(super) struct Fields([String; 7]);

impl Fields {
    /// Parses an expression. `years` allows a seventh field, and `wide_steps` a step that is as large as its field.
    pub(super) fn read(
        expression: &str,
        years: bool,
        wide_steps: bool,
    ) -> Result<(Fields, Cron), ScheduleError> {
        let expression = expression.trim();
        if expression.is_empty() {
            return Err(ScheduleError::Empty);
        }
        if expression.len() > MAX_LENGTH {
            let length = expression.len();
            return Err(ScheduleError::TooLong { length });
        }
        if let Some(character) = expression.chars().find(|it| !it.is_ascii()) {
            return Err(ScheduleError::NotAscii { character });
        }
        let expression = if expression.starts_with('@') {
            expand_nickname(expression)?
        } else {
            expression
        };
        let given: Vec<&str> = expression.split_ascii_whitespace().collect();
        let all = match *given {
            [m, h, day, month, weekday] => ["0", m, h, day, month, weekday, "*"],
            [s, m, h, day, month, weekday] => [s, m, h, day, month, weekday, "*"],
            [s, m, h, day, month, weekday, year] if years => [s, m, h, day, month, weekday, year],
            _ => {
                let found = given.len();
                return Err(ScheduleError::FieldCount { found });
            }
        };
        let wrong = |index: usize| ScheduleError::Field {
            field: Field::ALL[index],
            text: all[index].into(),
            advice: Field::ALL[index].advice(all[index]),
        };
        let mut fields = Fields::all_wildcards();
        for (index, field) in Field::ALL.into_iter().enumerate() {
            let is_refused = !wide_steps && field.has_wide_step(all[index]);
            match in_numbers(field, all[index]).filter(|_| !is_refused) {
                Some(plain) => fields.0[index] = plain,
                // croner may refuse an earlier field, and the error names the first.
                None => return Err(wrong(fields.first_wrong().unwrap_or(index))),
            }
        }
        match fields.parse() {
            Some(cron) => Ok((fields, cron)),
            None => Err(wrong(fields.first_wrong().unwrap_or_default())),
        }
    }

    fn all_wildcards() -> Fields {
        Fields(std::array::from_fn(|_| "*".to_owned()))
    }

    /// Parses the fields with croner.
    fn parse(&self) -> Option<Cron> {
        let parser = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Required)
            .dom_and_dow(self.is_either_day_starred())
            .build();
        parser.parse(&self.0.join(" ")).ok()
    }

    /// Whether the times of day are fixed: no wildcard and no step in the minute and the hour.
    pub(super) fn are_fixed_times(&self) -> bool {
        let [_, minute, hour, ..] = &self.0;
        !minute.contains(['*', '/']) && !hour.contains(['*', '/'])
    }

    pub(super) fn has_years(&self) -> bool {
        self.0[6] != "*"
    }

    /// crontab(5): a day must match either field if both are restricted, and a field that begins with `*` is not restricted. croner applies
    /// this to `*` by itself; with `*/2`, it must be told that a day has to match both fields.
    fn is_either_day_starred(&self) -> bool {
        self.0[3].starts_with('*') || self.0[5].starts_with('*')
    }

    /// The first field that croner refuses, with `*` in all others. croner parses each field by itself, so there is one.
    fn first_wrong(&self) -> Option<usize> {
        (0..self.0.len()).find(|index| {
            let mut alone = Fields::all_wildcards();
            alone.0[*index].clone_from(&self.0[*index]);
            alone.parse().is_none()
        })
    }
}

fn expand_nickname(nickname: &str) -> Result<&'static str, ScheduleError> {
    Ok(match &*nickname.to_ascii_lowercase() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let nickname = nickname.into();
            return Err(ScheduleError::UnknownNickname { nickname });
        }
    })
}

/// Replaces the names in a field by numbers. Returns `None` if one of its values has no meaning there.
fn in_numbers(field: Field, text: &str) -> Option<String> {
    let text = text.to_ascii_uppercase();
    let mut rest = text.as_str();
    let mut plain = String::with_capacity(rest.len());
    match field {
        Field::DayOfMonth | Field::DayOfWeek if rest == "?" => return Some("*".to_owned()),
        Field::DayOfMonth if has_two_last_days(rest) => return None,
        Field::DayOfWeek => {
            if let Some(both) = rest.strip_prefix('+') {
                plain.push('+');
                rest = both;
            }
        }
        _ => {}
    }
    let (mut before, mut start) = (',', "");
    loop {
        let (value, after) = rest.split_at(rest.find([',', '-', '/', '#']).unwrap_or(rest.len()));
        match before {
            '-' if field == Field::DayOfWeek && is_sunday_alone(start, value) => {
                // The end becomes the same number as the start.
                plain.push_str(if start == "7" { "7" } else { "0" });
            }
            _ => push_number(&mut plain, field, before, value)?,
        }
        start = value;
        let Some(next) = after.chars().next() else {
            return Some(plain);
        };
        plain.push(next);
        before = next;
        rest = &after[1..];
    }
}

/// Adds one value after the character `before`: a comma at the start of each item, or the sign of a range, a step or an nth weekday.
fn push_number(plain: &mut String, field: Field, before: char, value: &str) -> Option<()> {
    if is_number(value) {
        plain.push_str(value);
        return Some(());
    }
    let is_first = before == ',';
    match field {
        _ if value == "*" && is_first => plain.push('*'),
        Field::DayOfMonth if is_first => {
            let is_known = matches!(value, "L" | "LW") || is_number(value.strip_suffix('W')?);
            is_known.then(|| plain.push_str(value))?;
        }
        Field::Month if is_first || before == '-' => {
            plain.push_str(&field.number_of(value)?.to_string());
        }
        Field::DayOfWeek if before == '#' && value == "L" => plain.push('L'),
        Field::DayOfWeek if is_first || before == '-' => {
            let (name, last) = match value.strip_suffix('L') {
                Some(name) if is_first => (name, "L"),
                _ => (value, ""),
            };
            match field.number_of(name) {
                // The Sunday at the end of a week.
                Some(0) if before == '-' => plain.push('7'),
                Some(weekday) => plain.push_str(&weekday.to_string()),
                None if is_number(name) => plain.push_str(name),
                None => return None,
            }
            plain.push_str(last);
        }
        _ => return None,
    }
    Some(())
}

/// Whether a range of weekdays begins and ends with Sunday, at least once by name. `0-7` is a whole week.
fn is_sunday_alone(start: &str, end: &str) -> bool {
    let is_sunday = |value| ["0", "7", "SUN"].contains(&value);
    is_sunday(start) && is_sunday(end) && (start == "SUN" || end == "SUN")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}
