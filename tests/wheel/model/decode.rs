//! Steps from a fuzzer's bytes.

use waterwheel::wheel::Resolution;

use super::{Case, Op, Says, Wakes};
use crate::bytes::Bytes;
use crate::edges::{self, YEAR};

/// The check after each step looks at all timers.
const MOST_OPS: usize = 150;

/// Decodes any bytes into a case.
pub(crate) fn decode(bytes: &[u8]) -> Case {
    let mut bytes = Bytes::new(bytes);
    let resolution = Resolution::new(bytes.resolution()).expect("it divides a second");
    let mut read = Reader { bytes, resolution };
    let start = read.start();
    let mut ops = Vec::new();
    while !read.bytes.is_empty() && ops.len() < MOST_OPS {
        ops.push(read.op());
    }
    Case {
        resolution,
        start,
        ops,
    }
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    resolution: Resolution,
}

impl Reader<'_> {
    fn op(&mut self) -> Op {
        let byte = self.bytes.byte();
        match byte {
            // Values that began no step before this operation existed, so that the inputs of the corpus keep their meaning.
            112..=123 => {
                return Op::Expire {
                    by: self.step(),
                    budget: self.budget(),
                    taken: self.budget(),
                    forget: self.bytes.flag(),
                };
            }
            104..=107 => return Op::ExpirePeeked,
            128..=129 => return Op::Clear,
            130..=131 => {
                let additional = self.bytes.byte();
                return Op::Reserve { additional };
            }
            132..=133 => return Op::ShrinkToFit,
            _ => (),
        }
        match byte % 32 {
            0..=6 => Op::Insert {
                delay: self.ticks(),
                bomb: false,
            },
            7 => Op::Insert {
                delay: self.ticks(),
                bomb: true,
            },
            8 => Op::Herd {
                delay: self.ticks(),
                count: self.bytes.byte() % 40,
            },
            9 => Op::InsertPast { ago: self.ticks() },
            10..=12 => Op::Cancel {
                which: self.which(),
            },
            13..=14 => Op::Reset {
                which: self.which(),
                delay: self.ticks(),
            },
            15 => Op::ResetEarlier {
                which: self.which(),
                by: self.ticks(),
            },
            16 => Op::ResetLater {
                which: self.which(),
                by: self.ticks(),
            },
            17 => Op::Disarm {
                which: self.which(),
            },
            18..=19 => Op::SkipTo { by: self.step() },
            20..=22 => Op::Advance {
                by: self.step(),
                budget: self.budget(),
                says: self.says(),
            },
            23 => Op::AdvanceInOrder {
                by: self.step(),
                budget: self.budget(),
                says: self.says(),
            },
            24..=26 => Op::Turn {
                by: self.step(),
                batch: self.budget(),
                wakes: self.wakes(),
            },
            27..=28 => Op::AdvanceToExpiration,
            29 => Op::ClockBack {
                by: self.ticks(),
                budget: self.budget(),
            },
            30 => Op::Drain {
                taken: self.which(),
            },
            _ => Op::Replace {
                start: self.start(),
            },
        }
    }

    /// A start near the wraps of the dials and of counters, or anywhere.
    fn start(&mut self) -> u64 {
        match self.bytes.byte() % 4 {
            0 => 0,
            1 => self.bytes.long(),
            _ => {
                let wrap = self.bytes.of(&edges::starts(self.resolution));
                wrap.saturating_sub(u64::from(self.bytes.byte()))
            }
        }
    }

    fn ticks(&mut self) -> u64 {
        match self.bytes.byte() % 8 {
            0 => u64::from(self.bytes.byte() % 3),
            1 => u64::from(self.bytes.byte()),
            2 => self.bytes.short(),
            3 | 4 => self.edge(),
            5 => self.bytes.middle(),
            6 => u64::from(self.bytes.byte()) * YEAR,
            _ => u64::MAX - u64::from(self.bytes.byte()),
        }
    }

    /// Like [`ticks`](Reader::ticks), but shorter, so that time does not end so soon.
    fn step(&mut self) -> u64 {
        match self.ticks() {
            far if far > 1 << 60 => u64::MAX - far,
            step => step,
        }
    }

    /// Some full revolutions of a dial, give or take a tick or a slot of it.
    fn edge(&mut self) -> u64 {
        let byte = u64::from(self.bytes.byte());
        let dial = (byte % 5) as usize;
        let revolutions = edges::revolutions(self.resolution);
        let slot = revolutions[dial] / [revolutions[0], 60, 60, 24, 64][dial];
        let edge = revolutions[dial] * (1 + byte / 25);
        match byte / 5 % 5 {
            0 => edge - slot,
            1 => edge - 1,
            2 => edge,
            3 => edge + 1,
            _ => edge + slot,
        }
    }

    fn which(&mut self) -> usize {
        usize::from(self.bytes.byte())
    }

    fn budget(&mut self) -> usize {
        match self.bytes.byte() {
            few @ 0..=39 => usize::from(few),
            _ => usize::MAX,
        }
    }

    fn says(&mut self) -> Says {
        match self.bytes.byte() % 8 {
            0..=3 => Says::Due,
            4..=5 => Says::Postpone { by: self.ticks() },
            6 => Says::Disarm,
            _ => Says::Panic,
        }
    }

    fn wakes(&mut self) -> Wakes {
        match self.bytes.byte() % 4 {
            0..=1 => Wakes::Insert {
                delay: self.ticks(),
            },
            2 => Wakes::Cancel {
                which: self.which(),
            },
            _ => Wakes::Reset {
                which: self.which(),
                delay: self.ticks(),
            },
        }
    }
}
