//! Where a round is played.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use waterwheel_durable::{Builder, Drain, Durable, NewTimer, Sqlite};
use waterwheel_durable_postgres::Postgres;
use waterwheel_durable_sqlite::SqliteStore;
use waterwheel_postgres_server::sql_at;

use crate::disk::syncs_a_second;
use crate::postgres;
use crate::process;
use crate::sample::Sample;
use crate::store::{Longest, Timed};

/// The number of worker threads of the runtime.
pub(crate) const WORKERS: usize = 2;
/// The name of the only handler.
pub(crate) const HANDLER: &str = "reminder";
/// The length of a payload in bytes.
pub(crate) const PAYLOAD: usize = 64;

/// A folder on the disk, and the scale of the measurement.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) quick: bool,
    /// The number of pending timers in the file that some rows share.
    pub(crate) pending: usize,
    /// The database, if the timers are not in a file.
    pub(crate) url: Option<String>,
}

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Played = Result<Sample, Failure>;

impl Place {
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("timers.db")
    }

    /// Picks one of the two: the run is a measurement, or a quick check of plausibility.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(crate) async fn open(&self, builder: Builder) -> Result<Durable, Failure> {
        Ok(match &self.url {
            Some(url) => {
                let postgres = Postgres::new(url);
                postgres.migrate()?;
                builder.store(postgres).open().await?
            }
            None => builder.store(Sqlite::new(self.file())).open().await?,
        })
    }

    /// The size of the timers on the disk in bytes, with what is in the WAL of a file.
    pub(crate) fn size(&self) -> Result<f64, Failure> {
        match &self.url {
            Some(url) => postgres::size(url),
            None => Ok(size(&self.file())),
        }
    }

    /// The CPU time of this process and of the server.
    pub(crate) fn cpu_time(&self) -> Result<Duration, Failure> {
        let server = self.url.as_deref().map(postgres::cpu_time).transpose()?;
        Ok(process::cpu_time() + server.unwrap_or_default())
    }

    /// Lets the server write all changed pages.
    pub(crate) fn checkpoint(&self) -> Result<(), Failure> {
        if let Some(url) = &self.url {
            sql_at(url, "CHECKPOINT")?;
        }
        Ok(())
    }

    /// The number of bytes that this process or the server has written to the disk.
    pub(crate) fn written(&self) -> Result<f64, Failure> {
        match &self.url {
            Some(url) => postgres::written(url),
            None => Ok(process::written()),
        }
    }

    /// Opens a store that notes how long its commits take.
    pub(crate) async fn open_timed(
        &self,
        builder: Builder,
        times: &Arc<Longest>,
    ) -> Result<Durable, Failure> {
        Ok(match &self.url {
            Some(url) => {
                let postgres = Postgres::new(url);
                postgres.migrate()?;
                // Opening blocks.
                let store = spawn_blocking(move || postgres.open()).await??;
                builder.store(Timed::new(store, times)).open().await?
            }
            None => {
                let store = SqliteStore::open(self.file())?;
                builder.store(Timed::new(store, times)).open().await?
            }
        })
    }

    /// Measures how many syncs a second the disk makes now.
    pub(crate) fn syncs(&self) -> Result<f64, Failure> {
        let time = self.pick(Duration::from_millis(300), Duration::from_millis(100));
        Ok(syncs_a_second(&self.folder, time)?)
    }
}

/// The size of a file and its WAL.
fn size(file: &Path) -> f64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    size_alone(file) + size_alone(Path::new(&log))
}

/// The size of a file without its WAL.
pub(crate) fn size_alone(file: &Path) -> f64 {
    file.metadata().map_or(0, |data| data.len()) as f64
}

/// A new payload, not shared with any other caller.
pub(crate) fn payload() -> Arc<[u8]> {
    payload_of(PAYLOAD)
}

/// A payload of this length in bytes.
pub(crate) fn payload_of(bytes: usize) -> Arc<[u8]> {
    vec![7; bytes].into()
}

/// Inserts the timers in batches of this size, so that the set-up takes no more memory than the rest.
pub(crate) async fn insert_all(
    timers: &Durable,
    at_a_time: usize,
    new: impl IntoIterator<Item = NewTimer>,
) -> Result<(), Failure> {
    let mut new = new.into_iter();
    loop {
        let batch: Vec<_> = new.by_ref().take(at_a_time).collect();
        if batch.is_empty() {
            return Ok(());
        }
        timers.insert_many(batch).await?;
    }
}

/// Shuts down a service whose running deliveries end soon.
pub(crate) async fn shut_down(timers: &Durable) -> Result<(), Failure> {
    let drain = Drain::within(Duration::from_secs(60));
    timers.shutdown(drain).await?;
    Ok(())
}

/// The measured part of a round, from its start to its end.
#[derive(Debug)]
pub(crate) struct Span {
    place: Place,
    start: Instant,
    cpu: Duration,
    written: f64,
    commits: u64,
}

impl Span {
    pub(crate) fn start(place: &Place, timers: &Durable) -> Result<Span, Failure> {
        Ok(Span {
            place: place.clone(),
            commits: timers.metrics().commits,
            written: place.written()?,
            cpu: place.cpu_time()?,
            start: Instant::now(),
        })
    }

    /// Begins to measure time and CPU again.
    pub(crate) fn restart(&mut self) -> Result<(), Failure> {
        self.cpu = self.place.cpu_time()?;
        self.start = Instant::now();
        Ok(())
    }

    /// Notes the cost of this many operations.
    pub(crate) fn end(
        self,
        timers: &Durable,
        operations: usize,
        sample: &mut Sample,
    ) -> Result<(), Failure> {
        let time = self.start.elapsed().as_secs_f64();
        let cpu = self.place.cpu_time()?.saturating_sub(self.cpu);
        let cpu = cpu.as_secs_f64();
        let commits = timers.metrics().commits - self.commits;
        let each = |value: f64| value / operations as f64;
        sample.set("operations", operations as f64);
        sample.set("a second", operations as f64 / time);
        sample.set("CPU µs each", each(cpu * 1e6));
        sample.set("bytes each", each(self.place.written()? - self.written));
        sample.set("commits", commits as f64);
        sample.set("a commit", operations as f64 / commits as f64);
        Ok(())
    }
}
