//! What was asked for on the command line.

use std::path::PathBuf;

/// Nine interleaved rounds at least: the machine is shared.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 1;
const PENDING: usize = 10_000_000;
const QUICK_PENDING: usize = 100_000;

/// A measurement, or a check of plausibility (`--quick`), of all rows or of some.
#[derive(Debug)]
pub(crate) struct Flags {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) pending: usize,
    pub(crate) only: Vec<String>,
    pub(crate) folder: PathBuf,
    /// Plays no round, and writes the pages of the results that are there.
    pub(crate) pages: bool,
    /// One round of a row, in a child process.
    pub(crate) sample: Option<String>,
}

const KNOWN: &str = "--quick, --only ROW, --rounds N, --pending N, --folder PATH, --pages";

impl Flags {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Flags, String> {
        let mut flags = Flags {
            quick: false,
            rounds: 0,
            pending: 0,
            only: Vec::new(),
            folder: target_dir().join("durable-bench"),
            pages: false,
            sample: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = |what: &str| {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} takes {what}"))
            };
            match argument.as_str() {
                "--quick" => flags.quick = true,
                "--pages" => flags.pages = true,
                "--only" => flags.only.push(value("a row")?),
                "--folder" => flags.folder = value("a folder")?.into(),
                "--sample" => flags.sample = Some(value("a row")?),
                "--rounds" => flags.rounds = number(&value("a number")?)?,
                "--pending" => flags.pending = number(&value("a number")?)?,
                _ => return Err(format!("{argument}: not one of {KNOWN}")),
            }
        }
        let (rounds, pending) = match flags.quick {
            true => (QUICK_ROUNDS, QUICK_PENDING),
            false => (ROUNDS, PENDING),
        };
        if flags.rounds == 0 {
            flags.rounds = rounds;
        }
        if flags.pending == 0 {
            flags.pending = pending;
        }
        Ok(flags)
    }

    /// Whether all of it is measured, so that its figures may be shown.
    pub(crate) fn is_whole(&self) -> bool {
        !self.quick && self.only.is_empty() && self.rounds >= ROUNDS && self.pending >= PENDING
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.replace('_', "").parse().ok().filter(|it| *it > 0);
    number.ok_or_else(|| format!("{text}: not a number from 1 up"))
}

/// Cargo's target folder, the one that this program was built in: on a disk, most likely.
pub(crate) fn target_dir() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let built_in = program
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").exists());
    built_in.map_or_else(std::env::temp_dir, PathBuf::from)
}
