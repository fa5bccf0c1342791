//! Never early, in real time: sleeps of 0 to 50 ms, to the nanosecond, from two threads; and the
//! effect of a long one on the others.
//!
//! `WATERWHEEL_SLEEPS=10000000 cargo test --release --test time_itself never_early::` takes half a
//! minute; without the variable it is a smaller number and a few seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use waterwheel::{Duration, Instant, Timer, sleep, sleep_until};

use crate::support::{Dice, assert_settled, in_a_task, ms, multi_thread, poll_once, us, waiting};
use crate::timer_of;

const LONGEST: Duration = Duration::from_millis(50);
const TASKS: u64 = 10_000;

fn number_of_sleeps() -> u64 {
    match std::env::var("WATERWHEEL_SLEEPS") {
        Ok(number) => number
            .parse()
            .expect("WATERWHEEL_SLEEPS is a whole number of sleeps"),
        Err(_) => 300_000,
    }
}

/// The state that all tasks share.
struct Run {
    left: AtomicU64,
    early: AtomicU64,
    done: AtomicU64,
}

impl Run {
    /// Sleeps as long as there are sleeps left; on the runtime's timer if none is given.
    async fn sleep_again_and_again(self: Arc<Run>, own: Option<Timer>, mut dice: Dice) {
        let take = |left: u64| left.checked_sub(1);
        while self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
        {
            let delay = Duration::from_nanos(dice.roll(LONGEST.as_nanos() as u64));
            let deadline = Instant::now() + delay;
            match (&own, dice.roll(2)) {
                (Some(own), 0) => own.sleep(delay).await,
                (Some(own), _) => own.sleep_until(deadline).await,
                (None, 0) => sleep(delay).await,
                (None, _) => sleep_until(deadline).await,
            }
            let is_early = Instant::now() < deadline;
            self.early.fetch_add(is_early.into(), Ordering::Relaxed);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// In a task a delay of a second or more trusts the clock read that made it, and its first poll moves the
// hand to the last tick that had certainly passed by then. With ticks of a second and a delay that is a
// nanosecond short of two seconds, that is the current tick.
#[test]
fn a_long_sleep_does_not_move_the_hand_past_the_running_tick() {
    in_a_task(|| {
        for delay in [ms(1_000), ms(2_000) - Duration::from_nanos(1)] {
            let timer = timer_of(ms(1_000));
            // A tick begins as the timer does: move on into it.
            thread::sleep(ms(2));
            let _long = waiting(timer.sleep(delay));
            let mut other = timer.sleep(ms(500));
            let is_early = poll_once(&mut other).is_ready() && Instant::now() < other.deadline();
            assert!(!is_early, "beside a sleep of {delay:?}");
        }
    });
}

#[test]
fn no_sleep_of_up_to_50_ms_is_early_or_lost() {
    let number = number_of_sleeps();
    let run = Arc::new(Run {
        left: AtomicU64::new(number),
        early: AtomicU64::new(0),
        done: AtomicU64::new(0),
    });
    multi_thread(2).block_on(async {
        let timers = [timer_of(ms(1)), timer_of(us(100)), Timer::current()];
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let own = timers[..2].get(task as usize % 3).cloned();
                let run = Arc::clone(&run);
                tokio::spawn(run.sleep_again_and_again(own, Dice(task)))
            })
            .collect();
        // An idle machine does several hundred thousand a second.
        let patience = Duration::from_secs(30 + number / 10_000);
        let all = async {
            for task in tasks {
                task.await.expect("it does not panic");
            }
        };
        let ended = tokio::time::timeout(patience, all).await;
        let done = run.done.load(Ordering::Relaxed);
        assert!(ended.is_ok(), "{done} of {number} done after {patience:?}");
        assert_eq!(done, number);
        let fired: u64 = timers
            .iter()
            .map(|timer| assert_settled(timer).fired())
            .sum();
        // Except for sleeps that are shorter than it takes to poll them.
        assert!(
            fired <= number && fired > number / 10 * 9,
            "{fired} of {number}"
        );
    });
    assert_eq!(run.early.load(Ordering::Relaxed), 0, "of {number}");
}
