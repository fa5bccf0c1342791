//! Steps from a fuzzer's bytes.

use std::time::Duration;

use waterwheel::MissedTickBehavior;

use super::{Act, Case, Home, Op, When};
use crate::bytes::Bytes;

/// A longer case takes longer and finds little more.
const MOST_OPS: usize = 150;

const SECOND: Duration = Duration::from_secs(1);

/// One revolution of each dial.
const REVOLUTIONS: [Duration; 5] = [
    SECOND,
    Duration::from_secs(60),
    Duration::from_secs(3_600),
    Duration::from_secs(86_400),
    Duration::from_secs(64 * 86_400),
];

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Makes a case of any bytes.
pub(crate) fn decode(bytes: &[u8]) -> Case {
    let mut bytes = Bytes::new(bytes);
    let resolution = bytes.resolution();
    let max_pending = match bytes.byte() % 16 {
        0 => None,
        most => Some(usize::from(most)).filter(|&most| most < 9),
    };
    let mut read = Reader { bytes, resolution };
    let starts = [read.duration(), read.duration()].map(|start| start.min(YEAR / 4));
    let mut ops = Vec::new();
    while !read.bytes.is_empty() && ops.len() < MOST_OPS {
        read.op(&mut ops);
    }
    Case {
        resolution,
        max_pending,
        starts,
        ops,
    }
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    resolution: Duration,
}

impl Reader<'_> {
    /// Reads one step, or two that often come together.
    fn op(&mut self, ops: &mut Vec<Op>) {
        let op = match self.bytes.byte() % 64 {
            0..=5 => Op::Sleep {
                home: self.home(),
                delay: self.duration(),
            },
            6..=7 => Op::SleepUntil {
                home: self.home(),
                at: self.when(),
            },
            8..=11 => Op::Timeout {
                home: self.home(),
                limit: self.duration(),
            },
            12..=14 => Op::Interval {
                home: self.home(),
                start: self.when(),
                period: self.duration(),
                missed: self.bytes.of(&[
                    MissedTickBehavior::Burst,
                    MissedTickBehavior::Delay,
                    MissedTickBehavior::Skip,
                ]),
            },
            15..=23 => Op::Poll {
                which: self.number(),
                probe: self.number(),
            },
            24..=26 => Op::PollAll {
                probe: self.number(),
            },
            27..=30 => Op::PollWithTrap {
                which: self.number(),
                delay: self.duration(),
                armed: self.bytes.flag().then(|| self.number()),
                act: self.act(),
            },
            31..=36 => Op::Reset {
                which: self.number(),
                to: self.when(),
            },
            37 => Op::SetPeriod {
                which: self.number(),
                period: self.duration(),
            },
            38..=39 => Op::Complete {
                which: self.number(),
            },
            40..=42 => Op::Drop {
                which: self.number(),
            },
            43..=45 => Op::Jump { by: self.step() },
            46..=50 => {
                ops.push(Op::Jump { by: self.step() });
                Op::Run
            }
            51..=52 => Op::Run,
            53..=56 => Op::Await {
                which: self.number(),
            },
            57 => Op::Shutdown { home: self.home() },
            58..=59 => {
                let home = self.home();
                ops.push(Op::Drain { home });
                Op::PollDrain { home }
            }
            60..=61 => Op::PollDrain { home: self.home() },
            62 => Op::DropHandle,
            _ => Op::DropRuntime,
        };
        ops.push(op);
    }

    fn home(&mut self) -> Home {
        match self.bytes.flag() {
            true => Home::Current,
            false => Home::Own,
        }
    }

    fn number(&mut self) -> usize {
        usize::from(self.bytes.byte())
    }

    fn act(&mut self) -> Act {
        match self.bytes.byte() % 8 {
            0..=1 => Act::Drop,
            2..=4 => Act::Reset(self.when()),
            5..=6 => Act::Poll {
                probe: self.number(),
            },
            _ => Act::Panic,
        }
    }

    fn when(&mut self) -> When {
        match self.bytes.byte() % 4 {
            0 => When::Ago(self.duration().min(YEAR)),
            _ => When::In(self.duration().min(YEAR * 120)),
        }
    }

    fn duration(&mut self) -> Duration {
        let byte = |read: &mut Self| u32::from(read.bytes.byte());
        match self.bytes.byte() % 10 {
            0 => Duration::from_nanos(self.bytes.byte().into()),
            1 => Duration::from_micros(10) * byte(self),
            2..=3 => Duration::from_millis(1) * byte(self),
            4 => Duration::from_millis(self.bytes.short()),
            5 => self.resolution * byte(self),
            6 => self.edge(),
            7 => Duration::from_nanos(self.bytes.middle()),
            8 => Duration::from_secs(self.bytes.middle()),
            _ => match byte(self) {
                255 => Duration::MAX,
                years => YEAR * years / 2,
            },
        }
    }

    /// Like [`duration`](Reader::duration), but shorter, so that the clock does not soon reach its end.
    fn step(&mut self) -> Duration {
        match self.duration() {
            far if far > YEAR => far / u32::MAX,
            step => step,
        }
    }

    /// Some revolutions of a dial, exactly, or a tick or a slot of it less or more.
    fn edge(&mut self) -> Duration {
        let byte = u32::from(self.bytes.byte());
        let dial = (byte % 5) as usize;
        let slot = match dial {
            0 => self.resolution,
            _ => REVOLUTIONS[dial] / [60, 60, 24, 64][dial - 1],
        };
        let edge = REVOLUTIONS[dial] * (1 + byte / 25);
        match byte / 5 % 5 {
            0 => edge - slot,
            1 => edge - self.resolution,
            2 => edge,
            3 => edge + self.resolution,
            _ => edge + slot,
        }
    }
}
