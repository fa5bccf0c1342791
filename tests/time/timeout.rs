//! `Timeout`: the contract of tokio's, line by line.

use std::error::Error as _;
use std::future::{IntoFuture, Ready, pending, ready};
use std::io;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::oneshot;
use waterwheel::error::Elapsed;
use waterwheel::{Duration, Instant, Timer, sleep, timeout, timeout_at};

use crate::support::{
    HOUR, Probe, assert_settled, ms, multi_thread, own_timer, paused, poll_once, waiting,
};

#[tokio::test(start_paused = true)]
async fn a_future_is_given_up_at_the_deadline_and_not_before() {
    let start = Instant::now();
    let slow = async {
        sleep(ms(9)).await;
        7
    };
    assert_eq!(timeout(ms(10), slow).await, Ok(7));
    assert_eq!(start.elapsed(), ms(9));
    let start = Instant::now();
    assert!(timeout(ms(10), pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), ms(10));
    let deadline = Instant::now() + ms(25);
    assert!(timeout_at(deadline, pending::<()>()).await.is_err());
    assert_eq!(Instant::now(), deadline);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_ready_wins_even_past_the_deadline() {
    let long_ago = Instant::now();
    tokio::time::advance(ms(100)).await;
    assert_eq!(timeout(Duration::ZERO, ready(1)).await, Ok(1));
    assert_eq!(timeout_at(long_ago, ready(2)).await, Ok(2));
    let (sender, receiver) = oneshot::channel();
    let late = waiting(timeout(ms(10), receiver));
    tokio::time::advance(ms(50)).await;
    sender.send(3).expect("the receiver is there");
    assert_eq!(late.await, Ok(Ok(3)));
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_future_pending_past_the_deadline_elapses_at_the_first_poll() {
    let long_ago = Instant::now();
    tokio::time::advance(ms(100)).await;
    assert!(poll_once(&mut timeout(Duration::ZERO, pending::<()>())).is_ready());
    assert!(poll_once(&mut timeout_at(long_ago, pending::<()>())).is_ready());
}

// In a task it finds its timer at the first pending poll; see also `tests/binding`.
#[tokio::test(start_paused = true)]
async fn in_a_task_the_deadline_counts_from_the_call() {
    for limit in [ms(10), ms(5_000)] {
        let task = tokio::spawn(async move {
            let start = Instant::now();
            let limited = timeout(limit, pending::<()>());
            let limited_at = timeout_at(start + limit, pending::<()>());
            sleep(limit - ms(3)).await;
            assert!(limited.await.is_err());
            assert_eq!(start.elapsed(), limit);
            assert!(limited_at.await.is_err());
            assert_eq!(start.elapsed(), limit);
            let mut passed = timeout(limit, pending::<()>());
            tokio::time::advance(limit).await;
            assert!(poll_once(&mut passed).is_ready());
            let century = Duration::from_secs(86_400 * 365 * 100);
            let start = Instant::now();
            assert!(timeout(century, pending::<()>()).await.is_err());
            assert_eq!(start.elapsed(), century);
        });
        task.await.expect("it does not panic");
    }
    assert_settled(&Timer::current());
}

// Its deadline is far ahead of the other runtime's clock, where its duration means nothing.
#[test]
fn one_made_on_a_clock_that_was_moved_makes_no_timer_of_another_runtime_early() {
    let (moved, other) = (paused(), multi_thread(1));
    moved.block_on(tokio::time::advance(HOUR));
    let make = moved.spawn(async { [timeout(ms(5_000), pending::<()>())] });
    let [mut limited] = moved.block_on(make).expect("it is made");
    let poll = other.spawn(async move {
        assert!(poll_once(&mut limited).is_pending());
        let _nap = waiting(sleep(HOUR / 2));
    });
    other.block_on(poll).expect("it is pending");
}

#[tokio::test(start_paused = true)]
async fn it_gives_access_to_its_future() {
    let mut limited = timeout(ms(10), ready(1));
    assert_eq!(limited.get_ref().clone().await, 1);
    *limited.get_mut() = ready(2);
    assert_eq!(limited.into_inner().await, 2);
    // Taking out the future cancels the delay.
    let timer = own_timer();
    let limited = waiting(timer.timeout(ms(10), pending::<()>()));
    let _future = limited.into_inner();
    assert_eq!(assert_settled(&timer).cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_takes_all_that_turns_into_a_future() {
    struct Request(u32);
    impl IntoFuture for Request {
        type Output = u32;
        type IntoFuture = Ready<u32>;
        fn into_future(self) -> Ready<u32> {
            ready(self.0)
        }
    }
    let timer = own_timer();
    let at = Instant::now() + ms(5);
    assert_eq!(timeout(ms(5), Request(1)).await, Ok(1));
    assert_eq!(timeout_at(at, Request(2)).await, Ok(2));
    assert_eq!(timer.timeout(ms(5), Request(3)).await, Ok(3));
    assert_eq!(timer.timeout_at(at, Request(4)).await, Ok(4));
    let tried = timer.try_timeout(ms(5), Request(5)).expect("it takes it");
    assert_eq!(tried.await, Ok(5));
    let tried = timer.try_timeout_at(at, Request(6)).expect("it takes it");
    assert_eq!(tried.await, Ok(6));
    // Each was polled before its delay was armed.
    assert_eq!(timer.metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_duration_that_overflows_means_never() {
    let timer = own_timer();
    let (sender, receiver) = oneshot::channel();
    let mut first = timeout(Duration::MAX, receiver);
    let mut second = timer.timeout(Duration::MAX, pending::<()>());
    tokio::time::sleep(Duration::from_secs(86_400 * 365 * 100)).await;
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut second).is_pending());
    sender.send(1).expect("the receiver is there");
    assert_eq!(first.await, Ok(Ok(1)));
    drop(second);
    assert_settled(&timer);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_duration_of_more_than_thirty_years_is_not_cut() {
    let start = Instant::now();
    let century = Duration::from_secs(86_400 * 365 * 100);
    assert!(timeout(century, pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), century);
    let timer = own_timer();
    assert!(timer.timeout(century, pending::<()>()).await.is_err());
    assert_eq!(start.elapsed(), century * 2);
    let tried = timer.try_timeout(century, pending::<()>());
    assert!(tried.expect("it takes it").await.is_err());
    assert_eq!(start.elapsed(), century * 3);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn elapsed_reads_as_tokios_and_becomes_an_io_error_of_timed_out() {
    async fn read() -> io::Result<()> {
        timeout(ms(1), pending::<()>()).await?;
        Ok(())
    }
    let elapsed: Elapsed = timeout(ms(1), pending::<()>())
        .await
        .expect_err("it is pending for ever");
    assert_eq!(elapsed.to_string(), "deadline has elapsed");
    let tokios = tokio::time::timeout(ms(1), pending::<()>())
        .await
        .expect_err("it is pending for ever");
    assert_eq!(elapsed.to_string(), tokios.to_string());
    assert_eq!(format!("{elapsed:?}"), format!("{tokios:?}"));
    assert_eq!(format!("{elapsed:#?}"), format!("{tokios:#?}"));
    assert_eq!(format!("{elapsed:>25}|"), format!("{tokios:>25}|"));
    assert!(elapsed.source().is_none());
    assert!(!elapsed.was_stopped());
    let error = read().await.expect_err("it is pending for ever");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn elapsed_says_so_if_the_timer_was_stopped() {
    let timer = own_timer();
    let limited = timer.timeout(ms(10), pending::<()>());
    timer.shutdown();
    let elapsed = limited.await.expect_err("it is pending for ever");
    assert!(elapsed.was_stopped());
    let shown = "the timer was stopped before the deadline";
    assert_eq!(elapsed.to_string(), shown);
    assert_eq!(format!("{elapsed:?}"), "Elapsed(stopped)");
    assert_eq!(io::Error::from(elapsed).kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn dropping_it_drops_the_future_and_cancels_the_delay() {
    let timer = own_timer();
    let probe = Probe::new();
    let inside = Arc::new(());
    let held = Arc::clone(&inside);
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    let limited = probe.waiting(timer.timeout(ms(10), Box::pin(future)));
    drop(limited);
    assert_eq!(Arc::strong_count(&inside), 1, "the future is gone");
    assert_eq!(probe.held(), 0);
    assert_eq!(assert_settled(&timer).cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_not_unpin_is_pinned_with_it() {
    let mut limited = pin!(timeout(ms(10), async {
        sleep(ms(3)).await;
        sleep(ms(3)).await;
    }));
    assert!(poll_once(&mut limited).is_pending());
    assert_eq!(limited.await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_inner_one_of_nested_timeouts_is_the_first_to_elapse() {
    let start = Instant::now();
    let nested = timeout(ms(20), timeout(ms(10), pending::<()>()));
    assert!(nested.await.is_ok_and(|inner| inner.is_err()));
    assert_eq!(start.elapsed(), ms(10));
    let nested = timeout(ms(10), timeout(ms(20), pending::<()>()));
    assert!(nested.await.is_err());
    assert_eq!(start.elapsed(), ms(20));
    assert_settled(&Timer::current());
}
