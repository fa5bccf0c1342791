//! Numbers and times as text.

use std::time::Duration;

/// `1048221` as `1 048 221`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number in at most six characters: `7`, `999`, `1.3 k`, `13 k`, `1.3 M`.
pub(crate) fn short(number: f64) -> String {
    let units = ["", " k", " M", " G", " T"];
    let mut value = number;
    for (at, unit) in units.iter().enumerate() {
        // A value that would round to a thousand uses the next unit.
        if value < 999.5 || at == units.len() - 1 {
            return match at > 0 && value < 9.95 {
                true => format!("{value:.1}{unit}"),
                false => format!("{value:.0}{unit}"),
            };
        }
        value /= 1_000.0;
    }
    unreachable!("the last unit is for all that is left")
}

/// A time in the greatest unit that it reaches, rounded down: `8 s`, `5 m`, `250 µs`.
pub(crate) fn span(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
    ];
    let found = units.iter().find(|unit| nanos >= unit.0);
    found.map_or_else(
        || format!("{nanos} ns"),
        |(length, name)| format!("{} {name}", nanos / length),
    )
}

/// `00:12:31`
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// Milliseconds with two figures: `0.13`, `1.0`, `13`, `131`.
pub(crate) fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1e3;
    match millis {
        ..0.0995 => format!("{millis:.3}"),
        ..0.995 => format!("{millis:.2}"),
        ..9.95 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}

/// The bound of a bucket: `256 µs`, `1.0 ms`.
pub(crate) fn bound(duration: Duration) -> String {
    match duration < Duration::from_millis(1) {
        true => span(duration),
        false => format!("{} ms", millis(duration)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bound, clock, grouped, millis, short, span};

    #[test]
    fn digits_are_grouped_by_three() {
        let texts = ["0", "999", "1 000", "123 456", "1 048 221"];
        assert_eq!([0, 999, 1_000, 123_456, 1_048_221].map(grouped), texts);
    }

    #[test]
    fn a_rate_has_at_most_six_characters() {
        let rates = [
            0.0, 0.6, 999.4, 999.5, 1_300.0, 9_960.0, 13_400.0, 999_499.0, 1e6, 1e15,
        ];
        let texts = [
            "0", "1", "999", "1.0 k", "1.3 k", "10 k", "13 k", "999 k", "1.0 M", "1000 T",
        ];
        assert_eq!(rates.map(short), texts);
        assert!(texts.iter().all(|text| text.len() <= 6));
    }

    #[test]
    fn a_time_has_one_unit() {
        let spans = [0, 999, 1_000, 250_000, 1_500_000, 8_999_999_999].map(Duration::from_nanos);
        assert_eq!(
            spans.map(span),
            ["0 ns", "999 ns", "1 µs", "250 µs", "1 ms", "8 s"]
        );
        let spans = [59, 60, 3_599, 3_600, 86_400, 864_000].map(Duration::from_secs);
        assert_eq!(
            spans.map(span),
            ["59 s", "1 m", "59 m", "1 h", "1 d", "10 d"]
        );
        assert_eq!(clock(Duration::from_secs(751)), "00:12:31");
        assert_eq!(clock(Duration::from_secs(360_000)), "100:00:00");
        let bounds = [64, 128, 1_024, 4_096, 16_384, 131_072].map(Duration::from_micros);
        assert_eq!(
            bounds.map(millis),
            ["0.064", "0.13", "1.0", "4.1", "16", "131"]
        );
        assert_eq!(bounds.map(bound)[..3], ["64 µs", "128 µs", "1.0 ms"]);
    }
}
