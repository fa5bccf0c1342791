//! A deadline as a value, and where it is current.

use std::future::{pending, poll_fn};
use std::task::Poll;

use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant, sleep};

use crate::support::{Dice, HOUR, current_thread, end_of_time, inside, ms, panic_of, poll_once};

#[tokio::test(start_paused = true)]
async fn what_remains_runs_out_and_never_does_not() {
    let deadline = Deadline::after(ms(10));
    assert_eq!(deadline.instant(), Some(Instant::now() + ms(10)));
    assert_eq!(deadline, Deadline::at(Instant::now() + ms(10)));
    assert_eq!(deadline.remaining(), Some(ms(10)));
    sleep(ms(7)).await;
    assert_eq!(deadline.remaining(), Some(ms(3)));
    sleep(ms(30)).await;
    assert_eq!(deadline.remaining(), Some(Duration::ZERO));
    assert_eq!(deadline.remaining_at(Instant::now() - ms(30)), Some(ms(3)));
    let never = Deadline::never();
    assert_eq!((never.instant(), never.remaining()), (None, None));
    assert!(never.is_never() && !deadline.is_never());
    assert_eq!(Deadline::default(), never);
}

#[test]
fn a_duration_that_overflows_is_never() {
    assert_eq!(Deadline::after(Duration::MAX), Deadline::never());
    let end = Deadline::at(end_of_time());
    assert!(end.remaining() > Some(HOUR));
    assert_eq!(end.earlier(Deadline::never()), end);
}

#[test]
fn the_earlier_of_two_is_one_of_them_and_never_is_last() {
    let (mut dice, now) = (Dice(7), Instant::now());
    let mut any = || match dice.roll(4) {
        0 => Deadline::never(),
        millis => Deadline::at(now + ms(millis)),
    };
    for _ in 0..200 {
        let (one, two, three) = (any(), any(), any());
        let least = one.earlier(two);
        assert_eq!(least, two.earlier(one));
        assert!(least == one || least == two);
        let remains = |it: Deadline| it.remaining_at(now).unwrap_or(Duration::MAX);
        assert_eq!(remains(least), remains(one).min(remains(two)));
        assert_eq!(least.earlier(three), one.earlier(two.earlier(three)));
    }
}

#[tokio::test(start_paused = true)]
async fn nested_scopes_have_the_earlier_deadline() {
    let (soon, later) = (Deadline::after(ms(10)), Deadline::after(ms(20)));
    assert_eq!(Deadline::current(), Deadline::never());
    let nested = later.scope(async {
        assert_eq!(Deadline::current(), later);
        let inner = soon.scope(async { Deadline::current() });
        assert_eq!(inner.await, Ok(soon));
        assert_eq!(Deadline::current(), later);
        let never = Deadline::never().scope(async { Deadline::current() });
        assert_eq!(never.await, Ok(later));
        soon.sync_scope(|| {
            assert_eq!(later.sync_scope(Deadline::current), soon);
            assert_eq!(Deadline::never().sync_scope(Deadline::current), soon);
            assert_eq!(Deadline::current(), soon);
        });
        assert_eq!(Deadline::current(), later);
    });
    nested.await.unwrap();
    assert_eq!(Deadline::current(), Deadline::never());
}

#[tokio::test(start_paused = true)]
async fn scopes_that_take_turns_do_not_mix() {
    let check = |millis| {
        let deadline = Deadline::after(ms(millis));
        deadline.scope(async move {
            for _ in 0..5 {
                assert_eq!(Deadline::current(), deadline);
                tokio::task::yield_now().await;
                sleep(ms(1)).await;
            }
        })
    };
    let outside = async {
        for _ in 0..5 {
            assert_eq!(Deadline::current(), Deadline::never());
            sleep(ms(1)).await;
        }
    };
    let (one, two, ()) = tokio::join!(check(100), check(50), outside);
    assert_eq!((one, two), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_scope_polled_within_an_earlier_one_shows_that() {
    let (soon, later) = (Deadline::after(ms(10)), Deadline::after(ms(20)));
    let mut made_outside = Box::pin(later.scope(poll_fn(|_| -> Poll<()> {
        assert_ne!(Deadline::current(), Deadline::never());
        match Deadline::current().remaining() {
            Some(left) if left <= ms(10) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })));
    assert!(poll_once(&mut made_outside).is_pending());
    assert_eq!(
        soon.sync_scope(|| poll_once(&mut made_outside)),
        Poll::Ready(Ok(()))
    );
}

#[test]
fn a_scope_takes_its_deadline_along_to_another_thread() {
    let runtime = current_thread();
    let deadline = Deadline::after(HOUR);
    let (mut scope, mut polls) = inside(&runtime, || {
        let (seen, polls) = std::sync::mpsc::channel();
        let scope = deadline.scope(poll_fn(move |_| {
            seen.send(Deadline::current()).unwrap();
            Poll::<()>::Pending
        }));
        (Box::pin(scope), polls.into_iter())
    });
    assert!(poll_once(&mut scope).is_pending());
    let other = std::thread::spawn(move || {
        let poll = poll_once(&mut scope);
        (poll, Deadline::current())
    });
    assert_eq!(other.join().unwrap(), (Poll::Pending, Deadline::never()));
    assert_eq!(polls.next(), Some(deadline));
    assert_eq!(polls.next(), Some(deadline));
    assert_eq!(Deadline::current(), Deadline::never());
}

#[test]
fn a_panic_leaves_the_deadline_that_was_current() {
    let (outer, inner) = (Deadline::after(2 * HOUR), Deadline::after(HOUR));
    outer.sync_scope(|| {
        panic_of(|| inner.sync_scope(|| panic!("on purpose")));
        assert_eq!(Deadline::current(), outer);
        let runtime = current_thread();
        let mut scope = inside(&runtime, || {
            Box::pin(inner.scope(async { panic!("on purpose") }))
        });
        panic_of(|| poll_once(&mut scope));
        assert_eq!(Deadline::current(), outer);
    });
    assert_eq!(Deadline::current(), Deadline::never());
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_has_the_deadline_only_by_its_spawn() {
    let deadline = Deadline::after(ms(10));
    let (plain, carried, cut) = deadline
        .scope(async {
            (
                tokio::spawn(async { Deadline::current() }),
                Deadline::current().spawn(async { Deadline::current() }),
                Deadline::current().spawn(pending::<()>()),
            )
        })
        .await
        .unwrap();
    assert_eq!(plain.await.unwrap(), Deadline::never());
    assert_eq!(carried.await.unwrap(), Ok(deadline));
    // The scope has ended, although its deadline has not come.
    assert!(cut.await.unwrap().is_err());
    assert_eq!(deadline.remaining(), Some(Duration::ZERO));
    let free = Deadline::current().spawn(async { Deadline::current() });
    assert_eq!(free.await.unwrap(), Ok(Deadline::never()));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_deadline_spawns_has_it_and_ends_at_it() {
    let (soon, later) = (Deadline::after(ms(10)), Deadline::after(ms(20)));
    let start = Instant::now();
    assert_eq!(
        soon.spawn(async { Deadline::current() }).await.unwrap(),
        Ok(soon)
    );
    assert!(soon.spawn(sleep(ms(11))).await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(10));
    // Within a scope, the earlier of the two counts, and the task outlives the scope.
    let soon = Deadline::after(ms(5));
    let of_task = || async { Deadline::current() };
    let nested = soon.scope(async { (later.spawn(of_task()), later.spawn(pending::<()>())) });
    let (earlier, cut) = nested.await.unwrap();
    assert_eq!(earlier.await.unwrap(), Ok(soon));
    assert!(cut.await.unwrap().is_err());
    assert_eq!(start.elapsed(), ms(15));
    let nested = later.sync_scope(|| soon.spawn(of_task()));
    assert_eq!(nested.await.unwrap(), Ok(soon));
    let never = Deadline::never().spawn(async { (Deadline::current(), sleep(HOUR).await) });
    assert_eq!(never.await.unwrap(), Ok((Deadline::never(), ())));
}
