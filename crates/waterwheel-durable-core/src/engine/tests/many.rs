//! The cost of a handler among many others.

use super::*;

const HANDLERS: usize = 200;

/// An engine with `HANDLERS` handlers, with 1 000 places each.
fn subject() -> Subject {
    let mut it = Subject::new(Config::default());
    for number in 0..HANDLERS {
        it.handle(&format!("handler {number}"), 1_000);
    }
    it
}

#[test]
fn a_reply_for_one_handler_looks_at_no_other() {
    let mut it = subject();
    for number in 0..HANDLERS {
        it.insert_to(&format!("handler {number}"), 100);
    }
    it.settle();
    let now = it.later(SECOND);
    it.begin_without_turn(now);
    it.engine.take_checks();
    let requests = it.requests.len();
    it.settle();
    it.run_until(now.boot_micros);
    assert_eq!(it.delivered.len(), HANDLERS);
    // The archive and the first second were asked for, then the rows and the next second.
    assert!(requests >= 2 * HANDLERS, "{requests} requests");
    let checks = it.engine.take_checks() / HANDLERS;
    assert!(checks < 50, "{checks} looks a handler");
}

#[test]
fn what_is_ready_for_one_handler_is_delivered_without_a_look_at_the_others_each_time() {
    let mut it = subject();
    it.insert_many("handler 7", HANDLERS, 100);
    it.engine.take_checks();
    it.pass(200_000);
    assert_eq!(it.delivered.len(), HANDLERS);
    let checks = it.engine.take_checks() / HANDLERS;
    assert!(checks < 20, "{checks} looks a delivery");
}

#[test]
fn the_room_that_a_load_has_not_used_is_given_to_another_handler() {
    let mut it = Subject::new(Config {
        max_bytes_in_memory: 2 << 20,
        // A load brings less than it reserves.
        page: 8,
        ..Config::default()
    });
    for handler in ["few", "many"] {
        it.handled.push((handler.into(), 1));
    }
    it.insert_to("few", 1_900);
    it.insert_many("many", 3_000, 1_900);
    it.begin_without_turn(it.engine.now());
    // The load of the few handlers reserves memory, until none is left for the many.
    let loads = |request: &Output, name: &str| match request {
        Output::Read(_, Query::Load { handler, .. }) => **handler == *name,
        _ => false,
    };
    let mut load = None;
    while let Some(request) = it.requests.pop_front() {
        if loads(&request, "few") {
            load = Some(request);
            continue;
        }
        it.carry_out(request);
    }
    let now = it.engine.now().boot_micros;
    it.pass(0);
    assert!(it.engine.stats().held < 3_000 && it.requests.is_empty());
    assert!(it.engine.poll_timeout().unwrap() > now);
    it.carry_out(load.unwrap());
    assert_eq!(it.engine.poll_timeout(), Some(now));
    it.pass(0);
    assert!(
        it.requests.iter().any(|it| loads(it, "many")),
        "{:?}",
        it.requests
    );
}
