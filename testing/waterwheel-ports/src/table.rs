//! The table that the page shows.

use crate::outcome::Outcomes;
use crate::results::{Again, Compared, Port};

/// A row for each crate, and what they were built with.
pub(crate) fn table(ports: &[Port]) -> String {
    let mut text = "| crate | lines changed | imports split | tests before | after |\n".to_owned();
    text += "|---|--:|--:|---|---|\n";
    for port in ports {
        let Port {
            name,
            version,
            lines,
            imports,
            compared,
            ..
        } = port;
        let (before, after) = (before(&compared.before), after(compared));
        text += &format!("| {name} {version} | {lines} | {imports} | {before} | {after} |\n");
    }
    text + "\n" + &conditions(ports)
}

fn before(outcomes: &Outcomes) -> String {
    let mut text = format!("{} pass", outcomes.passed.len());
    let ignored = outcomes.ignored.len();
    if ignored > 0 {
        text += &format!(", {ignored} ignored");
    }
    if !outcomes.failed.is_empty() {
        let failed: Vec<_> = outcomes.failed.iter().map(|test| code(test)).collect();
        text += &format!(", {} fail: {}", failed.len(), failed.join(", "));
    }
    text
}

fn after(compared: &Compared) -> String {
    if compared.is_as_before() {
        return "as before".to_owned();
    }
    let mut differ = Vec::new();
    if let Some(program) = &compared.after.hung {
        let (program, unended) = (code(program), compared.unended().count());
        differ.push(format!(
            "{program} hangs (tests without an outcome: {unended})"
        ));
    }
    differ.extend(compared.lost().map(|test| {
        let again = compared.again.iter().find(|again| again.test == *test);
        code(test) + &again.map(alone).unwrap_or_default()
    }));
    differ.extend(compared.missing().map(|test| code(test) + ", missing"));
    format!("differ: {}", differ.join("; "))
}

fn alone(again: &Again) -> String {
    let Again {
        runs,
        before,
        after,
        ..
    } = again;
    format!(" (alone it passes {after} of {runs} times, before {before})")
}

fn code(test: &str) -> String {
    format!("`{}`", test.replace('|', "\\|"))
}

/// Each combination once: crates may have been run on several days.
fn conditions(ports: &[Port]) -> String {
    let mut found = Vec::new();
    for port in ports {
        let rustc = port.rustc.split(" (").next().unwrap_or_default();
        let these = format!("{}: tokio {}, {rustc}", port.date, port.tokio);
        if !found.contains(&these) {
            found.push(these);
        }
    }
    found.join("; ") + ".\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(passed: &[&str], failed: &[&str], ignored: &[&str]) -> Outcomes {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Outcomes {
            passed: set(passed),
            failed: set(failed),
            ignored: set(ignored),
            hung: None,
        }
    }

    fn port(before: Outcomes, after: Outcomes) -> Port {
        Port {
            name: "tower".to_owned(),
            version: "0.5.3".to_owned(),
            date: "2026-11-22".to_owned(),
            tokio: "1.54.1".to_owned(),
            rustc: "rustc 1.95.0 (x)".to_owned(),
            lines: 12,
            imports: 3,
            compared: Compared {
                before,
                after,
                again: Vec::new(),
            },
        }
    }

    #[test]
    fn a_crate_whose_tests_pass_is_as_before() {
        let all = outcomes(&["a: b", "a: c"], &[], &["a: d"]);
        let text = table(&[port(all.clone(), all)]);
        let row = "| tower 0.5.3 | 12 | 3 | 2 pass, 1 ignored | as before |\n";
        assert!(text.contains(row), "{text}");
        assert!(
            text.ends_with("\n\n2026-11-22: tokio 1.54.1, rustc 1.95.0.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_test_that_failed_before_is_named_and_not_counted() {
        let before = outcomes(&["a: b"], &["a: c"], &[]);
        for after in [before.clone(), outcomes(&["a: b", "a: c"], &[], &[])] {
            let text = table(&[port(before.clone(), after)]);
            assert!(
                text.contains("| 1 pass, 1 fail: `a: c` | as before |"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_test_that_fails_only_after_is_named_with_its_runs() {
        let mut port = port(
            outcomes(&["a: b", "a: c"], &[], &["a: d"]),
            outcomes(&["a: b"], &["a: c"], &[]),
        );
        port.compared.again = vec![Again {
            test: "a: c".to_owned(),
            runs: 3,
            before: 3,
            after: 1,
        }];
        let text = table(&[port]);
        let expected = "differ: `a: c` (alone it passes 1 of 3 times, before 3); `a: d`, missing |";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_program_that_hangs_is_named_and_not_its_tests() {
        let before = outcomes(&["a: b", "a: c", "a: d", "b: e"], &[], &["b: f"]);
        let mut after = outcomes(&["a: b"], &["a: c"], &[]);
        after.hung = Some("a".to_owned());
        let text = table(&[port(before.clone(), after)]);
        let expected = "differ: `a` hangs (tests without an outcome: 2); `a: c` |";
        assert!(text.contains(expected), "{text}");
        // After the sums of its tests.
        let mut after = before.clone();
        after.hung = Some("doc".to_owned());
        let text = table(&[port(before, after)]);
        let expected = "differ: `doc` hangs (tests without an outcome: 0) |";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_test_that_is_missing_after_is_named() {
        let before = outcomes(&["a: b", "a: c"], &[], &[]);
        let text = table(&[port(before, outcomes(&["a: b"], &[], &[]))]);
        assert!(text.contains("differ: `a: c` |"), "{text}");
    }
}
