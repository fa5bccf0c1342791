//! A fuzzer's bytes, read as numbers.
//!
//! Missing bytes are zero, so every input is valid, and truncating an input removes its last
//! steps. This reader and the decoders on top of it give the files of `tests/corpus` their
//! meaning: after changing them, `bash ci/fuzz --corpus` finds new ones.

// Every test crate uses a part of this.
#![allow(dead_code)]

use std::sync::LazyLock;
use std::time::Duration;

/// Every valid resolution from 100 µs to 1 s: they divide a second.
static RESOLUTIONS: LazyLock<Vec<Duration>> = LazyLock::new(|| {
    let divides = |ticks: &u64| 1_000_000_000 % ticks == 0;
    let lengths = (1..=10_000).filter(divides);
    lengths
        .map(|ticks| Duration::from_nanos(1_000_000_000 / ticks))
        .collect()
});

pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// Reads a number of two bytes.
    pub(crate) fn short(&mut self) -> u64 {
        u64::from(u16::from_le_bytes(self.array()))
    }

    /// Reads a number of four bytes.
    pub(crate) fn middle(&mut self) -> u64 {
        u64::from(u32::from_le_bytes(self.array()))
    }

    /// Reads a number of eight bytes.
    pub(crate) fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Picks one of these by one byte.
    pub(crate) fn of<T: Copy>(&mut self, these: &[T]) -> T {
        these[usize::from(self.byte()) % these.len()]
    }

    /// Reads the length of a tick.
    pub(crate) fn resolution(&mut self) -> Duration {
        self.of(&RESOLUTIONS)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let there = self.0.len().min(N);
        let (taken, rest) = self.0.split_at(there);
        array[..there].copy_from_slice(taken);
        self.0 = rest;
        array
    }
}
