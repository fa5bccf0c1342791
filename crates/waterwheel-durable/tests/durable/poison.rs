//! A timer that repeatedly ends the process becomes a dead letter, and the others continue.

use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use waterwheel_durable::{Durable, NewTimer, Policy};

use crate::support::*;

const PLAYS: &str = "WATERWHEEL_PLAYS_POISON";

/// The number of timers delivered in addition to the one that ends the process.
const OTHERS: usize = 100;

/// The key of one of them.
fn key(of: usize) -> String {
    format!("mail-{of}")
}

/// One life of the service: one handler aborts the process, the others end well a little later. Those that have ended are printed.
async fn life(path: std::ffi::OsString) {
    let timers = within(Durable::open(path)).await.unwrap();
    timers.handle("shop/poison", |_| async { std::process::abort() });
    timers.handle("shop/mail", |delivery| async move {
        // So at first, the process ends while the timer is with its handler.
        tokio::time::sleep(Duration::from_millis(20)).await;
        println!("\nended {}", delivery.id());
        Ok(())
    });
    let shop = timers.namespace("shop").unwrap();
    // The metrics may not know yet of timers in the store.
    until(|| shop.metrics().dead > 0).await;
    for of in 0..OTHERS {
        while within(shop.find("mail", key(of))).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    }
    shut_down(&timers).await;
}

fn run(place: &Place) -> Output {
    let name = "poison::a_timer_that_aborts_the_process_is_given_up_and_no_other_is";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLAYS, place.file())
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_timer_that_aborts_the_process_is_given_up_and_no_other_is() {
    if let Some(path) = std::env::var_os(PLAYS) {
        return life(path).await;
    }
    for starts in [5, 4] {
        let (place, timers) = on_file().await;
        let policy = Policy::default().starts(starts);
        within(timers.create_namespace("shop", policy))
            .await
            .unwrap();
        let past = SystemTime::now();
        let mail = |of| NewTimer::at("shop/mail", past).key(key(of));
        let mut batch: Vec<_> = (0..OTHERS).map(mail).collect();
        batch.insert(7, NewTimer::at("shop/poison", past));
        let inserted = within(timers.insert_many(batch)).await.unwrap();
        let poison = inserted[7].handle().id;
        shut_down(&timers).await;

        let mut ended = std::collections::BTreeSet::new();
        let mut aborts = 0;
        loop {
            let output = run(&place);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let of = text.lines().filter_map(|line| line.strip_prefix("ended "));
            ended.extend(of.map(str::to_owned));
            if output.status.success() {
                break;
            }
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                None,
                "it did not abort: {text} {error}"
            );
            aborts += 1;
            assert!(aborts <= starts, "it is never given up: {text} {error}");
        }
        assert_eq!(aborts, starts);
        let timers = place.open().await;
        let dead = within(timers.dead_letters(None, OTHERS)).await.unwrap();
        assert_eq!((dead.len(), dead[0].id()), (1, poison));
        assert!(
            dead[0].error().contains("the process ended"),
            "{}",
            dead[0].error()
        );
        assert_eq!(ended.len(), OTHERS);
        shut_down(&timers).await;
    }
}
