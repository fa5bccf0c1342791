//! Which inserts are refused, and for how long.

use super::*;

/// An engine with a namespace `a` with this quota, and one without a quota.
fn subject(quota: Rate) -> Subject {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().insert_rate(quota));
    it.namespace("b", &Policy::default());
    it
}

/// How long inserts into `a` are refused. Forever is represented by the longest duration.
fn waits(over: OverQuota) -> Option<Duration> {
    assert_eq!(&*over.namespace, "a");
    Some(over.retry_after.unwrap_or(Duration::MAX))
}

/// Inserts one timer. Returns how long the insert is refused.
fn insert(it: &mut Subject, handler: &str) -> Option<Duration> {
    it.insert_many(handler, 1, 1_000_000);
    match it.answers.pop() {
        Some(Answer::Quota(over)) => waits(over),
        Some(Answer::Created(_)) => None,
        other => panic!("{other:?}"),
    }
}

/// Charges a batch. Returns how long it is refused.
fn charge(it: &mut Subject, handlers: &[(&str, usize)]) -> Option<Duration> {
    let all = handlers.iter();
    let all = all.flat_map(|(name, count)| std::iter::repeat_n(*name, *count));
    match it.engine.charge(&by_namespace(all)) {
        Ok(()) => None,
        Err(Answer::Quota(over)) => waits(over),
        Err(other) => panic!("{other:?}"),
    }
}

fn wait(it: &mut Subject, duration: Duration) {
    it.advance(duration.as_micros() as u64);
}

/// Inserts the whole initial burst of a quota.
fn use_up(it: &mut Subject, quota: Rate) {
    for _ in 0..quota.at_once() {
        assert_eq!(insert(it, "a/mail"), None);
    }
}

#[test]
fn a_quota_begins_with_its_burst() {
    // The default burst is what the rate allows in a second.
    let mut it = subject(Rate::per_second(1_000));
    assert_eq!(charge(&mut it, &[("a/mail", 1_001)]), Some(Duration::MAX));
    assert_eq!(charge(&mut it, &[("a/mail", 1_000)]), None);
    let milli = Duration::from_millis(1);
    assert_eq!(charge(&mut it, &[("a/mail", 50)]), Some(50 * milli));
    // After opening, the full burst is available again, so a batch inserted at startup is accepted.
    it.start_again();
    assert_eq!(charge(&mut it, &[("a/mail", 1_000)]), None);
    assert_eq!(charge(&mut it, &[("a/mail", 1)]), Some(milli));
}

const MICRO: Duration = Duration::from_micros(1);

#[test]
fn an_insert_beyond_the_quota_may_come_after_the_time_it_is_given() {
    for quota in [
        Rate::per_second(3).burst(1),
        Rate::per_second(7).burst(4),
        Rate::per_minute(1).burst(2),
    ] {
        let mut it = subject(quota);
        use_up(&mut it, quota);
        for _ in 0..5 {
            let after = insert(&mut it, "a/mail").expect("beyond the quota");
            assert_eq!(insert(&mut it, "b/mail"), None);
            wait(&mut it, after - MICRO);
            assert_eq!(insert(&mut it, "a/mail"), Some(MICRO));
            wait(&mut it, MICRO);
            assert_eq!(insert(&mut it, "a/mail"), None);
        }
        let counts = it.of("a").counts;
        let inserted = u64::from(quota.at_once()) + 5;
        assert_eq!((counts.inserted, counts.refused_by_quota), (inserted, 10));
        // Refused inserts were not written.
        assert_eq!(it.store.len() as u64, inserted + 5);
    }
}

#[test]
fn a_batch_is_within_the_quota_or_none_of_it_is() {
    let mut it = subject(Rate::per_second(10).burst(20));
    let tenth = Duration::from_millis(100);
    assert_eq!(charge(&mut it, &[("a/mail", 15), ("b/mail", 99)]), None);
    let sixth = Some(tenth);
    assert_eq!(charge(&mut it, &[("a/mail", 6)]), sixth);
    assert_eq!(
        charge(&mut it, &[("a/mail", 3), ("b/mail", 7), ("a/x", 3)]),
        sixth
    );
    // The refused insert used up nothing.
    assert_eq!(charge(&mut it, &[("a/mail", 5)]), None);
    assert_eq!(charge(&mut it, &[("a/mail", 20)]), Some(tenth * 20));
    wait(&mut it, tenth * 20 - MICRO);
    assert_eq!(charge(&mut it, &[("a/mail", 20)]), Some(MICRO));
    wait(&mut it, MICRO);
    assert_eq!(charge(&mut it, &[("a/mail", 20)]), None);
    // This many are never available at once.
    wait(&mut it, seconds(60));
    assert_eq!(charge(&mut it, &[("a/mail", 21)]), Some(Duration::MAX));
    assert_eq!(charge(&mut it, &[("a/mail", 20)]), None);
    let unknown = by_namespace(["b/mail", "c/mail", "d/mail"].into_iter());
    let unknown = it.engine.charge(&unknown);
    assert_eq!(unknown, Err(Answer::UnknownNamespace("c".into())));
}

#[test]
fn a_batch_waits_for_the_namespace_that_takes_longest() {
    let mut it = Subject::new(Config::default());
    for (name, rate) in [
        ("a", Rate::per_second(1)),
        ("b", Rate::per_minute(1)),
        ("c", Rate::per_second(2)),
    ] {
        it.namespace(name, &Policy::default().insert_rate(rate.burst(2)));
    }
    let mut charge = |count| it.engine.charge(&["a", "b", "c"].map(|name| (name, count)));
    assert_eq!(charge(2), Ok(()));
    let over = |retry_after| {
        let namespace = "b".into();
        Err(Answer::Quota(OverQuota {
            namespace,
            retry_after,
        }))
    };
    assert_eq!(charge(1), over(Some(seconds(60))));
    // All three together are never accepted, and the first of them is named.
    let never = charge(3);
    assert!(
        matches!(&never, Err(Answer::Quota(it)) if it.retry_after.is_none() && &*it.namespace == "a"),
        "{never:?}"
    );
}

#[test]
fn a_batch_is_counted_by_its_namespaces() {
    // The engine is passed one count per namespace, however large a batch is.
    let names = (0..3_000).map(|at| ["a/mail", "x", "b/a", "a/b", "y", "default"][at % 6]);
    assert_eq!(
        by_namespace(names),
        [("a", 1_000), (DEFAULT, 1_500), ("b", 500)]
    );
    assert_eq!(by_namespace(std::iter::empty()), []);
}

#[test]
fn a_quota_that_changes_holds_at_once() {
    let mut it = subject(Rate::per_minute(1).burst(1));
    assert_eq!(insert(&mut it, "a/mail"), None);
    assert_eq!(insert(&mut it, "a/mail"), Some(seconds(60)));
    let faster = Rate::per_second(1).burst(9);
    it.set_policy("a", &Policy::default().insert_rate(faster));
    use_up(&mut it, faster);
    assert_eq!(insert(&mut it, "a/mail"), Some(seconds(1)));
    it.set_policy("a", &Policy::default());
    for _ in 0..50 {
        assert_eq!(insert(&mut it, "a/mail"), None);
    }
}
