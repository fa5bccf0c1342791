//! Commits and reads that the store refuses.

use super::*;

#[test]
fn what_is_refused_counts_as_written_until_its_next_try() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 1, 0);
    it.pass(SECOND);
    it.engine.handle_ended(it.delivered[0].id, Ended::Well);
    it.follow();
    assert!(!it.engine.is_written() && !it.engine.is_idle());
    assert_eq!(it.engine.unsettled(), 1);
    it.engine.handle_stop();
    it.reply(refused());
    assert!(it.engine.is_written() && !it.engine.is_idle());
    assert_eq!(it.engine.unsettled(), 1);
    it.pass(SECOND);
    assert!(!it.engine.is_written());
    it.settle();
    assert!(it.engine.is_written() && it.engine.is_idle() && it.store.is_empty());
    assert_eq!(it.engine.unsettled(), 0);
}

#[test]
fn what_waits_for_a_refused_retry_is_refused() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 1, 0);
    let handle = it.created().remove(0);
    it.pass(SECOND);
    it.engine
        .handle_ended(handle.id, Ended::Failed(Arc::from("no")));
    it.follow();
    it.engine.handle_cancel(1, handle.clone());
    let later = Due::from_millis(NOW + 3_600_000);
    it.engine.handle_reschedule(2, handle.clone(), later);
    it.follow();
    assert_eq!(it.answers, []);
    it.reply(refused());
    let why = "the store refused the request, and nothing was written: the disk is full";
    let refused = Answer::Refused(why.into());
    assert_eq!(it.answers, [refused.clone(), refused]);
    // The failure is written as soon as the store accepts it, and the timer continues normally.
    it.answers.clear();
    it.advance(SECOND);
    it.cancel(handle);
    assert!(it.answers == [Answer::Done] && it.store.is_empty());
}

#[test]
fn a_reply_of_other_outcomes_is_a_failure_and_answers_all() {
    let mut it = Subject::new(Config::default());
    it.settle();
    it.insert(0);
    for _ in 0..2 {
        it.insert(1);
    }
    it.reply(Ok(Vec::new()));
    assert!(it.engine.has_failed());
    let is = |answer: &Answer| matches!(answer, Answer::Unknown(_));
    assert!(is(&it.answers[0]), "{:?}", it.answers);
    // These were never sent to the store.
    let is = |answer: &Answer| matches!(answer, Answer::Failed(_));
    assert!(it.answers[1..].iter().all(is) && it.answers.len() == 3);
}

#[test]
fn an_insert_without_space_is_answered_and_nothing_else_waits() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 1, 0);
    it.pass(SECOND);
    it.engine.handle_ended(it.delivered[0].id, Ended::Well);
    it.store.set_full(true);
    it.answers.clear();
    for full in 1..3 {
        it.answers.clear();
        it.insert_many("mail", 1, 1);
        assert_eq!(it.answers, [Answer::Full]);
        let stats = it.engine.stats();
        assert_eq!((stats.full, stats.is_full), (full, true));
    }
    assert_eq!(it.reports, ["full"]);
    assert!(it.store.is_empty() && it.engine.is_idle() && it.engine.stats().in_memory == 0);
    it.store.set_full(false);
    it.answers.clear();
    it.insert_many("mail", 1, 1);
    assert_eq!(it.created().len(), 1);
    assert!(it.reports == ["full", "not full"] && !it.engine.stats().is_full);
}

#[test]
fn a_refused_commit_is_tried_with_half_its_steps() {
    let mut it = Subject::new(Config::default()).handles(100);
    it.insert_many("mail", 100, 0);
    it.pass(10_000);
    let rows = std::mem::take(&mut it.delivered);
    assert_eq!(rows.len(), 100);
    it.engine.handle_ended(rows[0].id, Ended::Well);
    it.follow();
    for row in &rows[1..] {
        it.engine.handle_ended(row.id, Ended::Well);
    }
    it.next_commit();
    // A caller's step also gets its turn.
    it.insert(1_000_000_000);
    it.created();
    let mut first = Vec::new();
    for max in [99, 49, 24, 12, 6, 3, 1, 1, 1, 1] {
        let Some(steps) = ops_of(&it.requests[0]) else {
            panic!("{:?}", it.requests);
        };
        assert_eq!(steps.len(), max);
        first.push(steps[0].clone());
        it.reply(refused());
        it.pass(SECOND);
    }
    assert!(matches!(it.answers[..], [Answer::Refused(_)]));
    it.insert(1_000_000_000);
    for _ in 0..3 {
        it.reply(refused());
        it.pass(SECOND);
    }
    let [_, Answer::Refused(_)] = it.answers[..] else {
        panic!(
            "a caller has its turn where there is room for one: {:?}",
            it.answers
        );
    };
    let (second_last, last) = (&first[first.len() - 2], &first[first.len() - 1]);
    assert_ne!(second_last, last, "another one has its turn");
    for max in [1, 2, 4, 8] {
        assert_eq!(it.next_commit().len(), max);
    }
    it.settle();
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_cascade_that_is_refused_is_tried_with_half_its_rows() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 3_000, 3_600_000 * 24);
    it.set(3_600_000_000 * 24);
    for page in [4_096, 2_048, 1_024] {
        let Some(steps) = ops_of(&it.requests[0]) else {
            panic!("{:?}", it.requests);
        };
        assert!(matches!(steps, [Op::Cascade { limit, .. }] if limit.rows == page));
        it.reply(refused());
        it.pass(SECOND);
    }
    it.settle();
    it.pass(SECOND);
    assert_eq!((it.delivered.len(), it.engine.stats().held), (1, 3_000));
}

#[test]
fn a_store_that_refuses_is_reported_once_and_counted() {
    let mut it = Subject::new(Config::default());
    it.advance(0);
    for reports in 1..=2 {
        for count in 1..=3 {
            it.insert(0);
            it.reply(refused());
            it.pass(SECOND);
            assert_eq!(it.refusals.len(), reports, "{count}");
        }
        it.insert_many("mail", 1, 0);
    }
    assert_eq!(it.engine.stats().refusals, 6);
    assert!(it.refusals[0].contains("the disk is full"));
    // Likewise for reads.
    it.engine.add_handler(&"mail".into(), 1, None);
    it.follow();
    for _ in 0..3 {
        it.reply(refused());
        it.pass(SECOND);
    }
    assert_eq!((it.refusals.len(), it.engine.stats().refusals), (3, 9));
}

#[test]
fn a_commit_of_a_lost_store_has_written_nothing() {
    let mut it = Subject::new(Config::default());
    it.settle();
    it.insert(0);
    it.insert(1);
    it.reply(Err(StoreError::lost("node b owns it")));
    assert!(it.engine.has_failed());
    let is = |answer: &Answer| matches!(answer, Answer::Failed(why) if **why == *"node b owns it");
    assert!(it.answers.iter().all(is) && it.answers.len() == 2);
}

#[test]
fn a_lost_store_says_nothing_about_a_commit_before() {
    let mut it = Subject::new(Config::default());
    it.settle();
    it.insert(0);
    // For another request, such as a read, while the outcome of the commit is not known.
    let lost = StoreError::lost("node b owns it");
    it.engine.handle_failure(&lost);
    it.follow();
    assert!(matches!(it.answers[..], [Answer::Unknown(_)]));
}

#[test]
fn what_ends_after_the_store_has_failed_runs_no_more() {
    let mut it = Subject::new(Config::default()).handles(2);
    it.insert_many("mail", 2, 0);
    it.pass(10_000);
    assert_eq!(it.engine.stats().running, 2);
    it.insert(0);
    it.reply(Err(StoreError::indeterminate("the disk is gone")));
    assert!(it.engine.has_failed());
    for (left, row) in [1, 0].into_iter().zip(it.delivered.clone()) {
        assert!(!it.engine.handle_ended(row.id, failed()));
        let default = it.of(DEFAULT);
        assert_eq!((it.engine.stats().running, default.running), (left, left));
    }
    // Nothing is asked of the store.
    it.follow();
    assert!(it.requests.is_empty());
}

/// An engine that has asked where its timers are.
fn with_reads() -> Subject {
    let mut it = Subject::new(Config::default());
    it.engine = Engine::new(Config::default(), 1, vec!["mail".into()], it.engine.now());
    it.pass(0);
    let are_reads = it.requests.iter().all(|it| matches!(it, Output::Read(..)));
    assert!(are_reads && !it.requests.is_empty() && !it.engine.has_failed());
    it
}

#[test]
fn a_refused_read_is_asked_again_a_little_later() {
    let mut it = with_reads();
    let reads = it.requests.len();
    for _ in 0..reads {
        it.reply(Err(StoreError::definite("busy")));
    }
    assert!(it.requests.is_empty() && !it.engine.has_failed());
    let later = it.later(200_000).boot_micros;
    assert_eq!(it.engine.poll_timeout(), Some(later));
    it.pass(200_000);
    assert!(it.requests.len() == reads && !it.engine.has_failed());
}

#[test]
fn a_read_that_fails_is_the_end_of_the_store() {
    let mut it = with_reads();
    let reads = it.requests.len();
    it.reply(Err(StoreError::indeterminate("damage")));
    assert!(it.engine.has_failed() && it.engine.poll_timeout().is_none());
    // Nothing more is asked, and callers are told.
    it.pass(60 * SECOND);
    it.insert(0);
    assert!(matches!(it.answers[..], [Answer::Failed(_)]));
    assert_eq!(it.requests.len(), reads - 1);
}

#[test]
fn an_epoch_that_is_refused_begins_later_even_if_no_id_is_left() {
    let mut it = Subject::with(|config| config.ids_in_epoch = 4);
    it.settle();
    let epoch = |answer: &Answer| match answer {
        Answer::Created(handle) => handle.id.epoch(),
        _ => None,
    };
    // Until none is left, the store refuses everything.
    for _ in 0..4 {
        it.insert(0);
        it.reply(refused());
    }
    it.answers.clear();
    it.insert(0);
    assert_eq!(it.answers, [Answer::OutOfIds]);
    it.advance(SECOND);
    it.settle();
    it.answers.clear();
    it.insert(0);
    it.settle();
    let first = epoch(&it.answers[0]).unwrap();
    assert!(first > 1, "{:?}", it.answers);
    for _ in 0..40 {
        it.answers.clear();
        it.insert(0);
        it.settle();
        assert!(epoch(&it.answers[0]) >= Some(first));
    }
    assert!(epoch(&it.answers[0]) >= Some(first + 10));
}
