//! Checks that the recipes of `docs/recipes.md` hold when the process ends at the worst moments. The code that runs here is theirs, word for word.

mod by_key;
mod fence;
mod outbox;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

const PAGE: &str = include_str!("../../docs/recipes.md");

/// The variable with the folder in which the process works.
const FOLDER: &str = "WATERWHEEL_RECIPE";
/// The variable with what the process does before it ends.
const PART: &str = "WATERWHEEL_RECIPE_PART";

/// Runs a test of this program in a separate process, in this folder, and waits for its end.
fn run(test: &str, folder: &Path, part: &str) -> ExitStatus {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    child.env(FOLDER, folder).env(PART, part);
    child.status().unwrap()
}

/// The statement of the page that begins like this.
fn statement(begin: &str) -> &'static str {
    let at = PAGE.find(begin).expect("the page has the statement");
    let end = PAGE[at..].find(";\n").expect("it ends");
    &PAGE[at..at + end]
}

/// Adds a line to a file that outlives the process.
fn note(folder: &Path, line: &str) {
    let notes = folder.join("notes");
    let file = OpenOptions::new().append(true).create(true).open(notes);
    let mut file = file.unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn notes(folder: &Path) -> Vec<String> {
    let notes = fs::read_to_string(folder.join("notes")).unwrap_or_default();
    notes.lines().map(str::to_owned).collect()
}

/// Waits until a condition holds, and panics if it never does.
async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let waits = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), waits).await;
    waited.expect("it never is so");
}

#[test]
fn the_page_has_the_code_that_is_tested() {
    for code in [
        include_str!("relay.rs"),
        include_str!("credit.rs"),
        include_str!("paid.rs"),
    ] {
        assert!(PAGE.contains(code), "the page has other code than\n{code}");
    }
}
