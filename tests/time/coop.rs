//! The coop budget.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::runtime::Runtime;
use tokio::time::advance;
use waterwheel::{
    Duration, Instant, Interval, Timer, interval_at, sleep, sleep_until, timeout, timeout_at,
};

use crate::support::{
    HOUR, LIMIT, bounded_timer, burn_the_budget, current_thread, ms, multi_thread, own_timer,
    paused, waiting, within,
};

fn on_its_own(runtime: fn() -> Runtime, future: impl Future<Output = ()> + Send + 'static) {
    within(LIMIT, move || runtime().block_on(future));
}

#[test]
fn a_loop_of_ready_sleeps_or_missed_ticks_yields_to_other_tasks() {
    for is_interval in [false, true] {
        on_its_own(current_thread, async move {
            let done = Arc::new(AtomicBool::new(false));
            let spins = Arc::clone(&done);
            let spinning = tokio::spawn(async move {
                let long_ago = Instant::now() - ms(1_000);
                let mut ticks = interval_at(long_ago, Duration::from_nanos(1));
                let mut rounds = 0_u64;
                while !spins.load(Ordering::SeqCst) {
                    match is_interval {
                        true => drop(ticks.tick().await),
                        false => sleep(Duration::ZERO).await,
                    }
                    rounds += 1;
                }
                rounds
            });
            let other = tokio::spawn(async move { done.store(true, Ordering::SeqCst) });
            other.await.expect("it had its turn");
            assert!(spinning.await.expect("it ends") > 0);
        });
    }
}

/// More than a task's budget.
const MANY: usize = 1_000;

/// The number of times in a row that this is ready, within one poll of a task.
async fn ready_in_a_row<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> usize {
    poll_fn(|context| {
        let rounds = (0..MANY).take_while(|_| poll(context).is_ready());
        Poll::Ready(rounds.count())
    })
    .await
}

// Such an interval keeps its entry, so its poll takes another code path than that of a new one.
#[test]
fn a_burst_of_ticks_due_while_it_waited_yields_to_other_tasks() {
    on_its_own(paused, async {
        let start = Instant::now() + ms(5);
        let mut ticks = interval_at(start, ms(1));
        assert!(ticks.tick().now_or_never().is_none());
        advance(ms(10_004)).await;
        let mut all = 0;
        while all < 10_000 {
            let burst = ready_in_a_row(|context| ticks.poll_tick(context)).await;
            assert!(burst < MANY, "it never yields");
            all += burst;
            tokio::task::yield_now().await;
        }
        assert_eq!(ticks.tick().await, start + ms(all as u64), "none is lost");
    });
}

// Its end takes budget as well, and waits for it.
#[test]
fn an_interval_stopped_without_budget_ends_once_there_is_some() {
    on_its_own(paused, async {
        let timer = own_timer();
        let mut ticks = timer.interval(HOUR);
        ticks.tick().await;
        assert!(ticks.tick().now_or_never().is_none());
        timer.shutdown();
        poll_fn(|context| {
            burn_the_budget(context);
            assert!(ticks.poll_tick(context).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(!ticks.was_stopped(), "the task has not seen it");
        assert!(
            ticks
                .try_tick()
                .await
                .is_err_and(|error| error.is_shutdown())
        );
    });
}

// A task that retries without end behaves like this. If a delay was checked regardless of the
// budget, it would never yield.
#[test]
fn a_loop_of_timeouts_that_elapse_at_once_yields_to_other_tasks() {
    on_its_own(paused, async {
        let long_ago = Instant::now();
        advance(ms(100)).await;
        let poll_now = |context: &mut Context<'_>| {
            let mut limited = timeout(Duration::ZERO, pending::<()>());
            Pin::new(&mut limited).poll(context)
        };
        let poll_late = |context: &mut Context<'_>| {
            let mut limited = timeout_at(long_ago, pending::<()>());
            Pin::new(&mut limited).poll(context)
        };
        for _ in 0..3 {
            let rounds = ready_in_a_row(poll_now).await;
            assert!(rounds > 0 && rounds < MANY, "{rounds} rounds");
            tokio::task::yield_now().await;
            let rounds = ready_in_a_row(poll_late).await;
            assert!(rounds > 0 && rounds < MANY, "{rounds} rounds");
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_timeout_without_budget_elapses_once_there_is_some() {
    on_its_own(paused, async {
        let mut limited = waiting(timeout(ms(10), pending::<()>()));
        advance(ms(20)).await;
        poll_fn(|context| {
            burn_the_budget(context);
            assert!(Pin::new(&mut limited).poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(limited.await.is_err());
    });
}

// tokio#4314: a future that burns its coop budget inside a timeout still times out.
#[test]
fn a_timeout_of_a_future_that_burns_the_budget_still_elapses() {
    struct Burns(Arc<AtomicUsize>);
    impl Future for Burns {
        type Output = ();
        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            burn_the_budget(context);
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }
    for runtime in [current_thread as fn() -> Runtime, || multi_thread(1)] {
        on_its_own(runtime, async {
            let polls = Arc::new(AtomicUsize::new(0));
            let limited = tokio::spawn(timeout(ms(10), Burns(Arc::clone(&polls))));
            assert!(limited.await.expect("it does not panic").is_err());
            assert!(polls.load(Ordering::SeqCst) > 0);
        });
    }
}

#[test]
fn a_loop_of_polls_past_the_deadline_does_not_live_lock() {
    on_its_own(current_thread, async {
        let timer = own_timer();
        let limited = timeout(ms(5), async {
            // Always ready and polled again and again, like `select!` in a loop.
            loop {
                tokio::select! {
                    biased;
                    () = timer.sleep(Duration::ZERO) => {}
                    () = pending() => break,
                }
            }
        });
        assert!(limited.await.is_err());
    });
}

#[test]
fn an_interval_due_without_budget_keeps_its_place_with_a_jitter() {
    on_its_own(current_thread, async {
        let timer = bounded_timer(1);
        let ticks = due_without_budget(&timer).await;
        let ticks = ticks.with_start_jitter(ms(1));
        assert!(timer.try_sleep(HOUR).is_err());
        drop(ticks);
        assert!(timer.try_sleep(HOUR).is_ok());
    });
}

/// An interval whose delay has completed, but whose tick was not taken.
async fn due_without_budget(timer: &Timer) -> Interval {
    let mut ticks = timer.interval_at(Instant::now() - ms(1), HOUR);
    poll_fn(|context| {
        burn_the_budget(context);
        assert!(ticks.poll_tick(context).is_pending());
        Poll::Ready(())
    })
    .await;
    tokio::task::yield_now().await;
    ticks
}

#[test]
fn an_interval_due_without_budget_gives_back_its_one_place() {
    on_its_own(current_thread, async {
        let timer = bounded_timer(1);
        for again in [false, true] {
            let mut ticks = due_without_budget(&timer).await;
            assert!(timer.try_sleep(HOUR).is_err());
            if again {
                let start = Instant::now() + ms(2);
                ticks.reset_at(start);
                assert_eq!(ticks.tick().await, start);
            }
            drop(ticks);
            assert!(timer.try_sleep(HOUR).is_ok());
        }
    });
}

/// The order in which two tasks end that wait for one deadline. The first polls its sleep without budget at first.
async fn order_after_a_poll_without_budget<S>(sleep_until: fn(Instant) -> S) -> Vec<&'static str>
where
    S: Future<Output = ()> + Send + 'static,
{
    let due = Instant::now() + ms(10);
    let (sender, ended) = mpsc::channel();
    for name in ["without budget", "with budget"] {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut sleep = Box::pin(sleep_until(due));
            let mut burns = name == "without budget";
            poll_fn(|context| {
                if std::mem::take(&mut burns) {
                    burn_the_budget(context);
                }
                sleep.as_mut().poll(context)
            })
            .await;
            sender.send(name).expect("the test listens");
        });
    }
    tokio::time::sleep(ms(20)).await;
    ended.try_iter().collect()
}

// A difference that `src/time/differences.md` lists: tokio's sleep is filed once there is budget.
#[test]
fn a_first_poll_without_budget_files_the_sleep() {
    on_its_own(paused, async {
        let ours = order_after_a_poll_without_budget(sleep_until).await;
        assert_eq!(ours, ["without budget", "with budget"]);
        let tokios = order_after_a_poll_without_budget(tokio::time::sleep_until).await;
        assert_eq!(tokios, ["with budget", "without budget"]);
    });
}
