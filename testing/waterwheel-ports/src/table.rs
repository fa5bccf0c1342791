//! The table that the page shows.

use crate::outcome::Outcomes;
use crate::results::{Again, Compared, Port};

/// A row for each crate, and the versions that they were built with.
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

/// Lists each combination once: crates may have been run on several days.
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
                again: vec![Again {
                    test: "a: c".to_owned(),
                    runs: 3,
                    before: 3,
                    after: 1,
                }],
            },
        }
    }

    #[test]
    fn a_row_says_whether_all_is_as_before_and_what_differs() {
        let all = outcomes(&["a: b", "a: c"], &[], &["a: d"]);
        let fewer = outcomes(&["a: b"], &["a: c"], &[]);
        let many = outcomes(&["a: b", "a: c", "a: d", "b: e"], &[], &["b: f"]);
        let hung = |program: &str, outcomes: &Outcomes| Outcomes {
            hung: Some(program.to_owned()),
            ..outcomes.clone()
        };
        let failed_before = "| 1 pass, 1 fail: `a: c` | as before |";
        let again = "`a: c` (alone it passes 1 of 3 times, before 3)";
        for (before, after, row) in [
            (&all, all.clone(), "| 2 pass, 1 ignored | as before |"),
            // A test that failed before is named, but not counted, whatever its outcome after.
            (&fewer, fewer.clone(), failed_before),
            (&fewer, outcomes(&["a: b", "a: c"], &[], &[]), failed_before),
            // A test that fails only after, with its repetitions, and missing tests.
            (
                &all,
                fewer.clone(),
                &format!("differ: {again}; `a: d`, missing |"),
            ),
            (
                &outcomes(&["a: x"], &[], &[]),
                outcomes(&[], &[], &[]),
                "differ: `a: x` |",
            ),
            // A program that hangs is named instead of its tests. `doc` hangs after their totals.
            (
                &many,
                hung("a", &fewer),
                &format!("differ: `a` hangs (tests without an outcome: 2); {again} |"),
            ),
            (
                &many,
                hung("doc", &many),
                "differ: `doc` hangs (tests without an outcome: 0) |",
            ),
        ] {
            let text = table(&[port(before.clone(), after)]);
            assert!(
                text.contains("| tower 0.5.3 | 12 | 3 |") && text.contains(row),
                "{row} in {text}"
            );
            let ends = "\n\n2026-11-22: tokio 1.54.1, rustc 1.95.0.\n";
            assert!(text.ends_with(ends), "{text}");
        }
    }
}
