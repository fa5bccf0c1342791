//! The order of wakes in the simple cases: ten tasks and one step of the clock, equal deadlines, and a
//! runtime that was blocked, in real time.
//!
//! Each shard is ordered separately, so the timers of a test are armed from one thread.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use tokio::task::yield_now;
use tokio::time::advance;
use waterwheel::{Duration, Instant, Sleep, Timer, sleep};

use crate::support::{
    Dice, OwnTimer, current_thread, eventually, ms, multi_thread, own_timer, paused, poll_giving,
    waker_on_wake, within,
};

/// The numbers of the sleeps that were woken, in order.
type Log = Arc<Mutex<Vec<u64>>>;

fn read(log: &Log) -> Vec<u64> {
    log.lock().expect("no waker panics").clone()
}

/// Polls a sleep with a waker that logs `what`.
fn poll(sleep: &mut Sleep, log: &Log, what: u64) {
    let log = Arc::clone(log);
    let waker = waker_on_wake(move || log.lock().expect("no waker panics").push(what));
    assert!(poll_giving(sleep, waker).is_pending());
}

#[tokio::test(start_paused = true)]
async fn ten_tasks_run_in_order_of_deadline_after_one_advance() {
    let log = Log::default();
    for tenths in [3, 1, 4, 10, 5, 9, 2, 6, 8, 7] {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            sleep(ms(100 * tenths)).await;
            log.lock().expect("no task panics").push(100 * tenths);
        });
    }
    yield_now().await;
    advance(ms(2_000)).await;
    yield_now().await;
    let expected: Vec<u64> = (1..=10).map(|tenths| 100 * tenths).collect();
    assert_eq!(read(&log), expected);
}

#[test]
fn twelve_equal_deadlines_come_back_in_order_of_first_poll() {
    // Within the first dial, and on each of the others.
    for seconds in [1, 30, 1_800, 40_000, 1_000_000, 10_000_000] {
        paused().block_on(async {
            let log = Log::default();
            let delay = ms(seconds * 1_000 - 1);
            let mut sleeps: Vec<_> = (0..12).map(|_| sleep(delay)).collect();
            for (what, sleep) in (0..).zip(&mut sleeps) {
                poll(sleep, &log, what);
            }
            advance(delay).await;
            assert_eq!(read(&log), Vec::from_iter(0..12), "{delay:?}");
        });
    }
}

// ----- a runtime that was blocked -----

const STALL: Duration = ms(2_600);
/// The lead time: if the machine stalls for longer while the timers are armed, the first ones are due at once.
const AHEAD: Duration = ms(300);
const LIMIT: Duration = Duration::from_secs(60);

/// Timers of one kind that come due while the runtime is blocked.
struct Group {
    deadlines: Vec<Instant>,
    log: Log,
}

impl Group {
    /// Arms this many timers in random order, at distinct milliseconds spread over the stall.
    fn arm(timer: &Timer, number: u64, start: Instant) -> (Group, Vec<Sleep>) {
        let log = Log::default();
        let at = |nth: u64| start + AHEAD + (STALL - AHEAD).mul_f64(nth as f64 / number as f64);
        let mut order: Vec<u64> = (0..number).collect();
        let mut dice = Dice(number);
        for to in (1..order.len()).rev() {
            order.swap(to, dice.roll(to as u64 + 1) as usize);
        }
        let mut sleeps = Vec::new();
        for nth in order {
            let mut sleep = timer.sleep_until(at(nth));
            poll(&mut sleep, &log, nth);
            sleeps.push(sleep);
        }
        let deadlines = (0..number).map(at).collect();
        (Group { deadlines, log }, sleeps)
    }

    /// Arms timers with equal deadlines in the middle of the stall.
    fn arm_equal(timer: &Timer, number: u64, start: Instant) -> (Group, Vec<Sleep>) {
        let log = Log::default();
        let deadline = start + STALL / 2;
        let mut sleeps: Vec<_> = (0..number).map(|_| timer.sleep_until(deadline)).collect();
        for (what, sleep) in (0..).zip(&mut sleeps) {
            poll(sleep, &log, what);
        }
        let deadlines = vec![deadline; number as usize];
        (Group { deadlines, log }, sleeps)
    }

    fn is_done(&self) -> bool {
        read(&self.log).len() >= self.deadlines.len()
    }

    fn assert_in_order(&self) {
        let woken = read(&self.log);
        let number = self.deadlines.len();
        let pairs = woken.windows(2).enumerate();
        let mut wrong = pairs.filter(|(_, pair)| pair[0] > pair[1]);
        if let Some((at, _)) = wrong.next() {
            let number_wrong = 1 + wrong.count();
            let around = &woken[at.saturating_sub(8)..number.min(at + 12)];
            panic!("{number_wrong} pairs of {number} out of order; around {at}: {around:?}");
        }
        assert_eq!(woken, Vec::from_iter(0..number as u64));
    }
}

/// A separate timer for each group, so that only one group's timers are due at once.
struct Timers {
    current: Timer,
    own: [OwnTimer; 3],
}

impl Timers {
    /// Starts the timers on the current runtime.
    fn start() -> Timers {
        Timers {
            current: Timer::current(),
            own: [own_timer(), own_timer(), own_timer()],
        }
    }

    /// Lets each driver wake from a sleep, and sleep again.
    async fn warm_up(&self) {
        let own = self.own.iter().map(|timer| &**timer);
        for timer in own.chain([&self.current]) {
            timer.sleep(ms(1)).await;
        }
        tokio::time::sleep(ms(20)).await;
    }

    /// Arms groups of sleeps on this thread, and blocks it until all of them are due.
    fn arm_and_block(self) -> Stalled {
        let start = Instant::now();
        let groups = [
            Group::arm(&self.own[0], 20, start),
            Group::arm(&self.own[1], 100, start),
            Group::arm(&self.current, 800, start),
            Group::arm_equal(&self.own[2], 12, start),
        ];
        thread::sleep((start + STALL + ms(50)).saturating_duration_since(Instant::now()));
        let (groups, sleeps): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        Stalled {
            groups,
            _sleeps: sleeps.into_iter().flatten().collect(),
            _timers: self,
        }
    }
}

/// The sleeps and timers after a stall. The sleeps are dropped before their timers, whose counters must add up then.
struct Stalled {
    groups: Vec<Group>,
    _sleeps: Vec<Sleep>,
    _timers: Timers,
}

impl Stalled {
    fn is_done(&self) -> bool {
        self.groups.iter().all(Group::is_done)
    }

    fn assert_in_order(&self) {
        eventually("all are woken", || self.is_done());
        self.groups.iter().for_each(Group::assert_in_order);
    }
}

/// Whether the drivers have run before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drivers {
    Warm,
    New,
}

fn block_the_only_thread(drivers: Drivers) {
    current_thread().block_on(async {
        let timers = Timers::start();
        if drivers == Drivers::Warm {
            timers.warm_up().await;
        }
        let stalled = timers.arm_and_block();
        let begin = Instant::now();
        while !stalled.is_done() && begin.elapsed() < LIMIT / 2 {
            yield_now().await;
        }
        stalled.assert_in_order();
    });
}

/// Blocks each worker; on one of them timers are armed.
fn block_all(workers: usize, drivers: Drivers) {
    let runtime = multi_thread(workers);
    let timers = runtime.spawn(async move {
        let timers = Timers::start();
        if drivers == Drivers::Warm {
            timers.warm_up().await;
        }
        timers
    });
    let timers = runtime.block_on(timers).expect("it does not panic");
    // Spawned from outside: a task that a worker spawns may wait for that worker.
    let barrier = Arc::new(Barrier::new(workers));
    for _ in 1..workers {
        let barrier = Arc::clone(&barrier);
        runtime.spawn(async move {
            barrier.wait();
            barrier.wait();
        });
    }
    let armed = runtime.spawn(async move {
        barrier.wait();
        let stalled = timers.arm_and_block();
        barrier.wait();
        stalled
    });
    let stalled = runtime.block_on(armed).expect("it does not panic");
    stalled.assert_in_order();
}

#[test]
fn timers_due_while_the_only_thread_is_blocked_wake_in_order() {
    within(LIMIT, || block_the_only_thread(Drivers::Warm));
}

#[test]
fn timers_due_while_the_only_worker_is_blocked_wake_in_order() {
    within(LIMIT, || block_all(1, Drivers::Warm));
}

#[test]
fn timers_due_while_both_workers_are_blocked_wake_in_order() {
    within(LIMIT, || block_all(2, Drivers::Warm));
}

// A driver that never ran has not slept either: its first turn counts as one after a sleep.
#[test]
fn timers_due_before_their_driver_first_ran_wake_in_order() {
    within(LIMIT, || {
        let blocked = thread::spawn(|| block_all(1, Drivers::New));
        block_the_only_thread(Drivers::New);
        blocked.join().expect("it does not panic");
    });
}
