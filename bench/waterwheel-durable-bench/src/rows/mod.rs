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
mod restart;
mod retention;
mod spread;
mod steady;
mod syncs;

use std::pin::Pin;

use crate::place::{PAYLOAD, Place, Played};
use crate::policies::Policies;
use burst::Burst;
use limited::Backlog;
use outage::Outage;
use retention::Keys;

const KB: usize = 1 << 10;

type Playing = Pin<Box<dyn Future<Output = Played>>>;

/// What is measured in one round.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) file: File,
    pub(crate) rounds: Rounds,
    pub(crate) play: fn(Place) -> Playing,
}

/// In which file its timers are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    /// A new one, for each round.
    New,
    /// The one with millions of pending timers, which is built once in a run.
    Pending,
    /// The same, after all rounds of the rows that let its time pass: these insert and cancel more.
    Grown,
    /// The one with millions of pending timers that have keys.
    Keyed,
}

impl File {
    /// The row that builds it. Without one, each round has a new file.
    pub(crate) fn built_by(self) -> Option<&'static str> {
        match self {
            File::New => None,
            File::Pending | File::Grown => Some("pending"),
            File::Keyed => Some("keyed-file"),
        }
    }
}

/// How often it is played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounds {
    All,
    /// What takes long, and does not vary much.
    Few,
    Once,
    /// Before each round of the row that follows it. It has no figures of its own.
    Before,
}

/// In the order in which a round plays them.
pub(crate) const ALL: [Row; 45] = [
    row("insert-1", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 1, Policies::Off, PAYLOAD))
    }),
    row("insert-1-policies", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 1, Policies::On, PAYLOAD))
    }),
    row("insert-64", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 64, Policies::Off, PAYLOAD))
    }),
    row("insert-64-policies", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 64, Policies::On, PAYLOAD))
    }),
    row("insert-64-1k", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 64, Policies::Off, KB))
    }),
    row("insert-64-64k", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 64, Policies::Off, 64 * KB))
    }),
    row("insert-1024", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 1_024, Policies::Off, PAYLOAD))
    }),
    row("insert-1024-policies", File::New, Rounds::All, |place| {
        Box::pin(insert::play(place, 1_024, Policies::On, PAYLOAD))
    }),
    row("month", File::New, Rounds::All, |place| {
        Box::pin(spread::play(place, 30, false))
    }),
    row("year", File::New, Rounds::All, |place| {
        Box::pin(spread::play(place, 365, false))
    }),
    row("cancel", File::New, Rounds::All, |place| {
        Box::pin(cancel::recent(place))
    }),
    row("burst", File::New, Rounds::All, |place| {
        Box::pin(burst::play(place, Burst::PLAIN))
    }),
    row("burst-policies", File::New, Rounds::All, |place| {
        let burst = Burst {
            policies: Policies::On,
            ..Burst::PLAIN
        };
        Box::pin(burst::play(place, burst))
    }),
    row("burst-100", File::New, Rounds::All, |place| {
        let burst = Burst {
            handlers: 100,
            ..Burst::PLAIN
        };
        Box::pin(burst::play(place, burst))
    }),
    row("burst-1000", File::New, Rounds::All, |place| {
        let burst = Burst::OVER_1000;
        Box::pin(burst::play(place, burst))
    }),
    row("burst-overdue", File::New, Rounds::All, |place| {
        let burst = Burst {
            is_overdue: true,
            ..Burst::PLAIN
        };
        Box::pin(burst::play(place, burst))
    }),
    row("burst-overdue-1000", File::New, Rounds::All, |place| {
        let burst = Burst {
            is_overdue: true,
            ..Burst::OVER_1000
        };
        Box::pin(burst::play(place, burst))
    }),
    row("burst-1k", File::New, Rounds::All, |place| {
        let burst = Burst {
            payload: KB,
            ..Burst::PLAIN
        };
        Box::pin(burst::play(place, burst))
    }),
    row("burst-64k", File::New, Rounds::All, |place| {
        let burst = Burst {
            timers: 4_000,
            payload: 64 * KB,
            ..Burst::PLAIN
        };
        Box::pin(burst::play(place, burst))
    }),
    row("keyed", File::New, Rounds::All, |place| {
        Box::pin(keyed::play(place))
    }),
    row("limited", File::New, Rounds::Few, |place| {
        Box::pin(limited::play(place, Backlog::Limited))
    }),
    row("limited-not", File::New, Rounds::Few, |place| {
        Box::pin(limited::play(place, Backlog::None))
    }),
    row("unlimited", File::New, Rounds::Few, |place| {
        Box::pin(limited::play(place, Backlog::Unlimited))
    }),
    row("unlimited-places", File::New, Rounds::Few, |place| {
        Box::pin(limited::play(place, Backlog::FewPlaces))
    }),
    row("outage-none", File::New, Rounds::Few, |place| {
        Box::pin(outage::play(place, Outage::None))
    }),
    row("outage-hangs", File::New, Rounds::Few, |place| {
        Box::pin(outage::play(place, Outage::Hangs))
    }),
    row("outage-fails", File::New, Rounds::Few, |place| {
        Box::pin(outage::play(place, Outage::Fails))
    }),
    row("retention", File::New, Rounds::Once, |place| {
        Box::pin(retention::play(place, Keys::None))
    }),
    row("retention-keyed", File::New, Rounds::Once, |place| {
        Box::pin(retention::play(place, Keys::Random))
    }),
    row("syncs", File::New, Rounds::Once, |place| {
        Box::pin(syncs::play(place))
    }),
    row("month-life", File::New, Rounds::Once, |place| {
        Box::pin(spread::play(place, 30, true))
    }),
    row("pending", File::Pending, Rounds::Once, |place| {
        Box::pin(pending::play(place))
    }),
    row("idle", File::Pending, Rounds::Few, |place| {
        Box::pin(idle::play(place))
    }),
    row("day", File::Pending, Rounds::Once, |place| {
        Box::pin(day::play(place))
    }),
    row("overdue", File::Pending, Rounds::Before, |place| {
        Box::pin(restart::prepare(place))
    }),
    row("restart", File::Pending, Rounds::All, |place| {
        Box::pin(restart::play(place))
    }),
    row("steady", File::Pending, Rounds::Few, |place| {
        Box::pin(steady::play(place, 20_000, Policies::Off))
    }),
    row("steady-policies", File::Pending, Rounds::Few, |place| {
        Box::pin(steady::play(place, 20_000, Policies::On))
    }),
    row("steady-2", File::Pending, Rounds::Few, |place| {
        Box::pin(steady::play(place, 40_000, Policies::Off))
    }),
    row("steady-2-policies", File::Pending, Rounds::Few, |place| {
        Box::pin(steady::play(place, 40_000, Policies::On))
    }),
    row("pending-month", File::Grown, Rounds::All, |place| {
        Box::pin(spread::play(place, 30, false))
    }),
    row("pending-year", File::Grown, Rounds::All, |place| {
        Box::pin(spread::play(place, 365, false))
    }),
    row("pending-cancel", File::Grown, Rounds::All, |place| {
        Box::pin(cancel::pending(place))
    }),
    row("keyed-file", File::Keyed, Rounds::Once, |place| {
        Box::pin(keyed::prepare(place))
    }),
    row("pending-keyed", File::Keyed, Rounds::All, |place| {
        Box::pin(keyed::play(place))
    }),
];

const fn row(name: &'static str, file: File, rounds: Rounds, play: fn(Place) -> Playing) -> Row {
    Row {
        name,
        file,
        rounds,
        play,
    }
}
