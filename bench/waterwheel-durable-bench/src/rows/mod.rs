//! The rows, one file for each kind.

mod burst;
mod cancel;
mod day;
mod idle;
mod insert;
mod keyed;
mod limited;
mod outage;
mod pending;
mod rate;
mod restart;
mod retention;
mod spread;
mod steady;
mod syncs;

use crate::place::{PAYLOAD, Place, Played};
use crate::policies::Policies::{self, Off, On};
use File::New;
use Play::*;
use Rounds::{All, Before, Few, Once};
use limited::Backlog;
use retention::Keys;

const KB: usize = 1 << 10;
const BURST: usize = 200_000;

/// The measurement of one round.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) file: File,
    pub(crate) rounds: Rounds,
    /// Whether the timers are in PostgreSQL.
    pub(crate) in_postgres: bool,
    play: Play,
}

/// How a round is played.
#[derive(Clone, Copy)]
enum Play {
    /// The number of callers, and the length of the payloads in bytes.
    Insert(usize, Policies, usize),
    /// The number of days that the due times are spread over.
    Spread(u32),
    Life(u32),
    Cancel,
    CancelPending,
    /// The number of handlers.
    Burst(usize, Policies),
    OverdueBurst(usize),
    /// The number of timers, and the length of their payloads in bytes.
    LargeBurst(usize, usize),
    Keyed,
    KeyedFile,
    Limited(Backlog),
    Outage(outage::Outage),
    Retention(Keys),
    Syncs,
    Pending,
    Idle,
    Day,
    Overdue,
    Restart,
    /// The number of inserts a second, and how many of them there are for each that is due soon.
    Steady(u32, usize, Policies),
    Snapshot,
    Churn,
}

impl Row {
    pub(crate) async fn play(&self, place: Place) -> Played {
        match self.play {
            Insert(callers, policies, payload) => {
                insert::play(place, callers, policies, payload).await
            }
            Spread(days) => spread::play(place, days, false).await,
            Life(days) => spread::play(place, days, true).await,
            Cancel => cancel::recent(place).await,
            CancelPending => cancel::pending(place).await,
            Burst(handlers, policies) => {
                burst::play(place, BURST, handlers, PAYLOAD, policies, false).await
            }
            OverdueBurst(handlers) => burst::play(place, BURST, handlers, PAYLOAD, Off, true).await,
            LargeBurst(timers, payload) => burst::play(place, timers, 1, payload, Off, false).await,
            Keyed => keyed::play(place).await,
            KeyedFile => keyed::prepare(place).await,
            Limited(backlog) => limited::play(place, backlog).await,
            Outage(outage) => outage::play(place, outage).await,
            Retention(keys) => retention::play(place, keys).await,
            Syncs => syncs::play(place).await,
            Pending => pending::play(place).await,
            Idle => idle::play(place).await,
            Day => day::play(place).await,
            Overdue => restart::prepare(place).await,
            Restart => restart::play(place).await,
            Steady(inserts, soon, policies) => steady::play(place, inserts, soon, policies).await,
            Snapshot => rate::snapshot(place).await,
            Churn => rate::churn(place).await,
        }
    }
}

/// The file that holds the timers of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    /// A new file for each round.
    New,
    /// The file with millions of pending timers, which is built once in a run.
    Pending,
    /// The file of `Pending`, after all rounds of the rows that let its time pass. These rows insert and cancel more.
    Grown,
    /// The file with millions of pending timers that have keys.
    Keyed,
}

impl Row {
    /// The row that builds the file. Without one, each round has a new file.
    pub(crate) fn built_by(&self) -> Option<&'static str> {
        match self.file {
            New => None,
            File::Pending | File::Grown if self.in_postgres => Some("postgres-pending"),
            File::Pending | File::Grown => Some("pending"),
            File::Keyed => Some("keyed-file"),
        }
    }
}

/// How often a row is played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounds {
    All,
    /// A few rounds, for rows that take long and vary little.
    Few,
    Once,
    /// Before each round of the row that follows. The row has no figures of its own.
    Before,
}

/// All rows, in the order in which a round plays them.
pub(crate) const ALL: [Row; 60] = [
    row("insert-1", New, All, Insert(1, Off, PAYLOAD)),
    row("insert-1-policies", New, All, Insert(1, On, PAYLOAD)),
    row("insert-64", New, All, Insert(64, Off, PAYLOAD)),
    row("insert-64-policies", New, All, Insert(64, On, PAYLOAD)),
    row("insert-64-1k", New, All, Insert(64, Off, KB)),
    row("insert-64-64k", New, All, Insert(64, Off, 64 * KB)),
    row("insert-1024", New, All, Insert(1_024, Off, PAYLOAD)),
    row("insert-1024-policies", New, All, Insert(1_024, On, PAYLOAD)),
    row("month", New, All, Spread(30)),
    row("year", New, All, Spread(365)),
    row("cancel", New, All, Cancel),
    row("burst", New, All, Burst(1, Off)),
    row("burst-policies", New, All, Burst(1, On)),
    row("burst-100", New, All, Burst(100, Off)),
    row("burst-1000", New, All, Burst(1_000, Off)),
    row("burst-overdue", New, All, OverdueBurst(1)),
    row("burst-overdue-1000", New, All, OverdueBurst(1_000)),
    row("burst-1k", New, All, LargeBurst(BURST, KB)),
    row("burst-64k", New, All, LargeBurst(4_000, 64 * KB)),
    row("keyed", New, All, Keyed),
    row("limited", New, Few, Limited(Backlog::Limited)),
    row("limited-not", New, Few, Limited(Backlog::None)),
    row("unlimited", New, Few, Limited(Backlog::Unlimited)),
    row("unlimited-places", New, Few, Limited(Backlog::FewPlaces)),
    row("outage-none", New, Few, Outage(outage::Outage::None)),
    row("outage-hangs", New, Few, Outage(outage::Outage::Hangs)),
    row("outage-fails", New, Few, Outage(outage::Outage::Fails)),
    row("retention", New, Once, Retention(Keys::None)),
    row("retention-keyed", New, Once, Retention(Keys::Random)),
    row("syncs", New, Once, Syncs),
    row("month-life", New, Once, Life(30)),
    row("pending", File::Pending, Once, Pending),
    row("idle", File::Pending, Few, Idle),
    row("day", File::Pending, Once, Day),
    row("overdue", File::Pending, Before, Overdue),
    row("restart", File::Pending, All, Restart),
    row("steady", File::Pending, Few, Steady(20_000, 4, Off)),
    row("steady-policies", File::Pending, Few, Steady(20_000, 4, On)),
    row("steady-2", File::Pending, Few, Steady(40_000, 4, Off)),
    row(
        "steady-2-policies",
        File::Pending,
        Few,
        Steady(40_000, 4, On),
    ),
    row("pending-month", File::Grown, All, Spread(30)),
    row("pending-year", File::Grown, All, Spread(365)),
    row("pending-cancel", File::Grown, All, CancelPending),
    row("keyed-file", File::Keyed, Once, KeyedFile),
    row("pending-keyed", File::Keyed, All, Keyed),
    in_postgres("postgres-insert-1", New, All, Insert(1, Off, PAYLOAD)),
    in_postgres("postgres-insert-64", New, All, Insert(64, Off, PAYLOAD)),
    in_postgres(
        "postgres-insert-1024",
        New,
        All,
        Insert(1_024, Off, PAYLOAD),
    ),
    in_postgres("postgres-month", New, All, Spread(30)),
    in_postgres("postgres-cancel", New, All, Cancel),
    in_postgres("postgres-burst", New, All, Burst(1, Off)),
    in_postgres("postgres-keyed", New, All, Keyed),
    in_postgres("postgres-month-life", New, Once, Life(30)),
    in_postgres("postgres-snapshot", New, Once, Snapshot),
    in_postgres("postgres-churn", New, Once, Churn),
    in_postgres("postgres-pending", File::Pending, Once, Pending),
    in_postgres("postgres-idle", File::Pending, Few, Idle),
    in_postgres("postgres-day", File::Pending, Once, Day),
    in_postgres("postgres-steady", File::Pending, Few, Steady(6_000, 2, Off)),
    in_postgres(
        "postgres-steady-2",
        File::Pending,
        Few,
        Steady(15_000, 2, Off),
    ),
];

const fn row(name: &'static str, file: File, rounds: Rounds, play: Play) -> Row {
    Row {
        name,
        file,
        rounds,
        in_postgres: false,
        play,
    }
}

const fn in_postgres(name: &'static str, file: File, rounds: Rounds, play: Play) -> Row {
    Row {
        in_postgres: true,
        ..row(name, file, rounds, play)
    }
}
