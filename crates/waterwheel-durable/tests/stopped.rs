//! What does an engine wait for that has been stopped?

use waterwheel_durable_core::engine::{Config, Engine, Now, Output, new_row};
use waterwheel_durable_core::store::{Due, MemoryStore, Store};

fn now(boot_micros: u64) -> Now {
    Now {
        boot_micros,
        wall_micros: 1_800_000_000_000_000 + boot_micros.cast_signed(),
    }
}

/// Does what the engine asks of the store.
fn reply(engine: &mut Engine, store: &mut MemoryStore) {
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Commit {
                number,
                commit,
                ops,
            } => engine.handle_committed(number, store.commit(commit, &ops)),
            Output::Read(number, query) => engine.handle_reply(number, query.execute(store)),
            _ => {}
        }
    }
}

/// While a shutdown waits for a handler, timers come due that are not loaded any more. It would turn without end.
#[test]
fn a_stopped_engine_does_not_wait_for_what_it_would_load() {
    let mut store = MemoryStore::new();
    let epoch = store.begin().unwrap();
    let mut engine = Engine::new(Config::default(), epoch, Vec::new(), now(0));
    engine.add_handler(&"mail".into(), 1);
    // In a bucket of a second, and of each far level.
    for seconds in [9, 300, 20_000, 900_000] {
        let timer = new_row(
            "mail".into(),
            Due::from_millis(1_800_000_000_000 + seconds * 1_000),
            None,
            [].into(),
        );
        engine.handle_insert(1, timer);
    }
    reply(&mut engine, &mut store);
    assert_eq!(engine.poll_timeout(), Some(7_000_000));
    engine.handle_stop();
    reply(&mut engine, &mut store);
    for later in [7_000_000, 9_000_000, 1_000_000_000_000] {
        engine.handle_time(now(later));
        reply(&mut engine, &mut store);
        assert_eq!(engine.poll_timeout(), None);
    }
}
