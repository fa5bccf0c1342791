use std::time::Duration;

use waterwheel_durable_core::engine::planted::{self, Planted};

use super::Beat;

/// The looks of a standby at the holder of a partition.
#[derive(Debug, Clone, Default)]
pub(super) struct Observation {
    first: Option<(Duration, Beat)>,
}

impl Observation {
    /// Notes a look that was received at this time. Returns whether something has changed since the last look.
    pub(super) fn see(&mut self, beat: &Beat, at: Duration) -> bool {
        let is_same = self.first.as_ref().map(|(_, first)| first == beat);
        if is_same != Some(true) {
            self.first = Some((at, beat.clone()));
        }
        is_same == Some(false)
    }

    /// Forgets all looks: a heartbeat has failed, so those of the holder may have failed too.
    pub(super) fn reset(&mut self) {
        if !planted::is(Planted::ObservationGoesOn) {
            self.first = None;
        }
    }

    /// Returns since when the holder and the timeline of the server have been the same.
    pub(super) fn since(&self) -> Option<Duration> {
        self.first.as_ref().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Holder, NodeId, OwnerId};
    use super::*;

    #[test]
    fn an_observation_begins_again_with_each_change() {
        let second = Duration::from_secs;
        let beat = |counter, owner, timeline| Beat {
            is_registered: true,
            timeline,
            holder: Holder {
                node: Some(NodeId(1)),
                counter: Some(counter),
                owner: OwnerId(owner),
                timeline: 1,
            },
        };
        let mut observation = Observation::default();
        let mut last = None;
        for (at, counter, owner, timeline, since) in [
            (1, 5, 1, 1, 1),
            (2, 5, 1, 1, 1),
            (3, 6, 1, 1, 3),
            (4, 6, 2, 1, 4),
            (5, 6, 2, 1, 4),
            (6, 6, 2, 2, 6),
        ] {
            let has_changed = observation.see(&beat(counter, owner, timeline), second(at));
            assert_eq!(observation.since(), Some(second(since)));
            assert_eq!(
                has_changed,
                last.replace(since).is_some_and(|last| last != since)
            );
        }
        observation.reset();
        assert_eq!(observation.since(), None);
        assert!(!observation.see(&beat(7, 2, 2), second(7)));
    }
}
