//! Policies that are set, read and refused.

use super::*;

fn policy(it: &Subject, name: &str) -> Policy {
    it.of(name).policy.clone()
}

#[test]
fn a_policy_outlives_the_process() {
    let mut it = Subject::new(Config::default());
    let full = Policy::default().rate(Rate::per_second(5)).retention(9);
    it.namespace("a", &full);
    it.namespace("b", &Policy::default());
    it.set_policy(DEFAULT, &Policy::default().priority(7));
    it.start_again();
    assert_eq!(policy(&it, "a"), full);
    assert_eq!(policy(&it, "b"), Policy::default());
    assert_eq!(policy(&it, DEFAULT), Policy::default().priority(7));
    assert!(it.of("b").is_known);
}

#[test]
fn a_policy_that_the_store_refuses_changes_nothing() {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().priority(2));
    for (name, is_new) in [("a", false), ("c", true)] {
        let other = Policy::default().priority(9);
        it.pass(SECOND);
        it.engine.handle_policy(1, &name.into(), &other, is_new);
        it.follow();
        it.reply(refused());
        assert!(matches!(it.answers.pop(), Some(Answer::Refused(_))));
    }
    assert_eq!(policy(&it, "a"), Policy::default().priority(2));
    assert!(it.engine.namespaces().get("c").is_none());
    it.insert_to("c/mail", 0);
    assert_eq!(it.answers.pop(), Some(Answer::UnknownNamespace("c".into())));
    // It is not retried later either: the caller knows.
    it.advance(SECOND);
    assert_eq!(it.store.settings().unwrap().len(), 1);
}

#[test]
fn a_namespace_that_was_created_keeps_its_policy() {
    let mut it = Subject::new(Config::default());
    // The default namespace always exists, and the first call sets its policy.
    for name in ["a", DEFAULT] {
        for _ in 0..2 {
            for priority in [3, 4] {
                let policy = Policy::default().priority(priority);
                it.engine.handle_policy(1, &name.into(), &policy, true);
                it.settle();
                assert_eq!(it.answers.pop(), Some(Answer::Done));
            }
            assert_eq!(policy(&it, name), Policy::default().priority(3));
            it.start_again();
        }
    }
}

#[test]
fn a_policy_holds_for_what_waits() {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().concurrency(2));
    it.insert_many("a/mail", 20, 0);
    it.created();
    it.pass(SECOND);
    for (concurrency, running) in [(5, 5), (3, 5), (6, 6), (1, 6)] {
        it.set_policy("a", &Policy::default().concurrency(concurrency));
        assert_eq!(it.delivered.len(), running);
    }
    // When the limit is lowered, running deliveries continue, and none begins until a place is free.
    for left in (1..6).rev() {
        it.end_first(&Ended::Well);
        assert_eq!(it.delivered.len(), left);
    }
    for _ in 0..14 {
        it.end_first(&Ended::Well);
        assert_eq!(it.delivered.len(), 1);
    }
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty());
}

#[test]
fn a_policy_that_cannot_be_read_pauses_its_namespace() {
    for value in [
        &b""[..],
        b"{\"rate\":{\"count\":0,\"per\":{\"secs\":1,\"nanos\":0}}}",
        // A field of a newer version, which may be a limit.
        b"{\"retention\":9,\"colour\":7}",
    ] {
        let mut it = Subject::new(Config::default());
        it.namespace("a", &Policy::default().retention(9));
        it.namespace("b", &Policy::default());
        // One namespace with each of these policies is stored.
        it.insert_many("a/mail", 1, 0);
        it.pass(1_000);
        it.end_all(&Ended::Well);
        it.insert_to("a/mail", 0);
        it.insert_many("b/mail", 1, 0);
        it.created();
        let unreadable = Op::Set("namespace/a".into(), Some(value.into()));
        it.store.commit(u64::MAX, &[unreadable]).unwrap();
        it.start_again();
        assert_eq!(it.reports, ["a is unreadable"]);
        // The others continue, and nothing of this one is delivered or lost, even if it is resumed.
        it.pause("a", false);
        it.run_until(it.engine.now().boot_micros + 100 * 86_400 * SECOND);
        let rows = it.end_all(&Ended::Well);
        assert_eq!((rows.len(), &*rows[0].handler), (1, "b/mail"));
        assert!(it.of("a").is_paused());
        assert!(it.store.first_archived("a/mail").unwrap().is_some());
        // A service that creates its namespaces leaves it unchanged, until its policy is set.
        it.engine
            .handle_policy(1, &"a".into(), &Policy::default(), true);
        it.settle();
        assert!(it.of("a").is_paused());
        it.set_policy("a", &Policy::default().retention(9));
        it.advance(1_000);
        assert_eq!(it.end_all(&Ended::Well).len(), 1);
        assert!(it.store.is_empty());
    }
}
