//! More timers come due than the driver's turns serve: neither the oldest nor the freshest starve.
//!
//! `tests/wheel/fairness.rs` says it of the wheel; this is the real driver, with its bites, and
//! with the help that futures call for one that is late.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;
use waterwheel::{Sleep, Timer};

use crate::support::{metrics, ms, own_timer, poll_giving, poll_once, waker_on_wake};

/// What is due before all that arrives.
const HERD: usize = 20_000;
/// What comes due in each step. A turn serves 128, and so may one that helps.
const ARRIVALS: usize = 500;
const STEPS: usize = 40;

/// What all wakers tell: that the driver has turned.
#[derive(Default)]
struct Turns {
    woken: AtomicUsize,
    watcher: AtomicWaker,
}

impl Turns {
    fn note(&self) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.watcher.wake();
    }

    /// Waits for a turn that wakes something. On a runtime of one thread, a task that waits goes on
    /// after that turn and before the next.
    async fn next(&self) {
        let before = self.woken.load(Ordering::SeqCst);
        poll_fn(|context| {
            self.watcher.register(context.waker());
            match self.woken.load(Ordering::SeqCst) == before {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

/// Timers due at one tick, and how many of them have been woken.
struct Group {
    woken: Arc<AtomicUsize>,
    _sleeps: Vec<Sleep>,
}

impl Group {
    /// Each of them tells when it is woken.
    fn arm(timer: &Timer, count: usize, millis: u64, turns: &Arc<Turns>) -> Group {
        let woken = Arc::new(AtomicUsize::new(0));
        let sleeps = (0..count).map(|_| {
            let (woken, turns) = (Arc::clone(&woken), Arc::clone(turns));
            let waker = waker_on_wake(move || {
                woken.fetch_add(1, Ordering::SeqCst);
                turns.note();
            });
            let mut sleep = timer.sleep(ms(millis));
            assert!(poll_giving(&mut sleep, waker).is_pending());
            sleep
        });
        Group {
            _sleeps: sleeps.collect(),
            woken,
        }
    }

    fn woken(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }
}

/// Moves the paused clock and no more: whoever awaits an `advance` lets others run.
fn advance_by_a_millisecond() {
    let mut advance = Box::pin(tokio::time::advance(ms(1)));
    assert!(poll_once(&mut advance).is_pending());
}

#[tokio::test(start_paused = true)]
async fn under_a_steady_overload_neither_the_oldest_nor_the_freshest_starve() {
    // In a task, which takes its turns with the driver's; the test's own future comes every 61st time.
    tokio::spawn(overload()).await.expect("nobody starves");
}

async fn overload() {
    let timer = own_timer();
    let turns = Arc::new(Turns::default());
    let herd = Group::arm(&timer, HERD, 10, &turns);
    tokio::time::advance(ms(10)).await;
    while herd.woken() == 0 {
        turns.next().await;
    }

    let mut arrived: Vec<Group> = Vec::new();
    let all_woken = |arrived: &[Group]| arrived.iter().map(Group::woken).sum::<usize>();
    let (old_at_first, start) = (herd.woken(), metrics(&timer).pending());
    for step in 0..STEPS {
        let freshest = Group::arm(&timer, ARRIVALS, 1, &turns);
        arrived.push(freshest);
        advance_by_a_millisecond();
        let before = (herd.woken(), all_woken(&arrived));
        turns.next().await;
        let old = herd.woken() - before.0;
        let freshest = arrived[step].woken();
        assert!(old > 0, "none of the oldest in step {step}");
        assert!(freshest > 0, "none of the freshest in step {step}");
        let served = old + all_woken(&arrived) - before.1;
        assert!(served < ARRIVALS, "{served} in one step is no overload");
    }
    assert!(metrics(&timer).pending() > start, "it was an overload");
    let (old, new) = (herd.woken() - old_at_first, all_woken(&arrived));
    assert!(
        old >= new / 2 && new >= old / 2,
        "{old} of the herd and {new} that came after it"
    );

    // What was left over is neither lost nor woken twice.
    while metrics(&timer).pending() > 0 {
        turns.next().await;
    }
    assert_eq!(herd.woken(), HERD);
    assert!(arrived.iter().all(|group| group.woken() == ARRIVALS));
}
