//! A panic in a callback or a destructor leaves the wheel in order: it loses only the timer that was handed out,
//! hands out no timer twice, and strands none.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

use waterwheel::wheel::{Key, Resolution, Tick, Verdict, Wheel};

use crate::support::{advance, batch};

/// Unwinds like a panic, without its message.
fn panic_quietly() -> ! {
    panic::resume_unwind(Box::new(()))
}

/// Runs code that panics, and drops its result.
fn catch<R>(what: impl FnOnce() -> R) {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| drop(what())));
    assert!(outcome.is_err(), "it was to panic");
}

struct Bomb<'a>(&'a Bombs);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        self.0.dropped.set(self.0.dropped.get() + 1);
        if self.0.armed.take() {
            panic_quietly();
        }
    }
}

/// Whether the next bomb that is dropped panics, and how many were dropped.
#[derive(Default)]
struct Bombs {
    armed: Cell<bool>,
    dropped: Cell<usize>,
}

impl Bombs {
    fn bomb(&self) -> Bomb<'_> {
        Bomb(self)
    }

    /// A wheel with a bomb after each of these delays.
    fn wheel(&self, delays: impl IntoIterator<Item = u64>) -> Wheel<Bomb<'_>> {
        let mut wheel = Wheel::new(Resolution::MILLISECOND);
        for delay in delays {
            wheel.insert(Tick::new(delay), self.bomb());
        }
        wheel
    }
}

/// Ten timers at each of three ticks, on the first dial.
fn thirty() -> (Wheel<u64>, Vec<Key>) {
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let keys = (0..30)
        .map(|n| wheel.insert(Tick::new(10 + n % 3), n))
        .collect();
    (wheel, keys)
}

// In other timers, a waker that panics strands the rest of the slot. Here the timer that a judge was asked about stays, and one that
// was handed out is gone.
#[test]
fn a_panic_loses_what_was_handed_out_and_strands_no_timer() {
    for (fatal, judge_panics) in [0, 7, 29]
        .into_iter()
        .flat_map(|it| [(it, false), (it, true)])
    {
        let (mut wheel, keys) = thirty();
        let mut handed = Vec::new();
        catch(|| {
            let judge = |_, _, payload: &mut u64| match judge_panics && *payload == fatal {
                true => panic_quietly(),
                false => Verdict::Due,
            };
            let due = |_, payload| {
                handed.push(payload);
                if payload == fatal {
                    panic_quietly();
                }
            };
            wheel.advance(Tick::new(20), usize::MAX, judge, due)
        });
        wheel.check_invariants();
        assert_eq!(handed.last() == Some(&fatal), !judge_panics);
        assert_eq!(wheel.len(), 30 - handed.len());
        assert_eq!(wheel.is_pending(keys[fatal as usize]), judge_panics);
        if !wheel.is_empty() {
            // The rest waits to be served.
            assert_eq!(wheel.next_expiration(), Some(Tick::new(20)));
            assert!(wheel.quiet_until() <= Tick::new(20));
        }
        handed.extend(advance(&mut wheel, 20));
        handed.sort_unstable();
        assert_eq!(handed, Vec::from_iter(0..30));
        assert_eq!(wheel.next_expiration(), None);
        assert_eq!(wheel.quiet_until(), Tick::MAX);
    }
}

// Likewise if timers are postponed and disarmed before the panic, and there is a backlog.
#[test]
fn a_panic_amid_postponing_and_disarming_keeps_what_was_done() {
    for fatal in 0..30 {
        let (mut wheel, keys) = thirty();
        // On the dial above, so that it cascades in the advance that panics.
        let far = wheel.insert(Tick::new(5_500), 100);
        batch(&mut wheel, 10, 3);
        let before = wheel.len();
        let (mut postponed, mut disarmed, mut handed) = (0, 0, 0);
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            let judge = |_, _, payload: &mut u64| match *payload % 3 {
                _ if *payload == fatal => panic_quietly(),
                0 => {
                    postponed += 1;
                    assert!(postponed <= 10, "it comes up again and again");
                    Verdict::Postpone(Tick::new(5_001))
                }
                1 => {
                    disarmed += 1;
                    Verdict::Disarm
                }
                _ => Verdict::Due,
            };
            wheel.advance(Tick::new(5_000), usize::MAX, judge, |_, _| handed += 1)
        }));
        wheel.check_invariants();
        assert_eq!(
            outcome.is_err(),
            wheel.is_pending(keys[fatal as usize]) && {
                wheel.deadline(keys[fatal as usize]) <= Some(Tick::new(5_000))
            }
        );
        assert_eq!(wheel.len(), before - disarmed - handed);
        assert!(wheel.is_pending(far));
        // Postponed timers keep their new deadlines; timers that were not reached are handed out now.
        let late = advance(&mut wheel, 5_000).len();
        assert_eq!(late, before - 1 - postponed - disarmed - handed);
        assert_eq!(advance(&mut wheel, 5_001).len(), postponed);
        assert_eq!(advance(&mut wheel, 5_500), [100]);
        assert_eq!(wheel.drain().count(), disarmed);
    }
}

// The wheel drops no payload in the middle of its own work: it hands payloads out.
#[test]
fn a_destructor_that_panics_does_no_harm_when_handed_out() {
    let bombs = Bombs::default();
    let mut wheel = bombs.wheel(10..20);
    for gone in 1..=10 {
        bombs.armed.set(true);
        catch(|| {
            wheel.advance(
                Tick::new(30),
                100,
                |_, _, _| Verdict::Due,
                |_, bomb| drop(bomb),
            )
        });
        wheel.check_invariants();
        assert_eq!((wheel.len(), bombs.dropped.get()), (10 - gone, gone));
        assert_eq!(wheel.has_backlog(), gone < 10);
    }
    wheel.insert(Tick::new(31), bombs.bomb());
    assert_eq!(advance(&mut wheel, 31).len(), 1);
}

#[test]
fn a_destructor_that_panics_does_no_harm_when_cancelled() {
    let bombs = Bombs::default();
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    let keys = [(); 3].map(|()| wheel.insert(Tick::new(10), bombs.bomb()));
    bombs.armed.set(true);
    catch(|| wheel.cancel(keys[1]));
    wheel.check_invariants();
    assert_eq!((wheel.len(), bombs.dropped.get()), (2, 1));
    assert!(wheel.cancel(keys[1]).is_none());
    let key = wheel.insert(Tick::new(11), bombs.bomb());
    assert_eq!(key.index(), keys[1].index());
    assert_eq!(advance(&mut wheel, 10).len(), 2);
    assert_eq!(advance(&mut wheel, 11).len(), 1);
}

#[test]
fn a_destructor_that_panics_does_no_harm_to_the_others() {
    type End = fn(&mut Wheel<Bomb<'_>>);
    // In a drain, the first one panics when it is dropped, and dropping the iterator drops the others. A clear loses the capacity.
    let ends: [(&str, End); 3] = [
        ("drained", |wheel| wheel.drain().for_each(drop)),
        ("cleared", |wheel| wheel.clear()),
        ("dropped", |wheel| {
            *wheel = Wheel::new(Resolution::MILLISECOND);
        }),
    ];
    for (name, end) in ends {
        let bombs = Bombs::default();
        let mut wheel = bombs.wheel([0, 10, 10, 70_000]);
        let keys: Vec<_> = wheel.iter().map(|(key, ..)| key).collect();
        bombs.armed.set(true);
        catch(|| end(&mut wheel));
        assert_eq!(bombs.dropped.get(), 4, "{name}");
        wheel.check_invariants();
        assert_eq!((wheel.len(), wheel.next_expiration()), (0, None), "{name}");
        assert_eq!(wheel.capacity(), 0, "{name}");
        wheel.insert(Tick::new(10), bombs.bomb());
        assert!(name == "dropped" || keys.iter().all(|&key| wheel.cancel(key).is_none()));
        assert_eq!(advance(&mut wheel, 10).len(), 1, "{name}");
    }
}
