//! The inside of a `Timer`: its dials, hands and slots, and how many timers each slot has.
//!
//! A [`Snapshot`] is of the whole `Timer`, a [`ShardSnapshot`] of one wheel, and a [`DialSnapshot`] of one dial, which is drawn as a row of
//! blocks.
//!
//! `driver/shard` reads it off a shard.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::wheel::{DIAL_COUNT, DialCounts, Resolution, SlotCounts, Standing, Tick};

/// A copy of the inside of a [`Timer`](crate::Timer): its dials, their hands, and the number of timers in each slot. Returned by
/// [`Timer::snapshot`](crate::Timer::snapshot).
///
/// A snapshot does not change after it was taken. `Display` writes it as a few lines of plain text.
///
/// # Consistency
///
/// A shard's lock is released from time to time while its timers are counted. Therefore:
///
/// - [`now`](Snapshot::now) is read first. All counts are as seen from it: a timer counts in the slot in which it would be filed
///   if the hand stood there.
/// - For each shard, the [hands](DialSnapshot::hand), the [occupied slots](DialSnapshot::is_occupied), the number of
///   [pending](ShardSnapshot::pending) timers and the [next expiration](ShardSnapshot::next_expiration) are from the same moment,
///   after `now`.
/// - A timer that is pending the whole time while its shard is counted is counted once. A timer that is armed, fires or is
///   cancelled meanwhile is counted once or not at all. A timer that is moved meanwhile is counted by its old deadline or by its
///   new one. So the [counts](DialSnapshot::counts), together with the [due](ShardSnapshot::due) and the
///   [beyond](ShardSnapshot::beyond) timers, may add up to more or less than the number of pending timers. If nothing happens
///   meanwhile, they add up exactly.
/// - The shards are visited one after the other.
///
/// # Slots and counts
///
/// A slot is occupied if a timer is filed in it, whereas the counts depend on the deadlines alone. The two differ for a timer
/// that was filed long ago: it stays on its dial until its slot comes up, but is counted on the lower dial that now reaches its
/// deadline. They also differ for a timer that was postponed: it stays in the slot of its old deadline, but is counted by its
/// current one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), waterwheel::error::BuildError> {
/// use waterwheel::{Duration, Timer};
///
/// let timer = Timer::builder().name("requests").start()?;
/// for _ in 0..10 {
///     tokio::spawn(timer.sleep(Duration::from_secs(30)));
/// }
/// tokio::task::yield_now().await;
///
/// let snapshot = timer.snapshot();
/// assert_eq!((snapshot.pending(), snapshot.due(), snapshot.beyond()), (10, 0, 0));
/// let seconds = &snapshot.dials()[1];
/// assert_eq!((seconds.slot_length(), seconds.timers()), (Duration::from_secs(1), 10));
/// println!("{snapshot}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    name: Option<Box<str>>,
    resolution: Duration,
    now: Instant,
    figures: Figures,
    shards: Vec<ShardSnapshot>,
}

impl Snapshot {
    /// The snapshot of a `Timer`, seen from `now`, which is in the tick `tick`, made of its shards, each with its number.
    pub(super) fn of(
        name: Option<&str>,
        resolution: Resolution,
        (now, tick): (Instant, Tick),
        looks: impl IntoIterator<Item = (usize, Look)>,
    ) -> Snapshot {
        let (mut all, mut shards) = (Look::nothing(resolution, tick), Vec::new());
        for (number, look) in looks {
            all.add(&look);
            shards.push(ShardSnapshot::of(number, &look));
        }
        shards.sort_by_key(ShardSnapshot::number);
        Snapshot {
            name: name.map(Box::from),
            resolution: resolution.tick(),
            now,
            figures: Figures::of(&all),
            shards,
        }
    }

    /// Returns the name that the timer was built with.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the length of one tick.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.resolution
    }

    /// Returns when the snapshot was taken, by the [timer's clock](crate::Timer::now). All counts are as seen from this instant.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of pending timers in all shards: the sum of [`ShardSnapshot::pending`].
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.figures.pending
    }

    /// Returns how many timers of all shards were due at [`now`](Snapshot::now) and had not been served yet: the driver's
    /// backlog.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.figures.due
    }

    /// Returns how many timers of all shards lie beyond the last dial, 64 days or more ahead.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.figures.beyond
    }

    /// Returns when a shard must be turned next, or `None` if no timer is pending.
    ///
    /// This may be before the earliest deadline: when a slot of a dial above the first comes up, its timers are filed again. It
    /// is before [`now`](Snapshot::now) if the driver is late.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        self.figures.next_expiration
    }

    /// Returns the time from [`now`](Snapshot::now) to the [next expiration](Snapshot::next_expiration): zero if that has passed,
    /// and `None` if no timer is pending.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let next = self.next_expiration()?;
        Some(next.saturating_duration_since(self.now))
    }

    /// Returns the five dials with the timers of all shards, the lowest first: ticks, seconds, minutes, hours, days.
    ///
    /// The hands stand at [`now`](Snapshot::now). A slot is occupied if it is occupied in any shard.
    #[must_use]
    pub fn dials(&self) -> &[DialSnapshot] {
        &self.figures.dials
    }

    /// Returns the shards in use. A shard is created when a thread first needs it, and a stopped timer has none.
    #[must_use]
    pub fn shards(&self) -> &[ShardSnapshot] {
        &self.shards
    }
}

/// One dial in a [`Snapshot`], of a single shard or of all shards together.
///
/// A slot covers one unit of the dial's time. With the hand at slot `h` of `n`, slot `h + 1` comes up next, and slot 0 follows
/// slot `n - 1`. The hand's own slot comes up last, one revolution ahead.
///
/// `Debug` shows totals instead of the slots, of which there are up to 10 000.
#[derive(Clone, PartialEq, Eq)]
pub struct DialSnapshot {
    slot_length: Duration,
    hand: usize,
    occupied: Box<[bool]>,
    counts: Box<[u64]>,
}

impl DialSnapshot {
    /// All dials of a wheel.
    fn all(counts: &SlotCounts, standing: &Standing) -> Box<[DialSnapshot]> {
        counts.dials(standing).map(DialSnapshot::new).collect()
    }

    fn new(dial: DialCounts<'_>) -> DialSnapshot {
        DialSnapshot {
            slot_length: dial.length,
            hand: dial.hand,
            occupied: dial.occupied.into(),
            counts: dial.counts.into(),
        }
    }

    /// Returns how much time one slot covers: one tick on the lowest dial, then a second, a minute, an hour and a day.
    #[must_use]
    pub fn slot_length(&self) -> Duration {
        self.slot_length
    }

    /// Returns the number of slots: the number of ticks per second on the lowest dial, then 60, 60, 24 and 64.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.counts.len()
    }

    /// Returns the slot at which the hand stands, counted from zero.
    #[must_use]
    pub fn hand(&self) -> usize {
        self.hand
    }

    /// Returns whether a timer is filed in this slot.
    ///
    /// # Panics
    ///
    /// Panics if the dial has no such slot.
    #[must_use]
    #[track_caller]
    pub fn is_occupied(&self, slot: usize) -> bool {
        self.occupied[slot]
    }

    /// Returns how many timers are counted in each slot. The first entry is slot 0, wherever the hand stands.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns how many timers are counted on the dial.
    #[must_use]
    pub fn timers(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl fmt::Debug for DialSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let occupied = self.occupied.iter().filter(|is_occupied| **is_occupied);
        f.debug_struct("DialSnapshot")
            .field("slot_length", &self.slot_length)
            .field("hand", &self.hand)
            .field("slots", &self.slots())
            .field("occupied", &occupied.count())
            .field("timers", &self.timers())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl DialSnapshot {
    /// A dial of seconds. A slot with a timer is occupied.
    fn of_counts(hand: usize, counts: &[u64]) -> DialSnapshot {
        DialSnapshot {
            slot_length: Duration::from_secs(1),
            hand,
            occupied: counts.iter().map(|count| *count > 0).collect(),
            counts: counts.into(),
        }
    }
}

/// The wheel of one shard, or the sum of several.
pub(in crate::driver) struct Look {
    pub(in crate::driver) pending: usize,
    pub(in crate::driver) next_expiration: Option<Instant>,
    pub(in crate::driver) standing: Standing,
    pub(in crate::driver) counts: SlotCounts,
}

impl Look {
    /// No wheel yet, seen from this tick.
    fn nothing(resolution: Resolution, tick: Tick) -> Look {
        Look {
            pending: 0,
            next_expiration: None,
            standing: Standing::at(resolution, tick),
            counts: SlotCounts::at(resolution, tick),
        }
    }

    /// Adds another wheel. The hand stays.
    fn add(&mut self, other: &Look) {
        self.pending += other.pending;
        let next = [self.next_expiration, other.next_expiration];
        self.next_expiration = next.into_iter().flatten().min();
        self.standing.add_slots(&other.standing);
        self.counts.add_all(&other.counts);
    }
}

/// The figures of one shard, or of all.
#[derive(Debug, Clone)]
struct Figures {
    pending: u64,
    due: u64,
    beyond: u64,
    next_expiration: Option<Instant>,
    dials: Box<[DialSnapshot]>,
}

impl Figures {
    fn of(look: &Look) -> Figures {
        Figures {
            pending: look.pending as u64,
            due: look.counts.due(),
            beyond: look.counts.beyond(),
            next_expiration: look.next_expiration,
            dials: DialSnapshot::all(&look.counts, &look.standing),
        }
    }
}

// A dial as a row of blocks.

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
    // The logarithm of the least count is zero.
    let share = (count as f64).ln() / (most.max(2) as f64).ln();
    BLOCKS[((share * 7.0).round() as usize).min(7)]
}

/// One shard in a [`Snapshot`]: a wheel with a lock of its own.
#[derive(Debug, Clone)]
pub struct ShardSnapshot {
    number: usize,
    figures: Figures,
}

impl ShardSnapshot {
    fn of(number: usize, look: &Look) -> ShardSnapshot {
        ShardSnapshot {
            number,
            figures: Figures::of(look),
        }
    }

    /// Returns the number of this shard within its timer, counted from zero and less than
    /// [`Timer::shards`](crate::Timer::shards).
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of pending timers.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.figures.pending
    }

    /// Returns how many timers were due and had not been served yet. See [`Snapshot::due`](crate::Snapshot::due).
    #[must_use]
    pub fn due(&self) -> u64 {
        self.figures.due
    }

    /// Returns how many timers lie beyond the last dial. See [`Snapshot::beyond`](crate::Snapshot::beyond).
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.figures.beyond
    }

    /// Returns when the shard must be turned next. See [`Snapshot::next_expiration`](crate::Snapshot::next_expiration).
    #[must_use]
    pub fn next_expiration(&self) -> Option<Instant> {
        self.figures.next_expiration
    }

    /// Returns the five dials, the lowest first: ticks, seconds, minutes, hours, days.
    ///
    /// The hands stand where the shard's wheel stands. They lag behind the clock while nothing comes up, because an idle shard is
    /// not turned.
    #[must_use]
    pub fn dials(&self) -> &[DialSnapshot] {
        &self.figures.dials
    }
}

// A snapshot as plain text: a line for the `Timer`, and one for each dial and shard.
//
// ```text
// timer "requests": 100 pending, 0 due, 0 beyond the dials, next expiration in 29s, tick 1ms
// tick   417/1000                     ▼                            0
// second  30/60                  ▼             ▆                 100
// …
// shard 0: 100 pending, next expiration in 29s
// ```

const NAMES: [&str; DIAL_COUNT] = ["tick", "second", "minute", "hour", "day"];

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

/// The number of characters in a row, each for the same number of slots. The slots of each dial have a divisor that is not far below the widest.
fn width(slots: usize) -> usize {
    let width = (1..=WIDEST.min(slots)).rev().find(|it| slots % it == 0);
    width.unwrap_or(1)
}

#[cfg(test)]
mod row_tests {
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

#[cfg(test)]
mod text_tests {
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
