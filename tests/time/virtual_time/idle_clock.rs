//! With everything idle the clock jumps to the next deadline, and only to a deadline.

use std::thread;

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{advance, pause};
use waterwheel::{Duration, Instant, Timer, Waking, interval, sleep, timeout};

use crate::support::{HOUR, current_thread, ms, own_timer, paused, poll_once, us, waiting, within};

#[test]
fn the_idle_clock_jumps_to_the_next_deadline() {
    on_a_paused_clock(async {
        let start = Instant::now();
        let timer = own_timer();
        let naps = [7_u64, 30_000, 86_400_000];
        let current = naps.map(|millis| async move {
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
        let (current, own) = tokio::join!(join_all(current), join_all(own));
        assert_eq!(current, naps.map(ms));
        assert_eq!(own, naps.map(|millis| ms(millis + 1)));
    });
}

// A driver that the thread wakes counts its turns, and may take a thousand a second. No second passes between these.
#[test]
fn the_idle_clock_jumps_to_a_precise_deadline_after_many_turns() {
    on_a_paused_clock(async {
        let builder = Timer::builder().waking(Waking::Thread);
        let timer = builder.resolution(us(100)).start().expect("it starts");
        for _ in 0..200 {
            let call = timer.timeout(HOUR, tokio::task::yield_now());
            call.await.expect("it is done");
            // The driver turns, since that was the last.
            tokio::task::yield_now().await;
        }
        for millis in 1..=50 {
            let start = Instant::now();
            timer.sleep(ms(millis)).await;
            assert_eq!(start.elapsed(), ms(millis));
        }
    });
}

#[test]
fn the_idle_clock_stands_still_when_nothing_is_pending() {
    on_a_paused_clock(async {
        let timer = own_timer();
        // Both have work to do, and then none.
        tokio::join!(sleep(ms(5)), timer.sleep(ms(7)));
        assert_stands_still().await;
    });
}

#[test]
fn the_idle_clock_does_not_jump_to_a_cancelled_deadline() {
    on_a_paused_clock(async {
        // Before the driver has seen it, and after.
        timeout(HOUR, tokio::task::yield_now())
            .await
            .expect("it is done");
        assert_stands_still().await;
        let dropped = waiting(sleep(HOUR));
        settle().await;
        drop(dropped);
        assert_stands_still().await;
    });
}

#[test]
fn a_clock_paused_later_does_not_jump_to_a_cancelled_deadline() {
    within(Duration::from_secs(20), || {
        // It is then behind the machine's clock, or ahead of it.
        for jump in [Duration::ZERO, HOUR] {
            current_thread().block_on(async {
                sleep(ms(1)).await;
                pause();
                advance(jump).await;
                // The driver notices it.
                sleep(ms(1)).await;
                let dropped = waiting(sleep(HOUR));
                settle().await;
                drop(dropped);
                assert_stands_still().await;
            });
        }
    });
}

// The driver sleeps, and has not noticed the pause.
#[test]
fn a_clock_paused_later_does_not_jump_to_one_cancelled_at_once() {
    within(Duration::from_secs(20), || {
        for own in [false, true] {
            current_thread().block_on(async {
                let timer = own_timer();
                let dropped = waiting(match own {
                    false => sleep(HOUR),
                    true => timer.sleep(HOUR),
                });
                settle().await;
                pause();
                drop(dropped);
                assert_stands_still().await;
            });
        }
    });
}

#[test]
fn the_idle_clock_does_not_jump_to_what_was_reset_to_the_past() {
    on_a_paused_clock(async {
        let mut reset = waiting(sleep(HOUR));
        settle().await;
        reset.set_deadline(Instant::now() - ms(1));
        assert_stands_still().await;
        assert!(poll_once(&mut reset).is_ready());

        let mut ticks = interval(HOUR);
        ticks.tick().await;
        assert!(poll_once(&mut Box::pin(ticks.tick())).is_pending());
        settle().await;
        ticks.reset_immediately();
        ticks.tick().await;
        assert_stands_still().await;
    });
}

#[test]
fn the_idle_clock_does_not_jump_to_a_stopped_timers_deadline() {
    on_a_paused_clock(async {
        let _stopped = waiting(sleep(HOUR));
        settle().await;
        Timer::current().shutdown();
        assert_stands_still().await;
    });
}

// A driver that mistook the removed shard for an unseen one would look for it forever.
#[test]
fn the_idle_clock_jumps_when_a_shard_went_with_the_last_handle() {
    on_a_paused_clock(async {
        let timer = Timer::builder().shards(1024).start().expect("a timer");
        let left = timer.sleep(HOUR);
        // Dropped on its own shard.
        let dropped = thread::scope(|scope| {
            let arm = || waiting(timer.sleep(HOUR));
            scope.spawn(arm).join().expect("it does not panic")
        });
        let left = tokio::spawn(left);
        settle().await;
        drop(timer);
        drop(dropped);
        settle().await;
        left.await.expect("it does not panic");
    });
}

/// Runs this on a runtime with a paused clock, within a few seconds.
fn on_a_paused_clock(test: impl Future<Output = ()> + Send + 'static) {
    within(Duration::from_secs(20), || paused().block_on(test));
}

/// Lets the driver run.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// Asserts that the clock stands still while the test waits for a message from outside, with nothing pending.
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
