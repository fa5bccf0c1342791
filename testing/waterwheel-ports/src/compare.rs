//! Runs the tests of both copies of a crate, and repeats tests that pass only before.

use anyhow::bail;

use crate::results::{Again, Compared};
use crate::run::Tested;

/// The number of repetitions of a test that passes only before.
const RUNS: usize = 3;

/// A program that hangs after the switch is a difference. One that hangs before it is an error, since there is nothing to compare with.
pub(crate) fn compare(before: &Tested<'_>, after: &Tested<'_>) -> anyhow::Result<Compared> {
    let mut ran_before = before.run()?;
    if let Some(program) = ran_before.hung.take() {
        let log = before.log();
        bail!(
            "{program} hangs before the switch, so there is nothing to compare with: see {} for the test, and look at its \
             line in `testing/waterwheel-ports/src/crates.rs`. To go on without this crate, name the others",
            log.display()
        );
    }
    let mut compared = Compared {
        before: ran_before,
        after: after.run()?,
        again: Vec::new(),
    };
    println!(
        "  {} tests pass before, {} after",
        compared.before.passed.len(),
        compared.after.passed.len()
    );
    if let Some(program) = &compared.after.hung {
        let log = after.log();
        println!("  hangs only after: {program}, see {}", log.display());
    }
    let lost: Vec<String> = compared.lost().cloned().collect();
    for test in lost {
        let again = run_again(test, before, after)?;
        println!(
            "  passes only before: {}; alone {} of {RUNS} times before, {} after",
            again.test, again.before, again.after
        );
        compared.again.push(again);
    }
    Ok(compared)
}

fn run_again(test: String, before: &Tested<'_>, after: &Tested<'_>) -> anyhow::Result<Again> {
    let mut again = Again {
        test,
        runs: RUNS,
        before: 0,
        after: 0,
    };
    for _ in 0..RUNS {
        again.before += usize::from(before.passes_alone(&again.test)?);
        again.after += usize::from(after.passes_alone(&again.test)?);
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use std::{env, fs, process};

    use super::*;

    const HANGS: &str = "use std::io::Write;
#[test] fn waits() { writeln!(std::io::stderr(), \"hangs here\").unwrap(); loop { std::thread::park() } }
";
    const ENDS: &str = "#[test] fn waits() {}\n";

    /// Whether a test has printed that it will never end.
    fn is_hung(_: Duration, log: &Path) -> bool {
        fs::read_to_string(log).is_ok_and(|printed| printed.contains("hangs here"))
    }

    /// Calls `found` with two packages. The first of their test programs has this one test.
    fn with_packages<T>(
        before: &str,
        after: &str,
        found: impl FnOnce(&Tested<'_>, &Tested<'_>) -> T,
    ) -> T {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("ports-compare-{}-{number}", process::id()));
        let target = folder.join("target");
        let [before, after] =
            [("before", before), ("after", after)].map(|(name, test)| package(&folder, name, test));
        let [before, after] = [&before, &after].map(|folder| Tested {
            folder,
            flags: &[],
            target: &target,
            is_hung,
        });
        let found = found(&before, &after);
        fs::remove_dir_all(&folder).unwrap();
        found
    }

    /// A package of this name. If two packages in one target folder had the same name, cargo would mistake the second for the first.
    fn package(folder: &Path, name: &str, test: &str) -> PathBuf {
        let folder = folder.join(name);
        let write = |path: &str, text: &str| fs::write(folder.join(path), text).unwrap();
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::create_dir_all(folder.join("tests")).unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n");
        write("Cargo.toml", &manifest);
        write("src/lib.rs", "#[test] fn first() {}\n");
        write("tests/a.rs", test);
        write("tests/b.rs", "#[test] fn last() {}\n");
        folder
    }

    #[test]
    fn a_program_that_hangs_only_after_is_a_difference() {
        let compared = with_packages(ENDS, HANGS, compare).unwrap();
        assert!(!compared.is_as_before());
        assert_eq!(compared.before.passed.len(), 3);
        assert_eq!(compared.after.hung.as_deref(), Some("tests/a.rs"));
        assert!(compared.after.has("src/lib.rs: first"));
        let unended: Vec<_> = compared.unended().collect();
        assert_eq!(unended, ["tests/a.rs: waits", "tests/b.rs: last"]);
        assert!(compared.again.is_empty(), "{:?}", compared.again);
    }

    #[test]
    fn a_program_that_hangs_before_is_an_error_that_names_it() {
        let error = with_packages(HANGS, ENDS, compare).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("tests/a.rs hangs before"), "{said}");
    }

    #[test]
    fn a_test_that_hangs_alone_does_not_pass() {
        let alone = |before: &Tested<'_>, after: &Tested<'_>| {
            [before, after].map(|tested| tested.passes_alone("tests/a.rs: waits").unwrap())
        };
        assert_eq!(with_packages(ENDS, HANGS, alone), [true, false]);
    }
}
