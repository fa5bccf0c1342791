//! Do namespaces, keys and retention cost what they may, and does one namespace delay no other?

use super::target::Unit::{Bytes, Count, Megabytes, Millis, Rate, Ratio};
use super::target::Want::{AtLeast, AtLeastInEach, AtMost, AtMostInEach, WithinInEach};
use super::target::{Target, Want, beside, memory, of, p99_beyond_the_thread, rate};
use crate::sample::Sample;

fn p99(sample: &Sample) -> Option<f64> {
    sample.value("late p99 ms")
}

/// How many times as fast a row is as the one beside it.
fn speed(row: &Sample, other: &Sample) -> Option<f64> {
    Some(rate(row)? / rate(other)?)
}

/// The same of the slowest hundredth.
fn promptness(row: &Sample, other: &Sample) -> Option<f64> {
    Some(p99(other)? / p99(row)?)
}

fn later(row: &Sample, other: &Sample) -> Option<f64> {
    Some(p99(row)? - p99(other)?)
}

fn times_later(row: &Sample, other: &Sample) -> Option<f64> {
    Some(p99(row)? / p99(other)?)
}

fn memory_grown(sample: &Sample) -> Option<f64> {
    Some(sample.value("memory at the end")? / sample.value("memory at the start")?)
}

fn file_grown(sample: &Sample) -> Option<f64> {
    Some(sample.value("bytes at the end")? / sample.value("bytes at the start")?)
}

const POLICIES_MUST: Want = AtLeast(0.7);
const POLICIES_STRETCH: Want = AtLeast(0.9);

const fn policies(
    rows: (&'static str, &'static str),
    what: &'static str,
    figure: fn(&Sample, &Sample) -> Option<f64>,
) -> Target {
    beside(rows, what, Ratio, figure, POLICIES_MUST, POLICIES_STRETCH)
}

pub(crate) const TARGETS: [Target; 39] = [
    of(
        "limited",
        "A is limited to 100 a second, 1 M due: in any 10 s, beyond 1 000",
        Count,
        |it| it.value("beyond the rate"),
        // Its burst.
        AtMostInEach(10.0),
        AtMostInEach(10.0),
    ),
    of(
        "limited",
        "A, a second",
        Rate,
        |it| it.value("limited a second"),
        // It has more that are due at any time.
        AtLeastInEach(95.0),
        AtLeastInEach(95.0),
    ),
    beside(
        ("limited", "limited-not"),
        "B's p99, less its p99 without A",
        Millis,
        later,
        AtMost(10.0),
        AtMost(2.0),
    ),
    of(
        "limited",
        "B's p99, less that of a thread that only sleeps",
        Millis,
        p99_beyond_the_thread,
        Want::None,
        Want::None,
    ),
    beside(
        ("unlimited", "limited-not"),
        "A is not limited, 1 M due: B's p99, less its p99 without A",
        Millis,
        later,
        Want::None,
        Want::None,
    ),
    of(
        "unlimited",
        "A, a second",
        Rate,
        |it| it.value("begun a second"),
        Want::None,
        Want::None,
    ),
    beside(
        ("unlimited-places", "limited-not"),
        "the same, 64 places for both: B's p99, less its p99 without A",
        Millis,
        later,
        Want::None,
        Want::None,
    ),
    of(
        "unlimited-places",
        "A, a second",
        Rate,
        |it| it.value("begun a second"),
        Want::None,
        Want::None,
    ),
    of(
        "keyed",
        "insert with a random key, 1 024 callers, an empty file",
        Rate,
        rate,
        AtLeast(20e3),
        AtLeast(60e3),
    ),
    of(
        "pending-keyed",
        "the same, millions with keys pending",
        Rate,
        rate,
        AtLeast(20e3),
        AtLeast(60e3),
    ),
    of(
        "pending-keyed",
        "written an insert",
        Bytes,
        |it| it.value("bytes each"),
        Want::None,
        Want::None,
    ),
    of(
        "pending-keyed",
        "memory",
        Megabytes,
        memory,
        Want::None,
        Want::None,
    ),
    policies(
        ("insert-1-policies", "insert-1"),
        "all policies on, beside none: insert, 1 caller",
        speed,
    ),
    policies(
        ("insert-64-policies", "insert-64"),
        "insert, 64 callers",
        speed,
    ),
    policies(
        ("insert-1024-policies", "insert-1024"),
        "insert, 1 024 callers",
        speed,
    ),
    policies(
        ("burst-policies", "burst"),
        "a burst, delivered and settled",
        speed,
    ),
    policies(
        ("steady-policies", "steady"),
        "20 000 in and 10 000 due a second: inserts",
        speed,
    ),
    policies(
        ("steady-policies", "steady"),
        "p99 without policies divided by p99 with them",
        promptness,
    ),
    of(
        "steady-policies",
        "p99 of lateness, less that of a thread that only sleeps",
        Millis,
        p99_beyond_the_thread,
        AtMost(5.0),
        AtMost(1.0),
    ),
    policies(
        ("steady-2-policies", "steady-2"),
        "40 000 in and 20 000 due a second: inserts",
        speed,
    ),
    policies(
        ("steady-2-policies", "steady-2"),
        "p99 without policies divided by p99 with them",
        promptness,
    ),
    of(
        "retention",
        "10 M have come, gone and expired: the file, beside the start",
        Ratio,
        file_grown,
        AtMost(1.2),
        AtMost(1.2),
    ),
    of(
        "retention",
        "memory, beside the start",
        Ratio,
        memory_grown,
        AtMost(1.2),
        AtMost(1.2),
    ),
    of(
        "retention",
        "the longest insert while they expire",
        Millis,
        |it| it.value("expire: longest call ms"),
        AtMostInEach(50.0),
        AtMostInEach(50.0),
    ),
    of(
        "retention",
        "the longest commit, with what follows it, while they expire",
        Millis,
        |it| it.value("expire: longest commit ms"),
        AtMostInEach(50.0),
        AtMostInEach(50.0),
    ),
    of(
        "retention",
        "the longest insert while they come and go",
        Millis,
        |it| it.value("go: longest call ms"),
        Want::None,
        Want::None,
    ),
    of(
        "retention",
        "kept of a timer that was delivered, on disk",
        Bytes,
        |it| it.value("bytes kept each"),
        Want::None,
        Want::None,
    ),
    of(
        "retention-keyed",
        "10 M with a random key each have come, gone and expired: the file, beside the start",
        Ratio,
        file_grown,
        AtMost(1.2),
        AtMost(1.2),
    ),
    of(
        "retention-keyed",
        "memory, beside the start",
        Ratio,
        memory_grown,
        AtMost(1.2),
        AtMost(1.2),
    ),
    of(
        "retention-keyed",
        "the longest insert while they expire",
        Millis,
        |it| it.value("expire: longest call ms"),
        AtMostInEach(50.0),
        AtMostInEach(50.0),
    ),
    of(
        "retention-keyed",
        "the longest commit, with what follows it, while they expire",
        Millis,
        |it| it.value("expire: longest commit ms"),
        AtMostInEach(50.0),
        AtMostInEach(50.0),
    ),
    of(
        "retention-keyed",
        "they expire, a second",
        Rate,
        |it| it.value("expired a second"),
        Want::None,
        Want::None,
    ),
    of(
        "retention-keyed",
        "the longest insert while they come and go",
        Millis,
        |it| it.value("go: longest call ms"),
        Want::None,
        Want::None,
    ),
    of(
        "retention-keyed",
        "kept of a timer that was delivered, on disk, with its key",
        Bytes,
        |it| it.value("bytes kept each"),
        Want::None,
        Want::None,
    ),
    beside(
        ("outage-hangs", "outage-none"),
        "A's handler takes a minute: B's p99 divided by its p99 without that",
        Ratio,
        times_later,
        AtMost(1.1),
        AtMost(1.1),
    ),
    of(
        "outage-hangs",
        "memory, beside the start",
        Ratio,
        memory_grown,
        AtMost(1.1),
        AtMost(1.1),
    ),
    beside(
        ("outage-fails", "outage-none"),
        "A's handler fails for an hour: B's p99 divided by its p99 without that",
        Ratio,
        times_later,
        AtMost(1.1),
        AtMost(1.1),
    ),
    of(
        "outage-fails",
        "memory, beside the start",
        Ratio,
        memory_grown,
        AtMost(1.1),
        AtMost(1.1),
    ),
    of(
        "outage-fails",
        "then A drains at its limit of 1 000 a second",
        Count,
        |it| it.value("limited a second"),
        // More of its timers are due at any time. At most with its burst, once in the five seconds.
        WithinInEach(950.0, 1_025.0),
        WithinInEach(950.0, 1_025.0),
    ),
];
