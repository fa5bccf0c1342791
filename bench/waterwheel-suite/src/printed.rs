//! Extracts figures from the report that another program prints for its users.

/// The figure of the first line that begins with this label, such as 1234.5 of `calls a second   1 234.5 calls`. NaN if
/// there is a dash instead.
///
/// # Errors
///
/// If the label has no figure in this unit. The error names the label.
pub fn printed(report: &str, label: &str, unit: &str) -> Result<f64, String> {
    let mut lines = report.lines().map(str::trim);
    let text = lines
        .find_map(|line| line.strip_prefix(label)?.strip_prefix(' '))
        .ok_or_else(|| format!("its report has no line {label:?}"))?
        .trim();
    if text == "–" {
        return Ok(f64::NAN);
    }
    let figure = text
        .strip_suffix(unit)
        .map(|digits| digits.replace(' ', ""));
    figure
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("its report has {text:?} as {label:?}, and no figure in {unit:?}"))
}

#[cfg(test)]
mod tests {
    use super::printed;

    const REPORT: &str = "\
slice               calls/s    CPU a call  late by: p50          p99
    1  tokio::time   50 000      17.00 µs       1.00 ms      2.00 ms

median of the slices                tokio::time
CPU time a call                        17.42 µs
calls a second                           51 234
lateness of the timeouts, p50           1.08 ms
                          p99                 –
timers fired                       many
";

    #[test]
    fn a_figure_is_found_by_its_label_and_a_dash_is_one_that_is_not_known() {
        for (label, unit, figure) in [
            ("CPU time a call", "µs", 17.42),
            ("calls a second", "", 51_234.0),
            ("lateness of the timeouts, p50", "ms", 1.08),
        ] {
            assert_eq!(printed(REPORT, label, unit), Ok(figure));
        }
        assert!(printed(REPORT, "p99", "ms").is_ok_and(f64::is_nan));
    }

    #[test]
    fn what_is_missing_is_an_error_and_never_zero() {
        for (label, unit) in [
            ("p999", ""),
            ("calls", "ms"),
            ("CPU time a call", "ms"),
            ("timers fired", ""),
            ("lateness", ""),
        ] {
            let error = printed(REPORT, label, unit).expect_err(label);
            assert!(error.contains(label), "{error}");
        }
        assert!(printed("", "p50", "").is_err());
    }
}
