use std::num::NonZeroU32;

use crate::wheel::{Key, Tick, Ticks};

/// Where a `Sleep` is in its life, in eight bytes: a key's stamp is never zero, and with a stamp
/// of zero the other half says what else it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    half: u32,
    stamp: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not in the wheel.
    New(Delay),
    /// Not in the wheel, and its deadline was moved since it was made, fired or stopped.
    Reset,
    /// In the wheel: it has a record there.
    Armed(Key),
    /// Past the tick of its deadline.
    Fired,
    /// Its timer was stopped first.
    Stopped,
}

/// How long before the deadline the clock was read, in ticks rounded up, if it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delay(Option<u32>);

const FIRED: u32 = u32::MAX;
const STOPPED: u32 = u32::MAX - 1;
const RESET: u32 = u32::MAX - 2;
const UNKNOWN: u32 = u32::MAX - 3;

impl Delay {
    pub(super) const UNKNOWN: Delay = Delay(None);

    pub(super) fn covering(ticks: Option<u32>) -> Delay {
        Delay(ticks.filter(|&ticks| ticks < UNKNOWN))
    }

    /// A tick that had passed when the clock was read.
    pub(super) fn before(self, deadline: Tick) -> Option<Tick> {
        self.0
            .map(|ticks| deadline.saturating_sub(Ticks::new(u64::from(ticks))))
    }
}

impl Packed {
    pub(super) fn new(phase: Phase) -> Packed {
        let half = match phase {
            Phase::Armed(key) => {
                let (index, stamp) = key.into_parts();
                return Packed {
                    half: index,
                    stamp: stamp.get(),
                };
            }
            Phase::New(Delay(Some(ticks))) => ticks,
            Phase::New(Delay(None)) => UNKNOWN,
            Phase::Reset => RESET,
            Phase::Fired => FIRED,
            Phase::Stopped => STOPPED,
        };
        Packed { half, stamp: 0 }
    }

    #[inline]
    pub(super) fn phase(self) -> Phase {
        match (NonZeroU32::new(self.stamp), self.half) {
            (Some(stamp), index) => Phase::Armed(Key::from_parts(index, stamp)),
            (None, FIRED) => Phase::Fired,
            (None, STOPPED) => Phase::Stopped,
            (None, RESET) => Phase::Reset,
            (None, UNKNOWN) => Phase::New(Delay::UNKNOWN),
            (None, ticks) => Phase::New(Delay(Some(ticks))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delay, Packed, Phase, UNKNOWN};
    use crate::wheel::Key;
    use std::num::NonZeroU32;

    #[test]
    fn each_phase_survives_the_packing() {
        let key = |index, stamp| Key::from_parts(index, NonZeroU32::new(stamp).unwrap());
        for phase in [
            Phase::New(Delay::UNKNOWN),
            Phase::New(Delay::covering(Some(0))),
            Phase::New(Delay::covering(Some(UNKNOWN - 1))),
            Phase::Reset,
            Phase::Armed(key(0, 1)),
            Phase::Armed(key(u32::MAX, u32::MAX)),
            Phase::Fired,
            Phase::Stopped,
        ] {
            assert_eq!(Packed::new(phase).phase(), phase);
        }
        assert_eq!(Delay::covering(Some(UNKNOWN)), Delay::UNKNOWN);
        assert_eq!(Delay::covering(Some(u32::MAX)), Delay::UNKNOWN);
    }
}
