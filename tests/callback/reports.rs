//! The reports of the feature `tracing`.

use std::panic;

use tracing_subscriber::filter::LevelFilter;
use waterwheel::{Timer, sleep};

use crate::report::Report;
use crate::support::{alone, ms, paused};

#[test]
fn a_panic_of_a_callback_is_reported_with_its_timers_name() {
    alone(|| {
        let report = Report::start(LevelFilter::INFO);
        paused().block_on(async {
            let timer = Timer::builder().name("orders").start().unwrap();
            timer.call_after(ms(1), || ());
            sleep(ms(2)).await;
            assert_eq!(report.take(), "");
            timer.call_after(ms(1), || panic::resume_unwind(Box::new("no such order")));
            sleep(ms(2)).await;
            let said = report.take();
            assert_eq!(said.lines().count(), 1, "{said}");
            for part in ["ERROR waterwheel::", "panicked", "orders", "no such order"] {
                assert!(said.contains(part), "{part} in {said}");
            }
            let text = format!("order {}", 7);
            timer.call_after(ms(1), || panic::resume_unwind(Box::new(text)));
            sleep(ms(2)).await;
            assert!(report.take().contains("order 7"));
        });
    });
}

#[test]
fn many_timers_are_reported_once() {
    alone(|| {
        let report = Report::start(LevelFilter::INFO);
        paused().block_on(async {
            let start = || Timer::builder().start().unwrap();
            // The limit of sixty-four counts timers at the same time, however many there were before.
            for _ in 0..100 {
                let _gone = start();
            }
            let _of_the_runtime = Timer::current();
            let _alive: Vec<_> = (0..64).map(|_| start()).collect();
            assert_eq!(report.take(), "");
            let _many: Vec<_> = (0..10).map(|_| start()).collect();
            let said = report.take();
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains("WARN waterwheel::") && said.contains("65"));
        });
    });
}
