//! `Timer::snapshot`: its counts compared to a list of deadlines, and its invariants while threads arm and cancel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Runtime;
use waterwheel::{Duration, Instant, ManualClock, ShardSnapshot, Sleep, Snapshot, Timer};

use crate::support::{
    Dice, HOUR, LIMIT, armed, current_thread, eventually, inside, ms, multi_thread, own_timer,
    poll_once, waiting, with_timer, within,
};

/// The length of the slots of each dial in milliseconds, and their number.
const DIALS: [(u64, usize); 5] = [
    (1, 1_000),
    (1_000, 60),
    (60_000, 60),
    (3_600_000, 24),
    (86_400_000, 64),
];

/// The expected snapshot of a timer with these deadlines, in milliseconds: the counts of each dial, what is due, and what lies beyond.
fn naive(deadlines: &[u64], now: u64) -> (Vec<Vec<u64>>, u64, u64) {
    let mut counts = DIALS.map(|(_, slots)| vec![0; slots]).to_vec();
    let (mut due, mut beyond) = (0, 0);
    for &deadline in deadlines {
        if deadline <= now {
            due += 1;
            continue;
        }
        let reaches =
            |&(length, slots): &(u64, usize)| deadline / length - now / length <= slots as u64;
        match DIALS.iter().position(reaches) {
            Some(dial) => {
                let (length, slots) = DIALS[dial];
                counts[dial][(deadline / length) as usize % slots] += 1;
            }
            None => beyond += 1,
        }
    }
    (counts, due, beyond)
}

fn shown(snapshot: &Snapshot) -> (Vec<Vec<u64>>, u64, u64) {
    let counts = snapshot.dials().iter().map(|dial| dial.counts().to_vec());
    (counts.collect(), snapshot.due(), snapshot.beyond())
}

/// The sum of all counts of a shard.
fn counted(shard: &ShardSnapshot) -> u64 {
    let dials = shard.dials().iter().map(|dial| dial.timers());
    dials.sum::<u64>() + shard.due() + shard.beyond()
}

/// A timer on a manual clock, which ends with the runtime.
fn by_hand(name: &str) -> (Runtime, ManualClock, Timer) {
    let runtime = current_thread();
    let clock = ManualClock::new();
    let builder = Timer::builder().name(name).clock(clock.clone());
    let timer = builder.start_on(runtime.handle()).expect("a timer");
    (runtime, clock, timer)
}

fn armed_at(timer: &Timer, deadline: Instant) -> Sleep {
    waiting(timer.sleep_until(deadline))
}

// Deadlines from a millisecond to years; steps from a millisecond to months, so that slots of every dial cascade.
#[test]
fn it_counts_as_a_list_of_deadlines_on_all_dials() {
    for seed in 1..=3 {
        let mut dice = Dice(seed);
        let (_runtime, clock, timer) = by_hand("list");
        let start = timer.now();
        let mut sleeps: Vec<(u64, Sleep)> = Vec::new();
        let mut now = 0;
        for _ in 0..60 {
            for _ in 0..50 {
                let deadline = now + dice.any_magnitude(3 * 365 * 86_400_000);
                sleeps.push((deadline, armed_at(&timer, start + ms(deadline))));
            }
            let moved = dice.roll(sleeps.len() as u64) as usize;
            let (deadline, sleep) = &mut sleeps[moved];
            *deadline += dice.any_magnitude(1_000_000);
            sleep.set_deadline(start + ms(*deadline));
            let dropped = dice.roll(sleeps.len() as u64) as usize;
            drop(sleeps.swap_remove(dropped));
            let step = dice.any_magnitude(100 * 86_400_000);
            clock.advance(ms(step));
            now += step;
            sleeps.retain(|(deadline, _)| *deadline > now);
            let deadlines: Vec<u64> = sleeps.iter().map(|it| it.0).collect();
            let snapshot = timer.snapshot();
            assert!(
                shown(&snapshot) == naive(&deadlines, now),
                "at {now}: {snapshot}"
            );
            assert_eq!(snapshot.pending(), deadlines.len() as u64);
            assert_eq!(snapshot.now(), start + ms(now));
            for (dial, (length, slots)) in snapshot.dials().iter().zip(DIALS) {
                assert_eq!(dial.slot_length(), ms(length));
                assert_eq!(dial.slots(), slots);
                assert_eq!(dial.hand() as u64, now / length % slots as u64);
            }
            let [shard] = snapshot.shards() else {
                panic!("a manual clock has one shard: {snapshot:?}");
            };
            assert_eq!(counted(shard), shard.pending());
        }
    }
}

#[test]
fn slots_are_occupied_where_timers_are_filed() {
    let (_runtime, _clock, timer) = by_hand("slots");
    let start = timer.now();
    let delays = [1, 2, 2, 1_000, 1_001, 59_000, 61_000, 7_200_000];
    let sleeps = delays.map(|delay| armed_at(&timer, start + ms(delay)));
    let check = || {
        let snapshot = timer.snapshot();
        for dials in [snapshot.dials(), snapshot.shards()[0].dials()] {
            for dial in dials {
                let counts = dial.counts().iter().enumerate();
                // The hand has not moved since.
                let differs = |(slot, count): (usize, &u64)| dial.is_occupied(slot) != (*count > 0);
                assert_eq!(counts.filter(|it| differs(*it)).count(), 0, "{dial:?}");
            }
        }
        snapshot.pending()
    };
    assert_eq!(check(), 8);
    drop(sleeps);
    assert_eq!(check(), 0);
}

// The timer still lies in the slot of its old deadline.
#[test]
fn a_postponed_timer_counts_by_its_present_deadline() {
    let (_runtime, clock, timer) = by_hand("postponed");
    let start = timer.now();
    let mut sleep = armed_at(&timer, start + ms(500));
    sleep.set_deadline(start + ms(30_000));
    let snapshot = timer.snapshot();
    assert_eq!(shown(&snapshot), naive(&[30_000], 0));
    assert!(snapshot.shards()[0].dials()[0].is_occupied(500));
    clock.advance(ms(500));
    assert_eq!(shown(&timer.snapshot()), naive(&[30_000], 500));
}

#[test]
fn the_next_expiration_is_when_a_slot_comes_up() {
    let (_runtime, clock, timer) = by_hand("next");
    assert_eq!(timer.snapshot().next_expiration(), None);
    let start = timer.now();
    let long = armed_at(&timer, start + ms(90_000));
    let left = |after| {
        let snapshot = timer.snapshot();
        let next = snapshot.next_expiration();
        let left = snapshot.time_left();
        assert_eq!(next, left.map(|left| snapshot.now() + left));
        assert_eq!(snapshot.now(), start + ms(after));
        left
    };
    assert_eq!(left(0), Some(ms(60_000)), "the slot of its minute");
    let short = armed_at(&timer, start + ms(250));
    assert_eq!(left(0), Some(ms(250)));
    clock.advance(ms(100));
    assert_eq!(left(100), Some(ms(150)));
    clock.advance(ms(60_000));
    assert_eq!(left(60_100), Some(ms(29_900)));
    drop((long, short));
    assert_eq!(left(60_100), None);
    let never = armed_at(&timer, start + ms(60_100) + Duration::from_secs(1 << 40));
    let snapshot = timer.snapshot();
    assert_eq!((snapshot.beyond(), snapshot.pending()), (1, 1));
    drop(never);
}

#[test]
fn a_stopped_timer_shows_empty_dials_and_no_shard() {
    within(LIMIT, || {
        let assert_empty = |timer: &Timer| {
            let snapshot = timer.snapshot();
            assert!(snapshot.shards().is_empty());
            assert_eq!(
                (snapshot.pending(), snapshot.due(), snapshot.beyond()),
                (0, 0, 0)
            );
            assert_eq!(snapshot.next_expiration(), None);
            assert_eq!(snapshot.dials().len(), 5);
            assert!(snapshot.dials().iter().all(|dial| dial.timers() == 0));
            assert!(snapshot.to_string().contains("0 pending"));
        };
        let (runtime, timer) = with_timer(multi_thread(1));
        // The timer has no shard yet.
        assert_empty(&timer);
        let sleep = armed_at(&timer, timer.now() + HOUR);
        assert_eq!(timer.snapshot().pending(), 1);
        timer.shutdown();
        assert_empty(&timer);
        drop(sleep);
        let of_runtime = inside(&runtime, Timer::current);
        let sleep = armed_at(&of_runtime, of_runtime.now() + HOUR);
        assert_eq!(of_runtime.snapshot().pending(), 1);
        drop(runtime);
        assert_empty(&of_runtime);
        drop(sleep);
    });
}

#[test]
fn what_a_late_driver_has_not_served_is_due() {
    // This runtime never runs.
    let runtime = current_thread();
    let timer = Timer::builder()
        .start_on(runtime.handle())
        .expect("a timer");
    let sleep = armed(&timer, ms(5), poll_once);
    let early = sleep.deadline();
    let later = armed_at(&timer, timer.now() + HOUR);
    eventually("it is due", || timer.now() > early + ms(2));
    let snapshot = timer.snapshot();
    assert_eq!((snapshot.due(), snapshot.pending()), (1, 2));
    assert!(snapshot.next_expiration() <= Some(snapshot.now()));
    assert_eq!(snapshot.time_left(), Some(Duration::ZERO));
    drop((sleep, later));
}

#[test]
fn the_dials_of_all_shards_add_up() {
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let builder = Timer::builder().shards(64).name("many");
        let timer = builder.start_on(runtime.handle()).expect("a timer");
        let hours = |n: u64| HOUR * n as u32;
        let sleeps: Vec<Sleep> = (1..=8)
            .flat_map(|n| {
                let arm = || armed_at(&timer, timer.now() + hours(n + 1));
                let threads = thread::scope(|scope| scope.spawn(arm).join());
                [threads.expect("it arms"), arm()]
            })
            .collect();
        let snapshot = timer.snapshot();
        let shards = snapshot.shards();
        assert!(shards.len() > 1, "{snapshot:?}");
        assert!(shards.is_sorted_by_key(ShardSnapshot::number));
        assert!(shards.iter().all(|it| it.number() < timer.shards()));
        assert_eq!(snapshot.pending(), 16);
        assert_eq!(shards.iter().map(counted).sum::<u64>(), 16);
        for (at, dial) in snapshot.dials().iter().enumerate() {
            let of_shards = shards.iter().map(|shard| &shard.dials()[at]);
            let timers = of_shards.clone().map(|it| it.timers());
            assert_eq!(dial.timers(), timers.sum::<u64>());
            for slot in 0..dial.slots() {
                let counts = of_shards.clone().map(|it| it.counts()[slot]);
                assert_eq!(dial.counts()[slot], counts.sum::<u64>());
                let mut occupied = of_shards.clone().map(|it| it.is_occupied(slot));
                assert_eq!(dial.is_occupied(slot), occupied.any(|it| it));
            }
        }
        let next = shards.iter().filter_map(ShardSnapshot::next_expiration);
        assert_eq!(snapshot.next_expiration(), next.min());
        assert_eq!(
            (snapshot.name(), snapshot.resolution()),
            (Some("many"), timer.resolution())
        );
        drop(sleeps);
    });
}

// The walk releases the lock in between, and a timer never changes its place.
#[test]
fn what_stays_counts_once_while_threads_arm_and_cancel() {
    const STAY: u64 = 5_000;
    const AT_A_TIME: usize = 100;
    within(LIMIT, || {
        let runtime = multi_thread(1);
        let builder = Timer::builder().shards(1);
        let timer = builder.start_on(runtime.handle()).expect("a timer");
        // It is on the dial of hours, where the others have no timer.
        let mut dice = Dice(7);
        let stays: Vec<Sleep> = (0..STAY)
            .map(|_| armed_at(&timer, timer.now() + HOUR * 20 + ms(dice.roll(1_000))))
            .collect();
        let stopping = AtomicBool::new(false);
        let churn = |seed| {
            let mut dice = Dice(seed);
            let mut sleeps = Vec::new();
            let mut rounds = 0;
            while !stopping.load(Ordering::Relaxed) {
                let delay = ms(60_000 + dice.roll(1_000_000));
                sleeps.push(armed_at(&timer, timer.now() + delay));
                if sleeps.len() == AT_A_TIME {
                    let keep = dice.roll(AT_A_TIME as u64) as usize;
                    sleeps.truncate(keep);
                }
                rounds += 1;
            }
            rounds
        };
        thread::scope(|scope| {
            let threads = [1, 2].map(|seed| scope.spawn(move || churn(seed)));
            let most = STAY + 2 * AT_A_TIME as u64;
            // The threads must stop before this one panics.
            let wrong = (0..200).map(|_| timer.snapshot()).find(|snapshot| {
                let shard = &snapshot.shards()[0];
                let sums = [shard.pending(), counted(shard)];
                shard.dials()[3].timers() != STAY
                    || !sums.iter().all(|it| (STAY..=most).contains(it))
            });
            stopping.store(true, Ordering::Relaxed);
            let rounds = threads.map(|it| it.join().expect("no panic"));
            assert!(rounds.iter().all(|it| *it > 0));
            assert!(wrong.is_none(), "{wrong:?}");
        });
        drop(stays);
        let snapshot = timer.snapshot();
        assert_eq!((snapshot.pending(), counted(&snapshot.shards()[0])), (0, 0));
    });
}

#[cfg(not(without_test_util))]
#[test]
fn a_paused_clock_is_read_from_outside_its_runtime() {
    let runtime = crate::support::paused();
    let timer = inside(&runtime, own_timer);
    let start = timer.now();
    let sleep = armed_at(&timer, start + ms(1_500));
    let snapshot = timer.snapshot();
    assert_eq!(snapshot.now(), start);
    assert_eq!(snapshot.dials()[1].timers(), 1);
    drop(sleep);
}

#[test]
fn its_text_has_a_line_for_each_dial_and_shard() {
    let (_runtime, clock, timer) = by_hand("orders");
    clock.advance(ms(417));
    let start = timer.now();
    let sleeps: Vec<Sleep> = (1..=100)
        .map(|n| armed_at(&timer, start + ms(if n > 10 { 30_000 } else { 10 * n })))
        .collect();
    let text = timer.snapshot().to_string();
    let expected = [
        r#"timer "orders": 100 pending, 0 due, 0 beyond the dials, next expiration in 10ms, tick 1ms"#,
        "tick     417/1000                  ▼▁▁▁▁                            10",
        "second     0/60    ▼              █                                 90",
        "minute     0/60    ▼                                                 0",
        "hour       0/24    ▼                                                 0",
        "day        0/64    ▼                                                 0",
        "shard 0: 100 pending, next expiration in 10ms",
    ];
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, expected, "{text}");
    drop(sleeps);
}
