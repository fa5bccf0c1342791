//! The archive: which timers enter it, and when they expire.

use crate::store::ArchiveCursor;

use super::*;

const DAY: u64 = 86_400 * SECOND;
const MINUTE: u64 = 60 * SECOND;

/// How long nothing expires after opening or a jump of the clock.
const CALM: u64 = 10 * MINUTE;

/// An engine with a namespace `a` that archives delivered timers for this many days, and one that archives nothing.
fn subject(days: u32) -> Subject {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().retention(days));
    it.handle("a/other", 1_000);
    it.namespace("b", &Policy::default());
    it
}

/// Inserts due timers, and delivers them.
fn deliver(it: &mut Subject, handler: &str, count: usize) {
    for _ in 0..count {
        let now = it.engine.now().due().as_millis() - NOW;
        it.insert_to(handler, now);
    }
    it.settle();
    it.created();
    it.advance(1_000);
    assert_eq!(it.end_all(&Ended::Well).len(), count);
}

fn archived(it: &mut Subject, handler: &str) -> usize {
    let start = ArchiveCursor::START;
    let all = it.store.archived(handler, start, i64::MAX, usize::MAX);
    all.unwrap().len()
}

/// The number of archived timers of two handlers.
fn archived_of(it: &mut Subject, handlers: [&str; 2]) -> [usize; 2] {
    handlers.map(|handler| archived(it, handler))
}

/// Moves time on.
fn wait(it: &mut Subject, micros: u64) {
    it.run_until(it.engine.now().boot_micros + micros);
}

/// The microseconds until the next day begins.
fn to_midnight(it: &Subject) -> u64 {
    let wall = it.engine.now().wall_micros;
    DAY - wall.rem_euclid(DAY.cast_signed()).unsigned_abs()
}

#[test]
fn archived_timers_expire_when_their_retention_has_ended() {
    let mut it = subject(3);
    deliver(&mut it, "a/mail", 5);
    deliver(&mut it, "b/mail", 5);
    assert_eq!(archived_of(&mut it, ["a/mail", "b/mail"]), [5, 0]);
    assert!(it.store.is_empty());
    // The day of the delivery does not count.
    let midnight = to_midnight(&it);
    wait(&mut it, midnight + 3 * DAY - 1);
    assert_eq!(archived(&mut it, "a/mail"), 5);
    wait(&mut it, 1);
    assert_eq!(archived(&mut it, "a/mail"), 0);
    // It asks for no turn once nothing is archived.
    assert_eq!(it.engine.poll_timeout(), None);
}

#[test]
fn days_expire_one_after_another_and_of_each_handler() {
    let mut it = subject(2);
    let midnight = to_midnight(&it);
    wait(&mut it, midnight + SECOND);
    for day in 0..6 {
        let days = 3.min(day + 1);
        deliver(&mut it, "a/mail", 10);
        if day > 0 {
            deliver(&mut it, "a/other", 1);
        }
        assert_eq!(archived(&mut it, "a/mail"), 10 * days);
        assert_eq!(archived(&mut it, "a/other"), days.min(day));
        let midnight = to_midnight(&it);
        wait(&mut it, midnight + SECOND);
    }
    // After opening, the engine looks for what is archived.
    it.start_again();
    wait(&mut it, 2 * DAY);
    assert_eq!(archived_of(&mut it, ["a/mail", "a/other"]), [0, 0]);
}

#[test]
fn a_clock_that_is_a_year_ahead_for_a_while_deletes_nothing() {
    for ahead in [MINUTE, CALM - 1, CALM] {
        let mut it = subject(7);
        deliver(&mut it, "a/mail", 5);
        wait(&mut it, DAY);
        let year = 365 * DAY.cast_signed();
        it.jump(year);
        wait(&mut it, ahead);
        it.jump(-year);
        wait(&mut it, DAY);
        let left = if ahead < CALM { 5 } else { 0 };
        assert_eq!(archived(&mut it, "a/mail"), left, "{ahead}");
    }
}

#[test]
fn a_clock_that_is_wrong_as_a_service_is_opened_deletes_nothing() {
    let mut it = subject(7);
    deliver(&mut it, "a/mail", 5);
    let mut now = it.engine.now();
    now.wall_micros += 400 * DAY.cast_signed();
    it.begin(now);
    wait(&mut it, CALM - 1);
    it.jump(-400 * DAY.cast_signed());
    wait(&mut it, DAY);
    assert_eq!(archived(&mut it, "a/mail"), 5);
    // A suspension is no jump: those days have passed.
    let now = it.later(30 * DAY);
    it.engine.handle_time(now);
    it.settle();
    assert_eq!(archived(&mut it, "a/mail"), 0);
}

#[test]
fn what_has_expired_while_off_is_deleted_after_a_calm() {
    let mut it = subject(7);
    deliver(&mut it, "a/mail", 5);
    let mut now = it.engine.now();
    now.wall_micros += 30 * DAY.cast_signed();
    it.begin(now);
    // It asks for that turn.
    let at = now.boot_micros + CALM;
    assert_eq!(it.engine.poll_timeout(), Some(at));
    assert_eq!(archived(&mut it, "a/mail"), 5);
    it.run_until(at);
    assert_eq!(it.engine.poll_timeout(), None);
    assert_eq!(archived(&mut it, "a/mail"), 0);
}

#[test]
fn a_retention_that_is_lowered_holds_for_archived_timers() {
    let mut it = subject(30);
    deliver(&mut it, "a/mail", 5);
    wait(&mut it, 5 * DAY);
    deliver(&mut it, "a/mail", 2);
    assert_eq!(archived(&mut it, "a/mail"), 7);
    let days = |days| Policy::default().retention(days);
    it.set_policy("a", &days(4));
    assert_eq!(archived(&mut it, "a/mail"), 2);
    it.set_policy("a", &days(9));
    assert_eq!(archived(&mut it, "a/mail"), 2);
    for none in [Policy::default(), days(0)] {
        it.set_policy("a", &none);
        assert_eq!(archived(&mut it, "a/mail"), 0);
        deliver(&mut it, "a/mail", 3);
        let left = archived(&mut it, "a/mail");
        assert_eq!((left, it.engine.poll_timeout()), (0, None));
    }
}

#[test]
fn timers_archived_by_a_clock_ahead_expire_without_retention() {
    let mut it = subject(7);
    let years = 3_650 * DAY.cast_signed();
    it.jump(years);
    deliver(&mut it, "a/mail", 5);
    it.jump(-years);
    deliver(&mut it, "a/mail", 2);
    // By its recorded day, it is kept for ten more years.
    wait(&mut it, 30 * DAY);
    assert_eq!(archived(&mut it, "a/mail"), 5);
    it.set_policy("a", &Policy::default().retention(0));
    wait(&mut it, CALM);
    assert_eq!(archived(&mut it, "a/mail"), 0);
    assert_eq!(it.engine.poll_timeout(), None);
}

#[test]
fn much_expires_some_at_a_time() {
    let mut it = subject(1);
    deliver(&mut it, "a/mail", 900);
    for _ in 0..3 {
        deliver(&mut it, "a/mail", 900);
        deliver(&mut it, "a/other", 900);
    }
    it.pass(3 * DAY);
    let mut steps = Vec::new();
    while let Some(request) = it.requests.pop_front() {
        let before = archived(&mut it, "a/mail") + archived(&mut it, "a/other");
        if let Some(ops) = ops_of(&request) {
            let expires = |op: &&Op| matches!(op, Op::Expire { .. });
            steps.push(ops.iter().filter(expires).count());
        }
        let replied = it.execute(request);
        let left = archived(&mut it, "a/mail") + archived(&mut it, "a/other");
        assert!(before - left <= 1_024);
        it.hand_in(replied);
        // A caller's step is written alongside.
        if steps.len() == 2 {
            it.insert_to("b/mail", 1_000_000_000_000);
        }
    }
    assert_eq!(archived_of(&mut it, ["a/mail", "a/other"]), [0, 0]);
    assert!(steps.iter().all(|count| *count <= 1), "{steps:?}");
    let expiring = steps.iter().filter(|count| **count == 1);
    assert_eq!(expiring.count(), 7, "{steps:?}");
    assert!(it.engine.is_idle());
}

#[test]
fn what_expires_is_tried_again_if_the_store_refuses() {
    let mut it = subject(1);
    deliver(&mut it, "a/mail", 10);
    it.pass(3 * DAY);
    for _ in 0..3 {
        assert!(matches!(ops_of(&it.requests[0]), Some([Op::Expire { .. }])));
        it.reply(refused());
        it.pass(SECOND);
    }
    it.settle();
    assert_eq!(archived(&mut it, "a/mail"), 0);
}

#[test]
fn less_expires_at_a_time_where_the_store_refuses_more() {
    let mut it = subject(1);
    deliver(&mut it, "a/mail", 600);
    deliver(&mut it, "a/mail", 600);
    it.pass(3 * DAY);
    // A disk with room for deleting at most this many.
    let mut room = 200;
    let mut requests = Vec::new();
    for _ in 0..200 {
        let Some(request) = it.requests.front() else {
            it.pass(SECOND);
            continue;
        };
        let ops = ops_of(request).unwrap_or_default().iter();
        let limit = ops.into_iter().find_map(|op| match op {
            Op::Expire { limit, .. } => Some(*limit),
            _ => None,
        });
        requests.extend(limit);
        let is_refused = limit.is_some_and(|limit| limit > room);
        // Later it has room for none for a while, and then for all.
        room = match requests.len() {
            0..8 => 200,
            8..25 => 0,
            _ => usize::MAX,
        };
        match is_refused {
            true => it.reply(refused()),
            false => it.carry_out_next(),
        }
    }
    assert_eq!(archived(&mut it, "a/mail"), 0);
    assert_eq!(requests[..8], [1_024, 512, 256, 128, 256, 128, 256, 128]);
    // The limit never becomes 0, and grows back to its full value.
    assert!(
        requests.contains(&1) && !requests.contains(&0),
        "{requests:?}"
    );
    assert!(
        requests.iter().rev().any(|limit| *limit > 200),
        "{requests:?}"
    );
    assert!(it.engine.is_idle());
}

#[test]
fn what_the_store_has_refused_to_delete_is_decided_again() {
    let mut it = subject(1);
    deliver(&mut it, "a/mail", 10);
    let ahead = 3 * DAY.cast_signed();
    it.jump(ahead);
    it.pass(CALM);
    it.reply(refused());
    // Meanwhile the clock is corrected.
    it.set(-ahead);
    it.advance(SECOND);
    assert_eq!(archived(&mut it, "a/mail"), 10);
    assert!(it.engine.is_idle());
}

#[test]
fn a_key_is_taken_as_long_as_its_timer_is_archived() {
    let mut it = subject(2);
    let insert = |it: &mut Subject| {
        let timer = new_row(
            "a/mail".into(),
            it.engine.now().due(),
            Some(Arc::from(*b"order 17")),
            Arc::from([]),
        );
        it.engine.handle_insert(1, timer);
        it.settle();
        it.answers.pop().unwrap()
    };
    let Answer::Created(handle) = insert(&mut it) else {
        panic!("it is the first");
    };
    it.advance(1_000);
    it.end_all(&Ended::Well);
    let midnight = to_midnight(&it);
    for _ in 0..2 {
        assert_eq!(insert(&mut it), Answer::Existing(handle.clone()));
        // An archived timer can no longer be cancelled or moved.
        it.cancel(handle.clone());
        assert_eq!(it.answers.pop(), Some(Answer::NotFound));
        wait(&mut it, midnight + 2 * DAY - 1_000_000);
    }
    wait(&mut it, 1_000_000);
    assert!(matches!(insert(&mut it), Answer::Created(_)));
    assert_eq!(it.of("a").counts.duplicates, 2);
}

#[test]
fn a_dead_letter_and_a_cancelled_timer_are_not_archived() {
    let mut it = subject(9);
    it.set_policy("a", &Policy::default().retention(9).retry_delays([]));
    it.insert_many("a/mail", 3, 0);
    let handle = it.created().remove(2);
    it.cancel(handle);
    it.advance(1_000);
    let row = it.end_first(&failed());
    assert_eq!((it.dead.len(), archived(&mut it, "a/mail")), (1, 0));
    it.end_all(&Ended::Well);
    assert_eq!(archived(&mut it, "a/mail"), 1);
    // A redriven timer is archived when it ends well.
    it.engine.handle_redrive(1, row.id);
    it.settle();
    it.advance(1_000);
    it.end_all(&Ended::Well);
    assert_eq!(archived(&mut it, "a/mail"), 2);
}
