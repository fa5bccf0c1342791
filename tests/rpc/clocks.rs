//! A scope on a timer with its own clock: everything within it follows that clock.

use std::future::{pending, ready};
use std::task::Poll;

use tokio::task::{JoinHandle, yield_now};
use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant, ManualClock, Timer};

use crate::support::{HOUR, ms, multi_thread, other_clock, own_timer, panic_of, paused, poll_once};

async fn tasks_have_run() {
    for _ in 0..10 {
        yield_now().await;
    }
}

/// Advances to the deadline, which ends the task, but not earlier.
async fn assert_cut<T>(
    task: JoinHandle<Result<T, impl Sized>>,
    clock: &ManualClock,
    after: Duration,
) {
    tasks_have_run().await;
    clock.advance(after - ms(1));
    tasks_have_run().await;
    assert!(!task.is_finished(), "it was cut by another clock");
    clock.advance(ms(1));
    tasks_have_run().await;
    assert!(
        task.is_finished(),
        "it is not cut by the clock of the scope"
    );
    assert!(task.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_is_cut_by_the_clock_of_the_scope() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let deadline = Deadline::at(timer.now() + ms(10));
        let spawns = async {
            let spawned = Deadline::current().spawn(async {
                assert_eq!(Deadline::current().remaining(), Some(ms(10)));
                // A task that the task spawns is cut as well.
                Deadline::current().spawn(pending::<()>()).await.unwrap()
            });
            (spawned, Deadline::current().spawn(ready(7)))
        };
        let (cut, done) = deadline.scope_on(&timer, spawns).await.unwrap();
        assert_eq!(done.await.unwrap(), Ok(7));
        assert_cut(cut, &clock, ms(10)).await;
        // So is one with another deadline, which comes first.
        let deadline = Deadline::at(timer.now() + ms(50));
        let cut = deadline.sync_scope_on(&timer, || {
            let earlier = Deadline::after(ms(10));
            earlier.spawn(pending::<()>())
        });
        assert_cut(cut, &clock, ms(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_nested_scope_is_cut_by_the_clock_of_the_outer() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let deadline = Deadline::at(timer.now() + ms(50));
        let mut cut = None;
        let inside = async {
            let inner = Deadline::after(ms(10));
            assert_eq!(inner.instant(), Some(timer.now() + ms(10)));
            assert_eq!(
                (inner.remaining(), deadline.remaining()),
                (Some(ms(10)), Some(ms(50)))
            );
            cut = Some(tokio::spawn(inner.scope(pending::<()>())));
        };
        // Likewise if the scope has no deadline of its own.
        let outer = Deadline::never().scope_on(&timer, deadline.scope_on(&timer, inside));
        outer.await.unwrap().unwrap();
        assert_cut(cut.unwrap(), &clock, ms(10)).await;
        assert_eq!(
            Deadline::after(ms(1)).instant(),
            Some(Instant::now() + ms(1))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_remains_is_carried_from_clock_to_clock() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let deadline = Deadline::after(ms(10));
        let nested = deadline.scope(async {
            let later = Deadline::at(clock.now() + HOUR);
            let mut on_other = Box::pin(later.scope_on(&timer, async {
                assert_eq!(Deadline::current().instant(), Some(clock.now() + ms(10)));
                assert_eq!(Deadline::current().remaining(), Some(ms(10)));
                let home = Deadline::never().scope_on(&Timer::current(), async {
                    assert_eq!(Deadline::current(), deadline);
                });
                home.await.unwrap();
                pending::<()>().await;
            }));
            assert_eq!(Deadline::current(), deadline);
            assert_eq!(
                Deadline::current_on(&timer),
                Deadline::at(clock.now() + ms(10))
            );
            assert!(poll_once(&mut on_other).is_pending());
            clock.advance(ms(10));
            assert!(poll_once(&mut on_other).is_ready());
        });
        nested.await.unwrap();
        tokio::time::advance(ms(20)).await;
        let passed = deadline.sync_scope(|| Deadline::current_on(&timer));
        assert_eq!(passed, Deadline::at(clock.now()));
        assert!(Deadline::current_on(&timer).is_never());
    }
}

#[test]
fn timers_of_one_clock_see_the_same_deadline() {
    let on_several_timers = async {
        let (one, two) = (own_timer(), own_timer());
        for _ in 0..100 {
            let deadline = Deadline::after(HOUR);
            let innermost = async { Deadline::current() };
            let inner = Deadline::never().scope_on(&two, innermost);
            let middle = Deadline::after(2 * HOUR).scope_on(&one, inner);
            assert_eq!(deadline.scope(middle).await, Ok(Ok(Ok(deadline))));
        }
    };
    multi_thread(1).block_on(on_several_timers);
}

#[test]
fn the_clock_of_a_scope_is_left_with_it() {
    let runtime = paused();
    let (clock, timer) = runtime.block_on(other_clock(true));
    let is_outside = || Deadline::after(ms(1)).instant() < Some(clock.now());
    let deadline = Deadline::at(clock.now() + ms(10));
    let _entered = runtime.enter();
    // Two futures that alternate, and one that panics.
    let look = || async {
        for _ in 0..3 {
            assert!(!is_outside());
            yield_now().await;
        }
    };
    let mut scopes = [(); 2].map(|()| Box::pin(deadline.scope_on(&timer, look())));
    for _ in 0..3 {
        for scope in &mut scopes {
            assert!(poll_once(scope).is_pending());
            assert!(is_outside());
        }
    }
    for scope in &mut scopes {
        assert_eq!(poll_once(scope), Poll::Ready(Ok(())));
    }
    let mut panics = Box::pin(deadline.scope_on(&timer, async { panic!("on purpose") }));
    panic_of(|| poll_once(&mut panics));
    panic_of(|| deadline.sync_scope_on(&timer, || panic!("on purpose")));
    assert!(is_outside());
}

#[test]
fn blocking_code_has_the_clock_by_a_sync_scope_on_its_timer() {
    let runtime = paused();
    let (clock, timer) = runtime.block_on(other_clock(true));
    let deadline = Deadline::at(clock.now() + ms(10));
    let left = move || Deadline::current().remaining();
    let blocking = std::thread::spawn(move || {
        let left = deadline.sync_scope_on(&timer, left);
        (
            left,
            deadline.sync_scope_on(&timer, || deadline.sync_scope(left_again)),
        )
    });
    assert_eq!(blocking.join().unwrap(), (Some(ms(10)), Some(ms(10))));
}

fn left_again() -> Option<Duration> {
    Deadline::current().remaining()
}
