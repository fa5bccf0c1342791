//! A budget smaller than what is due: what has just come up does not wait for all that came up before, nor the
//! reverse.

use waterwheel::wheel::{Resolution, Tick, Verdict, Wheel};

use crate::support::{advance, batch};

const HERD: u64 = 0;

fn herd(size: u64, deadline: u64) -> Wheel<u64> {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for _ in 0..size {
        wheel.insert(Tick::new(deadline), HERD);
    }
    wheel
}

// A driver that serves the oldest first lets a herd starve all others (tokio: 80 to 200 ms for a million).
#[test]
fn a_herd_does_not_hold_up_its_neighbours() {
    for budget in [2, 3, 64] {
        let size = 100 * budget as u64;
        let mut wheel = herd(size, 10);
        assert_eq!(batch(&mut wheel, 10, budget).len(), budget);
        for now in 11..60 {
            wheel.insert(Tick::new(now), now);
            // The first to be handed out, in the first batch of its tick.
            let handed = batch(&mut wheel, now, budget);
            assert_eq!(handed.len(), budget);
            assert_eq!(handed[0], now);
        }
        wheel.check_invariants();
        assert_eq!(
            advance(&mut wheel, 60).len() as u64,
            size - 50 * budget as u64 + 49
        );
    }
}

// Likewise for a timer that was due already when it was armed.
#[test]
fn a_herd_does_not_hold_up_a_timer_that_is_due_at_once() {
    let mut wheel = herd(1_000, 10);
    assert_eq!(batch(&mut wheel, 10, 64).len(), 64);
    assert_eq!(batch(&mut wheel, 11, 64).len(), 64);
    wheel.insert(Tick::new(3), 3);
    assert_eq!(batch(&mut wheel, 11, 64)[0], 3);
}

// A heartbeat of a millisecond that is due at the same tick as a herd is not served last.
#[test]
fn the_last_to_be_filed_for_a_tick_is_served_first() {
    let mut wheel = herd(1_000, 10);
    advance(&mut wheel, 9);
    wheel.insert(Tick::new(10), 9);
    assert_eq!(batch(&mut wheel, 10, 64)[0], 9);
    wheel.check_invariants();
}

// If a slot were served from one end, a timer at the other end would wait for the whole herd.
#[test]
fn a_tick_is_served_alternately_from_back_and_front() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for filed in 0..100 {
        wheel.insert(Tick::new(5), filed);
    }
    assert_eq!(batch(&mut wheel, 5, 8), [99, 0, 98, 1, 97, 2, 96, 3]);
}

// Likewise for a herd that cascades: filing it again is bounded as well.
#[test]
fn a_herd_that_cascades_does_not_hold_up_its_neighbours() {
    let mut wheel = herd(100_000, 60_500);
    assert!(advance(&mut wheel, 59_500).is_empty());
    // The minute comes up, and all of the herd with it.
    for now in 59_990..60_020 {
        wheel.insert(Tick::new(now), now);
        let cascaded = wheel.cascaded();
        assert_eq!(batch(&mut wheel, now, 10), [now]);
        assert!(wheel.cascaded() - cascaded <= 80);
    }
    assert!(wheel.has_backlog());
    assert_eq!(wheel.next_expiration(), Some(wheel.now()));
    wheel.check_invariants();
    // The leftover timers are neither early nor lost.
    assert!(advance(&mut wheel, 60_499).is_empty());
    assert_eq!(advance(&mut wheel, 60_500).len(), 100_000);
}

// A timer that is due before it could be filed again is served when its cascade is reached.
#[test]
fn a_herd_that_is_due_before_it_has_cascaded_is_served() {
    let mut wheel = herd(1_000, 60_001);
    assert!(advance(&mut wheel, 59_500).is_empty());
    assert!(batch(&mut wheel, 60_000, 1).is_empty());
    assert!(wheel.has_backlog());
    let mut served = 0;
    for batches in 1.. {
        let handed = batch(&mut wheel, 60_001, 10).len();
        served += handed;
        if !wheel.has_backlog() {
            assert_eq!((served, batches), (1_000, 100));
            return;
        }
        assert_eq!(handed, 10);
    }
}

// A driver that serves the freshest first starves the backlog under overload. Here twice as much comes up at each
// tick as can be served, and the old timers are served as well, oldest first.
#[test]
fn an_overload_of_fresh_timers_does_not_starve_the_backlog() {
    for budget in [1, 2, 3, 7, 64] {
        let mut wheel = herd(10 * budget as u64, 10);
        batch(&mut wheel, 10, budget);
        let mut old = 9 * budget;
        for now in 11..31 {
            for _ in 0..2 * budget {
                wheel.insert(Tick::new(now), now);
            }
            let handed = batch(&mut wheel, now, budget);
            assert_eq!(handed.len(), budget);
            let served = handed.iter().filter(|&&timer| timer == HERD).count();
            let share = budget.div_ceil(2).min(old);
            assert!(
                served >= share,
                "{served} of {old} old ones with a budget of {budget}"
            );
            old -= served;
        }
        assert_eq!(old, 0);
        wheel.check_invariants();
    }
}

// The reverse: an endless backlog does not starve what is fresh.
#[test]
fn a_backlog_does_not_starve_an_overload_of_fresh_timers() {
    for budget in [2, 3, 7, 64] {
        let mut wheel = herd(1_000 * budget as u64, 10);
        batch(&mut wheel, 10, budget);
        for now in 11..31 {
            for _ in 0..2 * budget {
                wheel.insert(Tick::new(now), now);
            }
            let handed = batch(&mut wheel, now, budget);
            let served = handed.iter().filter(|&&timer| timer == now).count();
            assert!(
                served >= budget / 2,
                "{served} fresh ones with a budget of {budget}"
            );
        }
    }
}

// Without a backlog, the fresh timers have the whole budget; with few fresh timers, the backlog has the rest of it.
// No timer is left over while there is budget.
#[test]
fn a_budget_is_used_up_while_there_is_something_to_serve() {
    let mut wheel = herd(100, 10);
    assert_eq!(batch(&mut wheel, 10, 60).len(), 60);
    wheel.insert(Tick::new(11), 11);
    assert_eq!(batch(&mut wheel, 11, 30).len(), 30);
    // Eleven of the backlog, and 60 of 70 fresh ones.
    for _ in 0..70 {
        wheel.insert(Tick::new(12), 12);
    }
    assert_eq!(batch(&mut wheel, 12, 71).len(), 71);
    assert!(wheel.has_backlog());
    assert_eq!(batch(&mut wheel, 12, 71), [12; 10]);
    assert!(!wheel.has_backlog());
}

#[test]
fn the_backlog_is_served_oldest_first() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for deadline in (1..=100).rev() {
        wheel.insert(Tick::new(deadline), deadline);
    }
    batch(&mut wheel, 50, 0);
    batch(&mut wheel, 100, 0);
    batch(&mut wheel, 101, 0);
    let mut served = Vec::new();
    while wheel.has_backlog() {
        served.extend(batch(&mut wheel, 101, 7));
    }
    assert_eq!(served, Vec::from_iter(1..=100));
}

#[test]
fn a_budget_of_nothing_serves_nothing_and_loses_nothing() {
    let mut wheel = herd(3, 10);
    for now in [10, 11, 2_000, 100_000] {
        assert!(batch(&mut wheel, now, 0).is_empty());
        assert!(wheel.has_backlog());
        assert_eq!(wheel.next_expiration(), Some(Tick::new(now)));
        wheel.check_invariants();
    }
    assert_eq!(advance(&mut wheel, 100_000).len(), 3);
}

// A timer that is put back counts against the budget, which bounds the calls of the judge.
#[test]
fn judging_is_bounded_whatever_the_verdict() {
    let mut wheel = herd(100, 10);
    let mut asked = 0;
    let judge = |_, _, _: &mut u64| {
        asked += 1;
        Verdict::Postpone(Tick::new(20))
    };
    let progress = wheel.advance(Tick::new(10), 7, judge, |_, _| ());
    assert_eq!((asked, progress.postponed, progress.expired), (7, 7, 0));
    assert!(progress.backlog);
    assert_eq!(batch(&mut wheel, 10, 1_000).len(), 93);
}
