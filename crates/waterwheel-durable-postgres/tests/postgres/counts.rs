//! Commits store the changes of counts, which are added to the counts every so often.

use waterwheel_durable_core::store::{Op, Store};

use crate::database::{Database, insert, row};

#[test]
fn the_changes_of_counts_are_added_to_them() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    for number in 1..=1_000 {
        let mut steps = vec![insert(&row(number))];
        if number > 3 {
            let (row, error) = (row(number - 1), "refused".into());
            let at = row.due;
            let discard = Op::Discard(row.id);
            steps.extend([Op::Bury { row, at, error }, discard]);
        }
        store.commit(number, &steps).unwrap();
    }
    // Each commit has written some.
    let counted = |table: &str| -> u32 {
        let sql = format!("SELECT count(*) FROM waterwheel.{table}");
        database.sql(&sql).trim().parse().unwrap()
    };
    for table in ["pending_changes", "dead_changes"] {
        assert!(
            (1..64 * 4).contains(&counted(table)),
            "{table}: {}",
            counted(table)
        );
    }
    assert!(counted("pending_counts") <= 1 && counted("dead_counts") <= 1);
    let counts = store.counts().unwrap();
    let pending: Vec<_> = counts.pending.iter().map(|it| it.count).collect();
    assert_eq!((pending, counts.dead), (vec![3], vec![]));
}

/// Each error is a kind of its own, as with a number in its text.
#[test]
fn counts_of_errors_are_only_written_if_they_change() {
    let database = Database::new();
    database.sql(
        "INSERT INTO waterwheel.dead_counts (partition, handler, kind, count)
        SELECT 0, 1, convert_to('order ' || n, 'UTF8'), 1 FROM generate_series(1, 300000) AS n;
        INSERT INTO waterwheel.handlers VALUES (0, 1, 'mail')",
    );
    let written_by = "SELECT DISTINCT xmin FROM waterwheel.dead_counts";
    let before = database.sql(written_by);
    let mut store = database.open();
    store.begin().unwrap();
    for number in 1..=130 {
        store.commit(number, &[insert(&row(number))]).unwrap();
    }
    // None of these rows was written again.
    assert_eq!(database.sql(written_by), before);
}
