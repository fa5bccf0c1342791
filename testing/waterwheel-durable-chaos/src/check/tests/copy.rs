//! What is said of a service that goes on from a copy of its file.

use super::{RESTORED, breaks, broken, is_kept};
use crate::check::Rule;

const AGAIN: &str = "begin 20 a 1 1 4000 2000 plain -
    end 0 a 1 well 4100";

#[test]
fn what_a_copy_has_is_delivered_after_its_restore() {
    breaks(RESTORED, AGAIN, "opened", Rule::Lost);
    breaks(RESTORED, "20 a 1 1 4000", "20 a 1 1 1900", Rule::Early);
    // It was settled before the copy was begun, as the answer to a later request of its thread shows.
    let settled = "begin 10 a 1 1 3000 2000 plain -
    end 0 a 1 well 3100
    insert 2 0 plain 2000 -
    created 2 b@2@plain";
    let log = RESTORED.replace(settled, "opened");
    let log = log.replacen("opened", settled, 1);
    assert_eq!(broken(&log), [Rule::Twice, Rule::Lost]);
    let delivered = "begin 21 b 2 1 4000 2000 plain -\n end 0 b 1 well 4100";
    is_kept(&log.replace(AGAIN, delivered));
}

#[test]
fn what_was_inserted_after_a_copy_is_gone() {
    // It came after the copy, so nothing is lost, and nothing may come.
    let delivered = format!("{AGAIN}\n begin 21 b 2 1 4000 2000 plain -");
    let log = RESTORED.replace(AGAIN, &delivered);
    assert!(broken(&log).contains(&Rule::Id));
    // While the copy was made, it was inserted or not.
    let insert = "insert 2 0 plain 2000 -\n    created 2 b@2@plain\n";
    let between = |log: &str| {
        let log = log.replace(insert, "");
        log.replace("copied 1", &format!("{insert} copied 1"))
    };
    is_kept(&between(RESTORED));
    let log = between(&format!("{log}\n end 0 b 1 well 4100"));
    let log = log.replace("stopped", "");
    is_kept(&log);
    // Its id is the one that it had.
    let other = log.replace("begin 21 b 2", "begin 21 d 2");
    assert!(broken(&other.replace("end 0 b", "end 0 d")).contains(&Rule::Id));
}

#[test]
fn an_id_that_is_given_again_after_a_restore_is_found() {
    let inserted = format!(
        "{AGAIN}
        insert 3 0 plain 2000 -
        created 3 c@2@plain
        begin 30 c 3 1 4000 2000 plain -
        end 0 c 1 well 4100"
    );
    let log = RESTORED.replace(AGAIN, &inserted);
    is_kept(&log);
    let again = log.replace("created 3 c", "created 3 b");
    let again = again.replace("begin 30 c", "begin 30 b");
    assert_eq!(broken(&again.replace("end 0 c", "end 0 b")), [Rule::Id]);
}

/// What is asked for a timer before a copy is begun, while it is made, and after it; and what comes once it is restored.
fn with_a_copy(before: &str, between: &str, after: &str, comes: &str) -> String {
    format!(
        "round 1
        insert 1 0 plain 9000 -
        created 1 a@9@plain
        {before}
        copies 1
        {between}
        copied 1
        {after}
        killed
        restored 1
        round 2
        {comes}
        stopped"
    )
}

#[test]
fn a_cancel_is_undone_by_a_copy_that_is_older() {
    let log = with_a_copy;
    let (cancel, comes) = (
        "cancel 2 0 a\n done 2",
        "begin 20 a 1 1 9500 9000 plain -\n end 0 a 1 well 9600",
    );
    is_kept(&log("", "", cancel, comes));
    assert_eq!(broken(&log("", "", cancel, "")), [Rule::Lost]);
    // It is not known which of both the copy has.
    is_kept(&log("", cancel, "", comes));
    is_kept(&log("", cancel, "", ""));
    is_kept(&log("cancel 2 0 a", "done 2", "", ""));
    is_kept(&log("cancel 2 0 a", "", "done 2", comes));
    is_kept(&log(cancel, "", "", ""));
    assert_eq!(broken(&log(cancel, "", "", comes)), [Rule::AfterDone]);
}

#[test]
fn a_move_is_undone_by_a_copy_that_is_older() {
    let log = |before: &str, between: &str, after: &str, due: u32| {
        let comes = format!("begin 20 a 1 1 9500 {due} plain -\n end 0 a 1 well 9600");
        with_a_copy(before, between, after, &comes)
    };
    let moved = "reschedule 2 0 a 8000\n done 2";
    is_kept(&log("", "", moved, 9_000));
    assert_eq!(broken(&log("", "", moved, 8_000)), [Rule::Early]);
    is_kept(&log("", moved, "", 9_000));
    is_kept(&log("", moved, "", 8_000));
    is_kept(&log(moved, "", "", 8_000));
    assert_eq!(broken(&log(moved, "", "", 9_000)), [Rule::Early]);
    // A timer that was inserted while the copy was made, and moved then.
    let inserted = "insert 3 0 plain 9000 -\n created 3 b@9@plain\n reschedule 4 0 b 8000\n done 4";
    for due in [9_000, 8_000, 7_000] {
        let other = format!(
            "stopped\n round 3\n begin 9 b 3 1 9500 {due} plain -\n end 0 b 1 well 9600\n stopped"
        );
        let log = log("", inserted, "", 9_000).replace("stopped", &other);
        let expected = &[Rule::Early][usize::from(due != 7_000)..];
        assert_eq!(broken(&log), expected, "{due}");
    }
}

#[test]
fn attempts_while_a_copy_is_made_may_come_again() {
    let log = |attempt: u32| {
        format!(
            "round 1
            insert 1 0 fails 2000 -
            created 1 a@2@fails
            begin 10 a 1 1 3000 2000 fails -
            end 0 a 1 failed 3100
            insert 2 0 plain 2000 -
            full 2
            copies 1
            begin 20 a 1 2 40000 39000 fails -
            end 0 a 2 failed 40100
            begin 30 a 1 3 150000 149000 fails -
            copied 1
            end 0 a 3 failed 150100
            begin 40 a 1 4 500000 499000 fails -
            end 0 a 4 well 500100
            killed
            restored 1
            round 2
            begin 10 a 1 {attempt} 900000 800000 fails -
            end 0 a {attempt} well 900100
            stopped"
        )
    };
    // The first one is known to have failed before the copy, and the fourth one began after it.
    for attempt in [2, 3] {
        is_kept(&log(attempt));
    }
    for attempt in [1, 4] {
        assert!(broken(&log(attempt)).contains(&Rule::Attempt), "{attempt}");
    }
}

#[test]
fn a_redrive_while_a_copy_is_made_is_done_or_not() {
    let log = |between: &str, after: &str, comes: &str| {
        format!(
            "round 1
            insert 1 0 fails 2000 -
            created 1 a@2@fails
            begin 10 a 1 1 3000 2000 fails -
            end 0 a 1 dead 3100
            stopped
            letter a 1
            round 2
            copies 1
            {between}
            copied 1
            {after}
            killed
            restored 1
            round 3
            opened
            {comes}"
        )
    };
    let redrive = "redrive 2 0 a\n done 2";
    let delivered = "begin 10 a 1 1 4000 3500 fails -\n end 0 a 1 well 4100";
    let redriven = format!("{redrive}\n {delivered}");
    let (dead_letter, well) = ("stopped\n letter a 1", format!("{delivered}\n stopped"));
    for between in [redrive, &redriven] {
        is_kept(&log(between, "", dead_letter));
        is_kept(&log(between, "", &well));
    }
    is_kept(&log(&redriven, "", "stopped"));
    // It was with its handler as the copy was made.
    let (begin, end) = delivered.split_once('\n').unwrap();
    is_kept(&log(&format!("{redrive}\n {begin}"), end, dead_letter));
    // It was redriven after the copy, and that is undone.
    is_kept(&log("", &redriven, dead_letter));
    assert_eq!(broken(&log("", &redriven, &well)), [Rule::Twice]);
}

#[test]
fn a_restore_of_what_was_not_copied_is_found() {
    breaks(RESTORED, "copied 1", "copied 1\n copied 1", Rule::Other);
    for missing in ["copies 1", "copied 1"] {
        let log = RESTORED.replace(missing, "opened");
        assert!(broken(&log).contains(&Rule::Other), "{missing}");
    }
}
