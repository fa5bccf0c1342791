//! Exports a timer's metrics to Prometheus, with the crates `metrics` and `metrics-exporter-prometheus`.
//!
//! ```text
//! cargo run --release --example prometheus
//! ```
//!
//! [`export`] is the function to copy: call it before each scrape, or from an interval. `docs/switching.md` has alert rules.

#![forbid(unsafe_code)]

use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use waterwheel::{Duration, Timer, sleep, timeout};

/// Passes the timer's metrics to the recorder that the process has installed.
///
/// The label `runtime` tells the timers of several runtimes apart. They must not share a series, since the recorder keeps the
/// greatest value of a counter.
fn export(timer: &Timer, runtime: &'static str) {
    let metrics = timer.metrics();
    let counter = |name, value| counter!(name, "runtime" => runtime).absolute(value);
    let gauge = |name, value| gauge!(name, "runtime" => runtime).set(value);
    // armed = fired + cancelled + stopped + pending
    counter("waterwheel_armed_total", metrics.armed());
    counter("waterwheel_fired_total", metrics.fired());
    counter("waterwheel_cancelled_total", metrics.cancelled());
    counter("waterwheel_stopped_total", metrics.stopped());
    gauge("waterwheel_pending", metrics.pending() as f64);
    counter("waterwheel_driver_turns_total", metrics.driver_turns());

    // The timer has already counted the histogram. The `metrics` crate only takes single samples, so each bucket is a counter.
    let lateness = metrics.lateness();
    let bucket = |bound: String, count| {
        counter!("waterwheel_lateness_seconds_bucket", "runtime" => runtime, "le" => bound)
            .absolute(count);
    };
    for (bound, count) in lateness.buckets() {
        bucket(bound.as_secs_f64().to_string(), count);
    }
    bucket("+Inf".to_owned(), lateness.count());
    counter("waterwheel_lateness_seconds_count", lateness.count());
    gauge(
        "waterwheel_lateness_seconds_sum",
        lateness.sum().as_secs_f64(),
    );
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scrape = PrometheusBuilder::new().install_recorder()?;

    // Something to count: three timers that fire, and a time limit that is cancelled.
    for millis in [1, 2, 3] {
        sleep(Duration::from_millis(millis)).await;
    }
    timeout(Duration::from_secs(30), sleep(Duration::from_millis(1))).await?;

    export(&Timer::current(), "main");
    print!("{}", scrape.render());
    Ok(())
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusRecorder;

    use super::*;

    /// A runtime on which this many sleeps of 5 ms have fired and one is pending.
    fn export_after(fired: usize, runtime: &'static str, recorder: &PrometheusRecorder) {
        let built = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        built.block_on(async {
            for _ in 0..fired {
                sleep(Duration::from_millis(5)).await;
            }
            let pending = tokio::spawn(sleep(Duration::from_secs(3600)));
            tokio::task::yield_now().await;
            metrics::with_local_recorder(recorder, || export(&Timer::current(), runtime));
            pending.abort();
        });
    }

    #[test]
    fn each_runtime_has_counters_and_a_histogram_that_add_up() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let scrape = recorder.handle();
        export_after(1, "one", &recorder);
        export_after(2, "two", &recorder);
        let text = scrape.render();
        for line in [
            "waterwheel_armed_total{runtime=\"one\"} 2",
            "waterwheel_armed_total{runtime=\"two\"} 3",
            "waterwheel_fired_total{runtime=\"one\"} 1",
            "waterwheel_fired_total{runtime=\"two\"} 2",
            "waterwheel_pending{runtime=\"two\"} 1",
            "waterwheel_lateness_seconds_bucket{runtime=\"one\",le=\"0.000001\"} 1",
            "waterwheel_lateness_seconds_bucket{runtime=\"two\",le=\"+Inf\"} 2",
            "waterwheel_lateness_seconds_count{runtime=\"two\"} 2",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
