//! A snapshot as plain text: a line for the `Timer`, and one for each dial and shard.
//!
//! ```text
//! timer "requests": 100 pending, 0 due, 0 beyond the dials, next expiration in 29s, tick 1ms
//! tick   417/1000                     ▼                            0
//! second  30/60                  ▼             ▆                 100
//! …
//! shard 0: 100 pending, next expiration in 29s
//! ```

use std::fmt;
use std::time::Duration;

use super::{DialSnapshot, Snapshot};

const NAMES: [&str; 5] = ["tick", "second", "minute", "hour", "day"];

/// The characters of a row at most.
const WIDEST: usize = 40;

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "timer {name:?}: ")?,
            None => write!(f, "timer: ")?,
        }
        let (due, beyond) = (self.due(), self.beyond());
        write!(
            f,
            "{} pending, {due} due, {beyond} beyond the dials, ",
            self.pending()
        )?;
        write_next(f, self.time_left())?;
        writeln!(f, ", tick {:?}", self.resolution())?;
        let most = self.dials().iter().flat_map(DialSnapshot::counts).max();
        let most = most.copied().unwrap_or(0);
        for (name, dial) in NAMES.iter().zip(self.dials()) {
            let (hand, slots) = (dial.hand(), dial.slots());
            let (row, timers) = (row(dial, most), dial.timers());
            writeln!(
                f,
                "{name:<6} {hand:>5}/{slots:<5} {row:<WIDEST$} {timers:>10}"
            )?;
        }
        for shard in self.shards() {
            let (number, pending) = (shard.number(), shard.pending());
            write!(f, "shard {number}: {pending} pending, ")?;
            let next = shard.next_expiration();
            write_next(
                f,
                next.map(|next| next.saturating_duration_since(self.now())),
            )?;
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_next(f: &mut fmt::Formatter<'_>, left: Option<Duration>) -> fmt::Result {
    match left {
        Some(left) => write!(f, "next expiration in {left:?}"),
        None => write!(f, "no next expiration"),
    }
}

/// A character for some slots of a dial: how many timers the fullest of them has, on a log scale up to `most`; or the hand.
fn row(dial: &DialSnapshot, most: u64) -> String {
    let slots = dial.slots();
    // As many slots a character in all of the row. The slots of each dial have a divisor that is not far below the widest.
    let width = (1..=WIDEST.min(slots)).rev().find(|it| slots % it == 0);
    let each = slots / width.unwrap_or(1);
    let cells = dial.counts().chunks(each.max(1));
    cells
        .enumerate()
        .map(|(cell, counts)| match dial.hand() / each == cell {
            true => '▼',
            false => block(counts.iter().copied().max().unwrap_or(0), most),
        })
        .collect()
}

/// A block for a count: none for 0, the lowest for 1, the highest for `most`, and in between by its logarithm.
fn block(count: u64, most: u64) -> char {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if count == 0 {
        return ' ';
    }
    // Of the least, the logarithm is zero.
    let share = (count as f64).ln() / (most.max(2) as f64).ln();
    BLOCKS[((share * 7.0).round() as usize).min(7)]
}

#[cfg(test)]
mod tests {
    use super::{DialSnapshot, block, row};

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
    fn a_row_has_the_hand_as_a_character_and_the_fullest_slots() {
        let dial = |hand, counts: &[u64]| DialSnapshot::of_counts(hand, counts);
        assert_eq!(row(&dial(1, &[0, 8, 1, 8]), 8), " ▼▁█");
        let mut counts = [0; 1_000];
        counts[26] = 100;
        counts[49] = 1;
        assert_eq!(
            row(&dial(999, &counts), 100),
            format!(" █{}▼", " ".repeat(37))
        );
        for (slots, width) in [
            (10_000, 40),
            (1_000, 40),
            (64, 32),
            (60, 30),
            (24, 24),
            (1, 1),
            (7, 7),
        ] {
            let row = row(&dial(0, &vec![1; slots]), 1);
            assert_eq!(row.chars().count(), width, "{slots} slots");
        }
    }
}
