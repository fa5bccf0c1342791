//! A figure in a table: three digits, in a suitable unit.

use waterwheel_bench_kit::{Spread, text::in_groups};

/// Stands for a missing figure.
pub(crate) const NONE: &str = "–";
/// Stands for a meaningless figure, since timers fired early or never.
pub(crate) const VOID: &str = "void";

/// The units of time, by length in nanoseconds.
const MS: (&str, f64) = ("ms", 1e6);
const US: (&str, f64) = ("µs", 1e3);
const NS: (&str, f64) = ("ns", 1.0);

/// A value of a metric in this unit.
pub(crate) fn value(value: f64, unit: &str) -> String {
    if value.is_nan() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let (nanos, most_of) = match unit {
        "ns" => (value, MS.1),
        // A lateness of 640 µs is easier to read as 0.64 ms.
        "us" => (value * 1e3, MS.1 / 10.0),
        "ms" => (value * 1e6, 0.0),
        "count" if value.fract() == 0.0 => return in_groups(&format!("{value:.0}"), ' '),
        "count" => return digits(value),
        "calls/s" if value >= 1e6 => return format!("{} million", digits(value / 1e6)),
        "calls/s" => return digits(value),
        _ => return format!("{} {unit}", digits(value)),
    };
    let (unit, length) = match nanos {
        _ if nanos >= most_of => MS,
        _ if nanos >= 10.0 * US.1 => US,
        _ => NS,
    };
    format!("{} {unit}", digits(nanos / length))
}

/// Formats how many times better it is.
pub(crate) fn times(Spread { median, min, max }: Spread) -> String {
    if median.is_nan() {
        return NONE.to_owned();
    }
    if min == max {
        return digits(median);
    }
    format!("{} ({}–{})", digits(median), digits(min), digits(max))
}

/// The figures of both, with the winner in bold. There is no winner if the range of the ratio includes 1.
pub(crate) fn winner([theirs, ours]: [String; 2], times: Spread) -> [String; 2] {
    if times.min > 1.0 {
        [theirs, format!("**{ours}**")]
    } else if times.max < 1.0 {
        [format!("**{theirs}**"), ours]
    } else {
        [theirs, ours]
    }
}

/// Three digits or more: `0.85`, `94.2`, `12 400`.
fn digits(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => in_groups(&format!("{value:.0}"), ' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_the_unit_that_suits_them() {
        let shown = [
            value(0.0, "us"),
            value(3.456, "count"),
            value(949.4, "ns"),
            value(12_400.0, "ns"),
            value(103_000.0, "ns"),
            value(640.0, "us"),
            value(64.0, "us"),
            value(1032.4, "ms"),
            value(3_040_000.0, "calls/s"),
            value(49_876.5, "calls/s"),
            value(72.9, "bytes"),
            value(f64::NAN, "ns"),
        ];
        let expected = [
            "0",
            "3.46",
            "949 ns",
            "12.4 µs",
            "103 µs",
            "0.64 ms",
            "64.0 µs",
            "1 032 ms",
            "3.04 million",
            "49 876",
            "72.9 bytes",
            "–",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_winner_is_in_bold_whoever_it_is() {
        let cells = |min, max| {
            let median = 1.0;
            winner(
                ["5 ns", "4 ns"].map(str::to_owned),
                Spread { median, min, max },
            )
        };
        assert_eq!(cells(1.01, 2.0), ["5 ns", "**4 ns**"]);
        assert_eq!(cells(0.5, 0.99), ["**5 ns**", "4 ns"]);
        assert_eq!(cells(0.9, 1.1), ["5 ns", "4 ns"]);
    }

    #[test]
    fn a_ratio_has_its_range_unless_all_pairs_agree() {
        let spread = |median, min, max| Spread { median, min, max };
        assert_eq!(times(spread(0.99, 0.5, 12.34)), "0.99 (0.50–12.3)");
        assert_eq!(times(spread(1.5, 1.5, 1.5)), "1.50");
        assert_eq!(times(spread(f64::NAN, 0.0, 0.0)), "–");
    }
}
