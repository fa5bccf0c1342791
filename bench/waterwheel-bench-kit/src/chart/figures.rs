//! Numbers for readers.

/// Keeps a number on one line.
const NO_BREAK_SPACE: char = '\u{a0}';

/// Two digits or more: `0.85`, `4.65`, `94`, `12 400`. The omitted digits are far smaller than the whiskers.
pub(super) fn figure(value: f64) -> String {
    if value.abs() < 9.995 {
        format!("{value:.2}")
    } else {
        grouped(value)
    }
}

/// Formats a count: `100 000`.
pub fn count(number: usize) -> String {
    grouped(number as f64)
}

/// The short form, if it is exact: `100 k`, `1.1 M`.
pub fn short_count(number: usize) -> String {
    let (size, letter) = match number {
        1_000_000.. => (1_000_000, 'M'),
        _ => (1000, 'k'),
    };
    if number < size || number % (size / 100) != 0 {
        return count(number);
    }
    format!(
        "{}{NO_BREAK_SPACE}{letter}",
        tick(number as f64 / size as f64)
    )
}

/// As few digits as the value has, at most two after the point: for the ticks of an axis.
pub(super) fn tick(value: f64) -> String {
    if value >= 1000.0 {
        return grouped(value);
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A tick of a time axis that spans decades, each in the unit that suits it: `20 µs`, `1 ms`.
pub(super) fn time_tick(nanos: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // A small tolerance: 1e6 may arrive as 999999.9999.
    let found = units.into_iter().find(|(size, _)| nanos >= size * 0.999);
    let (size, unit) = found.unwrap_or((1.0, "ns"));
    format!("{}{NO_BREAK_SPACE}{unit}", tick(nanos / size))
}

fn grouped(value: f64) -> String {
    crate::text::in_groups(&format!("{value:.0}"), NO_BREAK_SPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_two_digits_at_least() {
        let texts = [0.848, 9.994, 9.999, 94.21, 749.4, 12_400.0].map(figure);
        let grouped = format!("12{NO_BREAK_SPACE}400");
        assert_eq!(texts, ["0.85", "9.99", "10", "94", "749", &grouped]);
    }

    #[test]
    fn short_counts_lose_nothing() {
        let texts = [4, 1000, 1234, 600_000, 1_100_000, 10_000_000].map(short_count);
        let texts = texts.map(|text| text.replace(NO_BREAK_SPACE, " "));
        assert_eq!(texts, ["4", "1 k", "1 234", "600 k", "1.1 M", "10 M"]);
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        assert_eq!([0.0, 0.5, 20.0, 250.0].map(tick), ["0", "0.5", "20", "250"]);
        let texts = [20.0, 999_999.999_9, 2e7].map(time_tick);
        assert_eq!(
            texts.map(|t| t.replace(NO_BREAK_SPACE, " ")),
            ["20 ns", "1 ms", "20 ms"]
        );
    }
}
