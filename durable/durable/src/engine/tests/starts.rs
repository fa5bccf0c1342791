//! What becomes of a timer whose start is noted first?

use waterwheel_store::Position;

use super::poison::subject;
use super::*;

/// An engine after three ends, with a timer whose start is to be noted; the engine has asked the store to.
fn about_to_note() -> Subject {
    let mut it = subject(Some(9));
    it.insert_to("mail", 0);
    it.settle();
    for _ in 0..3 {
        it.pass(1_000);
        it.settle();
        it.start_again();
    }
    if it.delivered.is_empty() {
        it.pass(1_000);
        it.settle();
    }
    let now = it.engine.now();
    it.begin_without_turn(now);
    while !is_noting(&it) {
        let Request { number, call } = it.asked.pop_front().expect("it notes the start");
        let reply = call.ask(&mut it.store);
        it.engine.replied(number, reply);
        it.follow();
        it.pass(1_000);
    }
    it
}

impl Subject {
    /// How often the first timer was started, as the store has noted.
    fn starts(&mut self) -> u64 {
        let most = waterwheel_store::Most {
            rows: 1,
            bytes: usize::MAX,
        };
        let rows = self.store.load("mail", Position::START, i64::MAX, most);
        rows.unwrap()[0].starts
    }
}

pub(super) fn is_noting(it: &Subject) -> bool {
    let first = it.asked.front().map(|request| &request.call);
    matches!(first, Some(Call::Commit(_, steps)) if matches!(steps[..], [.., Op::Start(_)]))
}

#[test]
fn a_start_that_the_store_refuses_is_noted_later() {
    let mut it = about_to_note();
    for _ in 0..3 {
        assert!(is_noting(&it) && it.delivered.is_empty());
        it.reply(refused());
        it.pass(SECOND);
    }
    it.settle();
    assert_eq!(it.delivered.len(), 1);
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_stop_before_a_start_is_noted_delivers_nothing() {
    for is_refused in [false, true] {
        let mut it = about_to_note();
        it.engine.stop();
        it.follow();
        assert!(!it.engine.is_idle());
        if is_refused {
            it.reply(refused());
            // It holds nothing up, also if the store never takes it.
            assert!(it.engine.is_written() && it.engine.running() == 0);
            it.pass(SECOND);
        }
        it.settle();
        assert!(it.delivered.is_empty() && it.engine.is_idle());
        it.start_again();
        it.pass(1_000);
        it.settle();
        assert_eq!(it.end_all(&Ended::Well).len(), 1);
        assert!(it.store.is_empty());
    }
}

#[test]
fn a_start_that_the_store_refuses_holds_up_no_stop() {
    let mut it = about_to_note();
    it.reply(refused());
    assert_eq!(it.engine.running(), 1);
    it.engine.stop();
    it.follow();
    assert!(it.engine.is_written() && it.engine.running() == 0);
}

#[test]
fn a_pause_before_a_start_is_noted_delivers_nothing() {
    let mut it = about_to_note();
    it.reply(refused());
    it.engine.pause(1, &DEFAULT.into(), true);
    it.follow();
    it.pass(SECOND);
    it.settle();
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    for _ in 0..10 {
        it.pass(SECOND);
        it.settle();
    }
    assert!(it.delivered.is_empty() && it.engine.running() == 0);
    let noted = it.starts();
    it.pause(DEFAULT, false);
    it.run_until(it.engine.now().boot_micros + SECOND);
    // It is noted once, however often it was to start.
    assert_eq!((it.starts(), it.delivered[0].starts), (noted, noted));
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_move_forgets_a_start_that_was_given_back() {
    let mut it = about_to_note();
    let handle = it.created().remove(0);
    // The store takes the pause first.
    it.reply(refused());
    it.engine.pause(1, &DEFAULT.into(), true);
    it.follow();
    it.pass(SECOND);
    it.settle();
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    assert!(it.delivered.is_empty() && it.starts() > 1);
    let sooner = Due::from_millis(NOW - 1_000);
    it.engine.reschedule(1, handle, sooner);
    it.settle();
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    it.pause(DEFAULT, false);
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!((it.starts(), it.delivered[0].starts), (1, 1));
}

#[test]
fn a_clock_set_back_while_a_start_is_noted_makes_no_early_delivery() {
    let mut it = about_to_note();
    let hour = 3_600 * SECOND.cast_signed();
    it.set(-hour);
    it.settle();
    assert!(it.delivered.is_empty() && it.engine.running() == 0);
    it.set(hour);
    it.settle();
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}
