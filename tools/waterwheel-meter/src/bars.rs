//! Numbers as blocks. The snapshot draws those of a dial: [`DialSnapshot::row`](waterwheel::DialSnapshot::row).

/// Blocks from an eighth to a whole, growing upwards.
const UPWARDS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Blocks from an eighth to a whole, growing to the right.
const RIGHTWARDS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Some values as blocks, the greatest one being the highest, and the last one on the right.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let block = |value: f64| match value > 0.0 {
        true => UPWARDS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => ' ',
    };
    let blocks: String = shown.iter().map(|value| block(*value)).collect();
    " ".repeat(width - shown.len()) + &blocks
}

/// A share of this width in characters, to an eighth of one, rounded up.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).ceil() as usize;
    let whole = "█".repeat(eighths / 8);
    match eighths % 8 {
        0 => whole,
        part => whole + &RIGHTWARDS[part - 1].to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, sparkline};

    #[test]
    fn a_sparkline_ends_with_the_last_value() {
        assert_eq!(sparkline(&[], 3), "   ");
        assert_eq!(sparkline(&[0.0, 0.0], 3), "   ");
        assert_eq!(sparkline(&[1.0, 4.0, 8.0], 5), "  ▁▄█");
        assert_eq!(sparkline(&[8.0, 0.001, 2.0], 2), "▁█");
        assert_eq!(sparkline(&[8.0], 0), "");
    }

    #[test]
    fn a_bar_has_eighths_of_characters() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.001, 4), "▏");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.625, 4), "██▌");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(0.5, 0), "");
    }
}
