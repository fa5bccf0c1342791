//! Publishes the metrics through the crate `metrics`.

use std::time::{Duration, SystemTime};

use metrics::{counter, gauge};

use crate::metrics::{Metrics, NamespaceMetrics};

impl Metrics {
    /// Publishes this snapshot to the installed recorder of the crate [`metrics`](https://docs.rs/metrics). Call it before
    /// each scrape, or every few seconds: nothing is published in between, so metrics add no cost to a delivery.
    ///
    /// This is meant for one service per process, opened once: the metrics have no label for the service, and if a
    /// service is opened again, a counter does not move until the new service has passed the old value.
    ///
    /// | name | type | labels | value |
    /// |---|---|---|---|
    /// | `waterwheel_timers_in_memory` | gauge | | [`in_memory`](Metrics::in_memory) |
    /// | `waterwheel_timers_commits_total` | counter | | [`commits`](Metrics::commits) |
    /// | `waterwheel_timers_failed_attempts_total` | counter | | [`failed_attempts`](Metrics::failed_attempts) |
    /// | `waterwheel_timers_full_total` | counter | | [`full`](Metrics::full): inserts refused for lack of space |
    /// | `waterwheel_timers_full` | gauge | | 1 if the store [is full](Metrics::is_full) |
    /// | `waterwheel_timers_clock_jumps_total` | counter | | [`clock_jumps`](Metrics::clock_jumps) |
    /// | `waterwheel_timers_refusals_total` | counter | | [`refusals`](Metrics::refusals) |
    /// | `waterwheel_timers_unhandled` | gauge | | the number of [`unhandled`](Metrics::unhandled) names |
    /// | `waterwheel_timers_lease_lost` | gauge | | 1 if the store [has lost its lease](Metrics::has_lost_lease) |
    /// | `waterwheel_timers_failed` | gauge | | 1 if the store [has failed](Metrics::has_failed) |
    /// | `waterwheel_timers_{inserted,duplicates,over_quota,cancelled,delivered,settled,retried,snoozed,dead,redriven,throttled}_total` | counter | `namespace` | the field of [`NamespaceMetrics`] with this name |
    /// | `waterwheel_timers_running` | gauge | `namespace` | [`running`](NamespaceMetrics::running) |
    /// | `waterwheel_timers_paused` | gauge | `namespace` | 1 if the namespace [is paused](NamespaceMetrics::is_paused) |
    /// | `waterwheel_timers_oldest_overdue_seconds` | gauge | `namespace` | how long the [oldest overdue](NamespaceMetrics::oldest_overdue) timer has been overdue, 0 if there is none |
    /// | `waterwheel_timers_lateness_seconds_bucket` | counter | `namespace`, `le` | attempts at most `le` late, as in a Prometheus histogram; with `_count`, and a sum in milliseconds: `waterwheel_timers_lateness_milliseconds_sum` |
    ///
    /// Since the sum is in milliseconds, the average lateness in seconds is
    /// `rate(waterwheel_timers_lateness_milliseconds_sum[5m]) / rate(waterwheel_timers_lateness_seconds_count[5m]) / 1000`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn example(timers: waterwheel_durable::Durable) {
    /// let mut every = tokio::time::interval(Duration::from_secs(5));
    /// loop {
    ///     every.tick().await;
    ///     timers.metrics().publish();
    /// }
    /// # }
    /// ```
    pub fn publish(&self) {
        gauge!("waterwheel_timers_in_memory").set(self.in_memory as f64);
        counter!("waterwheel_timers_commits_total").absolute(self.commits);
        counter!("waterwheel_timers_failed_attempts_total").absolute(self.failed_attempts);
        counter!("waterwheel_timers_full_total").absolute(self.full);
        gauge!("waterwheel_timers_full").set(f64::from(u8::from(self.is_full)));
        counter!("waterwheel_timers_clock_jumps_total").absolute(self.clock_jumps);
        counter!("waterwheel_timers_refusals_total").absolute(self.refusals);
        gauge!("waterwheel_timers_unhandled").set(self.unhandled.len() as f64);
        gauge!("waterwheel_timers_lease_lost").set(f64::from(u8::from(self.has_lost_lease)));
        gauge!("waterwheel_timers_failed").set(f64::from(u8::from(self.has_failed)));
        let now = SystemTime::now();
        for namespace in &self.namespaces {
            publish(namespace, now);
        }
    }
}

fn publish(of: &NamespaceMetrics, now: SystemTime) {
    let name = || of.name.to_string();
    for (metric, value) in [
        ("waterwheel_timers_inserted_total", of.inserted),
        ("waterwheel_timers_duplicates_total", of.duplicates),
        ("waterwheel_timers_over_quota_total", of.over_quota),
        ("waterwheel_timers_cancelled_total", of.cancelled),
        ("waterwheel_timers_delivered_total", of.delivered),
        ("waterwheel_timers_settled_total", of.settled),
        ("waterwheel_timers_retried_total", of.retried),
        ("waterwheel_timers_snoozed_total", of.snoozed),
        ("waterwheel_timers_dead_total", of.dead),
        ("waterwheel_timers_redriven_total", of.redriven),
        ("waterwheel_timers_throttled_total", of.throttled),
    ] {
        counter!(metric, "namespace" => name()).absolute(value);
    }
    gauge!("waterwheel_timers_running", "namespace" => name()).set(of.running as f64);
    gauge!("waterwheel_timers_paused", "namespace" => name())
        .set(f64::from(u8::from(of.is_paused)));
    // If the clock was set back, this is 0 instead of negative.
    let overdue = of
        .oldest_overdue
        .and_then(|since| now.duration_since(since).ok());
    let overdue = overdue.unwrap_or_default().as_secs_f64();
    gauge!("waterwheel_timers_oldest_overdue_seconds", "namespace" => name()).set(overdue);
    let mut below = 0;
    for (bound, count) in of.lateness.buckets() {
        below += count;
        let le = match bound {
            Duration::MAX => "+Inf".to_owned(),
            bound => bound.as_secs_f64().to_string(),
        };
        counter!("waterwheel_timers_lateness_seconds_bucket", "namespace" => name(), "le" => le)
            .absolute(below);
    }
    counter!("waterwheel_timers_lateness_seconds_count", "namespace" => name()).absolute(below);
    let sum = u64::try_from(of.lateness.sum().as_millis()).unwrap_or(u64::MAX);
    counter!("waterwheel_timers_lateness_milliseconds_sum", "namespace" => name()).absolute(sum);
}
