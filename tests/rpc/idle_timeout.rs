//! A guard ends when the last touch is long enough ago.

use std::future::{Future as _, pending, poll_fn, ready};
use std::pin::Pin;
use std::task::Poll;

use waterwheel::rpc::IdleTimeout;
use waterwheel::{Duration, Instant, Timer, sleep};

use crate::support::{
    Dice, HOUR, assert_panics_here, assert_settled, bounded_timer, burn_the_budget, ms, own_timer,
    paused, poll_once, us, waiting,
};

#[tokio::test(start_paused = true)]
async fn a_guard_ends_when_it_was_idle_for_so_long() {
    let start = Instant::now();
    let idle = IdleTimeout::new(ms(10));
    assert_eq!(idle.limit(), ms(10));
    let connection = idle.clone();
    let served = idle.guard(async move {
        for _ in 0..5 {
            sleep(ms(8)).await;
            connection.touch();
        }
        pending::<()>().await;
    });
    let elapsed = served.await.unwrap_err();
    assert!(!elapsed.was_stopped());
    assert_eq!(start.elapsed(), ms(50));
    assert_settled(&Timer::current());
}

/// Random touches from the guarded future and from another task, at fractions of a tick.
#[test]
fn a_guard_is_never_early_and_late_by_two_ticks_at_most() {
    for seed in 0..300 {
        paused().block_on(async {
            let mut dice = Dice(seed);
            tokio::time::advance(us(dice.roll(3_000))).await;
            let (most, limit) = (dice.roll(30) * 500 + 1, us(dice.roll(20_000)));
            let idle = IdleTimeout::new(limit);
            let mut last = Instant::now();
            let connection = idle.clone();
            let served = idle.guard(async {
                for _ in 0..dice.roll(20) {
                    sleep(us(dice.roll(most))).await;
                    last = Instant::now();
                    connection.touch();
                }
                pending::<()>().await;
            });
            assert!(served.await.is_err());
            let quiet = last.elapsed();
            assert!(quiet >= limit, "early: {quiet:?} of {limit:?}, seed {seed}");
            assert!(
                quiet < limit + ms(2),
                "late: {quiet:?} of {limit:?}, seed {seed}"
            );
        });
    }
}

// The timer's ticks begin with its first use, not with that of the idle timeout.
#[tokio::test(start_paused = true)]
async fn an_idle_timeout_made_in_the_middle_of_a_tick_is_not_early() {
    sleep(ms(1)).await;
    for _ in 0..20 {
        tokio::time::advance(us(310)).await;
        let start = Instant::now();
        let idle = IdleTimeout::new(ms(10));
        assert!(idle.deadline() >= Some(start + ms(10)));
        assert!(idle.guard(pending::<()>()).await.is_err());
        let quiet = start.elapsed();
        assert!(quiet >= ms(10) && quiet < ms(12), "{quiet:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_ready_wins_and_cancels_the_timer() {
    let idle = IdleTimeout::new(ms(10));
    let mut served = Box::pin(idle.guard(async {
        sleep(ms(5)).await;
        7
    }));
    assert_eq!((&mut served).await, Ok(7));
    let metrics = assert_settled(&Timer::current());
    assert_eq!((metrics.fired(), metrics.cancelled()), (1, 1));
    // Likewise if the last touch was long ago.
    sleep(ms(100)).await;
    assert_eq!(idle.guard(ready(8)).await, Ok(8));
}

#[tokio::test(start_paused = true)]
async fn to_guard_is_no_touch() {
    let idle = IdleTimeout::new(ms(10));
    sleep(ms(7)).await;
    let start = Instant::now();
    assert!(idle.guard(pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), ms(3));
    // A guard that comes too late ends at once, until there is a touch.
    assert!(poll_once(&mut idle.guard(pending::<()>())).is_ready());
    idle.touch();
    assert!(poll_once(&mut idle.guard(pending::<()>())).is_pending());
}

#[tokio::test(start_paused = true)]
async fn all_guards_end_by_the_same_touches() {
    let start = Instant::now();
    let idle = IdleTimeout::new(ms(10));
    let guards = [(); 3].map(|()| tokio::spawn(idle.guard(pending::<()>())));
    sleep(ms(6)).await;
    idle.touch();
    for guard in guards {
        assert!(guard.await.unwrap().is_err());
        assert_eq!(start.elapsed(), ms(16));
    }
    // Too late for these, but in time for the next one.
    idle.touch();
    assert!(idle.guard(pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), ms(26));
}

#[tokio::test(start_paused = true)]
async fn a_touch_while_the_guard_is_due_is_seen() {
    let idle = IdleTimeout::new(ms(10));
    let connection = idle.clone();
    let mut polls = 0;
    // The future is polled first, and touches in the very poll in which the guard's sleep is due.
    let mut guard = Box::pin(idle.guard(poll_fn(|_| {
        polls += 1;
        if polls < 4 {
            connection.touch();
        }
        Poll::<()>::Pending
    })));
    let start = Instant::now();
    assert!((&mut guard).await.is_err());
    drop(guard);
    assert_eq!((polls, start.elapsed()), (4, ms(30)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_time_of_zero_ends_at_the_running_tick() {
    let start = Instant::now();
    let idle = IdleTimeout::new(Duration::ZERO);
    assert_eq!(idle.guard(ready(1)).await, Ok(1));
    assert!(idle.guard(pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), Duration::ZERO);
    tokio::time::advance(us(10)).await;
    idle.touch();
    assert!(idle.guard(pending::<()>()).await.is_err());
    // tokio's clock jumps by whole milliseconds.
    assert_eq!(start.elapsed(), us(1_010));
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_time_never_ends() {
    let idle = IdleTimeout::new(Duration::MAX);
    assert_eq!((idle.deadline(), idle.limit()), (None, Duration::MAX));
    idle.touch();
    let guard = idle.guard(pending::<()>());
    assert!(waterwheel::timeout(1_000 * HOUR, guard).await.is_err());
    assert_eq!(idle.guard(ready(7)).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_guard_whose_timer_is_stopped_says_so() {
    let timer = own_timer();
    let idle = IdleTimeout::on(&timer, ms(10));
    let guard = tokio::spawn(idle.guard(pending::<()>()));
    let unpolled = idle.guard(pending::<()>());
    sleep(ms(5)).await;
    idle.touch();
    timer.shutdown();
    assert!(guard.await.unwrap().unwrap_err().was_stopped());
    assert!(unpolled.await.unwrap_err().was_stopped());
    idle.touch();
    let refused = idle.try_guard(ready(1)).unwrap_err();
    assert!(refused.is_shutdown());
    assert_panics_here(&["was stopped"], || idle.guard(ready(1)));
    let never = IdleTimeout::on(&timer, Duration::MAX);
    assert!(never.try_guard(ready(1)).unwrap_err().is_shutdown());
}

#[tokio::test(start_paused = true)]
async fn a_guard_beyond_the_bound_is_refused() {
    let timer = bounded_timer(1);
    let idle = IdleTimeout::on(&timer, ms(10));
    let first = idle.guard(pending::<()>());
    assert!(idle.try_guard(ready(1)).unwrap_err().is_at_capacity());
    assert_panics_here(&["max_pending"], || idle.guard(ready(1)));
    drop(first);
    assert_eq!(idle.guard(ready(1)).await, Ok(1));
    assert!(idle.guard(pending::<()>()).await.is_err());
    // A guard that sleeps on takes no second place.
    idle.touch();
    let touched = idle.clone();
    let long = idle.guard(async move {
        tokio::time::sleep(ms(5)).await;
        touched.touch();
        pending::<()>().await;
    });
    assert!(long.await.is_err());
    assert_eq!(idle.guard(ready(1)).await, Ok(1));
}

/// The budget is used up before the poll in which its sleep is due, so it is pending once more; and there it is touched.
#[tokio::test(start_paused = true)]
async fn a_guard_that_sleeps_on_lends_its_place_to_no_other() {
    let timer = bounded_timer(1);
    let idle = IdleTimeout::on(&timer, ms(10));
    let mut guard = waiting(idle.guard(pending::<()>()));
    for _ in 0..2 {
        tokio::time::sleep(ms(15)).await;
        let without_budget = poll_fn(|context| {
            burn_the_budget(context);
            Poll::Ready(Pin::new(&mut guard).poll(context))
        });
        assert!(without_budget.await.is_pending());
        let refused = idle.try_guard(ready(1));
        assert!(refused.unwrap_err().is_at_capacity());
        idle.touch();
        assert!(poll_once(&mut guard).is_pending());
        assert!(idle.try_guard(ready(1)).unwrap_err().is_at_capacity());
    }
    // A guard that is done releases its place before it is dropped.
    assert!((&mut guard).await.is_err());
    assert_eq!(idle.try_guard(ready(1)).unwrap().await, Ok(1));
    assert_settled(&timer);
}

#[test]
fn after_the_end_of_its_runtime_a_guard_is_refused() {
    let runtime = paused();
    let (new, on_current, on_own) = runtime.block_on(async {
        let own = Timer::builder().start().unwrap();
        let on = |timer: &Timer| IdleTimeout::on(timer, ms(10));
        (IdleTimeout::new(ms(10)), on(&Timer::current()), on(&own))
    });
    drop(runtime);
    for idle in [new, on_current, on_own] {
        assert_panics_here(&["was stopped"], || idle.guard(pending::<()>()));
        assert!(idle.try_guard(ready(1)).unwrap_err().is_shutdown());
    }
}

#[tokio::test(start_paused = true)]
async fn a_guarded_future_that_burns_the_budget_still_ends() {
    let idle = IdleTimeout::new(Duration::ZERO);
    let mut rounds = 0;
    let burning = poll_fn(|context| {
        rounds += 1;
        assert!(rounds < 1_000, "it never ends");
        burn_the_budget(context);
        context.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    assert!(idle.guard(burning).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_future_of_a_guard_can_be_taken_back() {
    let mut guarded = IdleTimeout::new(ms(10)).guard(ready(7));
    assert!(format!("{:?}", guarded.get_ref()).contains('7'));
    *guarded.get_mut() = ready(8);
    assert_eq!(guarded.into_inner().await, 8);
}

#[test]
fn outside_of_a_runtime_the_caller_is_blamed() {
    assert_panics_here(&["no reactor running"], || IdleTimeout::new(ms(1)));
}
