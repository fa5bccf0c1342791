//! The rows of the table, one file for each kind.

mod burst;
mod cancel;
mod idle;
mod insert;
mod pending;
mod restart;
mod spread;
mod steady;

use std::pin::Pin;

use crate::stage::{Played, Stage};

type Playing = Pin<Box<dyn Future<Output = Played>>>;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) play: fn(Stage) -> Playing,
}

pub(crate) const ALL: [Row; 13] = [
    Row {
        name: "insert-1",
        play: |stage| Box::pin(insert::play(stage, 1)),
    },
    Row {
        name: "insert-64",
        play: |stage| Box::pin(insert::play(stage, 64)),
    },
    Row {
        name: "insert-1024",
        play: |stage| Box::pin(insert::play(stage, 1_024)),
    },
    Row {
        name: "month",
        play: |stage| Box::pin(spread::play(stage, 30)),
    },
    Row {
        name: "year",
        play: |stage| Box::pin(spread::play(stage, 365)),
    },
    Row {
        name: "cancel",
        play: |stage| Box::pin(cancel::play(stage)),
    },
    Row {
        name: "burst",
        play: |stage| Box::pin(burst::play(stage)),
    },
    Row {
        name: "pending",
        play: |stage| Box::pin(pending::play(stage)),
    },
    Row {
        name: "steady",
        play: |stage| Box::pin(steady::play(stage, 20_000)),
    },
    Row {
        name: "steady-2",
        play: |stage| Box::pin(steady::play(stage, 40_000)),
    },
    Row {
        name: "prepare",
        play: |stage| Box::pin(restart::prepare(stage)),
    },
    Row {
        name: "restart",
        play: |stage| Box::pin(restart::play(stage)),
    },
    Row {
        name: "idle",
        play: |stage| Box::pin(idle::play(stage)),
    },
];
