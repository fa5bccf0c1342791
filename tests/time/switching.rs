//! Replacing `tokio::time` by `waterwheel::time` everywhere is the only change.

use std::pin::pin;

/// `use tokio::time;`
mod the_module {
    use waterwheel::time;

    pub(crate) async fn runs() -> Result<(), time::error::Elapsed> {
        let limit = time::Duration::from_secs(20);
        let at = time::Instant::now() + limit;
        time::timeout_at(at, time::sleep(time::Duration::ZERO)).await
    }
}

/// `use tokio::time::{self, …};`
mod the_module_and_its_items {
    use waterwheel::time::{self, Duration, Instant, Interval, MissedTickBehavior, Sleep, Timeout};

    pub(crate) async fn runs() {
        let mut ticks: Interval = time::interval(Duration::from_millis(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let sleep: Sleep = time::sleep_until(Instant::now());
        let limited: Timeout<Sleep> = time::timeout(Duration::from_secs(20), sleep);
        limited.await.expect("in time");
    }
}

/// `use tokio::{time::{…}, …};`
mod nested {
    use {waterwheel::time::interval_at, waterwheel::time::sleep};

    pub(crate) async fn runs() {
        let start = waterwheel::time::Instant::now();
        interval_at(start, waterwheel::time::Duration::from_millis(1))
            .tick()
            .await;
        sleep(waterwheel::time::Duration::ZERO).await;
    }
}

#[tokio::test]
async fn each_way_to_import_it_works() {
    the_module::runs().await.expect("in time");
    the_module_and_its_items::runs().await;
    nested::runs().await;
}

// Types of the root and of the module are the same.
#[tokio::test]
async fn the_root_has_the_same_items() {
    let sleep: waterwheel::time::Sleep = waterwheel::sleep(waterwheel::Duration::ZERO);
    let limited: waterwheel::time::Timeout<_> = waterwheel::timeout(
        waterwheel::Duration::from_millis(1),
        std::future::pending::<()>(),
    );
    let elapsed: Result<(), waterwheel::time::error::Elapsed> = limited.await;
    let elapsed: waterwheel::error::Elapsed = elapsed.unwrap_err();
    assert_eq!(elapsed.to_string(), "deadline has elapsed");
    pin!(sleep).await;
    let missed: waterwheel::MissedTickBehavior = waterwheel::time::MissedTickBehavior::Skip;
    let interval: waterwheel::Interval = waterwheel::time::interval(waterwheel::Duration::MAX);
    assert_ne!(interval.missed_tick_behavior(), missed);
}
