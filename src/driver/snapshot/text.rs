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
            let (row, timers) = (dial.row(width(slots), most), dial.timers());
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

/// How many characters a row has: one for as many slots in all of it. The slots of each dial have a divisor that is not far below the widest.
fn width(slots: usize) -> usize {
    let width = (1..=WIDEST.min(slots)).rev().find(|it| slots % it == 0);
    width.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn each_character_of_a_row_has_as_many_slots() {
        for (slots, expected) in [
            (10_000, 40),
            (1_000, 40),
            (64, 32),
            (60, 30),
            (24, 24),
            (1, 1),
            (7, 7),
            (0, 1),
        ] {
            assert_eq!(width(slots), expected, "{slots} slots");
        }
    }
}
