//! The rooms of durable timers.

use super::house::House;
use super::imports::Import;

const HOUSE: House = House {
    sources: "durable/durable/src",
    rooms: ROOMS,
    nested: &[],
    lower: "Let the upper room hand the lower one what it needs, as a `Handler` is a closure that knows `Delivery`; or, if the arrow is right, enter it \
            in `ROOMS` of tests/house/layering/durable.rs and in ARCHITECTURE.md, \"Dependencies\".",
};

/// From the ground up.
const ROOMS: &[(&str, &[&str])] = &[
    // Values: how a namespace is served, and how long something may be.
    ("policy", &[]),
    ("limits", &[]),
    // No clock, no thread, no file.
    ("engine", &["limits", "policy"]),
    // Values.
    ("options", &[]),
    ("event", &[]),
    ("dead_letter", &[]),
    ("failure", &["engine"]),
    ("calendar", &["engine", "limits"]),
    ("error", &["engine", "calendar", "limits", "policy"]),
    ("answer", &["engine", "error"]),
    ("new_timer", &["engine", "error", "limits"]),
    // What the engine needs to run.
    ("shell", &["engine", "error", "event", "options"]),
    ("metrics", &["engine", "shell"]),
    ("publish", &["metrics"]),
    // What users have: each is a way into the shell.
    (
        "service",
        &[
            "limits",
            "engine",
            "calendar",
            "options",
            "event",
            "dead_letter",
            "failure",
            "error",
            "answer",
            "new_timer",
            "shell",
            "metrics",
            "policy",
        ],
    ),
    ("lib", &[]),
];

/// From the ground up: the folders of the crates in `durable/`, and those that each is built on. What tests are built on is not looked at.
const CRATES: &[(&str, &[&str])] = &[
    ("store", &[]),
    ("conformance", &["store"]),
    ("sqlite", &["store"]),
    ("durable", &["store", "sqlite"]),
    // It reads and changes a file, and needs no runtime.
    ("cli", &["store", "sqlite"]),
];

#[test]
fn the_crates_of_durable_timers_are_built_on_those_below() {
    for (name, below) in CRATES {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/durable");
        let page = std::path::Path::new(folder).join(name).join("Cargo.toml");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("\n[").find(|it| it.starts_with("dependencies]"));
        let lines = section.unwrap_or_default().lines();
        // Of paths that lead to another folder of `durable/`, and to nothing above it.
        let found = lines.filter_map(|line| line.split("path = \"../").nth(1)?.split('"').next());
        let mut found: Vec<_> = found.filter(|it| !it.starts_with("..")).collect();
        found.sort_unstable();
        let mut below = below.to_vec();
        below.sort_unstable();
        assert_eq!(found, below, "durable/{name}");
    }
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
