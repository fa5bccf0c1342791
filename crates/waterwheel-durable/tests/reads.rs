//! What follows a read that the store cannot do?

use waterwheel_durable_core::engine::{Answer, Config, Engine, Now, Output, new_row};
use waterwheel_durable_core::store::{Due, StoreError};

fn now(boot_micros: u64) -> Now {
    Now {
        boot_micros,
        wall_micros: 1_800_000_000_000_000 + boot_micros.cast_signed(),
    }
}

/// The numbers of the requests, and whether the engine says that the store has failed.
fn outputs(engine: &mut Engine) -> (Vec<u64>, bool) {
    let (mut requests, mut has_failed) = (Vec::new(), false);
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Read(number, _) => requests.push(number),
            Output::Failed(_) => has_failed = true,
            _ => {}
        }
    }
    (requests, has_failed)
}

/// An engine that has asked where timers are.
fn engine() -> (Engine, Vec<u64>) {
    let mut engine = Engine::new(Config::default(), 1, vec!["mail".into()], now(0));
    engine.handle_time(now(0));
    let (requests, has_failed) = outputs(&mut engine);
    assert!(!requests.is_empty() && !has_failed);
    (engine, requests)
}

#[test]
fn a_refused_read_is_asked_again_a_little_later() {
    let (mut engine, requests) = engine();
    for number in &requests {
        engine.handle_reply(*number, Err(StoreError::definite("busy")));
    }
    assert_eq!(outputs(&mut engine), (Vec::new(), false));
    assert_eq!(engine.poll_timeout(), Some(200_000));
    engine.handle_time(now(200_000));
    let (again, has_failed) = outputs(&mut engine);
    assert!(again.len() == requests.len() && !has_failed);
}

#[test]
fn a_read_that_fails_is_the_end_of_the_store() {
    let (mut engine, requests) = engine();
    engine.handle_reply(requests[0], Err(StoreError::indeterminate("damage")));
    assert_eq!(outputs(&mut engine), (Vec::new(), true));
    assert!(engine.has_failed() && engine.poll_timeout().is_none());
    // Nothing more is asked, and a caller gets to know.
    engine.handle_time(now(60_000_000));
    let timer = new_row(
        "mail".into(),
        Due::from_millis(1_800_000_000_000),
        None,
        [].into(),
    );
    engine.handle_insert(7, timer);
    match engine.poll_output() {
        Some(Output::Answer(7, Answer::Failed(_))) => {}
        other => panic!("{other:?}"),
    }
    assert!(engine.poll_output().is_none());
}
