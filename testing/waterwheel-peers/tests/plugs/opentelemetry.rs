//! OpenTelemetry: a `runtime::Runtime` with our delays. Here it drives a periodic reader, on a clock that the test controls.

use std::future::Future;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::periodic_reader_with_async_runtime::PeriodicReader;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::runtime::Runtime;
use waterwheel::{Duration, ManualClock, Timer};

use crate::support::eventually;

/// Also suits a batch span processor, which needs a channel as well (`RuntimeChannel`): use that of `runtime::Tokio`.
#[derive(Clone, Debug)]
pub(crate) struct Waterwheel(Timer);

impl Runtime for Waterwheel {
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        tokio::spawn(future);
    }

    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        self.0.sleep(duration)
    }
}

const INTERVAL: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_periodic_reader_exports_by_our_clock() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone(), Waterwheel(timer.clone()))
        .with_interval(INTERVAL)
        .build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let calls = provider.meter("peers").u64_counter("calls").build();
    calls.add(1, &[]);

    let exported = || !exporter.get_finished_metrics().unwrap().is_empty();
    // It skips the first tick, expecting one at the start.
    for _ in 0..2 {
        eventually("the reader waits", || timer.metrics().pending() == 1);
        assert!(!exported());
        clock.advance(INTERVAL);
    }
    eventually("an export", exported);
}
