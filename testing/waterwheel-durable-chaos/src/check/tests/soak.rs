//! What a soak says: timers that are over and forgotten, namespaces that are paused, calendars.

use super::{SERVICE, breaks, broken, is_kept};
use crate::check::{Checker, Rule};

/// A log of which everything before a mark may be forgotten, and what comes after that.
fn broken_after_forgetting(before: &str, after: &str) -> (u64, Vec<Rule>) {
    let mut checker = Checker::default();
    let feed = |checker: &mut Checker, log: &str| {
        for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
            checker.feed(line.parse().unwrap());
        }
    };
    feed(&mut checker, before);
    checker.forget(checker.line() + 1);
    let forgotten = checker.forgotten();
    feed(&mut checker, after);
    let broken = checker.finish().iter().map(|(rule, _)| *rule);
    (forgotten, broken.collect())
}

/// It is settled for certain: the thread of its end was answered since.
const SETTLED: &str = "
    round 1
    insert 1 0 plain 2000 key
    created 1 a@2@plain
    begin 10 a 1 1 3000 2000 plain key
    end 0 a 1 well 3100
    insert 2 0 plain 9000 -
    created 2 b@9@plain
    cancel 3 0 b
    done 3";

#[test]
fn what_is_over_is_forgotten_and_held_against_it() {
    for (after, expected) in [
        ("stopped", None),
        ("cancel 4 0 a\n none 4", None),
        ("reschedule 4 0 b 9000\n none 4", None),
        (
            "insert 4 0 plain 5000 key\n created 4 c@5@plain\n cancel 5 0 c\n done 5",
            None,
        ),
        ("begin 20 a 1 1 4000 2000 plain key", Some(Rule::Twice)),
        ("begin 20 b 2 1 9000 9000 plain -", Some(Rule::Twice)),
        ("cancel 4 0 a\n done 4", Some(Rule::Answer)),
        ("reschedule 4 0 b 9000\n fired 4", Some(Rule::Answer)),
        (
            "insert 4 0 plain 5000 key\n existing 4 a@2@plain",
            Some(Rule::Key),
        ),
    ] {
        let (forgotten, broken) = broken_after_forgetting(SETTLED, after);
        assert_eq!(forgotten, 2);
        assert_eq!(broken, Vec::from_iter(expected), "{after}");
    }
}

#[test]
fn what_may_not_be_over_is_not_forgotten() {
    for before in [
        // It may be delivered again after a kill.
        "round 1\n insert 1 0 plain 2000 -\n created 1 a@2@plain\n begin 10 a 1 1 3000 2000 plain -\n end 0 a 1 well 3100",
        // It is with its handler.
        "round 1\n insert 1 0 plain 2000 -\n created 1 a@2@plain\n begin 10 a 1 1 3000 2000 plain -\n insert 2 0 plain 9000 -",
        // A request for it waits for its answer.
        &format!("{SETTLED}\n cancel 4 0 a\n reschedule 5 0 b 9000"),
        "round 1\n insert 1 0 plain 9000 -\n created 1 a@9@plain",
    ] {
        assert_eq!(broken_after_forgetting(before, "").0, 0, "{before}");
    }
}

#[test]
fn nothing_begins_while_its_namespace_is_paused() {
    let log = SERVICE;
    assert_eq!(broken(log), [Rule::Other]);
    // It was on its way to its handler.
    is_kept(&log.replace("3000011", "3000010"));
    is_kept(&log.replace("paused 10 mail", "paused 10 post"));
    is_kept(&log.replace("paused 10 mail", "paused 10 mail\n resumes mail"));
    // Another child has to say so.
    is_kept(&log.replace("paused 10 mail", "paused 10 mail\n killed\n round 2"));
}

#[test]
fn an_occurrence_comes_once_and_not_before_its_time() {
    let log = "round 1\n occurred 10 5000 5000\n occurred 20 7000 6000\n stopped";
    is_kept(log);
    is_kept(&log.replace(
        "stopped",
        "killed\n round 2\n occurred 10 9000 6000\n stopped",
    ));
    breaks(log, "7000 6000", "7000 5000", Rule::Twice);
    breaks(log, "7000 6000", "5999 6000", Rule::Early);
}

/// Occurrences at these seconds, each in time.
fn occurrences(seconds: &[u64]) -> String {
    let lines = seconds.iter().map(|second| {
        let micros = second * 1_000_000;
        format!("occurred {micros} {} {micros}\n", micros + 10)
    });
    lines.collect()
}

#[test]
fn an_occurrence_that_does_not_come_is_lost() {
    let log = |before: &[u64], between: &str, after: &[u64]| {
        let (before, after) = (occurrences(before), occurrences(after));
        format!("round 1\n {before} {between}\n {after} stopped")
    };
    is_kept(&log(&[1, 2], "opened", &[4, 3]));
    assert_eq!(broken(&log(&[1, 2], "opened", &[4])), [Rule::Lost]);
    // It was in flight when the child was killed.
    let killed = "killed\n round 2";
    is_kept(&log(&[1, 2, 4], killed, &[3]));
    assert_eq!(broken(&log(&[1, 2, 4], killed, &[5])), [Rule::Lost]);
    // What is missed while there is no child, or passed over by the clock, is a misfire.
    is_kept(&log(&[1, 2], killed, &[9, 10]));
    is_kept(&log(
        &[1, 2],
        "moves 2000020 2000020\n moved 2000030",
        &[9, 10],
    ));
    // These two are of the time before the clock was moved: one is late, one has its line late.
    let moved = "moves 2000020 2000020\n moved 2000040\n occurred 2000050 62000050 2000000";
    is_kept(&log(&[1], moved, &[62, 63]));
    let moved = "moves 2000020 2000020\n moved 2000040\n occurred 2000010 2000010 2000000";
    is_kept(&log(&[1], moved, &[62, 63]));
}
