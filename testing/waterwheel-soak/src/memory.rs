//! Resident memory over time: the peak of each part of the run, and whether the peaks grow.

use std::time::Duration;

use waterwheel_bench_kit::machine::resident;

/// The number of parts of a run, whatever its length, so that the measurement itself takes no more memory in a longer run.
const PARTS: usize = 300;

/// The first parts are left out: the process starts its threads, tables and allocator arenas in them.
const WARM_UP: usize = PARTS / 10;

/// The peak of the last third may exceed that of the first third by this share plus this many kilobytes. Heap fragmentation, and
/// the moment at which a herd is measured, cause such differences.
const GROWTH_PERCENT: u64 = 10;
const GROWTH_KILOBYTES: u64 = 16 * 1024;

pub(crate) struct Memory {
    length: Duration,
    /// The peak of each part in kilobytes. Zero for a part without a measurement.
    peaks: [u64; PARTS],
}

/// The peaks of the first and the last third of the run after its warm-up, in kilobytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thirds {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Memory {
    pub(crate) fn new(length: Duration) -> Memory {
        Memory {
            length,
            peaks: [0; PARTS],
        }
    }

    pub(crate) fn sample(&mut self, elapsed: Duration) {
        self.note(elapsed, resident() as u64 / 1024);
    }

    fn note(&mut self, elapsed: Duration, kilobytes: u64) {
        let part = PARTS as f64 * elapsed.as_secs_f64() / self.length.as_secs_f64();
        let peak = &mut self.peaks[(part as usize).min(PARTS - 1)];
        *peak = kilobytes.max(*peak);
    }

    /// `None` if the system does not report the memory of a process.
    pub(crate) fn thirds(&self) -> Option<Thirds> {
        let warm = &self.peaks[WARM_UP..];
        let peak = |part: &[u64]| part.iter().max().copied().filter(|&peak| peak > 0);
        Some(Thirds {
            first: peak(&warm[..warm.len() / 3])?,
            last: peak(&warm[warm.len() - warm.len() / 3..])?,
        })
    }

    /// The peak of the last part that was measured.
    pub(crate) fn now(&self) -> Option<u64> {
        self.peaks.iter().rev().find(|&&peak| peak > 0).copied()
    }
}

impl Thirds {
    pub(crate) fn grow(self) -> bool {
        self.last > self.first + self.first * GROWTH_PERCENT / 100 + GROWTH_KILOBYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thirds of a run of 100 s with this memory at each second.
    fn run(memory_at: impl Fn(u64) -> u64) -> Thirds {
        let mut memory = Memory::new(Duration::from_secs(100));
        for second in 0..=100 {
            memory.note(Duration::from_secs(second), memory_at(second));
        }
        memory.thirds().expect("it was measured")
    }

    #[test]
    fn only_memory_that_goes_up_all_the_time_grows() {
        let up_and_down = run(|second| 50_000 + second % 7 * 10_000);
        assert_eq!((up_and_down.first, up_and_down.last), (110_000, 110_000));
        assert!(!up_and_down.grow());
        let taken_at_first_and_kept = run(|second| 20_000 + second.min(10) * 10_000);
        assert!(!taken_at_first_and_kept.grow());
        assert!(run(|second| 50_000 + second * 1_000).grow());
        assert!(run(|second| 2_000_000 + second * 10_000).grow());
        let never_measured = Memory::new(Duration::from_secs(1));
        assert_eq!(
            (never_measured.thirds(), never_measured.now()),
            (None, None)
        );
    }
}
