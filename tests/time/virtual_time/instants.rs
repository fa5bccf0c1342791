//! Parts of milliseconds: at most a tick after tokio's own timers. For whole ones, see `beside_tokio`.

use tokio::time::advance;
use waterwheel::{Duration, Instant, sleep};

use crate::beside_tokio::{Ours, Times, Tokio};
use crate::support::{Dice, ms, paused, us};

/// How long a delay takes on a timer that starts `before` past a whole millisecond, after
/// the clock has moved by another `between`.
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
        let tokios = take::<Tokio>(before, between, delay);
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
        let tokios = take::<Tokio>(half, Duration::ZERO, us(micros));
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
