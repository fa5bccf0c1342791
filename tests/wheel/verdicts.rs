//! The verdicts on a timer that has come up: due, disarmed, or filed again.

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

use crate::edges;
use crate::support::advance;

/// Advances, with the same verdict for each timer. Returns how many were handed out.
fn judge<T>(wheel: &mut Wheel<T>, now: u64, verdict: Verdict) -> usize {
    let (mut left, mut handed) = (wheel.len(), 0);
    let judge = |_, _, _: &mut T| {
        left = left.checked_sub(1).expect("each comes up once");
        verdict
    };
    wheel.advance(Tick::new(now), usize::MAX, judge, |_, _| handed += 1);
    wheel.check_invariants();
    handed
}

#[test]
fn the_judge_gets_the_key_the_deadline_and_the_payload() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(70_123), 1);
    let (mut asked, mut handed) = (Vec::new(), Vec::new());
    let ask = |key: Key, deadline, payload: &mut i32| {
        asked.push((key, deadline, *payload));
        // The judge may change the payload.
        *payload += 1;
        Verdict::Due
    };
    let progress = wheel.advance(Tick::new(80_000), 5, ask, |deadline, payload| {
        handed.push((deadline, payload));
    });
    assert_eq!(asked, [(key, Tick::new(70_123), 1)]);
    assert_eq!(handed, [(Tick::new(70_123), 2)]);
    assert_eq!(
        (progress.expired, progress.postponed, progress.backlog),
        (1, 0, false)
    );
}

#[test]
fn a_postponed_timer_keeps_its_key_and_comes_up_when_due() {
    for resolution in edges::resolutions() {
        for delay in edges::delays(resolution) {
            let mut wheel = Wheel::new(resolution);
            let key = wheel.insert(Tick::new(17), "timer");
            let deadline = Tick::new(17 + delay);
            assert_eq!(judge(&mut wheel, 17, Verdict::Postpone(deadline)), 0);
            assert!(wheel.is_pending(key));
            assert_eq!((wheel.len(), wheel.deadline(key)), (1, Some(deadline)));
            assert!(wheel.next_expiration() <= Some(deadline));
            assert!(advance(&mut wheel, deadline.get() - 1).is_empty());
            assert_eq!(advance(&mut wheel, deadline.get()), ["timer"]);
        }
    }
}

// To the tick at which it is judged, or to an earlier one: if it was filed again, it would be judged forever.
#[test]
fn a_timer_postponed_to_no_later_than_now_is_due() {
    for later in [0, 16, 17, 20, 21] {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        wheel.insert(Tick::new(17), ());
        let handed = judge(&mut wheel, 20, Verdict::Postpone(Tick::new(later)));
        assert_eq!(handed, usize::from(later <= 20));
        assert_eq!(wheel.len(), usize::from(later > 20));
    }
}

#[test]
fn a_timer_postponed_to_the_end_of_time_stays() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let key = wheel.insert(Tick::new(17), ());
    assert_eq!(judge(&mut wheel, 17, Verdict::Postpone(Tick::MAX)), 0);
    assert!(advance(&mut wheel, u64::MAX - 1).is_empty());
    assert!(wheel.is_pending(key));
    assert_eq!(advance(&mut wheel, u64::MAX).len(), 1);
}

#[test]
fn a_disarmed_timer_keeps_its_entry_and_does_not_come_up() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let [judged, disarmed] = [(); 2].map(|()| wheel.insert(Tick::new(17), "disarmed"));
    assert!(wheel.disarm(disarmed));
    assert_eq!(judge(&mut wheel, 17, Verdict::Disarm), 0);
    for key in [judged, disarmed] {
        assert!(!wheel.is_pending(key));
        assert!(!wheel.disarm(key), "it is disarmed already");
        assert_eq!(wheel.get(key), Some(&"disarmed"));
        assert_eq!(wheel.deadline(key), Some(Tick::new(17)));
    }
    assert_eq!(
        (wheel.len(), wheel.next_expiration(), wheel.iter().count()),
        (0, None, 0)
    );
    let other = wheel.insert(Tick::new(18), "other");
    assert!(other.index() != judged.index() && other.index() != disarmed.index());
    assert_eq!(advance(&mut wheel, 100_000_000), ["other"]);

    // One is cancelled, the other is pending again.
    assert_eq!(wheel.cancel(judged), Some("disarmed"));
    assert_eq!(wheel.len(), 0);
    assert!(wheel.reset(disarmed, Tick::new(100_000_001)));
    assert_eq!((wheel.len(), wheel.is_pending(disarmed)), (1, true));
    assert_eq!(advance(&mut wheel, 100_000_001), ["disarmed"]);
    assert_eq!(wheel.cancel(disarmed), None);
}

#[test]
fn disarming_counts_as_expired_and_within_the_budget() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    for _ in 0..10 {
        wheel.insert(Tick::new(17), ());
    }
    let due = |_, ()| panic!("disarmed, not handed out");
    let progress = wheel.advance(Tick::new(17), 6, |_, _, ()| Verdict::Disarm, due);
    assert_eq!(
        (progress.expired, progress.postponed, progress.backlog),
        (6, 0, true)
    );
    assert_eq!(wheel.len(), 4);
}

#[test]
fn a_timer_that_waits_can_be_postponed_and_disarmed() {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let [later, disarmed, stays] = [1, 2, 3].map(|n| wheel.insert(Tick::new(17), n));
    wheel.advance(Tick::new(17), 0, |_, _, _| Verdict::Due, |_, _| ());
    assert!(wheel.has_backlog());
    assert!(wheel.reset(later, Tick::new(20)));
    assert!(wheel.disarm(disarmed));
    wheel.check_invariants();
    assert_eq!(wheel.next_expiration(), Some(Tick::new(17)));
    assert_eq!(advance(&mut wheel, 17), [3]);
    assert_eq!(wheel.next_expiration(), Some(Tick::new(20)));
    assert_eq!(advance(&mut wheel, 20), [1]);
    assert_eq!(wheel.get(stays), None);
    assert_eq!(wheel.get(disarmed), Some(&2));
}
