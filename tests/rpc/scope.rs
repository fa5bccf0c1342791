//! A scope ends its future at the deadline.

use std::future::{IntoFuture, Ready, pending, ready};
use std::sync::Arc;
use std::sync::Mutex;

use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant, Timer, sleep};

use crate::support::{
    assert_panics_here, assert_settled, bounded_timer, ms, own_timer, panic_of, paused, poll_once,
    waiting,
};

#[tokio::test(start_paused = true)]
async fn a_future_is_cut_at_its_deadline_and_not_before() {
    let start = Instant::now();
    let deadline = Deadline::after(ms(10));
    assert!(deadline.scope(sleep(ms(11))).await.is_err());
    assert_eq!(start.elapsed(), ms(10));
    let start = Instant::now();
    assert!(Deadline::after(ms(10)).scope(sleep(ms(9))).await.is_ok());
    assert_eq!(start.elapsed(), ms(9));
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_ready_wins_even_past_the_deadline() {
    let passed = Deadline::at(Instant::now() - ms(5));
    assert_eq!(passed.scope(ready(7)).await, Ok(7));
    assert!(poll_once(&mut Box::pin(passed.scope(pending::<()>()))).is_ready());
    assert_eq!(Timer::current().metrics().armed(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_inner_scope_is_cut_at_the_outer_deadline() {
    let start = Instant::now();
    let outer = Deadline::after(ms(10)).scope(async {
        let inner = Deadline::after(ms(60)).scope(pending::<()>());
        assert!(inner.await.is_err(), "the inner one is cut first");
        start.elapsed()
    });
    assert_eq!(outer.await, Ok(ms(10)));
}

#[test]
fn without_a_deadline_no_timer_is_needed() {
    let free = Deadline::never().scope(ready(7));
    assert_eq!(futures::executor::block_on(free), Ok(7));
    let free = Deadline::after(Duration::MAX).scope(ready(7));
    assert_eq!(futures::executor::block_on(free), Ok(7));
    paused().block_on(async {
        let timer = own_timer();
        timer.shutdown();
        let free = Deadline::never().scope_on(&timer, ready(7));
        assert_eq!(free.await, Ok(7));
    });
}

#[tokio::test(start_paused = true)]
async fn a_future_that_was_cut_is_dropped_outside_of_the_scope() {
    struct Noted(Arc<Mutex<Vec<Deadline>>>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(Deadline::current());
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Noted(Arc::clone(&seen));
    let cut = Deadline::after(ms(1)).scope(async move {
        let _noted = noted;
        pending::<()>().await;
    });
    assert!(cut.await.is_err());
    assert_eq!(*seen.lock().unwrap(), [Deadline::never()]);
}

#[tokio::test(start_paused = true)]
async fn a_scope_on_a_stopped_timer_says_so() {
    let timer = own_timer();
    let deadline = Deadline::at(timer.now() + ms(10));
    let scope = deadline.scope_on(&timer, pending::<()>());
    timer.shutdown();
    assert!(scope.await.unwrap_err().was_stopped());
    let refused = deadline.try_scope_on(&timer, ready(1)).unwrap_err();
    assert!(refused.is_shutdown());
    assert_panics_here(&["was stopped"], || deadline.scope_on(&timer, ready(1)));
}

#[tokio::test(start_paused = true)]
async fn a_scope_beyond_the_bound_is_refused() {
    let timer = bounded_timer(1);
    let deadline = Deadline::after(ms(10));
    let first = deadline.try_scope_on(&timer, pending::<()>()).unwrap();
    let refused = deadline.try_scope_on(&timer, pending::<()>()).unwrap_err();
    assert!(refused.is_at_capacity());
    drop(first);
    assert!(deadline.scope_on(&timer, pending::<()>()).await.is_err());
}

/// The timer's clock is paused; that of the caller runs.
#[test]
fn a_scope_goes_by_the_clock_of_its_timer() {
    let home = paused();
    let timer = home.block_on(async { Timer::builder().start().unwrap() });
    home.block_on(tokio::time::advance(Duration::from_secs(1_000)));
    let deadline = Deadline::at(timer.now() + ms(10));
    assert_eq!(deadline.remaining_at(timer.now()), Some(ms(10)));
    let mut scope = waiting(Box::pin(deadline.scope_on(&timer, pending::<()>())));
    home.block_on(tokio::time::advance(ms(10)));
    assert!(poll_once(&mut scope).is_ready());
}

/// A value that is turned into a future.
struct Seven;

impl IntoFuture for Seven {
    type Output = u8;
    type IntoFuture = Ready<u8>;

    fn into_future(self) -> Ready<u8> {
        ready(7)
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_a_future_is_taken_and_can_be_taken_back() {
    let (timer, deadline) = (own_timer(), Deadline::after(ms(10)));
    assert_eq!(deadline.scope_on(&timer, Seven).await, Ok(7));
    let mut scoped = deadline.scope(Seven);
    assert!(format!("{:?}", scoped.get_ref()).contains('7'));
    *scoped.get_mut() = ready(8);
    assert_eq!(scoped.into_inner().await, 8);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_timer_of_the_runtime_is_told_from_an_ended_runtime() {
    let deadline = Deadline::after(ms(1));
    Timer::current().shutdown();
    let says = ["the timer of this runtime", "`Timer::shutdown`"];
    assert_panics_here(&says, || deadline.scope(ready(1)));
    let panicked = panic_of(|| deadline.scope(ready(1)));
    assert!(!panicked.message.contains("runtime ended"), "{panicked:?}");
    assert_panics_here(&says, || deadline.spawn(ready(1)));
}

#[test]
fn outside_of_a_runtime_the_caller_is_blamed() {
    let deadline = Deadline::after(ms(1));
    assert_panics_here(&["no reactor running"], || deadline.scope(ready(1)));
    assert_panics_here(&["no reactor running"], || deadline.spawn(ready(1)));
    let never = Deadline::never();
    assert_panics_here(&["no reactor running"], || never.spawn(ready(1)));
}
