//! A timer's metrics as Prometheus text, by the crates `metrics` and `metrics-exporter-prometheus`.
//!
//! ```text
//! cargo run --release --example prometheus
//! ```
//!
//! [`export`] is the function to copy: call it before each scrape, or from an interval. `docs/switching.md` has the alerts.

#![forbid(unsafe_code)]

use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use waterwheel::{Duration, Timer, sleep, timeout};

/// Hands the timer's metrics to the recorder that the process has installed.
fn export(timer: &Timer) {
    let metrics = timer.metrics();
    // armed = fired + cancelled + stopped + pending
    counter!("waterwheel_armed_total").absolute(metrics.armed());
    counter!("waterwheel_fired_total").absolute(metrics.fired());
    counter!("waterwheel_cancelled_total").absolute(metrics.cancelled());
    counter!("waterwheel_stopped_total").absolute(metrics.stopped());
    gauge!("waterwheel_pending").set(metrics.pending() as f64);
    counter!("waterwheel_driver_turns_total").absolute(metrics.driver_turns());

    // A histogram that is counted already. The `metrics` crate takes single samples only, so each bucket is a counter.
    let lateness = metrics.lateness();
    let bucket = |bound: String, count| {
        counter!("waterwheel_lateness_seconds_bucket", "le" => bound).absolute(count);
    };
    for (bound, count) in lateness.buckets() {
        bucket(bound.as_secs_f64().to_string(), count);
    }
    bucket("+Inf".to_owned(), lateness.count());
    counter!("waterwheel_lateness_seconds_count").absolute(lateness.count());
    gauge!("waterwheel_lateness_seconds_sum").set(lateness.sum().as_secs_f64());
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scrape = PrometheusBuilder::new().install_recorder()?;

    // Something to count: three timers that fire, and a time limit that is cancelled.
    for millis in [1, 2, 3] {
        sleep(Duration::from_millis(millis)).await;
    }
    timeout(Duration::from_secs(30), sleep(Duration::from_millis(1))).await?;

    export(&Timer::current());
    print!("{}", scrape.render());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_counters_and_a_histogram_that_adds_up() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let recorder = PrometheusBuilder::new().build_recorder();
        let scrape = recorder.handle();
        runtime.block_on(async {
            sleep(Duration::from_millis(5)).await;
            let pending = tokio::spawn(sleep(Duration::from_secs(3600)));
            tokio::task::yield_now().await;
            metrics::with_local_recorder(&recorder, || export(&Timer::current()));
            pending.abort();
        });
        let text = scrape.render();
        for line in [
            "waterwheel_armed_total 2",
            "waterwheel_fired_total 1",
            "waterwheel_pending 1",
            "waterwheel_lateness_seconds_bucket{le=\"0.000001\"} 1",
            "waterwheel_lateness_seconds_bucket{le=\"+Inf\"} 1",
            "waterwheel_lateness_seconds_count 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
