//! The conditions that must hold after each step, and at the end.

use waterwheel::wheel::{Key, Tick};

use super::Says;
use super::pair::Pair;

/// The number of removed keys that are checked after each step.
const RECENT: usize = 32;

impl Pair {
    pub(super) fn check(&self) {
        let (wheel, list) = (&self.wheel, &self.list);
        wheel.check_invariants();
        assert_eq!(wheel.now().get(), list.now);

        let mut listed: Vec<_> = wheel
            .iter()
            .map(|(key, deadline, payload)| (payload.id, key, deadline.get()))
            .collect();
        listed.sort_unstable_by_key(|&(id, ..)| id);
        let pending: Vec<_> = list
            .pending()
            .map(|(id, timer)| (id, timer.key, timer.deadline))
            .collect();
        assert_eq!(listed, pending, "the pending timers");
        assert_eq!(wheel.len(), pending.len());
        assert_eq!(wheel.is_empty(), pending.is_empty());
        assert_eq!(self.alive.get(), list.timers.len(), "payloads kept alive");

        for (&id, timer) in &list.timers {
            assert_eq!(wheel.get(timer.key).map(|payload| payload.id), Some(id));
            assert_eq!(wheel.deadline(timer.key), Some(Tick::new(timer.deadline)));
            assert_eq!(wheel.is_pending(timer.key), !timer.disarmed);
        }
        // `finish` looks at all of them. At each step, that would be most of the work.
        let recent = list.gone.len().saturating_sub(RECENT);
        self.check_gone(&list.gone[recent..]);
        self.check_next_expiration();
        self.check_peek();
    }

    fn check_peek(&self) {
        let due_at = |deadline: u64| deadline.max(self.list.now);
        let pending = self.list.pending().map(|(_, timer)| due_at(timer.deadline));
        let Some((key, deadline, payload)) = self.wheel.peek() else {
            assert_eq!(pending.count(), 0, "something is pending");
            return;
        };
        let timer = self.list.timers.get(&payload.id).expect("it is there");
        assert!(!timer.disarmed, "{timer:?} is disarmed");
        assert_eq!((timer.key, Tick::new(timer.deadline)), (key, deadline));
        assert_eq!(Some(due_at(timer.deadline)), pending.min(), "the earliest");
        self.list.assert_next(payload.id);
    }

    fn check_gone(&self, keys: &[Key]) {
        for &key in keys {
            assert!(self.wheel.get(key).is_none(), "{key:?} is gone");
            assert_eq!(self.wheel.deadline(key), None, "{key:?} is gone");
            assert!(!self.wheel.is_pending(key), "{key:?} is gone");
        }
    }

    fn check_next_expiration(&self) {
        let next = self.wheel.next_expiration().map(Tick::get);
        let now = self.list.now;
        let mut pending = self.list.pending().map(|(_, timer)| timer);
        if self.wheel.has_backlog() {
            assert_eq!(next, Some(now), "something waits to be served");
            let waits = pending.any(|timer| timer.comes_up.is_none_or(|tick| tick <= now));
            assert!(waits, "nothing has come up, and there is a backlog");
            return;
        }
        let overdue = pending.find(|timer| timer.deadline <= now);
        assert_eq!(overdue, None, "waits to be served, and is no backlog");
        match (next, self.list.next_expiration()) {
            (Some(next), Some((latest, false))) => {
                assert!(
                    now < next && next <= latest,
                    "{next} is not before {latest}"
                );
            }
            (next, known) => assert_eq!(next, known.map(|(exact, _)| exact), "the next expiration"),
        }
    }

    /// Checks that nothing is lost: at the end of time all pending timers come up, and the disarmed ones still exist.
    pub(super) fn finish(mut self) {
        // Each bomb ends an advance.
        let bombs_at_most = self.list.timers.len();
        for _ in 0..=bombs_at_most {
            self.advance(u64::MAX, usize::MAX, Says::Due);
            self.check();
            if self.wheel.is_empty() {
                break;
            }
        }
        assert_eq!(self.wheel.next_expiration(), None, "time has ended");
        self.drain(usize::MAX);
        self.check();
        self.check_gone(&self.list.gone);
    }
}
