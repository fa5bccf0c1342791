//! The contents of commits, and when the store is asked.

use super::*;

#[test]
fn replies_that_cannot_be_lost_ask_for_no_turn() {
    let mut it = Subject::with(|config| config.reply_micros = u64::MAX).handles(1);
    it.insert(86_400_000 * 365);
    assert_eq!(it.requests.len(), 1);
    assert_eq!(it.engine.poll_timeout(), None);
    it.pass(1_000 * SECOND);
    assert_eq!(it.requests.len(), 1);
}

#[test]
fn what_callers_ask_for_keeps_no_step_of_the_engine_waiting() {
    let mut it = Subject::with(|config| config.max_in_commit = 10).handles(1);
    it.insert_many("mail", 1, 0);
    it.pass(10_000);
    for _ in 0..100 {
        it.insert(1);
    }
    let id = it.delivered[0].id;
    it.engine.handle_ended(id, Ended::Well);
    it.follow();
    let first = it.next_commit();
    assert!(first.iter().all(|op| matches!(op, Op::Insert(..))));
    let second = it.next_commit();
    assert!(
        matches!(&second[0], Op::Settle(row) if row.id == id),
        "{second:?}"
    );
    assert_eq!(second.len(), 10);
}

#[test]
fn a_commit_of_large_timers_has_few_of_them() {
    // Each timer takes 64 bytes.
    let mut it = Subject::with(|config| config.max_bytes_in_commit = 130).handles(1);
    for _ in 0..8 {
        it.insert(1);
    }
    let commits: Vec<_> = (0..4).map(|_| it.next_commit().len()).collect();
    assert_eq!(commits, [1, 3, 3, 1]);
    assert_eq!(it.created().len(), 8);
}

#[test]
fn steps_of_the_engine_leave_a_half_of_each_commit_to_callers() {
    let mut it = Subject::with(|config| config.max_in_commit = 10).handles(100);
    it.insert_many("mail", 100, 0);
    it.pass(10_000);
    for row in std::mem::take(&mut it.delivered) {
        it.engine.handle_ended(row.id, Ended::Well);
    }
    for _ in 0..3 {
        it.insert(1_000_000_000);
    }
    it.follow();
    it.next_commit();
    let second = it.next_commit();
    let inserts = second.iter().filter(|op| matches!(op, Op::Insert(..)));
    assert_eq!((inserts.count(), second.len()), (3, 10));
}

#[test]
fn requests_for_one_timer_share_a_commit() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 1, 3_600_000);
    let handle = it.created().remove(0);
    for count in 0..100 {
        let due = Due::from_millis(NOW + 1_000 + count);
        it.engine.handle_reschedule(0, handle.clone(), due);
    }
    it.follow();
    assert_eq!((it.next_commit().len(), it.answers.len()), (1, 1));
    let last = Due::from_millis(NOW + 1_099);
    let second = it.next_commit();
    assert!(matches!(&second[..], [Op::Reschedule(_, due, _)] if *due == last));
    assert_eq!(it.answers, vec![Answer::Done; 100]);
    it.answers.clear();
    let mut other = handle.clone();
    other.handler = "another".into();
    for _ in 0..100 {
        it.engine.handle_cancel(0, other.clone());
    }
    for _ in 0..100 {
        it.engine.handle_cancel(0, handle.clone());
    }
    it.engine.handle_reschedule(0, handle, last);
    it.follow();
    // The last of these cancels finds the timer, so none of the following ones can.
    for (answers, done) in [(1, 0), (100, 0), (201, 1)] {
        assert_eq!(it.next_commit().len(), 1);
        assert_eq!(it.answers.len(), answers);
        let is_done = |answer: &&Answer| **answer == Answer::Done;
        assert_eq!(it.answers.iter().filter(is_done).count(), done);
    }
    it.settle();
    assert!(it.store.is_empty() && it.engine.is_idle() && it.engine.deferred.is_empty());
    assert_eq!((it.engine.stats().in_memory, it.answers.len()), (0, 201));
}

#[test]
fn a_commit_of_large_calendars_has_few_of_them() {
    let mut it = Subject::with(|config| config.max_bytes_in_commit = 1_000).handles(1_000);
    let row = |count: u64| {
        let id = Id::new(9, count).unwrap();
        Row::new(id, Due::from_millis(NOW), "mail", [7; 300])
    };
    let bucket = Bucket::of(Due::from_millis(NOW), Due::from_millis(NOW));
    for at in 0..8 {
        let both = [1, 2].map(|count| Op::Insert(row(2 * at + count), bucket));
        it.engine.link.push(Op::All(both.to_vec()));
    }
    it.engine.link.commit();
    it.follow();
    let mut sizes = Vec::new();
    while let Some(request) = it.requests.pop_front() {
        sizes.extend(ops_of(&request).map(<[Op]>::len));
        // Half of the commit is reserved for callers.
        if sizes.len() == 2 {
            it.insert(3_600_000);
        }
        it.carry_out(request);
    }
    assert_eq!(sizes[..4], [2, 2, 2, 2], "{sizes:?}");
}
