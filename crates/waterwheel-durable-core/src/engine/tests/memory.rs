//! Timers that enter memory and leave it.

use super::*;

#[test]
fn a_handle_of_an_unknown_handler_leaves_nothing() {
    let mut it = Subject::new(Config::default()).handles(1);
    for count in 0..100 {
        let handle = format!("7@5@handler {count}").parse().unwrap();
        it.cancel(handle);
        assert_eq!(it.answers.pop(), Some(Answer::NotFound));
    }
    assert_eq!(
        (it.engine.memory.queues.len(), it.engine.stats().in_memory),
        (1, 0)
    );
}

#[test]
fn what_is_cancelled_leaves_the_queue_of_a_handler_that_hangs() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert_many("mail", 3, 0);
    it.pass(10_000);
    assert_eq!((it.delivered.len(), it.created().len()), (1, 3));
    for _ in 0..100 {
        it.insert_many("mail", 10, 0);
        it.pass(10_000);
        for handle in it.created() {
            it.engine.handle_cancel(0, handle);
        }
        it.settle();
        assert!(it.answers.drain(..).all(|answer| answer == Answer::Done));
        it.pass(10_000);
    }
    assert_eq!((it.delivered.len(), it.engine.stats().held), (1, 3));
    assert!(it.engine.memory.queues[0].ready.len() < 20);
    for count in 1..=3 {
        assert_eq!(it.delivered.len(), count);
        it.engine
            .handle_ended(it.delivered[count - 1].id, Ended::Well);
        it.settle();
    }
    assert!(it.store.is_empty());
}

#[test]
fn what_left_is_forgotten_though_some_load_always_goes_on() {
    let mut it = Subject::new(Config::default()).handles(1_000);
    let mut loads = VecDeque::new();
    for round in 0..50 {
        // The load for a new handler is requested before that of the previous one is answered.
        let handler: Arc<str> = format!("handler {round}").into();
        it.insert_many(&handler, 1, 0);
        it.engine.add_handler(&handler, 1, None);
        it.follow();
        loads.extend(it.requests.drain(..));
        if loads.len() > 1 {
            let load = loads.pop_front().unwrap();
            it.carry_out(load);
        }
        it.pass(10_000);
        for row in std::mem::take(&mut it.delivered) {
            it.engine.handle_ended(row.id, Ended::Well);
        }
        it.follow();
        let mut others = std::mem::take(&mut it.requests);
        while let Some(position) = others.iter().position(|it| ops_of(it).is_some()) {
            let commit = others.remove(position).unwrap();
            it.carry_out(commit);
        }
        assert!(it.engine.link.loading().is_some());
    }
    let tombstones = it.engine.memory.loaded.tombstones.len();
    assert!(tombstones < 5, "{tombstones} of 50 are kept");
}

#[test]
fn a_clock_set_back_lets_go_of_what_is_far_again() {
    let mut it = Subject::new(Config::default()).handles(0);
    // The only place is taken.
    it.insert_many("mail", 1, 0);
    it.pass(SECOND);
    assert_eq!(it.delivered.len(), 1);
    for count in 0..100 {
        it.insert(3_600_000 + count * 10);
    }
    it.settle();
    assert_eq!(it.engine.stats().held, 1);
    let hour = 3_600 * SECOND.cast_signed();
    // Half of them come up, and wait for the handler.
    for by in [hour - 500_000, -hour] {
        it.jump(by);
        let is_ahead = by > 0;
        assert_eq!(it.engine.stats().held, if is_ahead { 101 } else { 1 });
    }
    it.engine.handle_ended(it.delivered[0].id, Ended::Well);
    it.settle();
    assert_eq!(
        (it.engine.stats().held, it.engine.stats().held_bytes),
        (0, 0)
    );
    it.jump(hour + SECOND.cast_signed());
    for count in 1..=100 {
        it.advance(1_000);
        it.engine.handle_ended(it.delivered[count].id, Ended::Well);
        it.settle();
    }
    assert!(it.store.is_empty());
}

#[test]
fn backlogs_of_many_handlers_leave_another_its_places() {
    let config = Config {
        max_bytes_in_memory: 4 << 20,
        ..Config::default()
    };
    let max_bytes = config.max_bytes_in_memory;
    let mut it = Subject::new(config);
    let others: Vec<_> = (0..40).map(|count| format!("other {count}")).collect();
    for name in &others {
        it.handle(name, 1);
        for _ in 0..800 {
            it.insert_to(name, 0);
        }
    }
    it.settle();
    // Some come up in a turn, and the others in the next ones.
    for _ in 0..10 {
        it.advance(SECOND);
    }
    // Each handler has one hanging timer, and together they take all the memory.
    assert_eq!(it.delivered.len(), 40);
    it.delivered.clear();
    it.handle("mail", 64);
    it.insert_many("mail", 1_000, 0);
    it.advance(1_000);
    assert!(it.engine.stats().held_bytes <= max_bytes + 41 * ((64 << 10) + 512));
    let mut rounds = 0;
    while !it.delivered.is_empty() {
        // Apart from the rest that the last round leaves.
        rounds += 1;
        it.end_all(&Ended::Well);
        it.advance(1_000);
    }
    assert!(rounds <= 1_000_usize.div_ceil(64) + 4, "{rounds} rounds");
    assert!(it.engine.memory.queues[40].held == 0 && it.engine.has_handler("mail"));
}

/// While a shutdown waits for a handler, timers come due that are no longer loaded. The engine must not turn endlessly.
#[test]
fn a_stopped_engine_does_not_wait_for_what_it_would_load() {
    let mut it = Subject::new(Config::default()).handles(1);
    // In a bucket of a second, and of each coarser level.
    for seconds in [9, 300, 20_000, 900_000] {
        it.insert(seconds * 1_000);
    }
    it.settle();
    let next = it.later(7 * SECOND).boot_micros;
    assert_eq!(it.engine.poll_timeout(), Some(next));
    it.engine.handle_stop();
    it.settle();
    for seconds in [7, 2, 1_000_000] {
        it.advance(seconds * SECOND);
        assert_eq!(it.engine.poll_timeout(), None);
    }
}
