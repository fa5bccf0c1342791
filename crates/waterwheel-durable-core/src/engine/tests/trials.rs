//! Which accused timer is tried next.

use super::poison::subject;
use super::*;

#[test]
fn the_accused_are_tried_one_after_another() {
    let mut it = subject(None);
    it.handle("other", 64);
    for name in ["mail", "other", "mail", "other"] {
        it.insert_to(name, 0);
    }
    it.settle();
    for _ in 0..3 {
        it.advance(1_000);
        assert_eq!(it.delivered.len(), 4);
        it.start_again();
        it.advance(1_000);
    }
    // Timers inserted now wait for none of them.
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    assert_eq!(it.delivered.len(), 2);
    assert_eq!([it.delivered[0].starts, it.delivered[1].starts], [2, 0]);
    for left in [3, 2, 1] {
        let at = it.delivered.iter().position(|row| row.starts > 0);
        let row = it.delivered.remove(at.unwrap());
        it.engine.handle_ended(row.id, Ended::Well);
        it.settle();
        assert_eq!(it.delivered.len(), 2, "{left} are left");
    }
    // A hanging trial delays the others for a minute, and no longer.
    it.start_again();
    it.advance(1_000);
    it.end_all(&Ended::Well);
    assert!(it.engine.is_idle());
}

#[test]
fn an_accused_timer_that_hangs_is_waited_for_a_minute() {
    let mut it = subject(None);
    it.insert_many("mail", 3, 0);
    it.end_processes(3);
    let from = it.engine.now().boot_micros;
    for count in [1, 2, 3] {
        assert_eq!(it.delivered.len(), count);
        let over = from + count as u64 * 60 * SECOND;
        it.run_until(over - 2_000);
        assert_eq!(it.delivered.len(), count);
        // It asks for the turn at which the next trial begins.
        let next = it.engine.poll_timeout();
        assert!(next.is_some_and(|at| at <= over), "{next:?}");
        it.run_until(over);
    }
    // Nothing waits any longer.
    it.run_until(from + 1_000 * SECOND);
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.poll_timeout().is_none());
}

/// An engine whose namespaces have this many accused timers each, after the ends that this takes.
fn accused(each: &[(&str, usize)]) -> Subject {
    let mut it = subject(None);
    for (name, count) in each {
        it.namespace(name, &Policy::default());
        for _ in 0..*count {
            it.insert_to(&format!("{name}/mail"), 0);
        }
    }
    it.settle();
    for _ in 0..3 {
        it.advance(1_000);
        let all: usize = each.iter().map(|it| it.1).sum();
        assert_eq!(it.delivered.len(), all);
        it.start_again();
        it.advance(1_000);
    }
    it
}

#[test]
fn accused_timers_that_hang_keep_no_other_namespace_waiting() {
    let mut it = accused(&[("slow", 60), ("bank", 60), ("shop", 60)]);
    let end = it.engine.now().boot_micros + 4 * SECOND;
    let (mut ended, mut slow) = (0, 0);
    while it.engine.now().boot_micros < end {
        for row in std::mem::take(&mut it.delivered) {
            if row.handler.starts_with("slow") {
                slow += 1;
                continue;
            }
            ended += 1;
            it.engine.handle_ended(row.id, Ended::Well);
        }
        it.advance(1_000);
    }
    assert_eq!((slow, ended), (1, 120));
}

#[test]
fn an_accused_timer_that_waits_may_be_the_oldest() {
    let mut it = accused(&[("slow", 3)]);
    // The first of them hangs; timers that come due meanwhile are younger, and wait for a place.
    it.engine.add_handler(&"slow/mail".into(), 1, None);
    let now = it.engine.now().due().as_millis() - NOW;
    it.insert_many("slow/mail", 1, now);
    it.advance(SECOND);
    assert_eq!(it.delivered.len(), 1);
    let slow = it.of("slow");
    assert_eq!(
        it.engine.oldest_overdue(slow, it.engine.now().due()),
        Some(Due::from_millis(NOW))
    );
}

#[test]
fn a_trial_begins_once_its_start_is_noted() {
    let mut it = accused(&[("a", 1), ("b", 1)]);
    let now = it.engine.now();
    it.begin_without_turn(now);
    it.run_until_noting();
    // The store is slow.
    it.pass(5 * SECOND);
    assert_eq!(it.engine.stats().running, 1);
    it.settle();
    it.advance(SECOND - 1_000);
    assert_eq!(it.delivered.len(), 1);
    it.advance(1_000);
    assert_eq!(it.delivered.len(), 2);
}

#[test]
fn namespaces_have_their_trials_by_turns() {
    let mut it = accused(&[("a", 30), ("b", 30), ("c", 30)]);
    let mut tried = String::new();
    for _ in 0..1_000 {
        // Never two at a time, in all namespaces together: each ends soon.
        assert!(it.delivered.len() < 2);
        for row in it.end_all(&Ended::Well) {
            tried.push_str(&row.handler[..1]);
        }
        it.advance(1_000);
    }
    assert_eq!(tried.len(), 90);
    assert!(
        !tried.contains("aa") && !tried.contains("bb") && !tried.contains("cc"),
        "{tried}"
    );
}
