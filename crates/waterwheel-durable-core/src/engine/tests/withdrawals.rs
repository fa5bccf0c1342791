//! Deliveries that are on their way to their handlers while the wall clock is set back.

use super::*;

const HOUR: i64 = 3_600 * SECOND.cast_signed();

impl Subject {
    /// Sets the wall clock back, and withdraws the deliveries on their way, as the shell does.
    fn set_back_and_withdraw(&mut self, by: i64) {
        self.set(-by);
        for delivery in std::mem::take(&mut self.on_their_way) {
            self.engine.handle_withdrawn(&delivery);
        }
        self.delivered.clear();
        self.settle();
    }
}

fn delivered(it: &Subject, namespace: &str) -> u64 {
    it.of(namespace).counts.delivered
}

#[test]
fn a_withdrawn_delivery_waits_again_and_uses_up_no_attempt() {
    // Within the seconds that stay in memory, and beyond them.
    for back in [SECOND.cast_signed() * 3 / 2, HOUR] {
        let mut it = Subject::new(Config::default()).handles(10);
        it.insert_many("mail", 5, 0);
        it.advance(1_000);
        assert_eq!((it.delivered.len(), delivered(&it, DEFAULT)), (5, 5));
        let written = it.commits;
        it.set_back_and_withdraw(back);
        assert_eq!((it.engine.stats().running, delivered(&it, DEFAULT)), (0, 0));
        assert_eq!((it.commits, it.store.len()), (written, 5));
        let due = it.engine.now().boot_micros + back.unsigned_abs() - 1_000;
        it.run_until(due - 1);
        assert!(it.delivered.is_empty());
        it.run_until(due + 1_000);
        let rows = it.end_all(&Ended::Well);
        assert!(rows.len() == 5 && rows.iter().all(|row| row.failures == 0));
        assert!(it.store.is_empty() && it.engine.is_idle());
        assert_eq!(
            (it.engine.stats().held, it.engine.stats().held_bytes),
            (0, 0)
        );
    }
}

#[test]
fn a_withdrawn_delivery_leaves_its_place_to_others() {
    let limits = Policy::default().concurrency(1);
    let mut it = Subject::with(|config| config.concurrency = Some(1));
    it.namespace("shop", &limits);
    it.insert_many("shop/mail", 1, 0);
    it.advance(1_000);
    assert_eq!(it.delivered.len(), 1);
    it.set_back_and_withdraw(HOUR);
    assert_eq!(it.of("shop").running, 0);
    // A timer that is due by the new time has the only place of its namespace, and of the engine.
    it.insert_many("shop/mail", 1, -HOUR / 1_000);
    it.advance(1_000);
    assert_eq!(it.delivered.len(), 1);
}

#[test]
fn a_withdrawn_delivery_gives_its_turn_of_the_rate_back() {
    let mut it = Subject::new(Config::default());
    it.namespace("slow", &Policy::default().rate(Rate::per_minute(1)));
    it.insert_many("slow/mail", 1, 0);
    it.advance(1_000);
    assert_eq!(it.delivered.len(), 1);
    let back = SECOND.cast_signed();
    it.set_back_and_withdraw(back);
    // Without waiting for another minute.
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty());
}

#[test]
fn a_withdrawn_delivery_whose_start_was_noted_is_noted_once() {
    let mut it = starts::about_to_note();
    it.settle();
    let noted = it.delivered[0].starts;
    it.set_back_and_withdraw(HOUR);
    it.jump(HOUR);
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!((it.starts(), it.delivered[0].starts), (noted, noted));
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn what_is_withdrawn_holds_up_no_stop() {
    let mut it = Subject::new(Config::default()).handles(10);
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    it.engine.handle_stop();
    it.settle();
    assert!(!it.engine.is_idle());
    let written = it.commits;
    it.set_back_and_withdraw(HOUR);
    assert!(it.engine.is_idle() && it.delivered.is_empty());
    // The only write is the note of the clean end.
    assert_eq!((it.commits, it.store.len()), (written + 1, 1));
}
