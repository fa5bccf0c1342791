//! A dial as a row of blocks.

use super::DialSnapshot;

const HAND: char = '▼';
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl DialSnapshot {
    /// Draws the dial as a row of `width` characters, starting at slot 0: blocks for the number of timers in a slot, and `▼` for
    /// the hand.
    ///
    /// A slot without timers is a space, one timer is `▁`, and `most` timers or more are `█`. The blocks in between follow the
    /// logarithm of the count. Dials that are drawn with the same `most` can be compared.
    ///
    /// If there are more slots than characters, each character shows the fullest of its slots, or the hand if that stands at one
    /// of them. If there are fewer, a slot takes several characters, and the hand is in the first of them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), waterwheel::error::BuildError> {
    /// use waterwheel::{Duration, ManualClock, Timer};
    ///
    /// let timer = Timer::builder().clock(ManualClock::new()).start()?;
    /// for hours in [1, 1, 2, 5] {
    ///     tokio::spawn(timer.sleep(Duration::from_secs(hours * 3600)));
    /// }
    /// tokio::task::yield_now().await;
    ///
    /// let snapshot = timer.snapshot();
    /// assert_eq!(snapshot.dials()[3].row(24, 2), "▼ ▁  ▁                  ");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn row(&self, width: usize, most: u64) -> String {
        let (slots, counts) = (self.slots(), self.counts());
        let slots_of = |cell: usize| {
            let from = cell * slots / width;
            from..((cell + 1) * slots / width).max(from + 1)
        };
        let hand = (0..width).find(|&cell| slots_of(cell).contains(&self.hand()));
        (0..width)
            .map(|cell| match hand == Some(cell) {
                true => HAND,
                false => {
                    let fullest = counts[slots_of(cell)].iter().max();
                    block(fullest.copied().unwrap_or(0), most)
                }
            })
            .collect()
    }
}

fn block(count: u64, most: u64) -> char {
    if count == 0 {
        return ' ';
    }
    // Of the least, the logarithm is zero.
    let share = (count as f64).ln() / (most.max(2) as f64).ln();
    BLOCKS[((share * 7.0).round() as usize).min(7)]
}

#[cfg(test)]
mod tests {
    use super::{DialSnapshot, block};

    fn row(counts: &[u64], hand: usize, width: usize, most: u64) -> String {
        DialSnapshot::of_counts(hand, counts).row(width, most)
    }

    #[test]
    fn a_block_grows_with_the_logarithm() {
        let blocks = |most, counts: &[u64]| -> String {
            counts.iter().map(|&count| block(count, most)).collect()
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
        let mut counts = [0; 1_000];
        counts[26] = 100;
        counts[49] = 1;
        let expected = format!(" █{}▼", " ".repeat(37));
        assert_eq!(row(&counts, 999, 40, 100), expected);
    }

    #[test]
    fn a_row_has_its_width_and_one_hand() {
        for slots in [1, 24, 60, 64, 1_000, 10_000] {
            for width in [1, 3, 50, 64, 300] {
                for hand in [0, slots / 2, slots - 1] {
                    let row = row(&vec![1; slots], hand, width, 1);
                    assert_eq!(row.chars().count(), width);
                    assert_eq!(row.matches('▼').count(), 1, "{slots} slots, {hand}");
                }
            }
        }
    }
}
