//! Which timer is given up, after how many ends of the process?

use waterwheel_store::Position;

use super::*;

/// A timer of this name ends the process as soon as its handler is called.
const POISON: &str = "poison";

/// An engine with a handler that ends the process and one that does not.
fn subject(starts: Option<u32>) -> Subject {
    let mut it = Subject::new(Config::default());
    it.handle(POISON, 64);
    it.handle("mail", 64);
    if let Some(starts) = starts {
        it.set_policy(DEFAULT, &Policy::default().starts(starts));
    }
    it
}

/// Lives until a timer ends the process, and starts again; else to the end. How often the process has ended.
fn live(it: &mut Subject, most: usize) -> usize {
    for ends in 0..most {
        if !live_once(it) {
            return ends;
        }
        it.start_again();
    }
    most
}

/// Whether a timer has ended the process. All others end well, each as soon as it begins.
fn live_once(it: &mut Subject) -> bool {
    for _ in 0..1_000 {
        while !it.delivered.is_empty() {
            // The oldest has had the most time to end.
            let row = it.delivered.remove(0);
            if &*row.handler == POISON {
                return true;
            }
            it.engine.ended(row.id, Ended::Well);
            it.settle();
        }
        it.pass(1_000);
        it.settle();
    }
    false
}

#[test]
fn a_timer_that_ends_the_process_is_given_up_after_so_many_starts() {
    for (starts, expected) in [(None, 5), (Some(4), 4), (Some(9), 9)] {
        let mut it = subject(starts);
        it.insert_to(POISON, 0);
        it.insert_to("mail", 10_000);
        it.settle();
        assert_eq!(live(&mut it, 20), expected, "{starts:?}");
        assert_eq!(it.dead.len(), 1);
        let (row, why) = &it.dead[0];
        assert_eq!(&*row.handler, POISON);
        let said = format!("the process has ended {} times in a row", expected);
        assert!(why.starts_with(&said), "{why}");
        assert_eq!(it.engine.namespace(DEFAULT).unwrap().counts.dead, 1);
        // The other one goes on.
        it.run_until(it.engine.now().boot_micros + 20 * SECOND);
        it.end_all(&Ended::Well);
        assert!(it.store.is_empty() && it.engine.is_idle());
        // Redriven, it has as many again. The ends before it count as one of them, since nothing is noted at the first.
        it.engine.redrive(1, it.dead[0].0.id);
        it.settle();
        it.dead.clear();
        assert_eq!(live(&mut it, 20), expected - 1);
    }
}

#[test]
fn what_was_with_a_handler_beside_the_poison_is_not_given_up() {
    for (poisons, starts) in [(1, 4), (1, 5), (3, 4)] {
        let mut it = subject(Some(starts));
        for count in 0..200 {
            if count % 40 == 3 && count / 40 < poisons {
                it.insert_to(POISON, 0);
            }
            it.insert_to("mail", 0);
        }
        it.settle();
        // They all begin before any ends: as many as there are places.
        let mut ends = 0;
        loop {
            while it.delivered.len() < 64 && !it.asked.is_empty() {
                it.settle();
            }
            for _ in 0..20 {
                it.pass(1_000);
                it.settle();
            }
            if it.delivered.iter().any(|row| &*row.handler == POISON) {
                ends += 1;
                assert!(ends < 50, "it is never given up");
                it.start_again();
                continue;
            }
            if it.delivered.is_empty() {
                break;
            }
            let row = it.delivered.remove(0);
            it.engine.ended(row.id, Ended::Well);
            it.settle();
        }
        let dead: Vec<_> = it.dead.iter().map(|(row, _)| &*row.handler).collect();
        assert_eq!(dead, vec![POISON; poisons], "{ends} ends");
        assert!(it.store.is_empty());
        // Each is found by the runs that it needs, and by few more.
        assert!(ends <= poisons * starts as usize, "{ends} ends");
    }
}

#[test]
fn a_clean_end_begins_the_count_again() {
    let mut it = subject(None);
    it.insert_to("mail", 0);
    it.settle();
    // It is with its handler at each end.
    for _ in 0..10 {
        for _ in 0..4 {
            it.pass(1_000);
            it.settle();
            assert_eq!(it.delivered.len(), 1);
            it.start_again();
        }
        it.engine.stop();
        it.engine.abandon();
        it.settle();
        it.start_again();
        it.pass(1_000);
        it.settle();
        assert_eq!((it.delivered.len(), it.dead.len()), (1, 0));
    }
}

#[test]
fn no_start_is_noted_without_need() {
    let mut it = subject(None);
    for ends in 0..4 {
        it.insert_to("mail", -1_000);
        it.insert_to("mail", 1_000_000);
        it.settle();
        it.pass(1_000);
        it.settle();
        // The first one that was overdue at the start is noted after two ends; one of this run never is.
        let noted = ends.max(1) - 1;
        let starts: Vec<_> = it.delivered.iter().map(|row| row.starts).collect();
        let own = starts.iter().filter(|starts| **starts == 0);
        let expected = if noted > 0 { 1 } else { ends + 1 };
        assert_eq!(own.count(), expected, "{ends}: {starts:?}");
        it.start_again();
    }
}

#[test]
fn the_accused_are_tried_one_after_another() {
    let mut it = subject(None);
    it.handle("other", 64);
    for name in ["mail", "other", "mail", "other"] {
        it.insert_to(name, 0);
    }
    it.settle();
    for _ in 0..3 {
        it.pass(1_000);
        it.settle();
        assert_eq!(it.delivered.len(), 4);
        it.start_again();
        it.pass(1_000);
        it.settle();
    }
    // What is inserted now waits for none of them.
    it.insert_to("mail", 0);
    it.settle();
    it.pass(1_000);
    it.settle();
    assert_eq!(it.delivered.len(), 2);
    assert_eq!([it.delivered[0].starts, it.delivered[1].starts], [2, 0]);
    for left in [3, 2, 1] {
        let at = it.delivered.iter().position(|row| row.starts > 0);
        let row = it.delivered.remove(at.unwrap());
        it.engine.ended(row.id, Ended::Well);
        it.settle();
        assert_eq!(it.delivered.len(), 2, "{left} are left");
    }
    // One that hangs keeps the others waiting for a minute, and no longer.
    it.start_again();
    it.pass(1_000);
    it.settle();
    it.end_all(&Ended::Well);
    assert!(it.engine.is_idle());
}

#[test]
fn an_accused_timer_that_hangs_is_waited_for_a_minute() {
    let mut it = subject(None);
    for _ in 0..3 {
        it.insert_to("mail", 0);
    }
    it.settle();
    for _ in 0..3 {
        it.pass(1_000);
        it.settle();
        it.start_again();
        it.pass(1_000);
        it.settle();
    }
    let from = it.engine.now().boot_micros;
    for count in [1, 2, 3] {
        assert_eq!(it.delivered.len(), count);
        let over = from + count as u64 * 60 * SECOND;
        it.run_until(over - 2_000);
        assert_eq!(it.delivered.len(), count);
        // It asks for the turn at which the next one begins.
        let next = it.engine.next_turn();
        assert!(next.is_some_and(|at| at <= over), "{next:?}");
        it.run_until(over);
    }
    // Nothing waits any more.
    it.run_until(from + 1_000 * SECOND);
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.next_turn().is_none());
}

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
    fn starts(&mut self) -> u32 {
        let most = waterwheel_store::Most {
            rows: 1,
            bytes: usize::MAX,
        };
        let rows = self.store.load("mail", Position::START, i64::MAX, most);
        rows.unwrap()[0].starts
    }
}

fn is_noting(it: &Subject) -> bool {
    let first = it.asked.front().map(|request| &request.call);
    matches!(first, Some(Call::Commit(_, steps)) if matches!(steps[..], [Op::Start(_)]))
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

#[test]
fn a_clock_that_is_wrong_at_each_start_hides_no_poison() {
    let mut it = subject(None);
    it.insert_to(POISON, 0);
    it.settle();
    let hour = 3_600 * SECOND.cast_signed();
    let mut ends = 0;
    while it.dead.is_empty() {
        assert!(ends < 10, "it is never given up");
        it.pass(1_000);
        it.settle();
        ends += usize::from(!it.delivered.is_empty());
        // Each start is before the timer's time, until the clock is set.
        let mut now = it.engine.now();
        now.wall_micros -= hour;
        now.boot_micros += SECOND;
        it.begin(now);
        assert!(it.delivered.is_empty());
        it.pass(SECOND);
        it.settle();
        it.set(hour);
        it.settle();
    }
    assert_eq!(ends, 5);
}

/// Namespaces with so many accused timers each, after as many ends as that takes.
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
        it.pass(1_000);
        it.settle();
        let all: usize = each.iter().map(|it| it.1).sum();
        assert_eq!(it.delivered.len(), all);
        it.start_again();
        it.pass(1_000);
        it.settle();
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
            it.engine.ended(row.id, Ended::Well);
        }
        it.pass(1_000);
        it.settle();
    }
    assert_eq!((slow, ended), (1, 120));
}

#[test]
fn an_accused_timer_that_waits_may_be_the_oldest() {
    let mut it = accused(&[("slow", 3)]);
    // The first of them hangs; what comes due meanwhile is younger, and waits for a place.
    it.engine.handle(&"slow/mail".into(), 1);
    let now = it.engine.now().due().as_millis() - NOW;
    it.insert_to("slow/mail", now);
    it.settle();
    it.pass(SECOND);
    it.settle();
    assert_eq!(it.delivered.len(), 1);
    let slow = it.engine.namespace("slow").unwrap();
    assert_eq!(it.engine.oldest_overdue(slow), Some(Due::from_millis(NOW)));
}

#[test]
fn a_trial_begins_once_its_start_is_noted() {
    let mut it = accused(&[("a", 1), ("b", 1)]);
    let now = it.engine.now();
    it.begin_without_turn(now);
    while !is_noting(&it) {
        let Request { number, call } = it.asked.pop_front().expect("it notes the start");
        let reply = call.ask(&mut it.store);
        it.engine.replied(number, reply);
        it.follow();
        it.pass(1_000);
    }
    // The store is slow.
    it.pass(5 * SECOND);
    assert_eq!(it.engine.running(), 1);
    it.settle();
    it.pass(SECOND - 1_000);
    it.settle();
    assert_eq!(it.delivered.len(), 1);
    it.pass(1_000);
    it.settle();
    assert_eq!(it.delivered.len(), 2);
}

#[test]
fn namespaces_have_their_trials_by_turns() {
    let mut it = accused(&[("a", 30), ("b", 30), ("c", 30)]);
    let mut tried = String::new();
    for _ in 0..1_000 {
        // Never two at a time, of all of them: they end soon.
        assert!(it.delivered.len() < 2);
        for row in it.end_all(&Ended::Well) {
            tried.push_str(&row.handler[..1]);
        }
        it.pass(1_000);
        it.settle();
    }
    assert_eq!(tried.len(), 90);
    assert!(
        !tried.contains("aa") && !tried.contains("bb") && !tried.contains("cc"),
        "{tried}"
    );
}

#[test]
fn one_of_another_namespace_is_not_given_up_with_the_poison() {
    for first in ["a", "c"] {
        let mut it = subject(None);
        it.namespace(first, &Policy::default());
        it.handle("b/poison", 64);
        it.set_policy("b", &Policy::default());
        it.insert_to("b/poison", 0);
        it.insert_to(&format!("{first}/mail"), 0);
        it.settle();
        let mut ends = 0;
        // What is not the poison ends after half a second.
        while it.dead.is_empty() {
            let begun = it.engine.now().boot_micros;
            while !it.delivered.iter().any(|row| &*row.handler == "b/poison") {
                if it.engine.now().boot_micros > begun + SECOND / 2 {
                    it.end_all(&Ended::Well);
                }
                if !it.dead.is_empty() {
                    break;
                }
                it.pass(10_000);
                it.settle();
            }
            ends += 1;
            assert!(ends < 20, "it is never given up");
            it.start_again();
        }
        for _ in 0..100 {
            it.end_all(&Ended::Well);
            it.pass(100_000);
            it.settle();
        }
        let dead: Vec<_> = it.dead.iter().map(|(row, _)| &*row.handler).collect();
        assert_eq!(dead, ["b/poison"], "beside {first}");
        assert!(it.store.is_empty());
    }
}
