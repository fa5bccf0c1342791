//! The rooms of the scheduler.

use super::house::House;
use super::imports::Import;

const HOUSE: House = House {
    sources: "crates/waterwheel-schedule/src",
    rooms: ROOMS,
    nested: &[],
    lower: "Let the upper room have what both know, as `Context::scheduler` stands in `scheduler`; or, if the arrow is right, enter it in `ROOMS` of \
            tests/house/layering/schedule.rs and in ARCHITECTURE.md, \"Dependencies\".",
};

/// The rooms, from the bottom up.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    // Values, with no lock and no clock behind them.
    ("policy", &[]),
    ("info", &[]),
    ("engine", &["error", "policy", "info"]),
    // The user's types: each is a way into the engine.
    ("group", &["engine"]),
    ("handle", &["error", "info", "engine"]),
    ("submit", &["error", "policy", "engine", "group", "handle"]),
    (
        "scheduler",
        &["info", "engine", "group", "handle", "submit"],
    ),
    ("lib", &[]),
    // A page, and no code.
    ("_from_java_and_netty", &[]),
];

#[test]
fn the_arrows_between_the_rooms_of_the_scheduler_point_one_way() {
    HOUSE.assert_one_way();
}

#[test]
fn the_table_of_the_schedulers_rooms_has_no_way_back() {
    HOUSE.assert_ordered();
}

#[test]
fn an_arrow_from_the_engine_to_what_users_have_is_found() {
    let mut imports = HOUSE.sources().imports();
    let arrow = imports.iter().find(|it| it.from == "handle.rs");
    let arrow = arrow.expect("a handle knows the engine").clone();
    assert!(HOUSE.wrong_arrows(&imports).is_empty());
    imports.insert(Import {
        from: arrow.to,
        to: arrow.from,
        name: "planted".to_owned(),
    });
    let wrong = HOUSE.wrong_arrows(&imports);
    assert!(
        wrong.len() == 1 && wrong[0].contains("planted"),
        "{wrong:?}"
    );
}
