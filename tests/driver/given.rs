//! Backlogs that the driver hands over: of two shards with a backlog it turns one, and a task turns the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Runtime, RuntimeMetrics};
use waterwheel::{Instant, Sleep, Timer, Waking};

use crate::support::{ms, multi_thread, poll_with, waker_on_wake, within};

const LIMIT: Duration = Duration::from_secs(300);
/// The size of the herd on each of two shards: more than one turn serves, however late it is.
const HERD: usize = 70_000;
/// The number of rounds. A busy machine may arm a herd too late, or wake the driver so late that two turns serve everything.
const ROUNDS: u32 = 7;
/// The observations that the wakers of two shards share.
#[derive(Default)]
struct Meeting {
    is_inside: [AtomicBool; 2],
    /// Whether two threads have woken timers at once, one of each shard.
    has_taken_place: AtomicBool,
    woken: AtomicUsize,
    most_tasks: AtomicUsize,
}

impl Meeting {
    /// Notes that a timer of this shard is woken. While a catch-up has one of the shards, waits for a timer of the other one to be woken.
    ///
    /// A catch-up is a second task besides the driver, and the driver has kept a timer to wake. So it waits for long only if one
    /// thread turns both.
    fn visit(&self, shard: usize, runtime: &RuntimeMetrics) {
        let [mine, other] = [shard, 1 - shard].map(|shard| &self.is_inside[shard]);
        mine.store(true, Ordering::SeqCst);
        let has_catch_up = || {
            let tasks = runtime.num_alive_tasks();
            self.most_tasks.fetch_max(tasks, Ordering::SeqCst);
            tasks > 1
        };
        while has_catch_up() && runtime.num_workers() > 1 && !self.has_taken_place() {
            if other.load(Ordering::SeqCst) {
                self.has_taken_place.store(true, Ordering::SeqCst);
            }
            thread::yield_now();
        }
        mine.store(false, Ordering::SeqCst);
        self.woken.fetch_add(1, Ordering::SeqCst);
    }

    fn has_taken_place(&self) -> bool {
        self.has_taken_place.load(Ordering::SeqCst)
    }
}

/// A herd on each of two shards, all due at the same instant. `None` if that passed before all were armed.
fn armed(runtime: &Runtime, timer: &Timer, lead: Duration) -> Option<(Arc<Meeting>, Vec<Sleep>)> {
    let meeting = Arc::new(Meeting::default());
    let due = Instant::now() + lead;
    // Two concurrent threads have different shards.
    let herds = thread::scope(|scope| {
        [0, 1]
            .map(|shard| {
                let (meeting, runtime) = (Arc::clone(&meeting), runtime.metrics());
                scope.spawn(move || {
                    let visit = move || meeting.visit(shard, &runtime);
                    let waker = waker_on_wake(visit);
                    let arm =
                        |mut sleep| poll_with(&mut sleep, &waker).is_pending().then_some(sleep);
                    (0..HERD)
                        .map(|_| arm(timer.sleep_until(due)))
                        .collect::<Option<Vec<_>>>()
                })
            })
            .map(|herd| herd.join().expect("it does not panic"))
    });
    let [first, second] = herds;
    let herd = first?.into_iter().chain(second?).collect();
    Some((meeting, herd))
}

/// The observations of the wakers of two herds, once all were woken. `None` if the herds were not armed in time.
fn meeting(workers: usize, lead: Duration) -> Option<Arc<Meeting>> {
    within(LIMIT, move || {
        let runtime = multi_thread(workers);
        // Enough shards that no two threads of this process share one.
        let timer = Timer::builder().shards(1024);
        // Otherwise a driver that is slow to wake all this is watched, and its task turns during its first turn.
        let timer = timer.waking(Waking::TokioOnly);
        let timer = timer.start_on(runtime.handle()).expect("a timer");
        let (meeting, herd) = armed(&runtime, &timer, lead)?;
        while meeting.woken.load(Ordering::SeqCst) < herd.len() {
            thread::sleep(ms(1));
        }
        assert_eq!(timer.metrics().fired(), herd.len() as u64);
        Some(meeting)
    })
}

fn in_some_round(is_so: impl Fn(&Meeting) -> bool, workers: usize) -> bool {
    (0..ROUNDS).any(|round| {
        meeting(workers, ms(200) * 2u32.pow(round)).is_some_and(|meeting| is_so(&meeting))
    })
}

#[test]
fn two_shards_with_a_backlog_are_turned_at_once() {
    assert!(in_some_round(Meeting::has_taken_place, 2));
}

#[test]
fn on_one_worker_no_backlog_is_given_away() {
    // The driver is the only task.
    let has_one_task = |meeting: &Meeting| meeting.most_tasks.load(Ordering::SeqCst) == 1;
    assert!(in_some_round(has_one_task, 1));
}
