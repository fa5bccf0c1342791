//! The jobs of a small service: some that repeat, each in a different state, and many orders that are closed unless they are paid.

use std::time::Duration;

use waterwheel_schedule::{Backoff, OnError, Scheduler};

use super::{Dice, wait};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Submits the jobs. The number of waiting orders is constant; each is closed within half an hour.
pub(super) fn submit(scheduler: &Scheduler, orders: u64) {
    let heartbeat = scheduler.every(seconds(1)).name("heartbeat");
    drop(heartbeat.run(|_| async {}));

    // Each export succeeds at the third attempt, 2 s and 4 s later.
    let backoff = OnError::Backoff(Backoff::new(seconds(2), seconds(30)));
    let export = scheduler.every(seconds(20)).name("export");
    drop(export.on_error(backoff).run(|context| async move {
        match context.attempt() {
            1 => Err("timeout"),
            2 => Err("connection reset by peer (os error 104)"),
            _ => Ok(()),
        }
    }));

    let report = scheduler.cron("0 9 * * TUE", "UTC");
    let report = report.expect("an expression of our own").name("report");
    drop(report.run(|_| async {}));

    let clean_up = scheduler.with_delay(seconds(6)).name("clean up");
    drop(clean_up.run(|context| async move {
        wait(context.scheduler().timer().try_sleep(seconds(2))).await;
    }));

    let reindex = scheduler.every(seconds(3_600)).name("reindex");
    reindex.run(|_| async {}).pause();

    for order in 0..orders {
        submit_order(scheduler, order, orders);
    }
}

/// Submits an order that opens another one when it is closed.
fn submit_order(scheduler: &Scheduler, number: u64, orders: u64) {
    let delay = Dice(number).millis(1_000, 1_800_000);
    let order = scheduler.after(delay).name(format!("order {number}"));
    // Refused when the program ends.
    let _ = order.try_run(move |context| async move {
        submit_order(&context.scheduler(), number + orders, orders);
    });
}
