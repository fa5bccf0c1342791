//! `clocks`: a service under load, and a wall clock that is moved.

use std::process::ExitCode;

use fastrand::Rng;
use waterwheel_durable_chaos::arguments::Arguments;

use crate::child::ChildOptions;
use crate::kill::{DAY, deliver_all};
use crate::parent::{Parent, Until};
use crate::report;

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, String> {
    let rounds: u64 = arguments.take("rounds", 4)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers = arguments.take("callers", 64)?;
    let fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    crate::fault::check(&fault)?;

    let folder = report::folder()?;
    let mut rng = Rng::with_seed(seed);
    let mut parent = Parent::new(&report::log_of(folder.path()))?;
    let mut options = ChildOptions {
        moves: true,
        ..ChildOptions::new(folder.path(), seed, callers, fault)
    };
    println!("clocks: {rounds} rounds, {callers} callers, seed {seed}");
    let mut before = (0, 0);
    for round in 1..=rounds {
        options.round = round;
        options.seed = rng.u64(..);
        options.single = round % 2 == 0;
        // It was set while the service was down: forward, and then back.
        options.shift = match round % 4 {
            1 => 0,
            2 => 3 * DAY,
            3 => -DAY / 24,
            _ => 400 * DAY,
        };
        let played = parent.play(&options, Until::ClockDone)?;
        let summary = parent.checker.summary();
        println!(
            "round {round}: the clock is {:+} h from the machine's at the start, and was moved {} times in {:.1?}; {} deliveries",
            options.shift / (DAY / 24),
            summary.clock_moves - before.0,
            played.lived,
            summary.deliveries - before.1,
        );
        before = (summary.clock_moves, summary.deliveries);
        if parent.checker.broken().len() > report::ENOUGH {
            break;
        }
    }
    options.callers = 0;
    options.moves = false;
    // The clock was ahead by more than two years, and timers were made then.
    options.shift = 1_200 * DAY;
    let is_empty = deliver_all(&mut parent, &mut options)?;
    let is_kept = report::verdict(&mut parent.checker) && is_empty;
    Ok(report::end(is_kept, seed, folder))
}
