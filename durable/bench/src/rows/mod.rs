//! The rows of the table, one file for each kind.

mod burst;
mod cancel;
mod insert;

use std::pin::Pin;

use crate::stage::{Played, Stage};

type Playing = Pin<Box<dyn Future<Output = Played>>>;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) play: fn(Stage) -> Playing,
}

pub(crate) const ALL: [Row; 5] = [
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
        name: "cancel",
        play: |stage| Box::pin(cancel::play(stage)),
    },
    Row {
        name: "burst",
        play: |stage| Box::pin(burst::play(stage)),
    },
];
