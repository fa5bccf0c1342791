//! What `cargo test` printed: the outcome of each test.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The tests of a crate by their outcome. A name is the program's, a colon, and the test's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcomes {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    pub(crate) ignored: BTreeSet<String>,
}

/// In the place of a test: the program ended before all of its tests had.
const ABORTED: &str = "(the program did not end by itself)";

impl Outcomes {
    /// Reads the report of `cargo test`. An error says what is not understood.
    pub(crate) fn read(report: &str) -> Result<Self, String> {
        let mut outcomes = Self::default();
        let mut program = "";
        let mut is_open = false;
        let mut counted = 0;
        for line in report.lines() {
            if let Some(begun) = begun(line) {
                outcomes.close(program, is_open);
                (program, is_open) = (begun, false);
            } else if line.starts_with("running ") {
                is_open = true;
            } else if let Some(sums) = line.strip_prefix("test result: ") {
                is_open = false;
                counted += sum(sums);
            } else if let Some((test, outcome)) = ended(line) {
                outcomes.add(program, test, outcome);
            }
        }
        outcomes.close(program, is_open);
        let (read, aborted) = outcomes.count();
        // The sums of a program that was aborted are not printed.
        if aborted == 0 && read != counted {
            return Err(format!(
                "cargo counted {counted} tests, and {read} were read: teach `tools/ports/src/outcome.rs` to read this report"
            ));
        }
        if read == 0 {
            return Err("no test ran".to_owned());
        }
        Ok(outcomes)
    }

    fn add(&mut self, program: &str, test: &str, outcome: &str) {
        let set = match outcome {
            "ok" => &mut self.passed,
            "FAILED" => &mut self.failed,
            _ => &mut self.ignored,
        };
        let name = format!("{program}: {test}");
        // Macros make documentation tests of one name.
        let mut numbered = name.clone();
        let mut number = 1;
        while !set.insert(numbered) {
            number += 1;
            numbered = format!("{name} #{number}");
        }
    }

    fn close(&mut self, program: &str, is_open: bool) {
        if is_open {
            self.failed.insert(format!("{program}: {ABORTED}"));
        }
    }

    /// The tests, and the programs that were aborted.
    fn count(&self) -> (usize, usize) {
        let all = self.passed.len() + self.failed.len() + self.ignored.len();
        let aborted = self.failed.iter().filter(|name| name.ends_with(ABORTED));
        let aborted = aborted.count();
        (all - aborted, aborted)
    }
}

/// The program whose tests begin in this line.
fn begun(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.starts_with("Doc-tests ") {
        return Some("doc");
    }
    let (path, _) = line.strip_prefix("Running ")?.split_once(" (")?;
    Some(path.strip_prefix("unittests ").unwrap_or(path))
}

/// The test that ends in this line, and how.
fn ended(line: &str) -> Option<(&str, &str)> {
    let (test, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    // An ignored test may say why.
    let outcome = outcome.split_once(',').map_or(outcome, |(first, _)| first);
    ["ok", "FAILED", "ignored"]
        .contains(&outcome)
        .then_some((test, outcome))
}

/// Of `ok. 7 passed; 1 failed; 2 ignored; …`: the tests that it counts.
fn sum(sums: &str) -> usize {
    let counts = sums.split([';', '.']).filter_map(|part| {
        let (count, what) = part.trim().split_once(' ')?;
        ["passed", "failed", "ignored"]
            .contains(&what)
            .then(|| count.parse::<usize>().ok())?
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "
   Compiling tower v0.5.3
    Finished `test` profile [unoptimized] target(s) in 0.62s
     Running unittests src/lib.rs (/target/debug/deps/tower-3ff9)

running 2 tests
test retry::ok ... ok
test retry::should - should panic ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/limit/main.rs (/target/debug/deps/limit-12)

running 3 tests
test rate::slow has been running for over 60 seconds
test rate::slow ... FAILED
test rate::fast ... ok
test rate::not ... ignored, no network

failures:
    rate::slow

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 61.00s

   Doc-tests tower

running 1 test
test src/lib.rs - (line 7) - compile ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn each_test_is_read_with_its_program() {
        let outcomes = Outcomes::read(REPORT).unwrap();
        let passed = [
            "src/lib.rs: retry::ok",
            "src/lib.rs: retry::should - should panic",
            "tests/limit/main.rs: rate::fast",
            "doc: src/lib.rs - (line 7) - compile",
        ];
        assert_eq!(outcomes.passed, set(&passed));
        assert_eq!(outcomes.failed, set(&["tests/limit/main.rs: rate::slow"]));
        assert_eq!(outcomes.ignored, set(&["tests/limit/main.rs: rate::not"]));
    }

    #[test]
    fn a_test_that_is_not_read_is_an_error() {
        let garbled = REPORT.replace("rate::fast ... ok", "rate::fast ... printed ok");
        let why = Outcomes::read(&garbled).unwrap_err();
        assert!(why.contains("counted 6 tests, and 5 were read"), "{why}");
        assert!(Outcomes::read("").is_err());
    }

    #[test]
    fn a_program_that_was_aborted_has_failed() {
        let (begun, _) = REPORT.split_once("test rate::not").unwrap();
        let outcomes = Outcomes::read(begun).unwrap();
        let aborted = format!("tests/limit/main.rs: {ABORTED}");
        assert!(outcomes.failed.contains(&aborted), "{outcomes:?}");
    }

    #[test]
    fn tests_of_one_name_are_counted_apart() {
        let twice =
            "running 2 tests\ntest a ... ok\ntest a ... ok\ntest result: ok. 2 passed; 0 failed";
        assert_eq!(
            Outcomes::read(twice).unwrap().passed,
            set(&[": a", ": a #2"])
        );
    }
}
