//! Parses the output of `cargo test`: the outcome of each test.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The tests of a crate by their outcome. A name is the program's, a colon, and the test's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcomes {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    pub(crate) ignored: BTreeSet<String>,
    /// The program that was still running when the run was ended. It and later programs may have tests without an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hung: Option<String>,
}

/// Stands in for a test if the program ended before all of its tests did.
const ABORTED: &str = "(the program did not end by itself)";

impl Outcomes {
    /// Reads the report of a `cargo test` that ended. An error tells what cannot be parsed.
    pub(crate) fn read(report: &str) -> Result<Self, String> {
        let (mut outcomes, last) = Self::ended(report)?;
        outcomes.close(last);
        if outcomes.is_empty() {
            return Err("no test ran".to_owned());
        }
        Ok(outcomes)
    }

    /// Reads the report of a `cargo test` that was killed: the program that started last hung. `None` if none started.
    pub(crate) fn read_hung(report: &str) -> Result<Option<Self>, String> {
        let (mut outcomes, last) = Self::ended(report)?;
        if last.name.is_empty() {
            return Ok(None);
        }
        outcomes.hung = Some(last.name.to_owned());
        Ok(Some(outcomes))
    }

    /// Whether the test has an outcome.
    pub(crate) fn has(&self, test: &str) -> bool {
        let Self {
            passed,
            failed,
            ignored,
            ..
        } = self;
        [passed, failed, ignored]
            .iter()
            .any(|set| set.contains(test))
    }

    /// The tests that ended, and the program that started last, if it is not complete.
    fn ended(report: &str) -> Result<(Self, Program<'_>), String> {
        let mut outcomes = Self::default();
        let mut program = Program::default();
        for line in report.lines() {
            if let Some(name) = begun(line) {
                outcomes.close(program);
                program = Program {
                    name,
                    ..Program::default()
                };
            } else if line.starts_with("running ") {
                program.is_open = true;
            } else if let Some(sums) = line.strip_prefix("test result: ") {
                program.check(sum(sums))?;
                (program.is_open, program.read) = (false, 0);
            } else if let Some((test, outcome)) = ended(line) {
                outcomes.add(program.name, test, outcome);
                program.read += 1;
            }
        }
        Ok((outcomes, program))
    }

    fn add(&mut self, program: &str, test: &str, outcome: &str) {
        let set = match outcome {
            "ok" => &mut self.passed,
            "FAILED" => &mut self.failed,
            _ => &mut self.ignored,
        };
        let name = format!("{program}: {test}");
        // Macros create several documentation tests with one name.
        let mut numbered = name.clone();
        let mut number = 1;
        while !set.insert(numbered) {
            number += 1;
            numbered = format!("{name} #{number}");
        }
    }

    fn close(&mut self, program: Program<'_>) {
        if program.is_open {
            self.failed.insert(format!("{}: {ABORTED}", program.name));
        }
    }

    fn is_empty(&self) -> bool {
        self.passed.is_empty() && self.failed.is_empty() && self.ignored.is_empty()
    }
}

/// A test program whose report is being read.
#[derive(Clone, Copy, Default)]
struct Program<'a> {
    name: &'a str,
    /// Whether it has announced tests, but not printed its totals, as an aborted program never does.
    is_open: bool,
    /// The number of tests that were read since it printed totals.
    read: usize,
}

impl Program<'_> {
    /// Compares the number of tests that were read to the program's own count.
    fn check(&self, counted: usize) -> Result<(), String> {
        let Self { name, read, .. } = self;
        if *read == counted {
            return Ok(());
        }
        Err(format!(
            "{name} counted {counted} tests, and {read} were read: teach `testing/waterwheel-ports/src/outcome.rs` to read this report"
        ))
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
    // An ignored test may give a reason.
    let outcome = outcome.split_once(',').map_or(outcome, |(first, _)| first);
    ["ok", "FAILED", "ignored"]
        .contains(&outcome)
        .then_some((test, outcome))
}

/// Adds up the tests that a line such as `ok. 7 passed; 1 failed; 2 ignored; …` counts.
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
        let expected = "tests/limit/main.rs counted 3 tests, and 2 were read";
        assert!(why.contains(expected), "{why}");
        assert!(Outcomes::read("").is_err());
    }

    #[test]
    fn a_program_that_was_aborted_has_failed() {
        let slow = "tests/limit/main.rs: rate::slow";
        for (until, program, others) in [
            ("test rate::not", "tests/limit/main.rs", &[slow][..]),
            ("test retry::ok", "src/lib.rs", &[]),
        ] {
            let (begun, _) = REPORT.split_once(until).unwrap();
            let aborted = format!("{program}: {ABORTED}");
            let failed = [others, &[&*aborted]].concat();
            assert_eq!(Outcomes::read(begun).unwrap().failed, set(&failed));
        }
    }

    #[test]
    fn the_tests_of_others_are_counted_where_one_is_aborted() {
        let (before, after) = REPORT.split_once("test rate::not").unwrap();
        let (_, after) = after.split_once("\n   Doc-tests").unwrap();
        let report = format!("{before}\n   Doc-tests{after}");
        assert!(Outcomes::read(&report).is_ok());
        for (test, program) in [("retry::ok", "src/lib.rs"), ("(line 7) - compile", "doc")] {
            let garbled = report.replace(&format!("{test} ... ok"), test);
            let why = Outcomes::read(&garbled).unwrap_err();
            assert!(why.starts_with(&format!("{program} counted")), "{why}");
        }
    }

    #[test]
    fn the_program_that_began_last_is_the_one_that_hung() {
        let (begun, _) = REPORT.split_once("test rate::not").unwrap();
        let outcomes = Outcomes::read_hung(begun).unwrap().unwrap();
        assert_eq!(outcomes.hung.as_deref(), Some("tests/limit/main.rs"));
        assert_eq!(outcomes.failed, set(&["tests/limit/main.rs: rate::slow"]));
        assert!(outcomes.has("src/lib.rs: retry::ok"));
        assert!(!outcomes.has("tests/limit/main.rs: rate::not"));
        // The run ends while documentation tests are built.
        let (begun, _) = REPORT.split_once("running 1 test\n").unwrap();
        let outcomes = Outcomes::read_hung(begun).unwrap().unwrap();
        assert_eq!(outcomes.hung.as_deref(), Some("doc"));
        let building = Outcomes::read_hung("   Compiling tower v0.5.3\n");
        assert_eq!(building, Ok(None));
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
