//! The dependencies of the published crates.

use std::fs;
use std::path::Path;

/// The published crates above `waterwheel`, from the bottom up, and those of our crates that each depends on.
const CRATES: &[(&str, &[&str])] = &[
    ("waterwheel-cron", &[]),
    ("waterwheel-schedule", &["waterwheel", "waterwheel-cron"]),
    ("waterwheel-durable-core", &["waterwheel"]),
    ("waterwheel-durable-postgres", &["waterwheel-durable-core"]),
    ("waterwheel-durable-sqlite", &["waterwheel-durable-core"]),
    (
        "waterwheel-durable",
        &[
            "waterwheel",
            "waterwheel-cron",
            "waterwheel-durable-core",
            "waterwheel-durable-sqlite",
        ],
    ),
    // The command needs no service.
    (
        "waterwheel-cli",
        &[
            "waterwheel-cron",
            "waterwheel-durable-core",
            "waterwheel-durable-postgres",
            "waterwheel-durable-sqlite",
        ],
    ),
];

pub(super) fn manifest(package: &str) -> String {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/crates");
    let path = Path::new(crates).join(package).join("Cargo.toml");
    fs::read_to_string(path).unwrap()
}

/// The dependencies, except those for tests alone.
pub(super) fn dependencies(manifest: &str) -> Vec<&str> {
    let sections = manifest.split("\n[").skip(1);
    let sections =
        sections.filter(|it| it.contains("dependencies]") && !it.contains("dev-dependencies]"));
    let lines = sections.flat_map(str::lines);
    lines
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect()
}

#[test]
fn the_published_crates_are_built_on_those_below() {
    for (name, below) in CRATES {
        let manifest = manifest(name);
        let mut found = dependencies(&manifest);
        found.retain(|it| it.starts_with("waterwheel"));
        found.sort_unstable();
        assert_eq!(found, *below, "{name}");
    }
}
