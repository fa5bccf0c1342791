//! Inserts and deliveries at a fixed rate: while an old snapshot of the server is held, and for long enough to be vacuumed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use waterwheel_durable::{Durable, NewTimer, Shift};
use waterwheel_postgres_server::sql_at;

use crate::place::{Failure, HANDLER, Place, Played, payload, shut_down};
use crate::sample::Sample;
use crate::seen::Delivered;
use crate::store::Longest;

/// The number of inserts a second, and of deliveries.
const RATE: usize = 6_000;
/// The inserts between two pauses.
const AT_A_TIME: usize = 60;
/// How long the tables are watched.
const MINUTES: usize = 12;

const HOLD: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class; SELECT pg_sleep(3600)";
const RELEASE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)' AND pid <> pg_backend_pid()";

/// The size of all tables in bytes, and their dead rows.
const SIZES: &str = "SELECT sum(pg_total_relation_size(relid)) || ' ' || sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'waterwheel'";

/// Measures the rate before and while a snapshot is held.
pub(crate) async fn snapshot(place: Place) -> Played {
    let (url, timers, delivered, times) = open(&place).await?;
    let mut sample = Sample::default();
    let minute = place.pick(Duration::from_secs(60), Duration::from_secs(2));
    let mut inserted = at_rate(&timers, minute / 6).await?;
    times.mean();
    inserted += phase(&timers, &delivered, minute, &times, "", &mut sample).await?;
    let holder = {
        let url = url.clone();
        spawn_blocking(move || sql_at(&url, HOLD))
    };
    inserted += phase(
        &timers,
        &delivered,
        minute * 3,
        &times,
        "held: ",
        &mut sample,
    )
    .await?;
    if sql_at(&url, RELEASE)?.trim() != "t" {
        return Err("the snapshot was not held".into());
    }
    let _ = holder.await?;
    delivered.wait(inserted).await;
    shut_down(&timers).await?;
    delivered.note(inserted, &mut sample);
    Ok(sample)
}

/// Measures the size of the tables each minute, with the server's own settings for autovacuum.
pub(crate) async fn churn(place: Place) -> Played {
    let (url, timers, delivered, _) = open(&place).await?;
    let mut sample = Sample::default();
    let minute = place.pick(Duration::from_secs(60), Duration::from_secs(1));
    let (mut inserted, mut sizes, mut dead) = (0, Vec::new(), 0.0_f64);
    for _ in 0..MINUTES {
        inserted += at_rate(&timers, minute).await?;
        let read = sql_at(&url, SIZES)?;
        let (size, now_dead) = read.trim().split_once(' ').ok_or("no sizes")?;
        sizes.push(size.parse::<f64>()?);
        dead = dead.max(now_dead.parse()?);
    }
    delivered.wait(inserted).await;
    shut_down(&timers).await?;
    delivered.note(inserted, &mut sample);
    sample.set("bytes in the middle", sizes[MINUTES / 2]);
    sample.set("bytes at the end", sizes[MINUTES - 1]);
    sample.set("dead rows", dead);
    sample.set("timers", inserted as f64);
    Ok(sample)
}

type Opened = (String, Durable, Arc<Delivered>, Arc<Longest>);

/// Opens the timers with a handler that counts.
async fn open(place: &Place) -> Result<Opened, Failure> {
    let url = place.url.clone().ok_or("not in PostgreSQL")?;
    let times = Arc::new(Longest::default());
    let timers = place.open_timed(Durable::builder(), &times).await?;
    let delivered = Arc::new(Delivered::default());
    timers.handle(HANDLER, delivered.handler(&Arc::new(Shift::default())));
    Ok((url, timers, delivered, times))
}

/// Inserts and delivers for this time. Returns the number of inserts.
async fn phase(
    timers: &Durable,
    delivered: &Delivered,
    time: Duration,
    times: &Longest,
    name: &str,
    sample: &mut Sample,
) -> Result<usize, Failure> {
    let (start, before) = (Instant::now(), delivered.all.load(Ordering::SeqCst));
    let inserted = at_rate(timers, time).await?;
    let all = delivered.all.load(Ordering::SeqCst) - before;
    let seconds = start.elapsed().as_secs_f64();
    sample.set(&format!("{name}a second"), all as f64 / seconds);
    sample.set(&format!("{name}ms a commit"), times.mean());
    sample.set(&format!("{name}longest commit ms"), times.take());
    Ok(inserted)
}

/// Inserts timers that are due a second later.
async fn at_rate(timers: &Durable, time: Duration) -> Result<usize, Failure> {
    let (start, mut inserted) = (Instant::now(), 0);
    while start.elapsed() < time {
        let new = (0..AT_A_TIME)
            .map(|_| NewTimer::after(HANDLER, Duration::from_secs(1)).bytes(payload()));
        timers.insert_many(new).await?;
        inserted += AT_A_TIME;
        let next = start + Duration::from_secs_f64(inserted as f64 / RATE as f64);
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(inserted)
}
