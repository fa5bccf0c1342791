//! Numbers as blocks.

/// From an eighth to a whole, upwards.
const UPWARDS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// And to the right.
const RIGHTWARDS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// The hand of a dial.
pub(crate) const HAND: char = '▼';

/// A dial as a row of so many characters. Each is a block for the fullest of some slots, on a log scale up to `most`, or the hand.
pub(crate) fn row(counts: &[u64], hand: usize, width: usize, most: u64) -> String {
    let slots = counts.len();
    let slots_of = |cell: usize| {
        let from = cell * slots / width;
        from..((cell + 1) * slots / width).max(from + 1)
    };
    // Where a slot has several characters, the first of them.
    let hand = (0..width).find(|&cell| slots_of(cell).contains(&hand));
    (0..width)
        .map(|cell| match hand == Some(cell) {
            true => HAND,
            false => {
                let fullest = counts.get(slots_of(cell)).and_then(|it| it.iter().max());
                log_block(fullest.copied().unwrap_or(0), most)
            }
        })
        .collect()
}

/// None for 0, the lowest for 1, the highest for `most` and more, and in between by the logarithm.
pub(crate) fn log_block(count: u64, most: u64) -> char {
    if count == 0 {
        return ' ';
    }
    let share = (count as f64).ln() / (most.max(2) as f64).ln();
    UPWARDS[((share * 7.0).round() as usize).min(7)]
}

/// Some values as blocks, the greatest the highest, the last one on the right.
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

/// A share of so many characters, to an eighth of one, rounded up.
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
    use super::{bar, log_block, row, sparkline};

    #[test]
    fn a_block_grows_with_the_logarithm() {
        let blocks = |most, counts: &[u64]| -> String {
            counts.iter().map(|&count| log_block(count, most)).collect()
        };
        assert_eq!(blocks(10_000_000, &[0, 1, 10, 100, 1_000]), " ▁▂▃▄");
        assert_eq!(blocks(10_000_000, &[10_000, 100_000, 1_000_000]), "▅▆▇");
        assert_eq!(blocks(10_000_000, &[10_000_000, u64::MAX]), "██");
        assert_eq!(blocks(1, &[0, 1]), " ▁");
        assert_eq!(blocks(0, &[0]), " ");
    }

    #[test]
    fn a_row_shows_the_fullest_slots_and_the_hand() {
        assert_eq!(row(&[8, 0, 0, 1], 2, 4, 8), "█ ▼▁");
        // More slots than characters, and fewer.
        assert_eq!(row(&[8, 0, 0, 1], 0, 2, 8), "▼▁");
        assert_eq!(row(&[8, 0, 0, 1], 1, 8, 8), "██▼   ▁▁");
        assert_eq!(row(&[8, 1, 0, 8, 1, 0], 5, 4, 8), "█▁█▼");
        assert_eq!(row(&[8, 8], 0, 0, 8), "");
        for (slots, width) in [
            (1, 50),
            (24, 50),
            (60, 50),
            (64, 50),
            (1_000, 50),
            (10_000, 3),
        ] {
            for hand in [0, slots / 2, slots - 1] {
                let row = row(&vec![1; slots], hand, width, 1);
                assert_eq!(row.chars().count(), width);
                assert_eq!(row.matches('▼').count(), 1, "{slots} slots, {hand}");
            }
        }
    }

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
