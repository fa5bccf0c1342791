//! Under a paused clock: as tokio's own timers, to the instant.

mod support;

use std::future::{Future, pending};
use std::pin::Pin;
use std::thread;

use futures::future::{BoxFuture, join_all};
use support::{Probe, current_thread, inside, ms, own_timer, poll_once, us, within};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::{advance, pause, resume};
use waterwheel::{Duration, Instant, Timer, interval, sleep, sleep_until, timeout};

fn paused() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// Numbers that look random: a script is the same for both timers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn millis(&mut self) -> u64 {
        let longest = [3, 20, 1_100, 130_000, 8_000_000, 200_000_000];
        let among = longest[self.below(6) as usize];
        self.below(among)
    }
}

/// What tokio's timers and ours have in common.
trait Times: 'static {
    type Sleep: Future<Output = ()> + Send;
    fn sleep(delay: Duration) -> Self::Sleep;
    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant);
    fn timeout(delay: Duration, future: BoxFuture<'_, ()>) -> BoxFuture<'_, bool>;
}

struct Tokios;

impl Times for Tokios {
    type Sleep = tokio::time::Sleep;
    fn sleep(delay: Duration) -> Self::Sleep {
        tokio::time::sleep(delay)
    }
    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
        sleep.reset(deadline);
    }
    fn timeout(delay: Duration, future: BoxFuture<'_, ()>) -> BoxFuture<'_, bool> {
        let limited = tokio::time::timeout(delay, future);
        Box::pin(async { limited.await.is_ok() })
    }
}

struct Ours;

impl Times for Ours {
    type Sleep = waterwheel::Sleep;
    fn sleep(delay: Duration) -> Self::Sleep {
        sleep(delay)
    }
    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
        sleep.reset(deadline);
    }
    fn timeout(delay: Duration, future: BoxFuture<'_, ()>) -> BoxFuture<'_, bool> {
        let limited = timeout(delay, future);
        Box::pin(async { limited.await.is_ok() })
    }
}

/// Ten tasks that sleep, time out and reset, while an eleventh advances the clock. What they saw:
/// for each, its steps, when they were done since the start, and whether in time.
fn play<T: Times>(seed: u64) -> Vec<Vec<(Duration, bool)>> {
    paused().block_on(async {
        let start = Instant::now();
        let tasks = (0..10).map(|task| {
            tokio::spawn(async move {
                let mut dice = Dice(seed * 100 + task + 1);
                let mut seen = Vec::new();
                for _ in 0..20 {
                    let delay = ms(dice.millis());
                    let in_time = match dice.below(4) {
                        0 => {
                            let mut sleep = Box::pin(T::sleep(delay));
                            for _ in 0..dice.below(4) {
                                let _ = futures::poll!(&mut sleep);
                                let again = Instant::now() + ms(dice.millis());
                                T::reset(sleep.as_mut(), again);
                            }
                            sleep.await;
                            true
                        }
                        1 => {
                            let inner = T::sleep(ms(dice.millis()));
                            T::timeout(delay, Box::pin(inner)).await
                        }
                        _ => {
                            T::sleep(delay).await;
                            true
                        }
                    };
                    seen.push((start.elapsed(), in_time));
                }
                seen
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut dice = Dice(seed * 100 + 99);
        for _ in 0..10 {
            advance(ms(dice.millis())).await;
            tokio::task::yield_now().await;
        }
        let seen = join_all(tasks).await.into_iter();
        seen.map(|seen| seen.expect("it does not panic")).collect()
    })
}

#[test]
fn with_whole_milliseconds_it_fires_exactly_when_tokio_does() {
    for seed in 1..=60 {
        assert_eq!(play::<Ours>(seed), play::<Tokios>(seed), "seed {seed}");
    }
}

/// How long a delay takes when the clock has left whole milliseconds by `before`, and so again
/// when the timer is there.
fn take<T: Times>(before: Duration, between: Duration, delay: Duration) -> Duration {
    paused().block_on(async {
        advance(before).await;
        T::sleep(ms(1)).await;
        advance(between).await;
        let start = Instant::now();
        T::sleep(delay).await;
        assert!(start.elapsed() >= delay);
        start.elapsed()
    })
}

#[test]
fn with_parts_of_milliseconds_it_fires_at_most_one_tick_after_tokio() {
    let mut dice = Dice(7);
    for _ in 0..500 {
        let [before, between] = [3_000, 3_000].map(|most| us(dice.below(most)));
        let delay = us(dice.below(20_000));
        let ours = take::<Ours>(before, between, delay);
        let tokios = take::<Tokios>(before, between, delay);
        assert!(
            ours <= tokios + ms(1),
            "{delay:?} after {before:?} and {between:?}: {ours:?} against {tokios:?}"
        );
    }
}

#[test]
fn side_by_side_with_tokios_it_fires_at_most_one_tick_after_them() {
    for seed in 1..=100 {
        paused().block_on(async {
            let mut dice = Dice(seed);
            advance(us(dice.below(3_000))).await;
            for _ in 0..10 {
                advance(us(dice.below(3_000))).await;
                let (start, delay) = (Instant::now(), us(dice.below(20_000)));
                let ours = async {
                    sleep(delay).await;
                    start.elapsed()
                };
                let tokios = async {
                    tokio::time::sleep(delay).await;
                    start.elapsed()
                };
                let (ours, tokios) = tokio::join!(ours, tokios);
                assert!(ours >= delay);
                assert!(
                    ours <= tokios + ms(1),
                    "{delay:?}: {ours:?} against {tokios:?}"
                );
            }
        });
    }
}

#[test]
fn the_idle_clock_jumps_to_the_next_deadline() {
    within(Duration::from_secs(20), || {
        paused().block_on(async {
            let start = Instant::now();
            let timer = own_timer();
            let naps = [7_u64, 30_000, 86_400_000];
            let ambient = naps.map(|millis| async move {
                sleep(ms(millis)).await;
                start.elapsed()
            });
            let own = naps.map(|millis| {
                let nap = timer.sleep(ms(millis + 1));
                async move {
                    nap.await;
                    start.elapsed()
                }
            });
            let (ambient, own) = tokio::join!(join_all(ambient), join_all(own));
            assert_eq!(ambient, naps.map(ms));
            assert_eq!(own, naps.map(|millis| ms(millis + 1)));
        });
    });
}

#[test]
fn the_idle_clock_stands_still_when_nothing_is_pending() {
    within(Duration::from_secs(20), || {
        paused().block_on(async {
            let timer = own_timer();
            // Both have something to do, and then nothing.
            tokio::join!(sleep(ms(5)), timer.sleep(ms(7)));
            assert_stands_still().await;
        });
    });
}

#[test]
fn the_idle_clock_does_not_jump_to_a_deadline_that_was_cancelled() {
    within(Duration::from_secs(20), || {
        paused().block_on(async {
            // Before the driver has seen it, and after.
            timeout(support::HOUR, tokio::task::yield_now())
                .await
                .expect("it is done");
            assert_stands_still().await;
            let mut dropped = sleep(support::HOUR);
            assert!(poll_once(&mut dropped).is_pending());
            settle().await;
            drop(dropped);
            assert_stands_still().await;
        });
    });
}

#[test]
fn the_idle_clock_does_not_jump_to_a_deadline_of_a_timer_that_was_stopped() {
    within(Duration::from_secs(20), || {
        paused().block_on(async {
            let mut stopped = sleep(support::HOUR);
            assert!(poll_once(&mut stopped).is_pending());
            settle().await;
            Timer::current().shutdown();
            assert_stands_still().await;
        });
    });
}

/// Lets the driver run.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// While it waits for a word from outside, with nothing pending.
async fn assert_stands_still() {
    let before = Instant::now();
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        thread::sleep(ms(50));
        sender.send(())
    });
    receiver.await.expect("a word from outside");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_is_woken_before_whoever_advances_the_clock_goes_on() {
    let timer = own_timer();
    let probe = Probe::new();
    let (mut ambient, mut own) = (sleep(ms(10)), timer.sleep(ms(10)));
    assert!(probe.poll(&mut ambient).is_pending());
    assert!(probe.poll(&mut own).is_pending());
    tokio::task::yield_now().await;
    advance(ms(9)).await;
    assert_eq!(probe.wakes(), 0);
    advance(ms(1)).await;
    assert_eq!(probe.wakes(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_advance_is_not_cut_short_by_what_it_passes() {
    let start = Instant::now();
    let passed = tokio::spawn(async move {
        sleep(ms(10)).await;
        start.elapsed()
    });
    tokio::task::yield_now().await;
    advance(ms(1_000)).await;
    assert_eq!(start.elapsed(), ms(1_000));
    assert_eq!(passed.await.expect("it does not panic"), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn sub_millisecond_delays_wait_for_the_clock() {
    let mut short = sleep(us(300));
    assert!(poll_once(&mut short).is_pending());
    advance(us(299)).await;
    assert!(poll_once(&mut short).is_pending());
    advance(us(1)).await;
    assert!(poll_once(&mut short).is_ready());
    let start = Instant::now();
    sleep(us(300)).await;
    assert!(start.elapsed() >= us(300) && start.elapsed() <= ms(1));
}

#[test]
fn it_follows_a_clock_that_is_paused_after_the_timer_has_started_in_real_time() {
    within(Duration::from_secs(20), || {
        current_thread().block_on(async {
            let timer = own_timer();
            tokio::join!(sleep(ms(3)), timer.sleep(ms(2)));
            let far = tokio::spawn(sleep(Duration::from_secs(3_600)));
            let own_far = tokio::spawn(timer.sleep(Duration::from_secs(1_800)));
            tokio::task::yield_now().await;
            pause();
            let start = Instant::now();
            let naps = [0, 1, 2, 10, 999, 1_000, 60_000].map(|millis| async move {
                sleep(ms(millis)).await;
                (start.elapsed(), ms(millis))
            });
            let tokios = async {
                tokio::time::sleep(ms(10)).await;
                start.elapsed()
            };
            let (naps, tokios) = tokio::join!(join_all(naps), tokios);
            for (elapsed, delay) in naps {
                assert!(
                    elapsed >= delay && elapsed <= delay + ms(3),
                    "{delay:?} took {elapsed:?}; tokio's 10 ms {tokios:?}"
                );
            }
            own_far.await.expect("it does not panic");
            assert!(start.elapsed() < Duration::from_secs(1_801));
            far.await.expect("it does not panic");
            assert!(start.elapsed() < Duration::from_secs(3_601));
        });
    });
}

#[test]
fn a_pause_in_the_middle_of_a_sleep_does_not_let_it_fire_by_the_real_clock() {
    within(Duration::from_secs(20), || {
        current_thread().block_on(async {
            let probe = Probe::new();
            let mut nap = sleep(ms(30));
            assert!(probe.poll(&mut nap).is_pending());
            tokio::task::yield_now().await;
            pause();
            let (sender, receiver) = oneshot::channel();
            // tokio's clock does not jump while a blocking task runs.
            let blocking = tokio::task::spawn_blocking(move || {
                thread::sleep(ms(80));
                sender.send(())
            });
            receiver.await.expect("a word from outside");
            assert_eq!(
                probe.wakes(),
                0,
                "80 real ms have passed, but no virtual ones"
            );
            assert!(poll_once(&mut nap).is_pending());
            blocking.await.expect("it ends").expect("it was heard");
            let start = Instant::now();
            nap.await;
            // tokio, which moves by whole milliseconds from wherever it was paused, may take two more.
            assert!(start.elapsed() <= ms(33), "{:?}", start.elapsed());
        });
    });
}

#[test]
fn after_resume_it_follows_the_real_clock_again() {
    within(Duration::from_secs(20), || {
        paused().block_on(async {
            sleep(Duration::from_secs(86_400)).await;
            let mut across = sleep(ms(40));
            assert!(poll_once(&mut across).is_pending());
            resume();
            let real = std::time::Instant::now();
            let virt = Instant::now();
            sleep(ms(20)).await;
            assert!(real.elapsed() >= ms(19), "{:?}", real.elapsed());
            assert!(virt.elapsed() >= ms(20));
            across.await;
            assert!(virt.elapsed() >= ms(40));
            assert!(real.elapsed() < Duration::from_secs(10));
            pause();
            let real = std::time::Instant::now();
            sleep(Duration::from_secs(86_400)).await;
            assert!(real.elapsed() < Duration::from_secs(10));
        });
    });
}

#[tokio::test(start_paused = true)]
async fn jumps_of_ten_years_are_as_good_as_any() {
    let decade = Duration::from_secs(86_400 * 3_653);
    let start = Instant::now();
    let mut metronome = interval(decade);
    for jump in 0..5 {
        assert_eq!(metronome.tick().await, start + decade * jump);
        assert_eq!(start.elapsed(), decade * jump);
        // A short one right after a long jump.
        let now = Instant::now();
        sleep(ms(3)).await;
        assert_eq!(now.elapsed(), ms(3));
    }
    let mut passed: Vec<_> = (1..100).map(|n| sleep(decade / n)).collect();
    assert!(passed.iter_mut().all(|sleep| poll_once(sleep).is_pending()));
    advance(decade).await;
    assert!(passed.iter_mut().all(|sleep| poll_once(sleep).is_ready()));
}

// A long suspend replayed tick by tick (Netty): jump instead.
#[tokio::test(start_paused = true)]
async fn a_jump_takes_a_few_turns_whatever_its_length() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    let before = timer.metrics().driver_turns();
    timer.sleep(Duration::from_secs(86_400 * 3_653)).await;
    let turns = timer.metrics().driver_turns() - before;
    // The dial beyond the last is looked at every 64 days: 57 times in ten years.
    assert!(turns < 1_000, "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn a_thread_outside_the_runtime_sees_the_paused_clock_of_the_timer() {
    let timer = own_timer();
    timer.sleep(ms(1)).await;
    advance(Duration::from_secs(1_000)).await;
    let deadline = Instant::now() + ms(5);
    let outside = thread::spawn({
        let timer = timer.clone();
        move || {
            let mut nap = timer.sleep_until(deadline);
            let mut zero = timer.sleep(Duration::ZERO);
            let first = (poll_once(&mut nap).is_ready(), poll_once(&mut zero));
            (first.0, first.1.is_ready(), nap)
        }
    });
    let (early, zero, nap) = outside.join().expect("it does not panic");
    assert!(!early && zero);
    nap.await;
    assert_eq!(Instant::now(), deadline);
}

#[test]
fn a_paused_clock_does_not_move_the_timers_of_another_runtime() {
    within(Duration::from_secs(20), || {
        let real = current_thread();
        let timer = inside(&real, own_timer);
        paused().block_on(async {
            let mut nap = timer.sleep(support::HOUR);
            assert!(poll_once(&mut nap).is_pending());
            advance(support::HOUR * 2).await;
            sleep(ms(5)).await;
            assert!(poll_once(&mut nap).is_pending());
            assert_eq!(timer.metrics().fired(), 0);
        });
    });
}

#[tokio::test(start_paused = true)]
async fn every_resolution_jumps_to_its_next_tick() {
    for micros in [100, 250, 500, 1_000, 2_000, 8_000, 100_000, 1_000_000] {
        let resolution = us(micros);
        let timer = Timer::builder().resolution(resolution).start();
        let timer = timer.expect("a timer");
        for delay in [us(1), us(999), ms(1), ms(17), ms(1_001), ms(61_000)] {
            let start = Instant::now();
            timer.sleep(delay).await;
            let late = start.elapsed() - delay;
            assert!(
                late <= resolution + ms(1),
                "{delay:?} at {resolution:?} was {late:?} late"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleep_until_an_instant_that_tokios_paused_clock_gave_is_exact() {
    let start = Instant::now();
    advance(ms(1_234)).await;
    sleep_until(start + ms(5_000)).await;
    assert_eq!(start.elapsed(), ms(5_000));
    let never = timeout(ms(10), pending::<()>());
    assert!(never.await.is_err());
    assert_eq!(start.elapsed(), ms(5_010));
}
