//! Measures a child's memory, the size of its file, and the lateness of its deliveries, minute by minute.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::check::Checker;
use crate::protocol::{How, Line, MEASURED};
use crate::schedule::{Progress, Seen};

/// How long nothing is measured after a start and after a move of the clock: timers that came due meanwhile are late.
const CATCHING_UP_MICROS: u64 = 5_000_000;
/// How long timers must be over to be forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(20);

/// The measurements of a minute, or of a shorter interval in a short run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Minute {
    /// The memory in bytes.
    pub(crate) memory: f64,
    pub(crate) file: f64,
    /// The median lateness of first attempts, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
    pub(crate) seen: Progress,
    pub(crate) failed: u64,
    /// The faults that were caused on purpose.
    pub(crate) faults: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Gauge {
    file: PathBuf,
    length: Duration,
    /// The minutes of the child that is measured, if one is.
    minutes: Option<Vec<Minute>>,
    present: Minute,
    late: Vec<i64>,
    /// The time of the child before which nothing is measured.
    calm_at: u64,
    begun: Instant,
    /// The number of the last line at each time.
    lines: VecDeque<(Instant, u64)>,
}

impl Gauge {
    /// Measures a file and its WAL in intervals of this length.
    pub(crate) fn new(file: &Path, length: Duration) -> Gauge {
        Gauge {
            file: file.to_owned(),
            length,
            minutes: None,
            present: Minute::default(),
            late: Vec::new(),
            calm_at: 0,
            begun: Instant::now(),
            lines: VecDeque::new(),
        }
    }

    /// Begins to measure the next child.
    pub(crate) fn begin(&mut self) {
        self.minutes = Some(Vec::new());
        self.present = Minute::default();
        self.late.clear();
        self.begun = Instant::now();
    }

    /// Ends the measurement of a child. Returns its whole minutes.
    pub(crate) fn end(&mut self) -> Vec<Minute> {
        self.minutes.take().unwrap_or_default()
    }

    pub(crate) fn note(&mut self, line: &Line) {
        let present = &mut self.present;
        present.seen.note(line);
        match line {
            Line::Round { .. } => self.calm_at = CATCHING_UP_MICROS,
            Line::ClockMoves { .. } => self.calm_at = u64::MAX,
            Line::ClockMoved { at } => self.calm_at = at + CATCHING_UP_MICROS,
            Line::End {
                how: How::Failed | How::Dropped,
                ..
            } => present.failed += 1,
            Line::Fault { text } => present.faults.push(text.clone()),
            Line::Begin(it)
                if it.attempt == 1 && it.handler == MEASURED && it.at >= self.calm_at =>
            {
                self.late.push(it.wall - it.due);
            }
            _ => {}
        }
    }

    /// Ends a minute if it is over, and lets the checker forget timers that are over.
    pub(crate) fn turn(&mut self, process: u32, checker: &mut Checker) {
        let now = Instant::now();
        let is_long_ago = |at: &Instant| now.duration_since(*at) > FORGOTTEN_AFTER;
        let last = self.lines.back();
        if last.is_none_or(|(at, _)| now.duration_since(*at) > FORGOTTEN_AFTER / 4) {
            self.lines.push_back((now, checker.line()));
            while self.lines.get(1).is_some_and(|(at, _)| is_long_ago(at)) {
                self.lines.pop_front();
            }
            if let Some((_, line)) = self.lines.front().filter(|(at, _)| is_long_ago(at)) {
                checker.forget(*line);
            }
        }
        let Some(minutes) = &mut self.minutes else {
            return;
        };
        if self.begun.elapsed() < self.length {
            return;
        }
        self.begun += self.length;
        let mut minute = std::mem::take(&mut self.present);
        minute.memory = memory(process, "VmRSS:");
        minute.file = length(&self.file);
        let mut late = std::mem::take(&mut self.late);
        late.sort_unstable();
        let quantile = |part: f64| {
            let rank = (late.len() as f64 * part).ceil() as usize;
            let micros = late.get(rank.saturating_sub(1));
            micros.map_or(f64::NAN, |micros| *micros as f64 / 1e3)
        };
        (minute.p50, minute.p99, minute.longest) = (quantile(0.5), quantile(0.99), quantile(1.0));
        println!("{}", minute.line(minutes.len() + 1, self.length));
        minutes.push(minute);
    }
}

/// The heading of the lines that are printed.
pub(crate) const HEADING: &str = concat!(
    "                           a second:                                       late, ms:\n",
    "        memory       file   inserted  delivered  failed  others   full     p50     p99      max",
);

impl Minute {
    fn line(&self, number: usize, length: Duration) -> String {
        let rate = |count: u64| count as f64 / length.as_secs_f64();
        let [inserted, delivered, answered, full] =
            [Seen::Created, Seen::Delivered, Seen::Answered, Seen::Full]
                .map(|seen| rate(self.seen.get(seen)));
        let faults = self.faults.join("; ");
        let line = format!(
            "{number:4} {:6.1} MB {:7.1} MB   {inserted:8.0}   {delivered:8.0}  {:6.0}  {answered:6.0} {full:6.0} {:7.2} {:7.2} {:8.1}  {faults}",
            self.memory / 1e6,
            self.file / 1e6,
            rate(self.failed),
            self.p50,
            self.p99,
            self.longest,
        );
        line.trim_end().to_owned()
    }
}

/// The peak memory of this process.
pub(crate) fn max_memory() -> f64 {
    memory(std::process::id(), "VmHWM:")
}

fn memory(process: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1_024.0)
}

/// The size of a file and its WAL.
fn length(file: &Path) -> f64 {
    let length = |path: &Path| path.metadata().map_or(0, |data| data.len()) as f64;
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    length(file) + length(Path::new(&wal))
}
