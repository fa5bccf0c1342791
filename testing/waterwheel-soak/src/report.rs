//! The printed text: method, progress, summary and verdict.

use std::fmt::Write as _;
use std::time::Duration;

use waterwheel_bench_kit::text::{grouped, milliseconds};

use crate::books::{Books, Kind};
use crate::flags::Flags;
use crate::memory::Memory;
use crate::watch::Watch;

pub(crate) fn method(flags: &Flags, workers: usize) -> String {
    format!(
        "soak: {} s; a new runtime with {workers} workers every {:?}; {} tasks per kind of load on each of \
         three timers (1 ms, 100 µs, the runtime's); seed {}\n\n",
        flags.length.as_secs(),
        flags.life(),
        flags.tasks,
        flags.seed,
    )
}

pub(crate) fn progress(elapsed: Duration, books: &Books, watch: &Watch, memory: &Memory) -> String {
    format!(
        "{:>5.0} s  completed {}, lost {}, early {}, memory {}\n",
        elapsed.as_secs_f64(),
        grouped(books.all_completed()),
        watch.lost(),
        books.early.get(),
        memory.now().map_or("unknown".into(), megabytes),
    )
}

pub(crate) fn summary(
    elapsed: Duration,
    lives: u64,
    books: &Books,
    watch: &Watch,
    memory: &Memory,
) -> String {
    let mut text = format!(
        "\n{:.1} s, {lives} runtimes\n\n{:<10}{:>14}{:>12}{:>12}{:>12}\n",
        elapsed.as_secs_f64(),
        "",
        "completed",
        "late p50",
        "p99",
        "max",
    );
    for kind in Kind::ALL {
        let name = format!("{kind:?}").to_lowercase();
        let _ = write!(text, "{name:<10}{:>14}", grouped(books.completed(kind)));
        let _ = match books.lateness(kind) {
            Some(late) => writeln!(
                text,
                "{:>12}{:>12}{:>12}",
                milliseconds(late.p50),
                milliseconds(late.p99),
                milliseconds(late.max)
            ),
            None => writeln!(text),
        };
    }
    let totals = books.totals();
    let _ = writeln!(
        text,
        "\ncancelled  {} timeouts of answered calls; workers were blocked {} times\n\
         counters   armed {} = fired {} + cancelled {} + stopped {}; {} turns",
        grouped(books.cancelled.get()),
        grouped(books.blocked.get()),
        grouped(totals.armed),
        grouped(totals.fired),
        grouped(totals.cancelled),
        grouped(totals.stopped),
        grouped(totals.turns),
    );
    let _ = match memory.thirds() {
        Some(thirds) => writeln!(
            text,
            "memory     peak of the first third {}, of the last third {}",
            megabytes(thirds.first),
            megabytes(thirds.last)
        ),
        None => writeln!(text, "memory     not reported by this system"),
    };
    let _ = writeln!(text, "lost {}, early {}", watch.lost(), books.early.get());
    text
}

/// Returns all failures, one text each.
pub(crate) fn failures(books: &Books, lost: u64, panics: u64, memory: &Memory) -> Vec<String> {
    let mut failures = books.all_wrong();
    if lost > 0 {
        failures.push(format!("{lost} timers were lost"));
    }
    if panics > 0 {
        failures.push(format!("{panics} panics"));
    }
    for kind in Kind::ALL {
        if books.completed(kind) == 0 {
            failures.push(format!("no timer completed: {kind:?}"));
        }
    }
    if memory.thirds().is_some_and(|thirds| thirds.grow()) {
        failures.push("memory grew between the first and the last third".into());
    }
    failures
}

pub(crate) fn verdict(failures: &[String]) -> String {
    if failures.is_empty() {
        return "passed\n".into();
    }
    let failures = failures.iter().map(|it| format!("FAILED: {it}\n"));
    failures.collect()
}

fn megabytes(kilobytes: u64) -> String {
    format!("{:.1} MB", kilobytes as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_named() {
        let memory = Memory::new(Duration::from_secs(1));
        let books = Books::default();
        // Nothing was done at all.
        assert_eq!(failures(&books, 0, 0, &memory).len(), Kind::ALL.len());
        for kind in Kind::ALL {
            books.done(kind, waterwheel::Instant::now());
        }
        assert_eq!(failures(&books, 0, 0, &memory), Vec::<String>::new());
        assert_eq!(verdict(&[]), "passed\n");
        books.wrong("the first".into());
        let found = failures(&books, 3, 2, &memory);
        assert_eq!(found, ["the first", "3 timers were lost", "2 panics"]);
        assert!(verdict(&found).starts_with("FAILED: the first\nFAILED: 3 timers"));
    }
}
