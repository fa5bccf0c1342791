//! How late a timer comes up, depending on the phase of the clocks relative to each other.

use super::*;

/// An engine whose wall clock is this many microseconds ahead of the milliseconds of the boot clock.
fn subject(phase: u64) -> Subject {
    let mut it = Subject::new(Config::default()).handles(10);
    let mut now = it.engine.now();
    now.wall_micros += phase.cast_signed();
    it.begin(now);
    it
}

/// Turns the engine whenever it asks, until something is delivered. Returns how late that is, in microseconds.
fn lateness(it: &mut Subject) -> i64 {
    for _ in 0..100 {
        let next = it.engine.poll_timeout().unwrap();
        it.go_on_until(next.max(it.engine.now().boot_micros));
        if let Some(row) = it.delivered.first() {
            let late = it.engine.now().wall_micros - row.due.as_millis() * 1_000;
            it.end_all(&Ended::Well);
            return late;
        }
    }
    panic!("nothing is delivered");
}

#[test]
fn a_timer_comes_up_as_its_millisecond_begins() {
    for phase in [0, 1, 250, 500, 999] {
        let mut it = subject(phase);
        for millis in [1, 2, 700, 1_999, 5_000] {
            let now = it.engine.now().wall_micros.div_euclid(1_000) - NOW;
            it.insert_many("mail", 1, now + millis);
            assert_eq!(lateness(&mut it), 0, "{millis} ms ahead, phase {phase}");
        }
    }
}

#[test]
fn a_timer_comes_up_as_its_millisecond_begins_after_a_clock_was_set() {
    for by in [-3_600_000_000, -1_500, 1_500, 3_600_000_700] {
        let mut it = subject(300);
        it.insert_many("mail", 1, 1_000);
        it.jump(by);
        // A timer that is due, by the new time, before the wheel's present position by the old time.
        let now = it.engine.now().wall_micros.div_euclid(1_000) - NOW;
        it.insert_many("mail", 1, now + 500);
        if by > 1_000_000 {
            it.run_until(it.engine.now().boot_micros);
            assert_eq!(it.end_all(&Ended::Well).len(), 1);
        }
        assert_eq!(lateness(&mut it), 0, "{by}");
    }
}

#[test]
fn a_clock_that_is_slewed_makes_no_timer_early_and_few_late() {
    for step in [-900, -333, -1, 1, 333, 900] {
        let mut it = subject(123);
        for millis in 1_000..1_100 {
            it.insert(millis);
        }
        it.settle();
        let (mut late, mut steps) = (Vec::new(), 0);
        while !it.store.is_empty() {
            let next = it.engine.poll_timeout().unwrap();
            it.go_on_until(next.max(it.engine.now().boot_micros));
            let wall = it.engine.now().wall_micros;
            late.extend(
                it.delivered
                    .iter()
                    .map(|row| wall - row.due.as_millis() * 1_000),
            );
            it.end_all(&Ended::Well);
            // Each step is too small to be noticed as a jump, but several in a row are not.
            steps += 1;
            if steps % 3 == 0 {
                it.set(step);
            }
        }
        assert_eq!(late.len(), 100);
        assert!(late.iter().all(|it| (0..=2_000).contains(it)), "{late:?}");
    }
}

#[test]
fn what_is_overdue_as_it_is_loaded_comes_up_at_once() {
    for phase in [0, 400, 999] {
        let mut it = subject(phase);
        it.pass(7_000);
        it.insert_many("mail", 1, 0);
        let now = it.engine.now().boot_micros;
        assert_eq!(it.engine.poll_timeout(), Some(now));
        it.run_until(now);
        assert_eq!(it.end_all(&Ended::Well).len(), 1);
        assert!(it.engine.poll_timeout().is_none_or(|next| next > now));
    }
}
