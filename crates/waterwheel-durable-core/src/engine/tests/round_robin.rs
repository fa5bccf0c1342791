//! Which delivery begins next when places are short.

use super::*;

/// An engine with this many places, and namespaces of these priorities with this many due timers each.
fn subject(places: usize, priorities: &[(&str, u32)], timers: usize) -> Subject {
    let mut it = Subject::with(|config| config.concurrency = Some(places));
    for (name, priority) in priorities {
        it.namespace(name, &Policy::default().priority(*priority));
        for _ in 0..timers {
            it.insert_to(&format!("{name}/mail"), 0);
        }
    }
    it.settle();
    it.created();
    it
}

fn count(rows: &[Row], namespace: &str) -> usize {
    let of = |row: &&Row| namespace_in(&row.handler) == namespace;
    rows.iter().filter(of).count()
}

#[test]
fn priorities_share_places_that_are_freed_one_at_a_time() {
    let mut it = subject(4, &[("a", 3), ("b", 1), ("c", 2)], 600);
    it.pass(SECOND);
    let mut begun = Vec::new();
    let mut rng = fastrand::Rng::with_seed(1);
    while begun.len() < 1_000 {
        assert_eq!(it.engine.stats().running, 4);
        let row = it.delivered.swap_remove(rng.usize(0..4));
        it.engine.handle_ended(row.id, Ended::Well);
        it.settle();
        begun.push(it.delivered.last().unwrap().clone());
    }
    // In any six consecutive deliveries, or any multiple of six.
    for sixes in [1, 2, 7, 100] {
        for window in begun.windows(6 * sixes) {
            let counts = ["a", "b", "c"].map(|name| count(window, name));
            assert_eq!(counts, [3 * sixes, sixes, 2 * sixes]);
        }
    }
}

#[test]
fn priorities_share_places_that_are_free_at_once() {
    for places in [1, 2, 3, 4, 6, 40, 41, 42, 43] {
        let mut it = subject(places, &[("a", 3), ("b", 1)], 100);
        it.pass(SECOND);
        let (a, b) = (count(&it.delivered, "a"), count(&it.delivered, "b"));
        assert_eq!(a + b, places);
        assert!(a.abs_diff(3 * b) <= 3, "{places} places: {a} and {b}");
    }
}

#[test]
fn what_it_could_not_begin_for_want_of_places_it_begins_first() {
    // A quantum of five is begun as three and two, or as one, three and one.
    for places in 1..5 {
        let mut it = subject(places, &[("a", 5), ("b", 1)], 100);
        it.pass(SECOND);
        let mut begun = String::new();
        for _ in 0..100 {
            let row = it.delivered.remove(0);
            begun += &row.handler[..1];
            it.engine.handle_ended(row.id, Ended::Well);
            it.settle();
        }
        let runs: Vec<_> = begun.split('b').map(str::len).collect();
        let whole = &runs[1..runs.len() - 1];
        assert_eq!(whole, vec![5; whole.len()], "{places} places");
    }
}

#[test]
fn a_priority_that_is_lowered_holds_at_once() {
    let mut it = subject(1, &[("a", 100), ("b", 1)], 200);
    it.pass(SECOND);
    let mut begun = String::new();
    let mut next = |it: &mut Subject| {
        let row = it.delivered.remove(0);
        begun += &row.handler[..1];
        it.engine.handle_ended(row.id, Ended::Well);
        it.settle();
        begun.ends_with('a')
    };
    // In the middle of a quantum of a hundred.
    while !next(&mut it) {}
    it.set_policy("a", &Policy::default().priority(1));
    for _ in 0..40 {
        next(&mut it);
    }
    assert!(
        begun.ends_with("abababab") || begun.ends_with("babababa"),
        "{begun}"
    );
    assert!(!begun.contains("aaaa"), "{begun}");
}

#[test]
fn an_idle_namespace_keeps_nothing_for_later() {
    let mut it = subject(2, &[("a", 1), ("b", 4)], 0);
    it.insert_many("a/mail", 200, 0);
    it.pass(SECOND);
    for _ in 0..100 {
        it.end_first(&Ended::Well);
    }
    // If it had kept its turns, it would now have 400 of them.
    it.insert_many("b/mail", 100, 0);
    it.pass(SECOND);
    let mut begun = Vec::new();
    for _ in 0..50 {
        it.end_first(&Ended::Well);
        begun.push(it.delivered.last().unwrap().clone());
    }
    assert_eq!(count(&begun, "a"), 10);
    for window in begun.windows(6) {
        assert!(count(window, "a") > 0);
    }
}

#[test]
fn one_that_hangs_within_its_own_limit_leaves_the_others_theirs() {
    let mut it = subject(4, &[("a", 1), ("b", 3), ("c", 1)], 300);
    it.set_policy("a", &Policy::default().concurrency(2));
    it.pass(SECOND);
    it.end_all(&Ended::Well);
    // It hangs from here on, and never has more than its two places.
    let mut others = Vec::new();
    for _ in 0..200 {
        let at = it
            .delivered
            .iter()
            .position(|row| &*row.handler != "a/mail");
        let row = it.delivered.remove(at.unwrap());
        it.engine.handle_ended(row.id, Ended::Well);
        it.settle();
        assert_eq!(it.engine.stats().running, 4);
        others.push(row);
    }
    assert_eq!(count(&it.delivered, "a"), 2);
    let (b, c) = (count(&others, "b"), count(&others, "c"));
    assert!(b.abs_diff(3 * c) <= 6, "{b} and {c}");
}

#[test]
fn a_rate_that_waits_for_a_place_asks_for_no_turn() {
    let mut it = subject(1, &[("a", 1), ("b", 1)], 0);
    it.set_policy("b", &Policy::default().rate(Rate::per_second(10).burst(1)));
    it.insert_to("b/mail", 0);
    it.insert_many("b/mail", 1, 0);
    it.pass(SECOND);
    it.end_all(&Ended::Well);
    // The second timer waits for the rate; meanwhile the only place is taken.
    it.insert_many("a/mail", 1, 0);
    it.pass(1_000);
    assert_eq!(count(&it.delivered, "a"), 1);
    it.run_until(100 * SECOND);
    it.end_all(&Ended::Well);
    assert_eq!(count(&it.delivered, "b"), 1);
}

#[test]
fn handlers_of_a_namespace_take_turns() {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().concurrency(1));
    it.handle("a/other", 1_000);
    for name in ["a/mail", "a/mail", "a/mail", "a/mail", "a/other", "a/other"] {
        it.insert_to(name, 0);
    }
    it.settle();
    it.pass(SECOND);
    let mut begun = Vec::new();
    while let Some(row) = it.delivered.pop() {
        it.engine.handle_ended(row.id, Ended::Well);
        it.settle();
        begun.push(row.handler.to_string());
    }
    assert_eq!(begun.len(), 6);
    assert_ne!(begun[0], begun[1]);
    assert_ne!(begun[2], begun[3]);
}
