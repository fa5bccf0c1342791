//! When deliveries that wait for a rate begin.

use super::*;

/// An engine with a namespace `slow` with this rate and one without a limit, each with this many timers, due in ten seconds.
fn subject(rate: Rate, timers: usize) -> Subject {
    let mut it = Subject::new(Config::default());
    it.namespace("slow", &Policy::default().rate(rate));
    it.namespace("fast", &Policy::default());
    for name in ["slow/mail", "fast/mail"] {
        for _ in 0..timers {
            it.insert_to(name, 10_000);
        }
    }
    it.settle();
    it.created();
    it
}

/// When the deliveries of a namespace begin up to that time, in microseconds since boot. Each ends at once.
fn begun(it: &mut Subject, name: &str, until: u64) -> Vec<u64> {
    let mut begun = Vec::new();
    while it.engine.now().boot_micros < until {
        let now = it.engine.now().boot_micros;
        for row in it.end_all(&Ended::Well) {
            assert_eq!((row.failures, row.starts), (0, 0));
            if namespace_in(&row.handler) == name {
                begun.push(now);
            }
        }
        let next = it.engine.poll_timeout().unwrap_or(u64::MAX);
        it.run_until(next.clamp(now + 1, until));
    }
    begun
}

const DUE: u64 = 15 * SECOND;

#[test]
fn a_rate_begins_each_at_its_slot_and_delays_no_other() {
    let mut it = subject(Rate::per_second(10).burst(1), 50);
    let mut other = subject(Rate::per_second(10).burst(1), 50);
    assert_eq!(begun(&mut other, "fast", 30 * SECOND), [DUE; 50]);
    let slots: Vec<_> = (0..50).map(|slot| DUE + slot * 100_000).collect();
    assert_eq!(begun(&mut it, "slow", 30 * SECOND), slots);
    assert_eq!(it.engine.poll_timeout(), None);
    assert!(it.store.is_empty() && it.engine.is_idle());
    // All but the first had to wait.
    assert_eq!(it.of("slow").counts.throttled, 49);
}

#[test]
fn a_burst_comes_at_once_after_a_time_without_any() {
    let mut it = subject(Rate::per_second(2).burst(5), 9);
    let half = SECOND / 2;
    let mut slots = vec![DUE; 5];
    slots.extend((1..5).map(|slot| DUE + slot * half));
    assert_eq!(begun(&mut it, "slow", 30 * SECOND), slots);
}

#[test]
fn an_opening_begins_with_one_and_not_with_a_burst() {
    let mut it = subject(Rate::per_second(2).burst(5), 9);
    let now = it.later(20 * SECOND);
    it.begin(now);
    let from = now.boot_micros;
    let slots: Vec<_> = (0..9).map(|slot| from + slot * SECOND / 2).collect();
    assert_eq!(begun(&mut it, "slow", from + 30 * SECOND), slots);
}

#[test]
fn another_rate_holds_at_once_for_what_waits() {
    let policy = |rate| Policy::default().rate(rate);
    let mut it = subject(Rate::per_minute(1).burst(1), 30);
    assert_eq!(begun(&mut it, "slow", DUE + 1), [DUE]);
    let faster = policy(Rate::per_second(10).burst(4));
    it.set_policy("slow", &faster);
    // One new interval after the last delivery, which is sooner than the old one, and without a burst.
    let from = DUE + 100_000;
    let slots: Vec<_> = (0..10).map(|slot| from + slot * 100_000).collect();
    assert_eq!(begun(&mut it, "slow", from + SECOND), slots);
    // Setting the same rate again does not restart it.
    it.set_policy("slow", &faster.priority(3));
    let begun_then = begun(&mut it, "slow", from + 2 * SECOND);
    assert_eq!(begun_then.len(), 10);
    it.set_policy("slow", &Policy::default());
    assert_eq!(it.delivered.len(), 9);
}

#[test]
fn a_retry_counts_against_the_rate() {
    let mut it = subject(Rate::per_second(1).burst(1), 0);
    let retry_delays = Policy::default().rate(Rate::per_second(1).burst(1));
    it.set_policy("slow", &retry_delays.retry_delays([Duration::ZERO; 5]));
    it.insert_many("slow/mail", 1, 0);
    let mut at = Vec::new();
    for _ in 0..6 {
        while it.delivered.is_empty() {
            let next = it.engine.poll_timeout().unwrap();
            it.run_until(next);
        }
        at.push(it.engine.now().boot_micros / SECOND);
        it.end_all(&failed());
    }
    assert_eq!(at, [5, 6, 7, 8, 9, 10]);
    assert_eq!(it.dead.len(), 1);
}

#[test]
fn what_waits_for_a_rate_can_be_cancelled() {
    let mut it = Subject::new(Config::default());
    it.namespace("slow", &Policy::default().rate(Rate::per_minute(1)));
    it.insert_many("slow/mail", 100, 0);
    it.pass(SECOND);
    let first = it.delivered[0].id;
    for handle in it.created() {
        it.engine.handle_cancel(0, handle);
    }
    it.settle();
    let done = it.answers.iter().filter(|it| **it == Answer::Done);
    assert_eq!((done.count(), it.answers.len()), (99, 100));
    it.engine.handle_ended(first, Ended::Well);
    it.settle();
    // Nothing waits any longer, so no turn is asked for.
    assert!(it.store.is_empty() && it.engine.is_idle());
    it.run_until(200 * SECOND);
    assert_eq!((it.delivered.len(), it.engine.poll_timeout()), (1, None));
}

#[test]
fn handlers_take_turns_however_often_the_rate_is_asked() {
    const HANDLERS: [&str; 4] = ["slow/mail", "slow/a", "slow/b", "slow/c"];
    for (handlers, requests) in (2..=HANDLERS.len()).flat_map(|of| (0..6).map(move |it| (of, it))) {
        let mut it = subject(Rate::per_second(1).burst(1), 0);
        for name in &HANDLERS[..handlers] {
            it.handle(name, 64);
            for _ in 0..20 {
                it.insert_to(name, 0);
            }
        }
        it.settle();
        let mut begun = [0; HANDLERS.len()];
        for _ in 0..12 {
            // It runs by itself once a second, and whenever something else happens.
            it.run_until(it.engine.now().boot_micros + SECOND - 6_000);
            for row in it.end_all(&Ended::Well) {
                let of = HANDLERS.iter().position(|name| **name == *row.handler);
                begun[of.unwrap()] += 1;
            }
            for _ in 0..requests {
                it.advance(1_000);
            }
            it.run_until(it.engine.now().boot_micros + 1_000 * (6 - requests));
        }
        let begun = &begun[..handlers];
        let limit = 12_usize.div_ceil(handlers);
        assert!(begun.iter().all(|of| (1..=limit).contains(of)), "{begun:?}");
    }
}

#[test]
fn what_was_just_read_is_known_to_be_overdue() {
    let mut it = subject(Rate::per_minute(1), 0);
    for millis in [-3_600_000, -10] {
        it.insert_to("slow/mail", millis);
    }
    it.settle();
    let oldest = |it: &Subject| {
        let slow = it.of("slow");
        it.engine.oldest_overdue(slow, it.engine.now().due())
    };
    // They are in the wheel, which has not been turned since.
    assert_eq!(it.engine.stats().running, 0);
    assert_eq!(oldest(&it), Some(Due::from_millis(NOW - 3_600_000)));
    it.advance(1);
    assert_eq!(it.engine.stats().running, 1);
    assert_eq!(oldest(&it), Some(Due::from_millis(NOW - 10)));
}

#[test]
fn the_oldest_that_waits_is_not_the_first_that_came_up() {
    let mut it = subject(Rate::per_minute(1), 0);
    for millis in [0, 10, -3_600_000, 5] {
        it.insert_many("slow/mail", 1, millis);
        it.advance(SECOND);
    }
    let oldest = |it: &Subject| {
        let slow = it.of("slow");
        it.engine.oldest_overdue(slow, it.engine.now().due())
    };
    let due = |millis| Some(Due::from_millis(NOW + millis));
    assert_eq!((it.delivered.len(), oldest(&it)), (1, due(-3_600_000)));
    // A timer that has left is not counted.
    let handle = it.created().remove(2);
    it.cancel(handle);
    assert_eq!(oldest(&it), due(5));
}
