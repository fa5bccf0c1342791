//! The rooms of durable timers.

use super::crates::{dependencies, manifest};
use super::house::House;
use super::imports::Import;

const HOUSE: House = House {
    sources: "crates/waterwheel-durable/src",
    rooms: ROOMS,
    nested: &[],
    lower: "Let the upper room hand the lower one what it needs, as a `Handler` is a closure that knows `Delivery`; or, if the arrow is right, enter it \
            in `ROOMS` of tests/house/layering/durable.rs and in ARCHITECTURE.md, \"Dependencies\".",
};

/// The part without I/O.
const CORE: House = House {
    sources: "crates/waterwheel-durable-core/src",
    rooms: &[
        // An exported macro belongs to the root.
        ("lib", &[]),
        ("limits", &[]),
        ("policy", &[]),
        // A row has retries, and a command a policy.
        ("store", &["lib", "limits", "policy"]),
        ("engine", &["limits", "policy", "store"]),
        ("conformance", &["store"]),
    ],
    nested: &[],
    lower: "The engine knows no clock, thread or file: let the caller hand it what it needs.",
};

/// The rooms, from the bottom up.
const ROOMS: &[(&str, &[&str])] = &[
    // Values.
    ("options", &[]),
    ("event", &[]),
    ("dead_letter", &[]),
    ("failure", &[]),
    ("pending_timer", &[]),
    ("calendar", &[]),
    ("error", &["calendar"]),
    ("answer", &["error"]),
    ("new_timer", &["error"]),
    // The parts that run the engine.
    ("shell", &["error", "event", "options"]),
    ("metrics", &["shell"]),
    ("publish", &["metrics"]),
    // The user's types: each is a way into the shell.
    (
        "service",
        &[
            "calendar",
            "options",
            "event",
            "dead_letter",
            "failure",
            "error",
            "answer",
            "new_timer",
            "pending_timer",
            "shell",
            "metrics",
        ],
    ),
    ("lib", &[]),
];

#[test]
fn the_core_of_durable_timers_knows_no_runtime_and_of_waterwheel_the_wheel_alone() {
    CORE.assert_one_way();
    CORE.assert_ordered();
    let manifest = manifest("waterwheel-durable-core");
    let found = dependencies(&manifest);
    assert_eq!(
        found,
        // `fastrand` is optional, for the conformance tests.
        [
            "fastrand",
            "foldhash",
            "serde",
            "serde_json",
            "slab",
            "waterwheel"
        ]
    );
    let sources = CORE.sources();
    let mut wheels = 0;
    for (file, code) in sources.code() {
        for word in [
            "tokio",
            "std::fs",
            "std::net",
            "std::thread",
            "Instant::now",
            "SystemTime::now",
        ] {
            assert!(!code.contains(word), "{file}: {word}");
        }
        for path in code.split("waterwheel::").skip(1) {
            assert!(
                path.starts_with("wheel::"),
                "{file}: waterwheel::{path:.20}"
            );
            wheels += 1;
        }
    }
    assert!(wheels > 0, "the engine files its timers in a wheel");
}

#[test]
fn the_arrows_between_the_rooms_of_durable_timers_point_one_way() {
    HOUSE.assert_one_way();
}

#[test]
fn the_table_of_the_durable_rooms_has_no_way_back() {
    HOUSE.assert_ordered();
}

#[test]
fn an_arrow_from_the_shell_to_what_users_have_is_found() {
    let mut imports = HOUSE.sources().imports();
    let arrow = imports
        .iter()
        .find(|it| it.from == "service/durable.rs" && it.to.starts_with("shell/"));
    let arrow = arrow.expect("a service knows the shell").clone();
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
