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
        ("inserted", 3.0),
        ("delivered", 3.0),
        ("settled", 2.0),
        ("dead", 1.0),
        ("retried", 0.0),
        ("throttled", 0.0),
    ] {
        let name = format!("waterwheel_timers_{name}_total");
        assert_eq!(value(&name, &shop), expected, "{name}");
    }
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
