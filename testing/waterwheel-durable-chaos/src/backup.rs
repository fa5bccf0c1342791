//! `backup`: copies of a file that are made under load, and a service that goes on from one of them.

use std::process::ExitCode;

use fastrand::Rng;
use waterwheel_durable_chaos::arguments::Arguments;

use crate::child::ChildOptions;
use crate::copies::{Copies, Way};
use crate::file;
use crate::kill::{DAY, deliver_all};
use crate::parent::{Parent, Until};
use crate::report;
use crate::script::{Foreign, Progress, Script, Step};

/// Copies that are made in each life, of which one is restored.
const COPIES: usize = 2;

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, String> {
    let rounds: u64 = arguments.take("rounds", 10)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers = arguments.take("callers", 96)?;
    let mut fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    let way = Way::of(&fault).inspect(|_| fault.clear());
    crate::fault::check(&fault)?;

    let folder = report::folder()?;
    let options = ChildOptions::new(folder.path(), seed, callers, fault);
    let mut parent = Parent::new(&report::log_of(folder.path()))?;
    parent.copies = Some(Copies::new(&options.file, way.unwrap_or(Way::Backup)));
    let mut lives = Lives {
        parent,
        options,
        rng: Rng::with_seed(seed),
    };
    println!("backup: {rounds} rounds, {callers} callers, seed {seed}");
    println!("                      took     answered    timers in   inserts    there");
    println!("round  restored copy    ms   beside them     the copy      gone    again");
    let mut beside = 0;
    for round in 1..=rounds {
        lives.play(is_copied())?;
        // Another opening of the file gives ids, which a copy must not give.
        lives.play(goes_on())?;
        if lives.parent.checker.broken().len() > report::ENOUGH {
            break;
        }
        match lives.restore(round)? {
            Some(answered) => beside += answered,
            // It was said why.
            None => break,
        }
    }
    lives.play(goes_on())?;
    let Lives {
        mut parent,
        mut options,
        ..
    } = lives;
    options.callers = 0;
    options.shift += 60 * DAY;
    let is_empty = deliver_all(&mut parent, &mut options)?;
    let mut is_kept = report::verdict(&mut parent.checker) && is_empty;
    if beside == 0 {
        println!("nothing was answered while a copy was made");
        is_kept = false;
    }
    Ok(report::end(is_kept, seed, folder))
}

struct Lives {
    parent: Parent,
    options: ChildOptions,
    rng: Rng,
}

impl Lives {
    /// A child, which is killed in the end.
    fn play(&mut self, steps: Vec<Step>) -> Result<(), String> {
        self.options.round += 1;
        self.options.seed = self.rng.u64(..);
        self.options.single = self.rng.bool();
        // What was far is near.
        self.options.shift += self.rng.i64(0..DAY / 8);
        self.parent.script = Some(Script::new(steps, &Foreign::InChild));
        self.parent.play(&self.options, Until::Scripted)?;
        self.parent.script = None;
        Ok(())
    }

    /// Puts one of the copies in the place of the file. Returns how many requests were answered while copies were made, if there is one.
    fn restore(&mut self, round: u64) -> Result<Option<u64>, String> {
        let Some(copies) = &mut self.parent.copies else {
            return Ok(None);
        };
        let count = copies.made.len();
        if count == 0 {
            return Ok(None);
        }
        let at = self.rng.usize(..count);
        let (made, chosen) = (&copies.made[at], at + 1);
        let (number, took) = (made.number, made.took);
        let answered = copies.made.iter();
        let answered = answered.map(|it| it.beside.created + it.beside.answered);
        let answered = answered.sum::<u64>();
        let line = copies.restore(number)?;
        let before = self.parent.checker.summary().undone;
        self.parent.note(line)?;
        let undone = self.parent.checker.summary().undone;
        // A copy is read before the service has it: it is sound by itself.
        let timers = match file::inspect(&self.options.file) {
            Ok(left) => left.timers,
            Err(error) => {
                self.parent.note(crate::log::Line::Wrong(error))?;
                return Ok(None);
            }
        };
        println!(
            "{round:5}  {chosen:6} of {count}  {:6}  {answered:12}  {timers:11}  {:8} {:8}",
            took.as_millis(),
            undone.gone - before.gone,
            undone.again - before.again,
        );
        Ok(Some(answered))
    }
}

/// A service under load is copied some times, and goes on after each copy.
fn is_copied() -> Vec<Step> {
    let mut steps = vec![loads("before a copy")];
    for _ in 0..COPIES {
        let copied = Progress {
            copies: 1,
            ..Progress::default()
        };
        steps.extend([Step::Copy, Step::Until("a copy", copied)]);
        steps.push(loads("after a copy"));
    }
    steps.push(Step::Kill);
    steps
}

fn goes_on() -> Vec<Step> {
    vec![loads("in another life"), Step::Kill]
}

fn loads(name: &'static str) -> Step {
    let min = Progress {
        created: 300,
        answered: 300,
        settled: 200,
        ..Progress::default()
    };
    Step::Until(name, min)
}
