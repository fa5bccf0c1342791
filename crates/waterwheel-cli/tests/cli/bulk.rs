//! Dry runs, and the JSON of commands that change something.

use serde_json::{Value, json};
use waterwheel_durable_core::store::Extras;

use crate::support::*;

/// The lines of JSON that a command prints.
fn lines(said: &Said) -> Vec<Value> {
    let lines = said.out.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let mut steps = inserts(&rows(1_200, "close", 90 * DAY));
    let letters = (2_000..2_700).map(|it| row(it, "mail", 0));
    steps.extend(letters.flat_map(|it| dead(&it, "it said no")));
    let file = TimersFile::with(&steps);
    // The file is not written: also while a process has it open that does not respond.
    let _store = reopened(&file);
    let ids: Vec<_> = (0..10)
        .map(|it| format!("{:x}", (1_u64 << 40) + it))
        .collect();
    let said = file.well("cancel --handler close --dry-run");
    let sample = ids.join(", ");
    assert_eq!(
        said,
        format!("would cancel 1200 pending timers: {sample}, …\n")
    );
    let said = file.json("cancel --namespace default --dry-run --json");
    let expected = json!({"action": "cancel", "is_dry_run": true, "count": 1_200, "sample": ids});
    assert_eq!(said, expected);
    for (line, action) in [
        ("redrive --all --dry-run", "redrive"),
        ("discard --handler mail --dry-run", "discard"),
    ] {
        let said = file.well(line);
        let expected = format!("would {action} 700 dead letters: 100000007d0, ");
        assert!(said.starts_with(&expected), "{said}");
    }
    let said = file.well("discard --handler close --dry-run");
    assert_eq!(said, "would discard no dead letters\n");
    assert_eq!(file.counts(), (1_200, 700));
}

#[test]
fn timers_are_cancelled_by_their_tag() {
    let mut rows = rows(20, "shop/close", DAY);
    for (number, row) in rows.iter_mut().enumerate() {
        row.extras = Extras::new(Some(["order-17", "order-18"][number % 2].into()), None);
    }
    rows[4].handler = "mail".into();
    let mut steps = inserts(&rows);
    steps.push(set("namespace/shop", "{}"));
    let file = TimersFile::with(&steps);
    let shown = file.well(format!("show {}", rows[0].handle()));
    assert!(shown.contains("tag       order-17\n"), "{shown}");
    let said = file.well("cancel --namespace shop --tag order-17 --dry-run");
    assert!(
        said.starts_with("would cancel 9 pending timers: "),
        "{said}"
    );
    let said = file.well("cancel --namespace shop --tag order-17");
    let mine = rows
        .iter()
        .step_by(2)
        .filter(|it| &*it.handler == "shop/close");
    let expected: String = mine.map(|it| format!("cancelled {}\n", it.id)).collect();
    assert_eq!(said, expected);
    let said = file.cli("cancel --namespace shop --tag order-17").nothing();
    assert!(said.contains("no timer is pending"), "{said}");
    assert_eq!(file.counts(), (11, 0));
    let left = file.json("list --handler mail --json");
    assert_eq!(left["timers"][0]["tag"], "order-17");
}

#[test]
fn each_change_is_a_line_of_json() {
    let rows = rows(3, "close", DAY);
    let mut steps = inserts(&rows);
    steps.extend(dead(&row(7, "mail", 0), "it said no"));
    let file = TimersFile::with(&steps);
    let done = |action: &str, name: &str| json!({"action": action, "name": name, "is_done": true});
    let name = |number: usize| rows[number].id.to_string();
    for (line, expected) in [
        (
            format!("reschedule {} --in 5m --json", rows[0].handle()),
            vec![done("reschedule", &name(0))],
        ),
        (
            format!("run-now {} --json", rows[0].id),
            vec![done("run-now", &name(0))],
        ),
        (
            "cancel --handler close --json".to_owned(),
            vec![
                done("cancel", &name(0)),
                done("cancel", &name(1)),
                done("cancel", &name(2)),
            ],
        ),
        (
            "redrive 10000000007 --json".to_owned(),
            vec![done("redrive", "10000000007")],
        ),
        (
            "pause default --json".to_owned(),
            vec![done("pause", "default")],
        ),
        (
            "policy set default --priority 2 --json".to_owned(),
            vec![done("policy set", "default")],
        ),
    ] {
        let said = file.cli(&line);
        assert_eq!((said.code, &*said.err), (0, ""), "{line}: {said:?}");
        assert_eq!(lines(&said), expected, "{line}");
    }
    let said = file.cli(format!("cancel {} --json", rows[1].id));
    assert_eq!((said.code, &*said.err), (1, ""), "{said:?}");
    let line = &lines(&said)[0];
    assert_eq!(
        (&line["name"], &line["is_done"]),
        (&json!(name(1)), &json!(false))
    );
    let error = line["error"].as_str().unwrap();
    assert!(error.contains("no pending timer has this id"), "{error}");
}
