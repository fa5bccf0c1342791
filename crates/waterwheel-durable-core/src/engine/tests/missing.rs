//! Reports of names that have no handler.

use super::*;

#[test]
fn a_missing_handler_is_reported_after_a_grace() {
    // With timers that are long overdue as the engine starts, as after a restart; and with timers that come due later.
    let mut it = Subject::new(Config::default());
    it.insert_many("mail", 1, -10_000);
    it.advance(SECOND - 2_000);
    assert!(it.reports.is_empty());
    it.advance(2_000);
    assert_eq!(it.reports, ["mail is missed"]);
    it.insert_many("close", 1, 5_500);
    it.advance(5 * SECOND);
    assert_eq!(it.reports.len(), 1);
    // The engine asks for the turn at which it reports.
    let at = it.engine.poll_timeout().unwrap();
    assert!((6..=8).contains(&(at / SECOND - 5)), "{at}");
    it.advance(at - it.engine.now().boot_micros);
    assert_eq!(it.reports, ["mail is missed", "close is missed"]);
}

#[test]
fn a_handler_in_time_is_not_reported_though_the_clock_is_set_back() {
    let mut it = Subject::new(Config::default());
    it.insert_many("mail", 1, 0);
    let mut now = it.engine.now();
    now.wall_micros -= 3_600 * SECOND.cast_signed();
    it.engine.handle_time(now);
    it.settle();
    it.insert_many("mail", 1, -3_700_000);
    it.advance(SECOND / 2);
    assert!(it.reports.is_empty());
    // The grace period is measured by the boot clock, which is never set.
    it.advance(SECOND / 2);
    assert_eq!(it.reports, ["mail is missed"]);
    let mut it = Subject::new(Config::default());
    it.insert_many("mail", 1, 0);
    it.pass(SECOND / 2);
    it = it.handles(1);
    it.advance(10 * SECOND);
    assert!(it.reports.is_empty() && it.delivered.len() == 1);
}

#[test]
fn a_name_whose_due_timers_have_left_is_no_longer_reported() {
    let mut it = Subject::new(Config::default());
    for millis in [0, 0, 3_600_000] {
        it.insert(millis);
    }
    it.settle();
    let handles = it.created();
    it.advance(3 * SECOND);
    assert_eq!(it.reports, ["mail is missed"]);
    it.cancel(handles[0].clone());
    assert_eq!(it.reports.len(), 1);
    let later = Due::from_millis(NOW + 7_200_000);
    it.engine.handle_reschedule(2, handles[1].clone(), later);
    it.settle();
    assert_eq!(it.reports, ["mail is missed", "mail is not missed"]);
    // Reported again when the others come due.
    it.advance(3_700 * SECOND);
    assert_eq!(it.reports.len(), 3);
    it.cancel(handles[2].clone());
    it.advance(3_700 * SECOND);
    assert_eq!(it.reports[3..], ["mail is not missed", "mail is missed"]);
}

#[test]
fn a_reply_that_does_not_know_of_a_cancel_is_asked_for_again() {
    let mut it = Subject::new(Config::default());
    it.insert_many("mail", 2, 0);
    let handles = it.created();
    it.advance(3 * SECOND);
    assert_eq!(it.reports, ["mail is missed"]);
    it.engine.handle_cancel(1, handles[0].clone());
    it.follow();
    let request = it.requests.pop_front().unwrap();
    it.carry_out(request);
    // The store is asked what is left, and replies after its reply to a later commit.
    let request = it.requests.pop_front().unwrap();
    assert!(
        matches!(request, Output::Read(_, Query::FirstSecond(..))),
        "{request:?}"
    );
    let late = it.execute(request);
    it.cancel(handles[1].clone());
    assert_eq!(it.reports.len(), 1);
    it.hand_in(late);
    it.settle();
    assert_eq!(it.reports, ["mail is missed", "mail is not missed"]);
}
