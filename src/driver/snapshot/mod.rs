//! What a `Timer` looks like inside: its dials, hands and slots, and how many timers each slot has.
//!
//! | file | concept |
//! |---|---|
//! | this one | [`Snapshot`]: the whole `Timer` |
//! | `shard` | [`ShardSnapshot`]: one wheel |
//! | `dial` | [`DialSnapshot`]: one dial |
//! | `figures` | what a shard shows of itself, and all of them together |
//! | `row` | a dial as a row of blocks |
//! | `text` | all of it as text |
//!
//! `driver/shard/look` reads it off a shard.

mod dial;
mod figures;
mod row;
mod shard;
mod text;

pub use dial::DialSnapshot;
use figures::Figures;
pub(super) use figures::Look;
pub use shard::ShardSnapshot;

use std::time::Duration;

use tokio::time::Instant;

use crate::wheel::{Resolution, Tick};

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
    /// Of a `Timer`, seen from `now`, which is in the tick `tick`: what its shards show of themselves, each with its number.
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
