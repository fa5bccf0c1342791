//! As tokio's own timers: the same script, the same times.

use std::future::Future;
use std::pin::Pin;

use futures::future::{BoxFuture, join_all};
use tokio::time::advance;
use waterwheel::{Duration, Instant, sleep, timeout};

use crate::support::{Dice, ms, paused, us};

fn millis(dice: &mut Dice) -> u64 {
    let longest = [3, 20, 1_100, 130_000, 8_000_000, 200_000_000];
    let among = longest[dice.roll(6) as usize];
    dice.roll(among)
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
                    let delay = ms(millis(&mut dice));
                    let in_time = match dice.roll(4) {
                        0 => {
                            let mut sleep = Box::pin(T::sleep(delay));
                            for _ in 0..dice.roll(4) {
                                let _ = futures::poll!(&mut sleep);
                                let again = Instant::now() + ms(millis(&mut dice));
                                T::reset(sleep.as_mut(), again);
                            }
                            sleep.await;
                            true
                        }
                        1 => {
                            let inner = T::sleep(ms(millis(&mut dice)));
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
            advance(ms(millis(&mut dice))).await;
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
fn parts_of_milliseconds_fire_at_most_one_tick_after_tokios() {
    let mut dice = Dice(7);
    for _ in 0..500 {
        let [before, between] = [3_000, 3_000].map(|most| us(dice.roll(most)));
        let delay = us(dice.roll(20_000));
        let ours = take::<Ours>(before, between, delay);
        let tokios = take::<Tokios>(before, between, delay);
        assert!(
            ours <= tokios + ms(1),
            "{delay:?} after {before:?} and {between:?}: {ours:?} against {tokios:?}"
        );
    }
}

#[test]
fn a_timer_that_starts_between_tokios_milliseconds_is_no_later() {
    let half = us(500);
    for micros in (0..5_000).step_by(100) {
        let ours = take::<Ours>(half, Duration::ZERO, us(micros));
        let tokios = take::<Tokios>(half, Duration::ZERO, us(micros));
        assert!(ours <= tokios, "{micros} µs: {ours:?} against {tokios:?}");
    }
}

#[test]
fn a_timer_fires_at_most_one_tick_after_tokios_beside_it() {
    for seed in 1..=100 {
        paused().block_on(async {
            let mut dice = Dice(seed);
            advance(us(dice.roll(3_000))).await;
            for _ in 0..10 {
                advance(us(dice.roll(3_000))).await;
                let (start, delay) = (Instant::now(), us(dice.roll(20_000)));
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
