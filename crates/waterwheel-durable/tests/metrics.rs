//! Metrics and spans as others see them: a recorder of the crate `metrics`, and a subscriber of the crate `tracing`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::sync::mpsc::unbounded_channel;
use tracing_subscriber::fmt::MakeWriter;
use waterwheel_durable::store::MemoryStore;
use waterwheel_durable::{Dead, Drain, Durable, Event, Metrics, Policy};

#[path = "metrics/deploy.rs"]
mod deploy;

/// A service whose namespace has delivered two timers, and has a dead letter.
async fn served() -> Durable {
    let (events, mut reported) = unbounded_channel();
    let hook = move |event: &Event| drop(events.send(event.clone()));
    let builder = Durable::builder().on_event(hook);
    let timers = builder.store(MemoryStore::new()).open().await.unwrap();
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

/// The metrics that a recorder has received: kind and name, labels, and value.
type Published = BTreeMap<(&'static str, String, Vec<(String, String)>), f64>;

fn published(metrics: &Metrics) -> Published {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || metrics.publish());
    let all = snapshotter.snapshot().into_vec();
    let named = all.into_iter().map(|(key, _, _, value)| {
        let (kind, value) = match value {
            DebugValue::Counter(count) => ("counter", count as f64),
            DebugValue::Gauge(value) => ("gauge", *value),
            DebugValue::Histogram(_) => panic!("{key:?}"),
        };
        let (name, labels) = key.key().clone().into_parts();
        let labels = labels.iter();
        let labels = labels.map(|it| (it.key().to_owned(), it.value().to_owned()));
        ((kind, name.as_str().to_owned(), labels.collect()), value)
    });
    named.collect()
}

/// The kind, name and labels in each row of the table in the documentation.
fn documented() -> BTreeSet<(String, String, Vec<String>)> {
    let mut all = BTreeSet::new();
    let rows = include_str!("../src/publish.rs").lines();
    for row in rows.filter_map(|line| line.trim().strip_prefix("/// | `waterwheel_timers_")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [name, kind, labels, what, ""] = cells[..] else {
            panic!("{row}");
        };
        let labels = labels.split(", ").map(|it| it.trim_matches('`'));
        let labels: Vec<_> = labels
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect();
        let name = name.trim_end_matches('`');
        let names = match name
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
        {
            Some((names, end)) => names.split(',').map(|it| format!("{it}{end}")).collect(),
            None => vec![name.to_owned()],
        };
        for name in names {
            let name = format!("waterwheel_timers_{name}");
            // A histogram has a count and a sum in addition to its buckets, named in the last column.
            if let Some(name) = name.strip_suffix("_bucket") {
                let sum = what
                    .split('`')
                    .find(|it| it.ends_with("_sum") && it.len() > 4);
                for name in [format!("{name}_count"), sum.unwrap().to_owned()] {
                    let labels = labels.iter().filter(|it| *it != "le").cloned();
                    all.insert((kind.to_owned(), name, labels.collect()));
                }
            }
            all.insert((kind.to_owned(), name, labels.clone()));
        }
    }
    all
}

fn a_recorder_has_what_the_metrics_say(timers: &Durable) {
    let mut metrics = timers.metrics();
    let shop = metrics.namespaces.iter().position(|it| &*it.name == "shop");
    let (shop, default) = (shop.unwrap(), 1 - shop.unwrap());
    let of = &metrics.namespaces[shop];
    assert_eq!((of.inserted, of.delivered, of.settled), (3, 3, 2));
    assert_eq!((of.dead, of.retried, of.throttled), (1, 0, 0));
    assert!(metrics.commits >= 2 && metrics.failed_attempts == 1);
    // Each metric has a distinct value, so that no two can be confused.
    (metrics.in_memory, metrics.commits) = (11, 12);
    (metrics.failed_attempts, metrics.full) = (13, 14);
    (metrics.clock_jumps, metrics.refusals) = (15, 16);
    metrics.unhandled = vec!["a".into(), "b".into(), "c".into()];
    let of = &mut metrics.namespaces[shop];
    (of.inserted, of.duplicates, of.over_quota, of.cancelled) = (21, 22, 23, 24);
    (of.delivered, of.settled, of.retried, of.dead) = (25, 26, 27, 28);
    (of.redriven, of.throttled, of.snoozed, of.running) = (29, 30, 31, 32);
    of.oldest_overdue = Some(SystemTime::now() - Duration::from_secs(7_000));
    let sum = of.lateness.sum().as_millis() as f64;
    let named = |name: &str| format!("waterwheel_timers_{name}");
    let of_service = |name: &str, kind, value| ((kind, named(name), Vec::new()), value);
    let label = ("namespace".to_owned(), "shop".to_owned());
    let of_shop = |name: &str, kind, value| ((kind, named(name), vec![label.clone()]), value);
    let mut expected = vec![
        of_service("in_memory", "gauge", 11.0),
        of_service("commits_total", "counter", 12.0),
        of_service("failed_attempts_total", "counter", 13.0),
        of_service("full_total", "counter", 14.0),
        of_service("clock_jumps_total", "counter", 15.0),
        of_service("refusals_total", "counter", 16.0),
        of_service("unhandled", "gauge", 3.0),
        of_shop("running", "gauge", 32.0),
        of_shop("lateness_seconds_count", "counter", 3.0),
        of_shop("lateness_milliseconds_sum", "counter", sum),
    ];
    let counters = [
        "inserted",
        "duplicates",
        "over_quota",
        "cancelled",
        "delivered",
        "settled",
        "retried",
        "dead",
        "redriven",
        "throttled",
        "snoozed",
    ];
    for (name, value) in counters.into_iter().zip(21..) {
        expected.push(of_shop(
            &format!("{name}_total"),
            "counter",
            f64::from(value),
        ));
    }
    // These metrics are 0 or 1. Each is set to 1 once, while the others are 0.
    type Set = fn(&mut Metrics, usize, bool);
    let flags: [(_, Set); 4] = [
        (of_service("full", "gauge", 0.0).0, |it, _, is| {
            it.is_full = is;
        }),
        (of_service("lease_lost", "gauge", 0.0).0, |it, _, is| {
            it.has_lost_lease = is;
        }),
        (of_service("failed", "gauge", 0.0).0, |it, _, is| {
            it.has_failed = is;
        }),
        (of_shop("paused", "gauge", 0.0).0, |it, shop, is| {
            it.namespaces[shop].is_paused = is;
        }),
    ];
    for chosen in 0..flags.len() {
        for (at, (_, set)) in flags.iter().enumerate() {
            set(&mut metrics, shop, at == chosen);
        }
        let all = published(&metrics);
        for (at, (key, _)) in flags.iter().enumerate() {
            assert_eq!(all[key], f64::from(u8::from(at == chosen)), "{key:?}");
        }
        for (key, value) in &expected {
            assert_eq!(all.get(key), Some(value), "{key:?}");
        }
        let overdue = all[&of_shop("oldest_overdue_seconds", "gauge", 0.0).0];
        assert!((7_000.0..9_000.0).contains(&overdue), "{overdue}");
        // The buckets are cumulative.
        let buckets = metrics.namespaces[shop].lateness.buckets();
        let mut below = 0;
        for (bound, count) in buckets {
            below += count;
            let le = match bound {
                Duration::MAX => "+Inf".to_owned(),
                bound => bound.as_secs_f64().to_string(),
            };
            let labels = vec![label.clone(), ("le".to_owned(), le)];
            let key = ("counter", named("lateness_seconds_bucket"), labels);
            assert_eq!(all.get(&key), Some(&(below as f64)), "{key:?}");
        }
        assert_eq!(below, 3);
        // Nothing else is published, and the same for each namespace.
        let names = all.keys().map(|(kind, name, labels)| {
            let labels = labels.iter().map(|(key, _)| key.clone());
            ((*kind).to_owned(), name.clone(), labels.collect())
        });
        assert_eq!(names.collect::<BTreeSet<_>>(), documented());
        let of = |name: &str| {
            let of_it = |labels: &[(String, String)]| labels.iter().any(|it| it.1 == name);
            all.keys().filter(|key| of_it(&key.2)).count()
        };
        assert_eq!(of("shop"), of(&metrics.namespaces[default].name));
    }
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
    // Set for every thread of the service: the store's and the runtime's.
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
        .find(|line| line.contains("a timer became a dead letter"))
        .unwrap();
    assert!(
        dead.contains("ERROR") && dead.contains("no address"),
        "{dead}"
    );
}
