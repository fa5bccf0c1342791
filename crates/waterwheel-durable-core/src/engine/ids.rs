//! Which id does the next timer get?
//!
//! An epoch has a limited number of ids. Once half of them are used, the store begins another epoch, so that a service that runs for weeks does not have to be
//! opened again.

use super::planted::{self, Planted};
use super::poison::Poison;
use super::store_link::StoreLink;
use crate::store::{Id, Op};

/// The ids of an epoch.
#[derive(Debug)]
pub(super) struct Ids {
    epoch: u64,
    partition: u8,
    /// The number of assigned ids.
    count: u64,
    /// The number of ids that may be assigned.
    limit: u64,
    /// Whether another epoch was requested.
    is_drawing: bool,
}

impl Ids {
    pub(super) fn new(epoch: u64, partition: u8, limit: u64) -> Ids {
        Ids {
            epoch,
            partition,
            count: 0,
            limit: limit.min(Id::IN_EPOCH),
            is_drawing: false,
        }
    }

    /// Whether no id is left.
    pub(super) fn is_empty(&self) -> bool {
        self.count >= self.limit || Id::in_partition(self.epoch, self.partition, 0).is_none()
    }

    /// Assigns the next id, or returns `None` if none is left.
    pub(super) fn next(&mut self) -> Option<Id> {
        if self.is_empty() {
            return None;
        }
        let id = Id::in_partition(self.epoch, self.partition, self.count);
        self.count += 1;
        id
    }

    /// Asks the store for another epoch if few ids are left.
    pub(super) fn draw(&mut self, poison: &Poison, link: &mut StoreLink) {
        if self.draws() {
            link.push(Op::All(vec![Op::NextEpoch(0), poison.next_epoch()]));
            link.commit();
        }
    }

    /// Returns true once when another epoch is needed, and again after a refusal.
    fn draws(&mut self) -> bool {
        let draws = !self.is_drawing && self.count > self.limit / 2;
        self.is_drawing |= draws;
        draws
    }

    /// The store has begun another epoch.
    pub(super) fn drawn(&mut self, epoch: u64) {
        if !planted::is(Planted::EpochBeginsAgain) {
            self.epoch = epoch;
        }
        self.count = 0;
        self.is_drawing = false;
    }

    /// The store has refused to begin another epoch: it is asked again with the next insert.
    pub(super) fn refused(&mut self) {
        self.is_drawing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_epoch_is_drawn_before_the_ids_end() {
        let mut ids = Ids::new(7, 3, 8);
        let mut next = || ids.next().map(|id| (id.epoch(), id.partition()));
        let of = |epoch| Some((Some(epoch), 3));
        assert!((0..4).all(|_| next() == of(7)));
        assert!(!ids.draws());
        assert!(ids.next().is_some() && ids.draws() && !ids.draws());
        ids.refused();
        assert!(ids.draws());
        assert_eq!((0..9).filter_map(|_| ids.next()).count(), 3);
        ids.drawn(9);
        assert_eq!(ids.next(), Id::in_partition(9, 3, 0));
        assert!(!ids.draws());
    }

    #[test]
    fn no_more_ids_are_assigned_than_an_epoch_has() {
        let mut ids = Ids::new(1, 0, u64::MAX);
        ids.count = Id::IN_EPOCH - 1;
        assert!(ids.next().is_some());
        assert_eq!(ids.next(), None);
    }
}
