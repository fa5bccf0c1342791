//! What timers without policies cost.

use super::target::Unit::{Bytes, Count, Megabytes, Millis, Percent, Rate, Ratio};
use super::target::Want::{AtLeast, AtMost, AtMostInEach};
use super::target::{Target, Want, beside, memory, of, p99_beyond_the_thread, rate};
use crate::sample::Sample;

fn of_syncs(sample: &Sample) -> Option<f64> {
    Some(sample.value("a second")? / sample.value("syncs a second")?)
}

fn bytes(sample: &Sample) -> Option<f64> {
    sample.value("bytes each")
}

fn times_longer(sample: &Sample, other: &Sample) -> Option<f64> {
    Some(sample.value("delivered ms")? / other.value("delivered ms")?)
}

pub(crate) const TARGETS: [Target; 28] = [
    of(
        "insert-1",
        "insert, 1 caller, beside the disk's syncs",
        Ratio,
        of_syncs,
        AtLeast(0.6),
        AtLeast(0.9),
    ),
    of(
        "insert-64",
        "insert, 64 callers",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(100e3),
    ),
    of(
        "insert-1024",
        "insert, 1 024 callers",
        Rate,
        rate,
        AtLeast(120e3),
        AtLeast(300e3),
    ),
    of(
        "month",
        "insert, due over 30 days",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    of(
        "pending-month",
        "the same, millions pending",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    of(
        "pending-month",
        "written an insert",
        Bytes,
        bytes,
        AtMost(3e3),
        AtMost(2e3),
    ),
    of(
        "year",
        "insert, due over a year",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    of(
        "pending-year",
        "the same, millions pending",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(120e3),
    ),
    of(
        "pending-year",
        "written an insert",
        Bytes,
        bytes,
        AtMost(3e3),
        AtMost(2e3),
    ),
    of(
        "day",
        "written a timer by its cascades and its settle",
        Bytes,
        bytes,
        Want::None,
        Want::None,
    ),
    of(
        "month-life",
        "written a timer in its life, seven due a minute",
        Bytes,
        |it| it.value("bytes of a life"),
        Want::None,
        Want::None,
    ),
    of(
        "cancel",
        "cancel, of timers inserted before",
        Rate,
        rate,
        AtLeast(40e3),
        AtLeast(100e3),
    ),
    of(
        "pending-cancel",
        "cancel, anywhere among the millions",
        Rate,
        rate,
        Want::None,
        Want::None,
    ),
    of(
        "burst",
        "a burst, delivered and settled",
        Rate,
        rate,
        AtLeast(150e3),
        AtLeast(500e3),
    ),
    beside(
        ("burst-1000", "burst"),
        "a burst over 1 000 handlers: all delivered after, divided by that of one",
        Ratio,
        times_longer,
        AtMost(2.0),
        Want::None,
    ),
    beside(
        ("burst-overdue-1000", "burst-overdue"),
        "the same, overdue at the opening",
        Ratio,
        times_longer,
        AtMost(2.0),
        Want::None,
    ),
    of(
        "steady",
        "20 000 in and 10 000 due a second: inserts",
        Rate,
        rate,
        AtLeast(19.9e3),
        Want::None,
    ),
    of(
        "steady",
        "p99 of lateness, less that of a thread that only sleeps",
        Millis,
        p99_beyond_the_thread,
        AtMost(5.0),
        AtMost(1.0),
    ),
    of(
        "steady",
        "early",
        Count,
        |it| it.value("early"),
        AtMostInEach(0.0),
        AtMostInEach(0.0),
    ),
    of(
        "steady-2",
        "40 000 in and 20 000 due a second: inserts",
        Rate,
        rate,
        Want::None,
        AtLeast(39.8e3),
    ),
    of(
        "steady-2",
        "p99 of lateness, less that of a thread that only sleeps",
        Millis,
        p99_beyond_the_thread,
        Want::None,
        AtMost(1.0),
    ),
    of(
        "restart",
        "restart, cold: the first is delivered",
        Millis,
        |it| it.value("first ms"),
        AtMost(500.0),
        AtMost(150.0),
    ),
    of(
        "restart",
        "all that are overdue",
        Millis,
        |it| it.value("all ms"),
        AtMost(3e3),
        AtMost(500.0),
    ),
    of(
        "idle",
        "memory, idle",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    of(
        "steady",
        "memory, at 20 000 in and 10 000 due a second",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    of(
        "pending",
        "memory, while they are inserted in batches",
        Megabytes,
        memory,
        AtMost(150.0),
        AtMost(100.0),
    ),
    of(
        "pending",
        "on disk a timer",
        Bytes,
        |it| it.value("bytes on disk each"),
        AtMost(130.0),
        AtMost(100.0),
    ),
    of(
        "idle",
        "idle, of a core",
        Percent,
        |it| it.value("% of a core"),
        AtMost(0.5),
        AtMost(0.5),
    ),
];
