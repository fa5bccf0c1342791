//! Each rule passes a log, and fails it when one line is doctored.

mod copy;
mod soak;

use super::{Checker, Rule};
use crate::protocol::{Line, WORKERS};

/// Which rules a log breaks.
fn broken(log: &str) -> Vec<Rule> {
    let mut checker = Checker::default();
    for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.parse::<Line>() {
            Ok(line) => checker.feed(line),
            Err(_) => checker.unreadable(line),
        }
    }
    let broken = checker.finish();
    let mut rules: Vec<_> = broken.iter().map(|(rule, _)| *rule).collect();
    rules.dedup();
    rules
}

#[track_caller]
fn is_kept(log: &str) {
    assert_eq!(broken(log), [], "{log}");
}

/// The log is fine, and is not when `what` is `instead`.
#[track_caller]
fn breaks(log: &str, what: &str, instead: &str, rule: Rule) {
    is_kept(log);
    assert_eq!(log.matches(what).count(), 1, "{what}");
    assert_eq!(broken(&log.replace(what, instead)), [rule], "{instead}");
}

/// A timer that is delivered: due at 2 ms, and the clock shows 3 ms.
const DELIVERED: &str = "
    round 1
    insert 1 0 plain 2000 -
    created 1 a@2@plain
    begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100
    stopped";

#[test]
fn a_timer_that_is_never_delivered_is_lost() {
    breaks(
        DELIVERED,
        "begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100",
        "opened",
        Rule::Lost,
    );
}

#[test]
fn a_timer_that_is_not_found_is_lost() {
    let log = "
        round 1
        insert 1 0 plain 9000 -
        created 1 a@9@plain
        cancel 2 0 a
        done 2
        cancel 3 0 a
        none 3
        stopped";
    breaks(log, "done 2", "fired 2", Rule::Lost);
}

#[test]
fn an_insert_without_an_answer_may_be_there_or_not() {
    is_kept("round 1\n insert 1 0 plain 2000 -\n killed");
    is_kept(
        "round 1
        insert 1 0 plain 2000 -
        killed
        round 2
        begin 10 a 1 1 3000 2000 plain -
        end 0 a 1 well 3100
        stopped",
    );
}

#[test]
fn a_cancel_without_an_answer_may_be_done_or_not() {
    let unanswered = "
        round 1
        insert 1 0 plain 2000 -
        created 1 a@2@plain
        cancel 2 0 a
        killed
        round 2
        opened";
    is_kept(&format!("{unanswered}\n stopped"));
    let delivered = "begin 10 a 1 1 3000 2000 plain -\n end 0 a 1 well 3100\n stopped";
    is_kept(&format!("{unanswered}\n {delivered}"));
    // Once it is delivered after the kill, it was not cancelled, and has to end.
    let begun = "begin 10 a 1 1 3000 2000 plain -\n killed";
    assert_eq!(broken(&format!("{unanswered}\n {begun}")), [Rule::Lost]);
}

#[test]
fn a_reschedule_without_an_answer_leaves_both_due_times() {
    let log = |due, wall| {
        format!(
            "round 1
            insert 1 0 plain 2000 -
            created 1 a@2@plain
            reschedule 2 0 a 9000
            killed
            round 2
            begin 10 a 1 1 {wall} {due} plain -
            end 0 a 1 well {wall}
            stopped"
        )
    };
    is_kept(&log(2_000, 3_000));
    is_kept(&log(9_000, 9_500));
    assert_eq!(broken(&log(5_000, 9_500)), [Rule::Early]);
}

#[test]
fn a_delivery_before_its_due_time_is_early() {
    breaks(DELIVERED, "1 1 3000", "1 1 1999", Rule::Early);
}

#[test]
fn a_delivery_by_a_due_time_that_was_moved_is_early() {
    let log = "
        round 1
        insert 1 0 plain 2000 -
        created 1 a@2@plain
        reschedule 2 0 a 9000
        done 2
        begin 10 a 1 1 9001 9000 plain -
        end 0 a 1 well 9002
        stopped";
    breaks(log, "9001 9000", "8999 2000", Rule::Early);
    breaks(log, "9001 9000", "9001 2000", Rule::Early);
}

#[test]
fn a_retry_before_its_delay_is_early() {
    let log = "
        round 1
        insert 1 0 fails 2000 -
        created 1 a@2@fails
        begin 10 a 1 1 3000 2000 fails -
        end 0 a 1 failed 3100
        begin 20 a 1 2 33100 33000 fails -
        end 0 a 2 well 33200
        stopped";
    breaks(log, "33100 33000", "20100 20000", Rule::Early);
}

#[test]
fn a_retry_that_was_moved_since_is_due_as_asked() {
    let log = "
        round 1
        insert 1 0 fails 2000 -
        created 1 a@2@fails
        begin 10 a 1 1 3000 2000 fails -
        end 0 a 1 failed 3100
        reschedule 2 0 a 90000
        done 2
        begin 20 a 1 2 90001 90000 fails -
        end 0 a 2 well 90200
        stopped";
    breaks(log, "90001 90000", "33100 33000", Rule::Early);
}

#[test]
fn a_clock_that_is_set_back_excuses_what_was_due_before() {
    let log = "
        round 1
        insert 1 0 plain 5000 -
        created 1 a@5@plain
        moves 100 6000
        moved 110
        begin 200 a 1 1 2000 5000 plain -
        end 0 a 1 well 2100
        stopped";
    // It was not due by then, or it was long ago.
    breaks(log, "moves 100 6000", "moves 100 4900", Rule::Early);
    breaks(log, "begin 200", "begin 4000000", Rule::Early);
}

#[test]
fn a_clock_that_is_set_back_excuses_one_delivery_of_each_thread() {
    let log = |early: usize| {
        let mut log = String::from("round 1\n");
        for id in 1..=early {
            log += &format!("insert {id} 0 plain 5000 -\ncreated {id} {id:x}@5@plain\n");
        }
        log += "moves 100 6000\nmoved 110\n";
        for id in 1..=early {
            log += &format!("begin 200 {id:x} {id} 1 2000 5000 plain -\n");
            log += &format!("end 0 {id:x} 1 well 2100\n");
        }
        log + "stopped"
    };
    is_kept(&log(WORKERS));
    assert_eq!(broken(&log(WORKERS + 1)), [Rule::Early]);
}

#[test]
fn a_delivery_after_done_is_found() {
    let log = "
        round 1
        insert 1 0 plain 2000 -
        created 1 a@2@plain
        cancel 2 0 a
        begin 10 a 1 1 3000 2000 plain -
        fired 2
        end 0 a 1 well 3100
        stopped";
    is_kept(log);
    let done_before = log.replace(
        "begin 10 a 1 1 3000 2000 plain -\n        fired 2",
        "done 2\n        begin 10 a 1 1 3000 2000 plain -",
    );
    assert_eq!(broken(&done_before), [Rule::AfterDone]);
    breaks(log, "fired 2", "done 2", Rule::Answer);
}

/// A delivery in flight at a kill, and again after it. The request of thread 1 proves nothing of thread 0.
const AGAIN: &str = "
    round 1
    insert 1 0 plain 2000 -
    created 1 a@2@plain
    begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100
    insert 2 1 plain 2000 -
    created 2 b@2@plain
    cancel 3 1 b
    done 3
    killed
    round 2
    begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100
    stopped";

#[test]
fn what_was_in_flight_at_a_kill_may_come_again() {
    is_kept(AGAIN);
    let mut checker = Checker::default();
    for line in AGAIN.lines().map(str::trim).filter(|it| !it.is_empty()) {
        checker.feed(line.parse().unwrap());
    }
    assert_eq!(checker.summary().in_flight, 1);
    assert_eq!(checker.summary().duplicates, 1);
}

#[test]
fn a_settled_timer_that_comes_again_is_found() {
    // The same thread asks after the end, and is answered.
    breaks(AGAIN, "cancel 3 1 b", "cancel 3 0 b", Rule::Twice);
    // In one life, and after a shutdown.
    breaks(AGAIN, "killed\n    round 2", "opened", Rule::Twice);
    breaks(AGAIN, "killed", "stopped", Rule::Twice);
}

#[test]
fn a_timer_that_is_with_two_handlers_is_found() {
    breaks(
        DELIVERED,
        "end 0 a 1 well 3100",
        "begin 10 a 1 1 3000 2000 plain -
        end 0 a 1 well 3100",
        Rule::Twice,
    );
}

#[test]
fn a_timer_that_was_not_found_and_comes_is_found() {
    let log = "
        round 1
        insert 1 0 plain 2000 -
        created 1 a@2@plain
        begin 10 a 1 1 3000 2000 plain -
        end 0 a 1 well 3100
        cancel 2 1 a
        none 2
        killed
        round 2
        opened
        stopped";
    breaks(
        log,
        "opened",
        "begin 10 a 1 1 3000 2000 plain -\n end 0 a 1 well 3100",
        Rule::Twice,
    );
}

#[test]
fn an_attempt_that_is_not_the_next_one_is_found() {
    let log = "
        round 1
        insert 1 0 fails 2000 -
        created 1 a@2@fails
        begin 10 a 1 1 3000 2000 fails -
        end 0 a 1 failed 3100
        killed
        round 2
        begin 10 a 1 1 3000 2000 fails -
        end 0 a 1 failed 3100
        begin 10 a 1 2 40000 39000 fails -
        end 0 a 2 well 40000
        stopped";
    is_kept(log);
    let skipped = log.replace("a 1 2 40000", "a 1 3 40000");
    let skipped = skipped.replace("end 0 a 2", "end 0 a 3");
    assert!(broken(&skipped).contains(&Rule::Attempt));
    breaks(log, "killed\n        round 2", "opened", Rule::Attempt);
}

#[test]
fn a_delivery_of_what_was_never_inserted_is_found() {
    let log = DELIVERED.replace("insert 1 0", "insert 7 0");
    assert!(broken(&log).contains(&Rule::Id));
    breaks(
        DELIVERED,
        "stopped",
        "begin 11 b 5 1 3000 2000 plain -\n stopped",
        Rule::Id,
    );
}

#[test]
fn another_id_or_handler_or_key_is_found() {
    breaks(
        DELIVERED,
        "begin 10 a 1 1 3000 2000 plain -",
        "begin 10 a 1 1 3000 2000 slow -",
        Rule::Id,
    );
    breaks(
        DELIVERED,
        "begin 10 a 1 1 3000 2000 plain -",
        "begin 10 a 1 1 3000 2000 plain k",
        Rule::Id,
    );
    // The next attempt has another id.
    let again = AGAIN.replace("round 2\n    begin 10 a 1", "round 2\n    begin 10 c 1");
    assert!(broken(&again).contains(&Rule::Id));
}

const KEYS: &str = "
    round 1
    insert 1 0 plain 2000 k
    insert 2 1 plain 2000 k
    existing 2 a@2@plain
    created 1 a@2@plain
    begin 10 a 1 1 3000 2000 plain k
    end 0 a 1 well 3100
    stopped";

#[test]
fn two_timers_with_one_key_are_found() {
    let log = KEYS.replace("stopped", "cancel 3 0 b\n none 3\n stopped");
    let log = log.replace("existing 2 a@2", "created 2 b@2");
    assert!(broken(&log).contains(&Rule::Key));
    // One after the other.
    is_kept(&KEYS.replace(
        "stopped",
        "insert 3 0 plain 4000 k
        created 3 b@4@plain
        begin 11 b 3 1 5000 4000 plain k
        end 0 b 1 well 5000
        stopped",
    ));
}

#[test]
fn an_existing_timer_of_another_key_is_found() {
    let log = KEYS.replace("insert 2 1 plain 2000 k", "insert 2 1 plain 2000 other");
    let log = log.replace(
        "existing 2 a@2@plain\n    created 1 a@2@plain",
        "created 1 a@2@plain\n existing 2 a@2@plain",
    );
    assert_eq!(broken(&log), [Rule::Key]);
}

#[test]
fn an_existing_timer_that_is_gone_is_found() {
    let log = "
        round 1
        insert 1 0 plain 9000 k
        created 1 a@9@plain
        insert 3 0 plain 2000 k
        cancel 2 0 a
        done 2
        existing 3 a@9@plain
        stopped";
    breaks(
        &log.replace("insert 3 0 plain 2000 k", "opened")
            .replace("done 2", "insert 3 0 plain 2000 k\n done 2"),
        "insert 3 0 plain 2000 k\n done 2",
        "done 2\n insert 3 0 plain 2000 k",
        Rule::Key,
    );
}

#[test]
fn a_dead_letter_is_kept_until_it_is_redriven() {
    let log = "
        round 1
        insert 1 0 fails 2000 -
        created 1 a@2@fails
        begin 10 a 1 1 3000 2000 fails -
        end 0 a 1 dead 3100
        stopped
        letter a 1";
    breaks(log, "letter a 1", "opened", Rule::Lost);
    breaks(log, "letter a 1", "letter a 2", Rule::Other);
    breaks(log, "1 dead", "1 well", Rule::Other);
    let redriven = log.replace(
        "stopped\n        letter a 1",
        "stopped
        round 2
        redrive 2 0 a
        done 2
        begin 10 a 1 1 4000 3500 fails -
        end 0 a 1 well 4100
        stopped",
    );
    breaks(
        &redriven,
        "redrive 2 0 a\n        done 2",
        "opened",
        Rule::Twice,
    );
    let log = redriven.replace(
        "begin 10 a 1 1 4000 3500 fails -\n        end 0 a 1 well 4100",
        "opened",
    );
    assert_eq!(broken(&log), [Rule::Lost]);
}

#[test]
fn the_last_retry_delay_makes_a_dead_letter() {
    let mut log = "round 1\n insert 1 0 fails 2000 -\n created 1 a@2@fails\n".to_owned();
    for attempt in 1..=4 {
        let wall = 1_000_000 * attempt;
        let due = if attempt == 1 { 2_000 } else { wall };
        log += &format!("begin 10 a 1 {attempt} {wall} {due} fails -\n");
        log += &format!("end 0 a {attempt} dropped {wall}\n");
    }
    is_kept(&format!("{log} stopped\n letter a 4"));
    let again = "begin 10 a 1 5 9000000 9000000 fails -\n end 0 a 5 well 9000000\n stopped";
    assert_eq!(broken(&format!("{log} {again}")), [Rule::Twice]);
}

#[test]
fn a_request_that_a_shutdown_leaves_is_found() {
    let log = "round 1\n insert 1 0 plain 2000 -\n killed";
    breaks(log, "killed", "stopped", Rule::Answer);
}

#[test]
fn what_the_child_finds_wrong_is_found() {
    breaks(
        DELIVERED,
        "stopped",
        "wrong all of it\n stopped",
        Rule::Other,
    );
    breaks(DELIVERED, "stopped", "stop", Rule::Other);
}

/// A timer is delivered and settled, and another one inserted, after a copy was made. The copy is restored, and the first one comes again.
const RESTORED: &str = "
    round 1
    insert 1 0 plain 2000 -
    created 1 a@2@plain
    opened
    copies 1
    copied 1
    begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100
    insert 2 0 plain 2000 -
    created 2 b@2@plain
    killed
    restored 1
    round 2
    begin 20 a 1 1 4000 2000 plain -
    end 0 a 1 well 4100
    stopped";

/// A timer is delivered just too late after its namespace was paused.
const SERVICE: &str = "
    round 1
    insert 1 0 mail/plain 2000 -
    created 1 a@2@mail/plain
    fault the namespace mail is paused
    paused 10 mail
    begin 3000011 a 1 1 3000 2000 mail/plain -
    end 0 a 1 well 3100
    resumes mail
    occurred 3000020 5000 5000
    stopped";

#[test]
fn a_line_is_read_as_it_is_written() {
    for log in [DELIVERED, AGAIN, KEYS, SERVICE, RESTORED] {
        for text in log.lines().map(str::trim).filter(|it| !it.is_empty()) {
            assert_eq!(text.parse::<Line>().unwrap().to_string(), text);
            // Cut off, it is no line, or another one that is as short.
            let torn = &text[..text.len() - 1];
            assert!(torn.parse::<Line>().is_err() || torn.contains(' '));
        }
    }
}

#[test]
fn what_was_refused_for_space_is_never_delivered() {
    let refused = "
        round 1
        insert 1 0 plain 2000 -
        full 1
        opened
        stopped";
    is_kept(refused);
    let delivered = "begin 10 a 1 1 3000 2000 plain -
        end 0 a 1 well 3100";
    let broken = broken(&refused.replace("opened", delivered));
    assert!(broken.contains(&Rule::Id), "{broken:?}");
    // Of a batch it is not known: it may be there, or not.
    let unknown = refused.replace("full 1", "unknown 1");
    is_kept(&unknown);
    is_kept(&unknown.replace("opened", delivered));
}

#[test]
fn an_answer_for_want_of_space_is_that_of_an_insert() {
    let log = "
        round 1
        insert 1 0 plain 2000 -
        created 1 a@2@plain
        insert 2 0 plain 2000 -
        full 2
        begin 10 a 1 1 3000 2000 plain -
        end 0 a 1 well 3100
        stopped";
    breaks(log, "full 2", "full 3\n full 2", Rule::Answer);
}
