//! The cost of the measured threads: their CPU time, their context switches, and how often they woke up.
//!
//! Every thread is measured except the main one, which only waits and counts: the workers, the wake-up thread, and all
//! other threads that a contestant started. The figure of a running thread is up to a scheduler tick (4 ms) old, so it is
//! read while the workers rest.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use waterwheel_bench_kit::threads;

/// The usage of the measured threads during some work. NaN if the system does not count it, and if a thread
/// ended meanwhile, since its figure ends with it.
pub(crate) struct Cost {
    /// CPU time.
    pub(crate) nanos: f64,
    /// Context switches, voluntary or not.
    pub(crate) switches: f64,
    /// Wake-ups a second of waterwheel's wake-up thread. NaN if there is none.
    pub(crate) looks: f64,
}

/// The name of waterwheel's wake-up thread.
const WAKEUP_THREAD: &str = "waterwheel-wake";

/// Runs `act` and counts its cost.
pub(crate) fn cost_of(act: impl FnOnce()) -> Cost {
    let start = Instant::now();
    let before = (nanos_by_thread(), switches_by_thread());
    let looks_before = wake_ups_of_wakeup_thread();
    act();
    let looks = wake_ups_of_wakeup_thread().zip(looks_before);
    let after = (nanos_by_thread(), switches_by_thread());
    Cost {
        nanos: growth(&before.0, &after.0),
        switches: growth(&before.1, &after.1),
        looks: looks.map_or(f64::NAN, |(after, before)| {
            (after - before) as f64 / start.elapsed().as_secs_f64()
        }),
    }
}

/// Runs `act` and returns only its CPU time.
pub(crate) fn nanos_of(act: impl FnOnce()) -> f64 {
    let before = nanos_by_thread();
    act();
    growth(&before, &nanos_by_thread())
}

/// A figure of each thread, by the thread's number.
type ByThread = BTreeMap<OsString, u64>;

fn growth(before: &ByThread, after: &ByThread) -> f64 {
    if before.is_empty() || before.keys().any(|thread| !after.contains_key(thread)) {
        return f64::NAN;
    }
    let sum = |readings: &ByThread| readings.values().sum::<u64>();
    sum(after).saturating_sub(sum(before)) as f64
}

/// CPU nanoseconds of all existing measured threads. `None` if they are unknown.
pub(crate) fn nanos() -> Option<u64> {
    nanos_by_thread()
        .into_values()
        .reduce(|sum, nanos| sum + nanos)
        .filter(|&nanos| nanos > 0)
}

fn nanos_by_thread() -> ByThread {
    of_each(threads::nanos)
}

fn switches_by_thread() -> ByThread {
    of_each(|thread| Some(switches(thread, VOLUNTARY)? + switches(thread, INVOLUNTARY)?))
}

/// The number of wake-ups of waterwheel's wake-up thread. `None` if there is none.
pub(crate) fn wake_ups_of_wakeup_thread() -> Option<u64> {
    wake_ups(|name| name == WAKEUP_THREAD)
}

/// The wake-ups of all other measured threads.
pub(crate) fn wake_ups_of_others() -> Option<u64> {
    wake_ups(|name| name != WAKEUP_THREAD)
}

/// The voluntary context switches of the measured threads with a wanted name: the number of times that they waited, and
/// so were woken. `None` if there is no such thread.
fn wake_ups(wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let counts = of_each(|thread| {
        let name = threads::name(thread)?;
        wanted(&name).then(|| switches(thread, VOLUNTARY))?
    });
    counts.into_values().reduce(|sum, count| sum + count)
}

const VOLUNTARY: &str = "voluntary_ctxt_switches:";
const INVOLUNTARY: &str = "nonvoluntary_ctxt_switches:";

/// The number of context switches of one kind of this thread.
fn switches(thread: &Path, kind: &str) -> Option<u64> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix(kind))?;
    count.trim().parse().ok()
}

/// A figure of each measured thread. A thread without one is skipped: it may have ended between the listing and the
/// reading.
fn of_each(figure: impl Fn(&Path) -> Option<u64>) -> ByThread {
    let main = std::process::id().to_string();
    threads::all()
        .filter_map(|thread| Some((thread.file_name()?.to_owned(), figure(&thread)?)))
        .filter(|(number, _)| **number != *main)
        .collect()
}
