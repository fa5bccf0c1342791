use std::time::Duration;

use waterwheel_durable_core::engine::planted::{self, Planted};

use super::{Beat, NodeId};

/// The looks of a standby at the holder of a partition, or of the holder at nodes that have handed it over.
#[derive(Debug, Clone, Default)]
pub(super) struct Observation {
    first: Option<(Duration, Beat)>,
    /// These nodes with their counters, and since when each counter has been the same.
    others: Vec<(Duration, NodeId, u64)>,
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
        if !planted::is(Planted::OthersStayObserved) {
            self.others.clear();
        }
    }

    /// Notes a look at the other nodes. Returns the one that has been unchanged for the longest time, with the time since when and its counter.
    pub(super) fn see_others(
        &mut self,
        others: Vec<(NodeId, u64)>,
        at: Duration,
    ) -> Option<(Duration, NodeId, u64)> {
        let before = std::mem::take(&mut self.others);
        let seen = others.into_iter().map(|(node, counter)| {
            let is_same = |it: &&(Duration, NodeId, u64)| (it.1, it.2) == (node, counter);
            let since = before.iter().find(is_same).map_or(at, |(since, ..)| *since);
            (since, node, counter)
        });
        self.others = seen.collect();
        self.others.iter().min().copied()
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
            others: Vec::new(),
            is_suspended: false,
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
    #[test]
    fn each_other_node_is_observed_by_itself() {
        let second = Duration::from_secs;
        let mut observation = Observation::default();
        let node = |node, counter| (NodeId(node), counter);
        for (at, others, longest) in [
            (1, vec![], None),
            (2, vec![node(1, 5)], Some((2, 1))),
            (3, vec![node(1, 6), node(2, 9)], Some((3, 1))),
            (4, vec![node(1, 7), node(2, 9)], Some((3, 2))),
            (5, vec![node(1, 7)], Some((4, 1))),
            // It is observed anew after it was away.
            (6, vec![node(1, 8), node(2, 9)], Some((6, 1))),
        ] {
            let seen = observation.see_others(others, second(at));
            let longest = longest.map(|(since, id)| (second(since), NodeId(id)));
            assert_eq!(seen.map(|(since, id, _)| (since, id)), longest, "{at}");
        }
        observation.reset();
        let seen = observation.see_others(vec![node(1, 8)], second(9));
        assert_eq!(seen, Some((second(9), NodeId(1), 8)));
    }
}
