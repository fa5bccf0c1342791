//! No delivery begins while the lease of the store is not held.

use super::*;

impl Subject {
    fn lease(&mut self, is_held: bool) {
        self.engine.handle_lease(is_held);
        self.settle();
    }
}

#[test]
fn deliveries_wait_for_the_lease() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 2, 0);
    it.advance(1_000);
    it.lease(false);
    // Neither the free place nor the time begins one.
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    it.insert_many("mail", 1, 5_000);
    it.run_until(it.later(20 * SECOND).boot_micros);
    assert_eq!((it.delivered.len(), it.store.len()), (0, 2));
    assert_eq!(it.engine.poll_timeout(), None);
    it.lease(true);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
    it.lease(true);
    assert_eq!(it.reports, ["the lease is lost", "the lease is held"]);
}

#[test]
fn a_rate_does_not_wake_an_engine_without_the_lease() {
    let mut it = Subject::new(Config::default());
    it.namespace("slow", &Policy::default().rate(Rate::per_minute(1)));
    it.insert_many("slow/mail", 2, 0);
    it.advance(1_000);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    it.lease(false);
    it.run_until(it.later(120 * SECOND).boot_micros);
    assert_eq!(it.delivered.len(), 0);
    it.lease(true);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
}

#[test]
fn a_timer_whose_start_was_noted_waits_for_the_lease() {
    let mut it = starts::about_to_note();
    it.lease(false);
    it.run_until(it.later(SECOND).boot_micros);
    assert!(it.delivered.is_empty());
    let noted = it.starts();
    it.lease(true);
    assert_eq!((it.delivered.len(), it.starts()), (1, noted));
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}
