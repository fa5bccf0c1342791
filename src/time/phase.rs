use std::num::NonZeroU32;

use crate::wheel::{Key, Tick, Ticks};

/// Where a `Sleep` is in its life, in eight bytes. A key's generation is never zero. With a generation of zero, the other half
/// names the phase.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    half: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not in the wheel.
    New(Lead),
    /// Not in the wheel, and its deadline was moved since it was made, fired or stopped.
    Reset,
    /// In the wheel: it has an entry there.
    Armed(Key),
    /// Past the tick of its deadline.
    Fired,
    /// Its timer was stopped or its runtime ended first.
    Stopped,
}

/// How long before the deadline the sleep was made, in ticks rounded up. `None` if no clock was read then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead(Option<u32>);

const FIRED: u32 = u32::MAX;
const STOPPED: u32 = u32::MAX - 1;
const RESET: u32 = u32::MAX - 2;
const UNKNOWN: u32 = u32::MAX - 3;

impl Phase {
    /// Whether the sleep holds a place of the timer's `max_pending`: from when it is made until it completes or is dropped.
    #[inline]
    pub(super) fn holds_permit(self) -> bool {
        match self {
            Phase::New(_) | Phase::Reset | Phase::Armed(_) => true,
            Phase::Fired | Phase::Stopped => false,
        }
    }
}

impl Lead {
    pub(super) const UNKNOWN: Lead = Lead(None);

    pub(super) fn covering(ticks: Option<u32>) -> Lead {
        Lead(ticks.filter(|&ticks| ticks < UNKNOWN))
    }

    /// The lead of a deadline that is moved to so many ticks later.
    pub(super) fn and(self, ticks: Option<u32>) -> Lead {
        let sum = self
            .0
            .zip(ticks)
            .and_then(|(lead, ticks)| lead.checked_add(ticks));
        Lead::covering(sum)
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
                let (index, generation) = key.into_parts();
                return Packed {
                    half: index,
                    generation: generation.get(),
                };
            }
            Phase::New(Lead(Some(ticks))) => ticks,
            Phase::New(Lead(None)) => UNKNOWN,
            Phase::Reset => RESET,
            Phase::Fired => FIRED,
            Phase::Stopped => STOPPED,
        };
        Packed {
            half,
            generation: 0,
        }
    }

    /// Whether it is [`Phase::Stopped`], in fewer instructions than by `phase`.
    #[inline(always)]
    pub(super) fn is_stopped(self) -> bool {
        self.generation == 0 && self.half == STOPPED
    }

    #[inline]
    pub(super) fn phase(self) -> Phase {
        match (NonZeroU32::new(self.generation), self.half) {
            (Some(generation), index) => Phase::Armed(Key::from_parts(index, generation)),
            (None, FIRED) => Phase::Fired,
            (None, STOPPED) => Phase::Stopped,
            (None, RESET) => Phase::Reset,
            (None, UNKNOWN) => Phase::New(Lead::UNKNOWN),
            (None, ticks) => Phase::New(Lead(Some(ticks))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lead, Packed, Phase, UNKNOWN};
    use crate::wheel::Key;
    use std::num::NonZeroU32;

    #[test]
    fn each_phase_survives_the_packing() {
        let key = |index, generation| Key::from_parts(index, NonZeroU32::new(generation).unwrap());
        for phase in [
            Phase::New(Lead::UNKNOWN),
            Phase::New(Lead::covering(Some(0))),
            Phase::New(Lead::covering(Some(UNKNOWN - 1))),
            Phase::Reset,
            Phase::Armed(key(0, 1)),
            Phase::Armed(key(u32::MAX, u32::MAX)),
            Phase::Fired,
            Phase::Stopped,
        ] {
            assert_eq!(Packed::new(phase).phase(), phase);
        }
        assert_eq!(Lead::covering(Some(UNKNOWN)), Lead::UNKNOWN);
        assert_eq!(Lead::covering(Some(u32::MAX)), Lead::UNKNOWN);
    }
}
