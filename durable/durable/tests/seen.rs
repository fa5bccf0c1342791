//! What do others see of a service: the recorder of the crate `metrics`, a subscriber of the crate `tracing`?

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::sync::mpsc::unbounded_channel;
use tracing_subscriber::fmt::MakeWriter;
use waterwheel_durable::store::MemoryStore;
use waterwheel_durable::{Dead, Drain, Durable, Event, Policy};

/// A service whose namespace has delivered two timers, and given up a third.
async fn served() -> Durable {
    let (events, mut reported) = unbounded_channel();
    let hook = move |event: &Event| drop(events.send(event.clone()));
    let builder = Durable::builder().on_event(hook);
    let timers = builder.open_store(MemoryStore::new()).await.unwrap();
    let shop = timers
        .create_namespace("shop", Policy::default())
        .await
        .unwrap();
    shop.handle("mail", |delivery| async move {
        tracing::info!("it is sent");
        match &**delivery.payload() {
            b"bad" => Err(Dead::because("no address")),
            _ => Ok(()),
        }
    });
    for payload in [&b"a"[..], b"b", b"bad"] {
        let timer = shop
            .after("mail", Duration::ZERO)
            .bytes(payload)
            .key(payload);
        assert!(timer.insert().await.unwrap().is_new());
    }
    let dead = tokio::time::timeout(Duration::from_secs(60), reported.recv()).await;
    assert!(matches!(dead, Ok(Some(Event::Dead { .. }))), "{dead:?}");
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await
        .unwrap();
    timers
}

fn a_recorder_has_what_the_metrics_say(timers: &Durable) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut metrics = timers.metrics();
    // As of a store that is full.
    (metrics.full, metrics.is_full) = (7, true);
    // Each has a value of its own, so that none can be taken for another.
    let mut namespaces = metrics.namespaces.iter_mut();
    let of = namespaces.find(|it| &*it.name == "shop").unwrap();
    assert_eq!((of.inserted, of.delivered), (3, 3));
    (of.inserted, of.duplicates, of.over_quota) = (10, 11, 12);
    (of.cancelled, of.retried, of.redriven) = (13, 14, 15);
    (of.throttled, of.running, of.is_paused) = (16, 17, true);
    (metrics.in_memory, metrics.clock_jumps, metrics.refusals) = (21, 22, 23);
    metrics.unhandled = vec!["a".into(), "b".into()];
    metrics::with_local_recorder(&recorder, || metrics.publish());
    let all = snapshotter.snapshot().into_vec();
    let value = |name: &str, labels: &[(&str, &str)]| {
        let found = all.iter().find(|(key, ..)| {
            let found = key.key().labels().map(|label| (label.key(), label.value()));
            key.key().name() == name && found.eq(labels.iter().copied())
        });
        match found {
            Some((_, _, _, DebugValue::Counter(count))) => *count as f64,
            Some((_, _, _, DebugValue::Gauge(value))) => **value,
            other => panic!("{name} {labels:?}: {other:?}"),
        }
    };
    let shop = [("namespace", "shop")];
    for (name, expected) in [
        ("inserted_total", 10.0),
        ("duplicates_total", 11.0),
        ("over_quota_total", 12.0),
        ("cancelled_total", 13.0),
        ("delivered_total", 3.0),
        ("settled_total", 2.0),
        ("retried_total", 14.0),
        ("dead_total", 1.0),
        ("redriven_total", 15.0),
        ("throttled_total", 16.0),
        ("running", 17.0),
        ("paused", 1.0),
    ] {
        let name = format!("waterwheel_timers_{name}");
        assert_eq!(value(&name, &shop), expected, "{name}");
    }
    for (name, expected) in [
        ("in_memory", 21.0),
        ("clock_jumps_total", 22.0),
        ("refusals_total", 23.0),
        ("unhandled", 2.0),
    ] {
        let name = format!("waterwheel_timers_{name}");
        assert_eq!(value(&name, &[]), expected, "{name}");
    }
    assert_eq!(
        value("waterwheel_timers_paused", &[("namespace", "default")]),
        0.0
    );
    assert_eq!(
        value("waterwheel_timers_oldest_overdue_seconds", &shop),
        0.0
    );
    assert_eq!(value("waterwheel_timers_failed", &[]), 0.0);
    assert_eq!(value("waterwheel_timers_failed_attempts_total", &[]), 1.0);
    assert_eq!(value("waterwheel_timers_full_total", &[]), 7.0);
    assert_eq!(value("waterwheel_timers_full", &[]), 1.0);
    assert!(value("waterwheel_timers_commits_total", &[]) >= 2.0);
    let last = [("namespace", "shop"), ("le", "+Inf")];
    assert_eq!(
        value("waterwheel_timers_lateness_seconds_bucket", &last),
        3.0
    );
    assert_eq!(
        value("waterwheel_timers_lateness_seconds_count", &shop),
        3.0
    );
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

#[test]
fn a_recorder_and_a_subscriber_see_what_goes_on() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    // Each thread of the service has it: the store's and the runtime's own one.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let timers = runtime.block_on(served());
    a_recorder_has_what_the_metrics_say(&timers);
    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let sent: Vec<_> = lines
        .lines()
        .filter(|line| line.contains("it is sent"))
        .collect();
    assert_eq!(sent.len(), 3, "{lines}");
    for line in sent {
        assert!(
            line.contains("delivery{id=") && line.contains("handler=\"shop/mail\" attempt=1}"),
            "{line}"
        );
    }
    let dead = lines
        .lines()
        .find(|line| line.contains("a timer was given up"))
        .unwrap();
    assert!(
        dead.contains("ERROR") && dead.contains("no address"),
        "{dead}"
    );
}
