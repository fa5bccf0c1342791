//! Which timers are given up, and after how many ends of the process.

use super::*;

/// The handler whose timers end the process as soon as it is called.
const POISON: &str = "poison";

/// An engine with a handler that ends the process, and one that does not.
pub(super) fn subject(starts: Option<u32>) -> Subject {
    let mut it = Subject::new(Config::default());
    it.handle(POISON, 64);
    it.handle("mail", 64);
    if let Some(starts) = starts {
        it.set_policy(DEFAULT, &Policy::default().starts(starts));
    }
    it
}

/// Runs, and restarts whenever a timer ends the process, until none does. Returns how often the process has ended.
fn live(it: &mut Subject, limit: usize) -> usize {
    for ends in 0..limit {
        if !live_once(it) {
            return ends;
        }
        it.start_again();
    }
    limit
}

/// Runs until a timer ends the process, and returns whether one has. All others end well, each as soon as it begins.
fn live_once(it: &mut Subject) -> bool {
    for _ in 0..1_000 {
        while !it.delivered.is_empty() {
            // The oldest has had the most time to end.
            let row = it.delivered.remove(0);
            if &*row.handler == POISON {
                return true;
            }
            it.engine.handle_ended(row.id, Ended::Well);
            it.settle();
        }
        it.advance(1_000);
    }
    false
}

#[test]
fn a_timer_that_ends_the_process_is_given_up_after_so_many_starts() {
    for (starts, expected) in [(None, 5), (Some(4), 4), (Some(9), 9)] {
        let mut it = subject(starts);
        it.insert_to(POISON, 0);
        it.insert_many("mail", 1, 10_000);
        assert_eq!(live(&mut it, 20), expected, "{starts:?}");
        assert_eq!(it.dead.len(), 1);
        let (row, why) = &it.dead[0];
        assert_eq!(&*row.handler, POISON);
        let said = format!("the process ended {} times in a row", expected);
        assert!(why.starts_with(&said), "{why}");
        assert_eq!(it.of(DEFAULT).counts.dead, 1);
        // The other timer continues.
        it.run_until(it.engine.now().boot_micros + 20 * SECOND);
        it.end_all(&Ended::Well);
        assert!(it.store.is_empty() && it.engine.is_idle());
        // Once redriven, it has the same number again. The ends before that count as one of them, since nothing is noted at the first.
        it.engine.handle_redrive(1, it.dead[0].0.id);
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
        // They all begin before any of them ends: as many as there are places.
        let mut ends = 0;
        loop {
            while it.delivered.len() < 64 && !it.requests.is_empty() {
                it.settle();
            }
            for _ in 0..20 {
                it.advance(1_000);
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
            it.end_first(&Ended::Well);
        }
        let dead: Vec<_> = it.dead.iter().map(|(row, _)| &*row.handler).collect();
        assert_eq!(dead, vec![POISON; poisons], "{ends} ends");
        assert!(it.store.is_empty());
        // Each is found within the runs that it needs, or a few more.
        assert!(ends <= poisons * starts as usize, "{ends} ends");
    }
}

#[test]
fn a_clean_end_begins_the_count_again() {
    let mut it = subject(None);
    it.insert_many("mail", 1, 0);
    // It is with its handler at each end.
    for _ in 0..10 {
        for _ in 0..4 {
            it.advance(1_000);
            assert_eq!(it.delivered.len(), 1);
            it.start_again();
        }
        it.end_in_order();
        it.start_again();
        it.advance(1_000);
        assert_eq!((it.delivered.len(), it.dead.len()), (1, 0));
    }
}

/// A timer of a paused namespace that was with its handler at five ends, of which three were noted. The last end was clean.
fn with_an_old_count() -> Subject {
    let mut it = subject(None);
    it.namespace("b", &Policy::default());
    it.insert_many("b/mail", 1, 0);
    it.end_processes(4);
    assert_eq!(it.delivered[0].start_count(), 3);
    it.pause("b", true);
    it.end_in_order();
    it
}

#[test]
fn a_count_of_older_ends_is_not_taken_for_one_of_these() {
    // Something else ends the process this many times, all but two of them with noted starts.
    for ends in 2..9 {
        let mut it = with_an_old_count();
        it.start_again();
        for end in 0..ends {
            // The timers of the previous run are not involved.
            let before = it.end_all(&Ended::Well);
            assert!(
                before
                    .iter()
                    .all(|row| row.start_count() == u32::from(end > 1))
            );
            assert_eq!(before.len(), usize::from(end > 0));
            it.insert_many("mail", 1, 0);
            it.start_again();
        }
        it.end_all(&Ended::Well);
        it.pause("b", false);
        // Counting starts again from there.
        for count in 1..=3 {
            it.run_until(it.engine.now().boot_micros + SECOND);
            assert_eq!((it.delivered.len(), it.dead.len()), (1, 0), "{ends} ends");
            assert_eq!(it.delivered[0].start_count(), count);
            it.start_again();
        }
        it.run_until(it.engine.now().boot_micros + SECOND);
        assert_eq!((it.delivered.len(), it.dead.len()), (0, 1));
    }
}

#[test]
fn a_copy_that_is_restored_counts_anew() {
    let mut it = with_an_old_count();
    it.start_again();
    it.pause("b", false);
    it.end_in_order();
    // Its epochs begin later, as if many runs had ended uncleanly.
    for _ in 0..4_096 {
        it.store.begin().unwrap();
    }
    it.start_again();
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!((it.delivered.len(), it.dead.len()), (1, 0));
    assert_eq!(it.delivered[0].start_count(), 1);
}

#[test]
fn no_start_is_noted_without_need() {
    let mut it = subject(None);
    for ends in 0..4 {
        it.insert_to("mail", -1_000);
        it.insert_many("mail", 1, 1_000_000);
        it.advance(1_000);
        // A timer that was overdue at the start is noted after two ends; one of this run never is.
        let noted = ends.max(1) - 1;
        let starts: Vec<_> = it.delivered.iter().map(|row| row.starts).collect();
        let own = starts.iter().filter(|starts| **starts == 0);
        let expected = if noted > 0 { 1 } else { ends + 1 };
        assert_eq!(own.count(), expected, "{ends}: {starts:?}");
        it.start_again();
    }
}

#[test]
fn a_clock_that_is_wrong_at_each_start_hides_no_poison() {
    let mut it = subject(None);
    it.insert_many(POISON, 1, 0);
    let hour = 3_600 * SECOND.cast_signed();
    let mut ends = 0;
    while it.dead.is_empty() {
        assert!(ends < 10, "it is never given up");
        it.advance(1_000);
        ends += usize::from(!it.delivered.is_empty());
        // Each start lies before the timer's due time, until the clock is set.
        let mut now = it.engine.now();
        now.wall_micros -= hour;
        now.boot_micros += SECOND;
        it.begin(now);
        assert!(it.delivered.is_empty());
        it.advance(SECOND);
        it.jump(hour);
    }
    assert_eq!(ends, 5);
}

#[test]
fn one_of_another_namespace_is_not_given_up_with_the_poison() {
    for first in ["a", "c"] {
        let mut it = subject(None);
        it.namespace(first, &Policy::default());
        it.handle("b/poison", 64);
        it.set_policy("b", &Policy::default());
        it.insert_to("b/poison", 0);
        it.insert_many(&format!("{first}/mail"), 1, 0);
        let mut ends = 0;
        // The timers that are not the poison end after half a second.
        while it.dead.is_empty() {
            let begun = it.engine.now().boot_micros;
            while !it.delivered.iter().any(|row| &*row.handler == "b/poison") {
                if it.engine.now().boot_micros > begun + SECOND / 2 {
                    it.end_all(&Ended::Well);
                }
                if !it.dead.is_empty() {
                    break;
                }
                it.advance(10_000);
            }
            ends += 1;
            assert!(ends < 20, "it is never given up");
            it.start_again();
        }
        for _ in 0..100 {
            it.end_all(&Ended::Well);
            it.advance(100_000);
        }
        let dead: Vec<_> = it.dead.iter().map(|(row, _)| &*row.handler).collect();
        assert_eq!(dead, ["b/poison"], "beside {first}");
        assert!(it.store.is_empty());
    }
}
