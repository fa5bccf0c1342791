//! The rows, one file for each kind.

mod burst;
mod cancel;
mod day;
mod idle;
mod insert;
mod pending;
mod restart;
mod spread;
mod steady;
mod syncs;

use std::pin::Pin;

use crate::stage::{Played, Stage};

type Playing = Pin<Box<dyn Future<Output = Played>>>;

/// What is measured in one round.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) file: File,
    pub(crate) rounds: Rounds,
    pub(crate) play: fn(Stage) -> Playing,
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
pub(crate) const ALL: [Row; 19] = [
    row("insert-1", File::New, Rounds::All, |stage| {
        Box::pin(insert::play(stage, 1))
    }),
    row("insert-64", File::New, Rounds::All, |stage| {
        Box::pin(insert::play(stage, 64))
    }),
    row("insert-1024", File::New, Rounds::All, |stage| {
        Box::pin(insert::play(stage, 1_024))
    }),
    row("month", File::New, Rounds::All, |stage| {
        Box::pin(spread::play(stage, 30, false))
    }),
    row("year", File::New, Rounds::All, |stage| {
        Box::pin(spread::play(stage, 365, false))
    }),
    row("cancel", File::New, Rounds::All, |stage| {
        Box::pin(cancel::recent(stage))
    }),
    row("burst", File::New, Rounds::All, |stage| {
        Box::pin(burst::play(stage))
    }),
    row("syncs", File::New, Rounds::Once, |stage| {
        Box::pin(syncs::play(stage))
    }),
    row("month-life", File::New, Rounds::Once, |stage| {
        Box::pin(spread::play(stage, 30, true))
    }),
    row("pending", File::Pending, Rounds::Once, |stage| {
        Box::pin(pending::play(stage))
    }),
    row("idle", File::Pending, Rounds::Few, |stage| {
        Box::pin(idle::play(stage))
    }),
    row("day", File::Pending, Rounds::Once, |stage| {
        Box::pin(day::play(stage))
    }),
    row("overdue", File::Pending, Rounds::Before, |stage| {
        Box::pin(restart::prepare(stage))
    }),
    row("restart", File::Pending, Rounds::All, |stage| {
        Box::pin(restart::play(stage))
    }),
    row("steady", File::Pending, Rounds::Few, |stage| {
        Box::pin(steady::play(stage, 20_000))
    }),
    row("steady-2", File::Pending, Rounds::Few, |stage| {
        Box::pin(steady::play(stage, 40_000))
    }),
    row("pending-month", File::Grown, Rounds::All, |stage| {
        Box::pin(spread::play(stage, 30, false))
    }),
    row("pending-year", File::Grown, Rounds::All, |stage| {
        Box::pin(spread::play(stage, 365, false))
    }),
    row("pending-cancel", File::Grown, Rounds::All, |stage| {
        Box::pin(cancel::pending(stage))
    }),
];

const fn row(name: &'static str, file: File, rounds: Rounds, play: fn(Stage) -> Playing) -> Row {
    Row {
        name,
        file,
        rounds,
        play,
    }
}
