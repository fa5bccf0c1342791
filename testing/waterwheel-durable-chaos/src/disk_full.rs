//! `disk-full`: a service under load whose disk is filled by another's file, or whose file has reached its limit.

mod place;

use std::process::ExitCode;

use fastrand::Rng;
use waterwheel_durable_chaos::arguments::Arguments;

use crate::child::{ChildOptions, WITHOUT_RESERVE};
use crate::kill::{DAY, deliver_all};
use crate::parent::{Parent, Until};
use crate::report;
use crate::script::{Progress, Script, Step};
use place::Place;

/// How long payloads are at most.
pub(crate) const LARGEST: usize = 1_500;
/// How long the file may be, where that is what makes it full.
const LIMIT: u64 = 6 << 20;

pub(crate) fn run(words: Vec<String>) -> Result<ExitCode, String> {
    let mut arguments = Arguments::parse(words.iter().cloned())?;
    let rounds: u64 = arguments.take("rounds", 4)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers = arguments.take("callers", 64)?;
    let folder: String = arguments.take("folder", String::new())?;
    let is_own: bool = arguments.take("own", false)?;
    let memory: bool = arguments.take("memory", false)?;
    let fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    if fault != WITHOUT_RESERVE {
        crate::fault::check(&fault)?;
    }
    let place = match (folder.is_empty(), memory) {
        (false, _) => Place::folder(&folder, is_own)?,
        (true, true) => Place::memory("as it was asked to be")?,
        (true, false) => match place::in_a_namespace(&words, seed)? {
            Some(code) => return Ok(code),
            None => Place::memory("no small file system could be mounted here")?,
        },
    };
    println!("disk-full: {rounds} rounds, {callers} callers, seed {seed}, {place}");
    let log = report::folder()?;
    let mut rng = Rng::with_seed(seed);
    let mut parent = Parent::new(&report::log_of(log.path()))?;
    let mut options = ChildOptions {
        largest: LARGEST,
        memory: place.capacity(),
        ..ChildOptions::new(place.path(), seed, callers, fault)
    };
    let mut children = 0;
    let mut play = |parent: &mut Parent, options: &mut ChildOptions, steps: Vec<Step>| {
        children += 1;
        options.round = children;
        options.seed = rng.u64(..);
        options.single = rng.bool();
        // What was far is near.
        options.shift += rng.i64(0..DAY / 24);
        parent.script = Some(Script::new(steps, &place.foreign()));
        parent.play(options, Until::Scripted)?;
        if let Some(script) = parent.script.take() {
            print(options, &script);
        }
        Ok::<_, String>(())
    };
    for round in 1..=rounds {
        if parent.checker.broken().len() > report::ENOUGH {
            break;
        }
        // By turns: another's file, and a limit.
        if round % 2 == 1 {
            let ends_full = round % 4 == 3 && options.memory == 0;
            play(&mut parent, &mut options, by_a_file(ends_full))?;
            if ends_full {
                play(&mut parent, &mut options, on_a_full_disk())?;
            }
        } else {
            options.limit = LIMIT;
            play(&mut parent, &mut options, by_a_limit())?;
            options.limit = 0;
        }
    }
    place.foreign().remove();
    options.callers = 0;
    options.memory = 0;
    options.shift += 60 * DAY;
    options.round = children;
    let is_empty = deliver_all(&mut parent, &mut options)?;
    let is_kept = report::verdict(&mut parent.checker) && is_empty;
    if !is_kept {
        place.keep(log.path());
    }
    Ok(report::end(is_kept, seed, log))
}

/// The disk is filled and freed twice, under one child. At the end of the second time it is full, if it `ends_full`: the child is killed then.
fn by_a_file(ends_full: bool) -> Vec<Step> {
    let mut steps = vec![loads(), Step::Fill, goes_on(), Step::Free, loads_again()];
    match ends_full {
        true => steps.extend([Step::Fill, goes_on(), Step::Kill]),
        false => steps.extend([
            Step::Fill,
            goes_on(),
            Step::Free,
            inserts_again(),
            Step::Stop,
        ]),
    }
    steps
}

/// The child before was killed on a full disk.
fn on_a_full_disk() -> Vec<Step> {
    vec![opens_full(), Step::Free, inserts_again(), Step::Stop]
}

/// The file is full, and has space again as timers are settled and cancelled, three times.
fn by_a_limit() -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.extend([at_the_limit(), inserts_again()]);
    }
    steps.push(Step::Stop);
    steps
}

fn loads() -> Step {
    let min = Progress {
        created: 3_000,
        settled: 500,
        ..Progress::default()
    };
    Step::Until("with space", min)
}

/// Timers that come due while the disk is full once more. Most of those before have come due by then.
fn loads_again() -> Step {
    let min = Progress {
        created: 3_000,
        ..Progress::default()
    };
    Step::Until("with space again", min)
}

/// A service without a reserve may go on for a while, in the space that its WAL has. It has written over that several times by then.
fn goes_on() -> Step {
    let min = Progress {
        full: 500,
        answered: 3_000,
        delivered: 300,
        settled: 300,
        ..Progress::default()
    };
    Step::Until("on a full disk", min)
}

fn opens_full() -> Step {
    let min = Progress {
        full: 200,
        answered: 500,
        delivered: 100,
        settled: 100,
        ..Progress::default()
    };
    Step::Until("opened on a full disk", min)
}

pub(crate) fn at_the_limit() -> Step {
    let min = Progress {
        full: 200,
        settled: 50,
        ..Progress::default()
    };
    Step::Until("at the limit", min)
}

pub(crate) fn inserts_again() -> Step {
    let min = Progress {
        created: 300,
        settled: 50,
        ..Progress::default()
    };
    Step::Until("with space again", min)
}

fn print(options: &ChildOptions, script: &Script) {
    let how = match (options.limit, script.filled) {
        (0, 0) => "by a file of another's".to_owned(),
        (0, filled) => format!("by a file of {} MiB", filled >> 20),
        (limit, _) => format!("by a limit of {} MiB", limit >> 20),
    };
    println!("round {}, {how}:", options.round);
    for (name, progress) in &script.progress {
        println!(
            "  {name:22} {:6} inserted, {:6} refused, {:6} other requests answered, {:6} delivered, {:6} settled",
            progress.created,
            progress.full,
            progress.answered,
            progress.delivered,
            progress.settled
        );
    }
}
