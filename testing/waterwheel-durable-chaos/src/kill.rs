//! `kill`: children that are killed, one after the other, on one file.

use std::process::ExitCode;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_chaos::arguments::Arguments;

use crate::child::ChildOptions;
use crate::file;
use crate::parent::{Parent, Until};
use crate::report;

pub(crate) const DAY: i64 = 86_400_000_000;
/// After a kill, the wall clock goes on by so much at most: far timers come nearer.
pub(crate) const LONGEST_OFF: i64 = DAY / 8;

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, String> {
    let rounds: u64 = arguments.take("rounds", 100)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers = arguments.take("callers", 96)?;
    let fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    // Said here, and not by each child.
    crate::fault::check(&fault)?;

    let folder = report::folder()?;
    let mut rng = Rng::with_seed(seed);
    let mut parent = Parent::new(&report::log_of(folder.path()))?;
    let mut options = ChildOptions::new(folder.path(), seed, callers, fault);
    println!("kill: {rounds} rounds, {callers} callers, seed {seed}");
    println!(
        "               lived           at the kill: with a  perhaps not      no answer yet to             the store's"
    );
    println!(
        "round  threads    ms  requests        handler      settled    insert cancel move redrive         commit   again"
    );
    let (mut in_commit, mut duplicates, mut requests) = (0, 0, 0);
    for round in 1..=rounds {
        options.round = round;
        options.seed = rng.u64(..);
        options.single = rng.bool();
        options.shift += rng.i64(0..LONGEST_OFF);
        let until = Until::Killed {
            after: lifetime(&mut rng),
            in_commit: rng.u8(..20) > 0,
        };
        let played = parent.play(&options, until)?;
        let (flight, summary) = (played.flight, parent.checker.summary());
        let commit = match flight.commit {
            Some(steps) => format!("{steps} steps"),
            None => "-".into(),
        };
        println!(
            "{round:5}  {:7} {:5}  {:8}        {:7}      {:7}    {:6} {:6} {:4} {:7}   {commit:>12}   {:5}",
            if options.single { "one" } else { "several" },
            played.lived.as_millis(),
            summary.requests - requests,
            flight.running,
            flight.unsettled,
            flight.inserts,
            flight.cancels,
            flight.reschedules,
            flight.redrives,
            summary.duplicates - duplicates,
        );
        in_commit += u64::from(flight.commit.is_some() && flight.unanswered() > 0);
        (duplicates, requests) = (summary.duplicates, summary.requests);
        if parent.checker.broken().len() > report::ENOUGH {
            break;
        }
    }
    options.callers = 0;
    options.shift += 60 * DAY;
    let is_empty = deliver_all(&mut parent, &mut options)?;
    println!(
        "{in_commit} of {rounds} kills in the middle of a commit, with requests that had no answer; {} torn lines",
        parent.torn
    );
    let mut is_kept = report::verdict(&mut parent.checker) && is_empty;
    if in_commit * 5 < rounds * 4 {
        println!("fewer than four of five kills came in the middle of a commit");
        is_kept = false;
    }
    Ok(report::end(is_kept, seed, folder))
}

/// Some children do not get beyond their opening; most live for a second.
pub(crate) fn lifetime(rng: &mut Rng) -> Duration {
    let millis = match rng.u8(..20) {
        0 => rng.u64(5..60),
        1 => rng.u64(2_500..4_000),
        _ => rng.u64(150..1_800),
    };
    Duration::from_millis(millis)
}

/// Children that are not killed, until the file is empty.
pub(crate) fn deliver_all(parent: &mut Parent, options: &mut ChildOptions) -> Result<bool, String> {
    if parent.checker.broken().len() > report::ENOUGH {
        println!("enough is broken: what is left is not delivered");
        return Ok(false);
    }
    let mut left = None;
    for _ in 0..5 {
        options.round += 1;
        options.single = false;
        parent.play(options, Until::Delivered)?;
        let now = file::inspect(&options.file)?;
        if now.timers == 0 || left == Some(now) {
            left = Some(now);
            break;
        }
        left = Some(now);
    }
    match left {
        Some(left) if (left.timers, left.keys, left.moved) == (0, 0, 0) => {
            println!(
                "the file is sound and empty, but for {} dead letters",
                left.dead
            );
            Ok(true)
        }
        left => {
            println!("rows are left in the file: {left:?}");
            Ok(false)
        }
    }
}
