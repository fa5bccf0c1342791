//! The commands, and the schedules of faults that they play.

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, value_parser};
use fastrand::Rng;

use crate::check::Checker;
use crate::copies::{Copies, FAULTS};
use crate::damage::WITHOUT_NOTE;
use crate::place::{Place, in_a_namespace};
use crate::protocol::{ChildOptions, WITHOUT_RESERVE};
use crate::report::{in_words, temporary_folder, verdict};
use crate::run::{Evidence, Run};
use crate::schedule::{LARGEST, Schedule};

/// Ends durable timers in the worst moment, and looks at what is left
#[derive(Parser)]
#[command(name = "waterwheel-durable-chaos")]
enum Command {
    /// Children that are killed in the middle of commits, one after the other, on one file
    Kill(Flags),
    /// A service under load, and a wall clock that is moved
    Clocks(Flags),
    /// A disk that is filled by another's file, or a file that reaches its limit
    DiskFull(DiskFull),
    /// Copies made under load, and a service that goes on from one of them
    Backup(Flags),
    /// Kills, after each of which the WAL is deleted, cut or damaged
    DamagedWal(Flags),
    /// A service in its usual life, in which this and that goes wrong
    Soak(Soak),
    /// A store on a disk in memory that loses, keeps and tears what is not synced
    PowerCut(crate::power_cut::Flags),
    /// Reads a log that was kept
    Check { log: String },
    /// The process that is killed
    #[command(hide = true)]
    Child { options: String },
}

#[derive(Args)]
struct Flags {
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Repeats requests and kills, but not threads
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[arg(long, value_name = "N")]
    callers: Option<usize>,
    /// Plants this fault
    #[arg(long = "break", value_name = "FAULT", default_value = "")]
    fault: String,
}

#[derive(Args)]
struct DiskFull {
    #[command(flatten)]
    flags: Flags,
    /// A small file system, instead of one that is mounted for this
    #[arg(long)]
    folder: Option<String>,
    /// It was mounted for this
    #[arg(long, hide = true, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = false)]
    own: bool,
    /// A disk in memory instead
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = false)]
    memory: bool,
}

#[derive(Args)]
struct Soak {
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Requests in a second
    #[arg(long, default_value_t = 3_000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Kill(flags) => kill(flags),
        Command::Clocks(flags) => clocks(flags),
        Command::DiskFull(flags) => disk_full(flags),
        Command::Backup(flags) => backup(flags),
        Command::DamagedWal(flags) => damaged_wal(flags),
        Command::Soak(flags) => soak(flags),
        Command::PowerCut(flags) => crate::power_cut::command(&flags),
        Command::Check { log } => check_again(&log),
        Command::Child { options } => crate::child::run(&options),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

impl Flags {
    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| Rng::new().u64(..))
    }
}

/// A schedule whose children have their file in a folder of their own, and that needs no other preparation.
fn plain(
    name: &str,
    flags: Flags,
    callers: usize,
    make: impl FnOnce(&mut Rng) -> Schedule,
) -> Result<Run, String> {
    // Checked here once, and not by each child.
    crate::planted::check(&flags.fault)?;
    let (seed, callers) = (flags.seed(), flags.callers.unwrap_or(callers));
    let place = temporary_folder()?;
    let options = ChildOptions::new(place.path(), callers, flags.fault);
    println!("{name}: {callers} callers, seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let schedule = make(&mut rng);
    Run::new(schedule, options, seed, rng, place)
}

fn kill(flags: Flags) -> Result<ExitCode, String> {
    let rounds = flags.rounds.unwrap_or(100);
    let run = plain("kill", flags, 96, |rng| crate::schedule::kills(rounds, rng))?;
    run.play(|evidence| {
        println!(
            "{} of {rounds} kills in the middle of a commit, with requests that had no answer; {} torn lines",
            evidence.in_commit, evidence.torn
        );
        let is_enough = evidence.in_commit * 5 >= rounds * 4;
        if !is_enough {
            println!("fewer than four of five kills came in the middle of a commit");
        }
        is_enough
    })
}

fn clocks(flags: Flags) -> Result<ExitCode, String> {
    let rounds = flags.rounds.unwrap_or(4);
    plain("clocks", flags, 64, |_| crate::schedule::clocks(rounds))?.play(|_| true)
}

fn disk_full(asked: DiskFull) -> Result<ExitCode, String> {
    let mut flags = asked.flags;
    let seed = flags.seed();
    let fault = std::mem::take(&mut flags.fault);
    if fault != WITHOUT_RESERVE {
        crate::planted::check(&fault)?;
    }
    let place = match (asked.folder, asked.memory) {
        (Some(folder), _) => Place::folder(&folder, asked.own)?,
        (None, true) => Place::memory("as it was asked to be")?,
        (None, false) => match in_a_namespace(seed)? {
            Some(code) => return Ok(code),
            None => Place::memory("no small file system could be mounted here")?,
        },
    };
    let callers = flags.callers.unwrap_or(64);
    let options = ChildOptions {
        largest: LARGEST,
        memory: place.capacity,
        ..ChildOptions::new(&place.path, callers, fault)
    };
    println!(
        "disk-full: {callers} callers, seed {seed}, {}",
        place.in_words
    );
    let schedule = crate::schedule::full_disks(flags.rounds.unwrap_or(4), options.memory == 0);
    let mut run = Run::new(
        schedule,
        options,
        seed,
        Rng::with_seed(seed),
        temporary_folder()?,
    )?;
    run.place = Some(place);
    run.play(|_| true)
}

fn backup(mut flags: Flags) -> Result<ExitCode, String> {
    let is_copied = FAULTS.contains(&flags.fault.as_str());
    let fault = is_copied.then(|| std::mem::take(&mut flags.fault));
    let rounds = flags.rounds.unwrap_or(10);
    let mut run = plain("backup", flags, 96, |_| crate::schedule::copies(rounds))?;
    run.parent.copies = Some(Copies::new(&run.options.file, fault.unwrap_or_default()));
    run.play(|evidence| {
        let is_any = evidence.beside > 0;
        if !is_any {
            println!("nothing was answered while a copy was made");
        }
        is_any
    })
}

fn damaged_wal(mut flags: Flags) -> Result<ExitCode, String> {
    let has_note = flags.fault != WITHOUT_NOTE;
    if !has_note {
        flags.fault.clear();
    }
    let rounds = flags.rounds.unwrap_or(20);
    let make = |rng: &mut Rng| crate::schedule::damaged_wals(rounds, has_note, rng);
    plain("damaged-wal", flags, 96, make)?.play(Evidence::is_undamaged)
}

fn soak(asked: Soak) -> Result<ExitCode, String> {
    let (minutes, flags) = (asked.minutes, asked.flags);
    if !(0.0..=100_000.0).contains(&minutes) || flags.callers == Some(0) {
        return Err("--minutes and --callers are more than 0".into());
    }
    let time = Duration::from_secs_f64(minutes * 60.0);
    let mut run = plain("soak", flags, 64, |rng| crate::schedule::soak(time, rng))?;
    run.options.rate = asked.rate;
    run.measure(time);
    run.play(|evidence| evidence.is_flat(time))
}

/// Checks a log that was kept.
fn check_again(log: &str) -> Result<ExitCode, String> {
    let text = fs::read_to_string(log).map_err(in_words)?;
    let mut checker = Checker::default();
    for line in text.lines() {
        match line.parse() {
            Ok(line) => checker.feed(line),
            Err(_) => checker.unreadable(line),
        }
    }
    Ok(match verdict(&mut checker) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
