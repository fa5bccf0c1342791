//! The waker that is woken, and how long it is kept.

use waterwheel::{Instant, sleep};

use crate::support::{HOUR, Probe, metrics, ms, own_timer, poll_once, waiting};

#[tokio::test(start_paused = true)]
async fn only_the_last_waker_polled_with_is_woken_and_once() {
    let probes = [Probe::new(), Probe::new(), Probe::new()];
    let mut sleep = sleep(ms(5));
    for probe in &probes {
        assert!(probe.poll(&mut sleep).is_pending());
    }
    assert_eq!(probes.each_ref().map(Probe::held), [0, 0, 1]);
    tokio::time::sleep(ms(20)).await;
    assert_eq!(probes.each_ref().map(Probe::wakes), [0, 0, 1]);
    assert!(poll_once(&mut sleep).is_ready());
    tokio::time::sleep(ms(20)).await;
    assert_eq!(probes.each_ref().map(Probe::wakes), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_waker_is_let_go_when_its_sleep_is_dropped() {
    let probe = Probe::new();
    let sleep = probe.waiting(sleep(HOUR));
    assert_eq!(probe.held(), 1);
    drop(sleep);
    assert_eq!((probe.held(), probe.wakes()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waker_is_let_go_when_its_sleep_fires() {
    let probe = Probe::new();
    let by_driver = probe.waiting(sleep(ms(5)));
    tokio::time::sleep(ms(6)).await;
    assert_eq!(probe.held(), 0, "though it was not polled since");
    drop(by_driver);
    // Completed by a poll before the driver comes.
    let mut by_poll = probe.waiting(sleep(ms(1)));
    // The first poll moves the clock, and the rest would let the driver run.
    let _advance = waiting(Box::pin(tokio::time::advance(ms(1))));
    assert!(probe.poll(&mut by_poll).is_ready());
    assert_eq!(probe.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_wakers_of_a_drain_are_let_go_when_it_has_completed() {
    let timer = own_timer();
    let probe = Probe::new();
    let last = waiting(timer.sleep(HOUR));
    let mut drained = Box::pin(timer.drain());
    for _ in 0..10 {
        assert!(probe.poll(&mut drained).is_pending());
        assert_eq!(probe.held(), 1, "one is enough");
    }
    drop(last);
    assert!(probe.poll(&mut drained).is_ready());
    assert_eq!(probe.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_cancelled_before_it_was_armed_leaves_nothing() {
    let timer = own_timer();
    for _ in 0..1_000 {
        drop(timer.sleep(HOUR));
        let mut reset = timer.sleep(HOUR);
        reset.set_deadline(Instant::now() + HOUR * 2);
        drop(reset);
        drop(timer.interval(HOUR));
        drop(timer.timeout(HOUR, std::future::pending::<()>()));
    }
    let metrics = metrics(&timer);
    let counts = (metrics.armed(), metrics.cancelled(), metrics.pending());
    assert_eq!(counts, (0, 0, 0));
    assert_eq!(timer.shutdown(), 0);
}
