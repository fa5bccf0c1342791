//! Nothing is left of a timer that is gone: neither its payload nor its entry nor its key.

use std::rc::Rc;

use waterwheel::wheel::{Resolution, Tick, Ticks, Verdict, Wheel};

use crate::edges::{self, YEAR};
use crate::support::{advance, batch};

// netty#2561, golang#60144, tokio#8252, pingora's rule of 15 minutes: a cancelled timer was kept
// until its deadline, or until a clean-up.
#[test]
fn cancelling_frees_the_entry_at_once() {
    for resolution in edges::resolutions() {
        let mut wheel = Wheel::new(resolution);
        let live: Vec<_> = (0..100)
            .map(|n| wheel.insert(Tick::new(YEAR + n), ()))
            .collect();
        let first = wheel.insert(Tick::new(YEAR), ());
        assert!(wheel.cancel(first).is_some());
        let capacity = wheel.capacity();
        for round in 0..1_000 {
            for delay in edges::delays(resolution) {
                let key = wheel.insert(Tick::new(delay + round), ());
                assert_eq!(key.index(), first.index(), "the place is used again");
                assert!(wheel.cancel(key).is_some());
            }
        }
        assert_eq!(wheel.capacity(), capacity);
        assert_eq!(wheel.len(), live.len());
        wheel.check_invariants();
    }
}

// Likewise with many in flight, and a hand that moves.
#[test]
fn churn_does_not_grow_the_wheel() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let mut in_flight = std::collections::VecDeque::new();
    let mut capacity = None;
    for now in 0..50_000 {
        in_flight.push_back(wheel.insert(Tick::new(now + 30_000), ()));
        if in_flight.len() > 1_000 {
            let oldest = in_flight.pop_front().expect("a thousand are in flight");
            assert!(wheel.cancel(oldest).is_some());
            assert!(wheel.capacity() <= *capacity.get_or_insert(wheel.capacity()));
        }
        if now % 100 == 0 {
            assert!(advance(&mut wheel, now).is_empty());
        }
    }
    assert!(wheel.capacity() < 2_048);
    assert_eq!(wheel.len(), 1_000);
    wheel.check_invariants();
}

// Likewise for the payload: cancelling returns it, and the wheel keeps no other reference.
#[test]
fn cancelling_gives_the_payload_back() {
    let resolution = Resolution::MILLISECOND;
    for delay in edges::delays(resolution).into_iter().chain([0, u64::MAX]) {
        let payload = Rc::new(delay);
        let mut wheel = Wheel::new(resolution);
        let key = wheel.insert(Tick::new(delay), Rc::clone(&payload));
        assert_eq!(Rc::strong_count(&payload), 2);
        assert_eq!(wheel.cancel(key), Some(Rc::clone(&payload)));
        assert_eq!(Rc::strong_count(&payload), 1);
    }
}

// netty#5647: timers that come up and are inserted again do not grow the wheel.
#[test]
fn handing_out_frees_the_entry() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let payload = Rc::new(());
    let mut capacity = None;
    for now in 0..10_000 {
        for delay in 1..=10 {
            wheel.insert(Tick::new(now + delay * 7), Rc::clone(&payload));
        }
        advance(&mut wheel, now);
        assert_eq!(Rc::strong_count(&payload), 1 + wheel.len());
        if now > 100 {
            assert_eq!(wheel.capacity(), *capacity.get_or_insert(wheel.capacity()));
        }
    }
    advance(&mut wheel, 20_000);
    assert_eq!(Rc::strong_count(&payload), 1);
}

// netty#5647: nor do timers that are reset, postponed or disarmed.
#[test]
fn moving_a_timer_takes_no_more_room() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(1), ());
    let capacity = wheel.capacity();
    for now in 1..10_000 {
        let later = Tick::new(now + now % 97 + 1);
        assert!(wheel.reset(key, later));
        wheel.advance(
            later,
            1,
            |_, _, ()| Verdict::Postpone(later.saturating_add(Ticks::new(later.get()))),
            |_, ()| (),
        );
        assert!(wheel.disarm(key));
        assert_eq!(wheel.len(), 0);
        assert!(wheel.reset(key, later));
    }
    assert_eq!((wheel.capacity(), wheel.len()), (capacity, 1));
}

// "Cancelled before registered leaks an entry", as far as it concerns a wheel: a timer that has come up and still
// waits to be served, or to be filed again, can be cancelled like any other.
#[test]
fn a_timer_is_cancelled_wherever_it_waits() {
    for budget in [0, 1] {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let backlog = [(); 3].map(|()| wheel.insert(Tick::new(10), "backlog"));
        let fresh = [(); 3].map(|()| wheel.insert(Tick::new(20), "fresh"));
        let cascading = [(); 30].map(|()| wheel.insert(Tick::new(5_500), "cascading"));
        let past = [(); 3].map(|()| wheel.insert(Tick::ZERO, "past"));
        batch(&mut wheel, 10, budget);
        batch(&mut wheel, 5_000, budget);
        assert!(wheel.has_backlog());
        let keys = backlog
            .into_iter()
            .chain(fresh)
            .chain(cascading)
            .chain(past);
        let mut left = wheel.len();
        for key in keys {
            left -= usize::from(wheel.cancel(key).is_some());
            assert_eq!(wheel.len(), left);
            wheel.check_invariants();
        }
        assert_eq!(left, 0);
        assert!(!wheel.has_backlog());
        assert_eq!(wheel.next_expiration(), None);
    }
}

// netty#14959: a counter of pending timers that drifts.
#[test]
fn the_count_of_pending_timers_does_not_drift() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for now in 0..1_000 {
        let [a, b, c, d] = [1, 2, 3, 4].map(|delay| wheel.insert(Tick::new(now + delay), ()));
        assert_eq!(wheel.len(), 4);
        assert!(wheel.disarm(a));
        assert!(!wheel.disarm(a));
        assert_eq!(wheel.len(), 3);
        assert!(wheel.cancel(a).is_some());
        assert!(wheel.cancel(a).is_none());
        assert_eq!(wheel.len(), 3);
        assert!(
            wheel.disarm(b) && wheel.reset(b, Tick::new(now + 1)) && wheel.reset(b, Tick::ZERO)
        );
        assert_eq!(wheel.len(), 3);
        assert!(wheel.cancel(c).is_some());
        assert!(!wheel.reset(c, Tick::new(now + 1)) && !wheel.disarm(c));
        assert_eq!(wheel.len(), 2);
        // One is handed out, and the judge disarms the other.
        let judge = |key, _, _: &mut ()| match key == d {
            true => Verdict::Disarm,
            false => Verdict::Due,
        };
        wheel.advance(Tick::new(now + 4), usize::MAX, judge, |_, ()| ());
        assert_eq!(wheel.len(), 0);
        assert!(wheel.cancel(b).is_none() && wheel.cancel(d).is_some());
        assert!(wheel.is_empty());
        assert_eq!(wheel.iter().count(), 0);
    }
}

// The keys of tokio-util's `DelayQueue` have no generation: the key of a timer that was gone named the next timer at
// the same index.
#[test]
fn a_stale_key_names_nothing_though_its_place_is_used_again() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let mut stale = Vec::new();
    for round in 0..100 {
        let key = wheel.insert(Tick::new(round), round);
        assert_eq!(key.index(), 0, "there is one place only");
        for &gone in &stale {
            assert_ne!(gone, key);
            assert_eq!(wheel.get(gone), None);
            assert_eq!(wheel.get_mut(gone), None);
            assert_eq!(wheel.deadline(gone), None);
            assert!(!wheel.is_pending(gone));
            assert_eq!(wheel.cancel(gone), None);
            assert!(!wheel.reset(gone, Tick::ZERO));
            assert!(!wheel.disarm(gone));
        }
        assert_eq!(wheel.deadline(key), Some(Tick::new(round)));
        assert_eq!(wheel.get_mut(key), Some(&mut { round }));
        // It is removed by a cancel, by being handed out, or by a drain.
        match round % 3 {
            0 => assert_eq!(wheel.cancel(key), Some(round)),
            1 => assert_eq!(advance(&mut wheel, round), [round]),
            _ => assert!(wheel.drain().eq([round])),
        }
        stale.push(key);
    }
}

#[test]
fn draining_gives_the_memory_back_and_leaves_a_wheel_that_works() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let payload = Rc::new(());
    let keys: Vec<_> = edges::delays(wheel.resolution())
        .into_iter()
        .map(|delay| wheel.insert(Tick::new(delay), Rc::clone(&payload)))
        .collect();
    batch(&mut wheel, 3_000, 1);
    assert!(wheel.has_backlog());
    let disarmed = keys[keys.len() - 1];
    assert!(wheel.disarm(disarmed));
    let cascaded = wheel.cascaded();

    assert_eq!(wheel.drain().count(), keys.len() - 1);
    assert_eq!(Rc::strong_count(&payload), 1);
    assert_eq!((wheel.len(), wheel.capacity()), (0, 0));
    assert_eq!(wheel.next_expiration(), None);
    assert_eq!(wheel.quiet_until(), Tick::MAX);
    assert_eq!(wheel.now(), Tick::new(3_000));
    assert_eq!(wheel.cascaded(), cascaded);
    wheel.check_invariants();

    wheel.insert(Tick::new(3_001), Rc::clone(&payload));
    assert!(keys.iter().all(|&key| wheel.cancel(key).is_none()));
    assert_eq!(advance(&mut wheel, 3_001).len(), 1);
    assert_eq!(wheel.drain().count(), 0);
}

// Doubling leaves up to half of a slab unused; steps of one size copy it over and over, and so would a reservation of one at each insertion.
#[test]
fn the_slab_grows_by_an_eighth() {
    // By 64 up to 576, and then by an eighth up to 22 093. Reservations may take smaller steps at first.
    for (reserves, most) in [(false, 42), (true, 80)] {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        let mut grown = 0;
        for timers in 1..=20_000 {
            let capacity = wheel.capacity();
            if reserves {
                wheel.reserve(1);
            }
            wheel.insert(Tick::new(timers as u64), ());
            grown += usize::from(wheel.capacity() > capacity);
            let vain = wheel.capacity() - timers;
            assert!(
                vain <= 64.max(timers / 8 + usize::from(reserves)),
                "{vain} for {timers} timers"
            );
        }
        assert!(grown <= most, "grown {grown} times");
    }
}

#[test]
fn clearing_drops_the_payloads_and_keeps_the_memory() {
    for resolution in edges::resolutions() {
        let mut wheel = Wheel::new(resolution);
        let payload = Rc::new(());
        let delays = edges::delays(resolution);
        let keys = delays.iter().map(|&delay| Tick::new(delay));
        let keys: Vec<_> = keys
            .map(|deadline| wheel.insert(deadline, Rc::clone(&payload)))
            .collect();
        // Some are waiting to be served, and one is disarmed.
        batch(&mut wheel, 3_000, 1);
        wheel.insert(Tick::ZERO, Rc::clone(&payload));
        assert!(wheel.has_backlog());
        assert!(wheel.disarm(keys[keys.len() - 1]));
        let (capacity, cascaded) = (wheel.capacity(), wheel.cascaded());

        wheel.clear();
        wheel.check_invariants();
        assert_eq!(Rc::strong_count(&payload), 1);
        assert_eq!((wheel.len(), wheel.capacity()), (0, capacity));
        assert_eq!(wheel.next_expiration(), None);
        assert_eq!(wheel.quiet_until(), Tick::MAX);
        assert!(!wheel.has_backlog());
        assert_eq!(wheel.now(), Tick::new(3_000));
        assert_eq!(wheel.cascaded(), cascaded);

        // The next timers have the same places and other keys.
        for &delay in &delays {
            wheel.insert(Tick::new(delay.saturating_add(3_001)), Rc::clone(&payload));
        }
        for &stale in &keys {
            assert!(!wheel.reset(stale, Tick::ZERO) && !wheel.disarm(stale));
            assert!(wheel.get(stale).is_none() && wheel.cancel(stale).is_none());
        }
        assert_eq!((wheel.len(), wheel.capacity()), (delays.len(), capacity));
        wheel.check_invariants();
        assert_eq!(advance(&mut wheel, u64::MAX).len(), delays.len());
    }
}

#[test]
fn room_made_ahead_is_not_allocated_again() {
    let mut wheel = Wheel::<()>::new(Resolution::MILLISECOND);
    wheel.clear();
    assert_eq!((wheel.capacity(), wheel.next_expiration()), (0, None));
    let mut wheel = Wheel::with_capacity(Resolution::MILLISECOND, 10_000);
    let capacity = wheel.capacity();
    assert!(capacity >= 10_000);
    wheel.clear();
    assert_eq!(wheel.capacity(), capacity);
    for n in 0..10_000 {
        wheel.insert(Tick::new(n), n);
    }
    assert_eq!(wheel.capacity(), capacity);
    wheel.reserve(0);
    wheel.reserve(capacity - 10_000);
    assert_eq!(wheel.capacity(), capacity, "there was room");
    wheel.check_invariants();
}

#[test]
fn shrinking_keeps_each_timer_at_its_place() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let keys: Vec<_> = (0..1_000)
        .map(|n| wheel.insert(Tick::new(100_000 + n), n))
        .collect();
    for (n, &key) in keys.iter().enumerate() {
        // The last one that is left is at 599, disarmed.
        if n % 3 != 0 && n != 599 || n >= 600 {
            assert!(wheel.cancel(key).is_some());
        }
    }
    assert!(wheel.disarm(keys[599]));
    wheel.shrink_to_fit();
    wheel.check_invariants();
    assert!(
        (600..1_000).contains(&wheel.capacity()),
        "{}",
        wheel.capacity()
    );
    assert!(keys[600..].iter().all(|&key| wheel.get(key).is_none()));
    assert_eq!(wheel.get(keys[597]), Some(&597));
    assert_eq!(wheel.cancel(keys[599]), Some(599));
    // The places in between are used again before the slab grows.
    let capacity = wheel.capacity();
    for n in 0..400 {
        let key = wheel.insert(Tick::new(200_000 + n), n);
        assert!(key.index() < 600);
    }
    assert_eq!(wheel.capacity(), capacity);
    assert_eq!(wheel.drain().count(), 600);
    wheel.shrink_to_fit();
    assert_eq!(wheel.capacity(), 0);
    let again = wheel.insert(Tick::new(300_000), 0);
    assert!(!keys.contains(&again));
    wheel.check_invariants();
}

#[test]
fn room_for_more_than_a_wheel_holds_is_refused() {
    for additional in [1 << 32, usize::MAX] {
        let reserve = || Wheel::<u8>::with_capacity(Resolution::MILLISECOND, additional);
        let message = *std::panic::catch_unwind(reserve)
            .expect_err("more than 2^32")
            .downcast::<&str>()
            .expect("a message");
        assert!(message.contains("spread them over several"), "{message}");
    }
}

#[test]
fn a_list_in_portions_has_each_timer_that_stays() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let keys: Vec<_> = (0..1_000).map(|n| wheel.insert(Tick::new(n), n)).collect();
    for key in keys.iter().step_by(3) {
        wheel.cancel(*key);
    }
    assert!(wheel.disarm(keys[1]));
    let whole: Vec<_> = wheel.iter_all().map(|(key, _, &n)| (key, n)).collect();
    let (mut listed, mut first) = (Vec::new(), 0);
    while first < wheel.capacity() {
        listed.extend(
            wheel
                .iter_places(first..first + 100)
                .map(|(key, _, &n)| (key, n)),
        );
        first += 100;
        // Other timers come and go.
        let come = wheel.insert(Tick::new(5_000), 5_000);
        if first > 500 {
            wheel.cancel(come);
        }
    }
    listed.retain(|&(_, n)| n != 5_000);
    assert_eq!(listed, whole);
    assert_eq!(wheel.iter_places(1_000_000..2_000_000).count(), 0);
}
