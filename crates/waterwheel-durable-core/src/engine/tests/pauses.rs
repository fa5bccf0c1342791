//! Namespaces that are paused or drained.

use super::*;

/// An engine with two namespaces, `a` and `b`.
fn subject() -> Subject {
    let mut it = Subject::new(Config::default());
    for name in ["a", "b"] {
        it.namespace(name, &Policy::default());
    }
    it
}

/// Resumes a namespace, and reads the waiting timers again.
fn resume(it: &mut Subject, name: &str) {
    it.pause(name, false);
    it.advance(1_000);
}

fn names(rows: &[Row]) -> String {
    rows.iter().map(|row| &row.handler[..1]).collect()
}

#[test]
fn what_comes_due_in_a_pause_is_delivered_after_it() {
    let mut it = subject();
    for count in 0..10 {
        it.insert_to("a/mail", count * 100);
        it.insert_to("b/mail", count * 100);
    }
    it.settle();
    it.run_until(5 * SECOND + 450_000);
    assert_eq!(names(&it.delivered), "ababababab");
    it.pause("a", true);
    // Running deliveries continue, and later ones wait. Inserts also continue.
    it.end_all(&Ended::Well);
    it.insert_to("a/mail", 0);
    it.run_until(20 * SECOND);
    assert_eq!(names(&it.end_all(&Ended::Well)), "bbbbb");
    // It asks for no turn, however long the pause lasts.
    assert_eq!(it.engine.poll_timeout(), None);
    // It takes up no memory either.
    assert_eq!(it.engine.stats().in_memory, 0);
    resume(&mut it, "a");
    let rows = it.end_all(&Ended::Well);
    assert_eq!(names(&rows), "aaaaaa");
    assert!(rows.iter().all(|row| (row.failures, row.starts) == (0, 0)));
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_timer_is_cancelled_and_moved_in_a_pause() {
    let mut it = subject();
    it.insert_many("a/mail", 3, 0);
    let handles = it.created();
    it.pause("a", true);
    it.advance(SECOND);
    it.engine.handle_cancel(1, handles[0].clone());
    let later = Due::from_millis(NOW + 3_600_000);
    it.engine.handle_reschedule(2, handles[1].clone(), later);
    it.settle();
    assert_eq!(it.answers, [Answer::Done, Answer::Done]);
    it.answers.clear();
    resume(&mut it, "a");
    assert_eq!(it.delivered.len(), 1);
    assert_eq!(it.end_all(&Ended::Well)[0].id, handles[2].id);
    it.run_until(3_606 * SECOND);
    assert_eq!(it.end_all(&Ended::Well)[0].id, handles[1].id);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_pause_outlives_the_process_and_a_drain_does_not() {
    let mut it = subject();
    it.insert_to("a/mail", 0);
    it.insert_many("b/mail", 1, 0);
    it.pause("a", true);
    it.engine.handle_drain("b", true);
    it.pass(SECOND);
    assert_eq!(names(&it.delivered), "");
    it.start_again();
    assert!(it.of("a").is_paused());
    assert_eq!(names(&it.delivered), "b");
    resume(&mut it, "a");
    assert_eq!(names(&it.delivered), "ba");
    it.start_again();
    // Neither delivery has ended.
    assert_eq!(it.delivered.len(), 2);
}

#[test]
fn a_resume_ends_a_drain() {
    let mut it = subject();
    it.engine.handle_drain("a", true);
    it.insert_many("a/mail", 1, 0);
    it.created();
    it.pass(SECOND);
    assert_eq!(it.delivered.len(), 0);
    resume(&mut it, "a");
    assert_eq!(it.delivered.len(), 1);
}

#[test]
fn a_pause_that_is_refused_pauses_nothing() {
    let mut it = subject();
    it.insert_many("a/mail", 1, 0);
    it.created();
    it.engine.handle_pause(1, &"a".into(), true);
    it.follow();
    it.reply(refused());
    assert!(matches!(it.answers[..], [Answer::Refused(_)]));
    it.advance(SECOND);
    assert_eq!(names(&it.delivered), "a");
    assert!(!it.of("a").is_paused());
    // A refused resume does not resume anything either.
    it.answers.clear();
    it.pause("a", true);
    it.insert_many("a/mail", 1, 0);
    it.answers.clear();
    it.engine.handle_pause(1, &"a".into(), false);
    it.follow();
    it.reply(refused());
    it.pass(SECOND);
    assert!(matches!(it.answers[..], [Answer::Refused(_)]));
    assert_eq!(it.delivered.len(), 1);
    // Likewise for a resume that would end a drain.
    it.answers.clear();
    it.pass(SECOND);
    it.pause("a", false);
    it.engine.handle_drain("a", true);
    it.engine.handle_pause(1, &"a".into(), false);
    it.follow();
    it.reply(refused());
    it.pass(SECOND);
    assert!(it.of("a").is_drained);
}

#[test]
fn an_unknown_namespace_is_not_paused() {
    let mut it = subject();
    for name in ["c", "a/mail", ""] {
        it.engine.handle_pause(1, &name.into(), true);
        it.settle();
        let unknown = Answer::UnknownNamespace(name.into());
        assert_eq!(it.answers.pop(), Some(unknown));
    }
    assert_eq!(it.engine.namespaces().iter().len(), 3);
}

#[test]
fn a_paused_namespace_leaves_memory_to_the_others() {
    let config = Config {
        max_in_memory: 16,
        max_bytes_in_memory: 16 * 400,
        ..Config::default()
    };
    let mut it = Subject::new(config);
    for name in ["a", "b"] {
        it.namespace(name, &Policy::default());
    }
    let handlers: Vec<_> = (0..9).map(|count| format!("a/{count}")).collect();
    for name in &handlers {
        it.handle(name, 1_000);
    }
    for count in 0..100 {
        it.insert_to(&handlers[count % 9], 0);
        it.insert_to("b/mail", 0);
    }
    it.settle();
    for is_drained in [true, false] {
        // A drain gives up timers like a pause does.
        it.engine.handle_drain("a", is_drained);
        it.pause("a", !is_drained);
        it.settle();
    }
    let mut delivered = 0;
    while delivered < 100 {
        it.advance(1_000);
        // The other namespace can use all of the memory.
        let expected = (100 - delivered).min(6);
        assert!(it.delivered.len() >= expected, "{}", it.delivered.len());
        let rows = it.end_all(&Ended::Well);
        assert!(it.engine.stats().held <= 16 && names(&rows).bytes().all(|of| of == b'b'));
        delivered += rows.len();
    }
    resume(&mut it, "a");
    for _ in 0..100 {
        it.advance(1_000);
        it.end_all(&Ended::Well);
    }
    assert!(it.store.is_empty() && it.engine.is_idle());
}
