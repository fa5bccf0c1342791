//! The tables of `tests/README.md`, and of the README of durable timers' tests, name existing tests.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The words of a text that may be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '…'))
}

/// The words of the code in a folder, without comments. A macro may turn a word into a function.
fn collect_words(folder: &Path, known: &mut HashSet<String>) {
    let entries = fs::read_dir(folder).expect("a folder of this crate");
    for path in entries.map(|entry| entry.expect("an entry of it").path()) {
        if path.is_dir() {
            collect_words(&path, known);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).expect("a source of this crate");
            let lines = source.lines().map(str::trim_start);
            let code = lines.filter(|line| !line.starts_with("//"));
            known.extend(code.flat_map(words).map(str::to_owned));
        }
    }
}

/// Whether a name matches this one, parts of which may be left out: `…_at_a_shutdown`.
fn is_named(name: &str, by: &str) -> bool {
    let parts: Vec<&str> = by.split('…').collect();
    name.starts_with(parts[0])
        && name.ends_with(parts[parts.len() - 1])
        && parts.iter().all(|part| name.contains(part))
}

#[test]
fn the_tables_name_tests_that_exist() {
    let named = named_tests("tests/README.md", &["src", "tests", "crates"]);
    assert!(named > 80, "{named} names, or this test shows nothing");
}

#[test]
fn the_tables_of_durable_timers_name_tests_that_exist() {
    let folders = [
        "crates/waterwheel-durable",
        "crates/waterwheel-durable-core",
        "crates/waterwheel-durable-sqlite",
        "crates/waterwheel-cli",
        "testing/waterwheel-durable-chaos",
        "testing/waterwheel-durable-simulator",
    ];
    let named = named_tests("crates/waterwheel-durable/tests/README.md", &folders);
    assert!(named > 40, "{named} names, or this test shows nothing");
}

/// The number of tests that the tables of a page name. Each is defined in one of the folders.
fn named_tests(page: &str, folders: &[&str]) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = HashSet::new();
    for folder in folders {
        collect_words(&root.join(folder), &mut known);
    }
    let readme = fs::read_to_string(root.join(page)).expect("a page of this repository");
    let mut named = 0;
    for row in readme.lines().filter(|line| line.starts_with('|')) {
        // Text in backticks is code, not a test.
        let prose: String = row.split('`').step_by(2).collect();
        for word in words(&prose).filter(|word| word.matches('_').count() > 2) {
            let exists = known.contains(word)
                || word.contains('…') && known.iter().any(|name| is_named(name, word));
            assert!(exists, "no test is named {word}");
            named += 1;
        }
    }
    named
}
