//! The statements of each kind of group. In all of them, `$1` is the partition.
//!
//! They are planned each time, for tables that may never have been analysed. Conditions that look redundant keep the planner from other indexes, here and in `read`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use waterwheel_durable_core::store::{Bucket, DeadCount, Due, Handle, Op, Row};

use super::group::{Group, Kind};
use crate::names::Table;
use crate::read::{ROW, SIZE, bytes, stored};
use crate::statement::Statement;

type Sql = LazyLock<String>;

/// The bucket under which a timer in a bucket is counted, as [`PendingCount::bucket_of`](waterwheel_durable_core::store::PendingCount::bucket_of)
/// says. The division rounds down.
fn counted(level: &str, bucket: &str) -> String {
    format!(
        "greatest({level}, 1::smallint), CASE WHEN {level} > 0 THEN {bucket} ELSE ({bucket} - mod(mod({bucket}, 60) + 60, 60)) / 60 END"
    )
}

/// Conditions on rows that are found by their ids. The planner would multiply the selectivities of these conditions, expect a single row of the table, and
/// compare each row with each id; it does not look into a `CASE`.
fn only_if(conditions: &str) -> String {
    format!("CASE WHEN {conditions} THEN true ELSE false END")
}

/// Timers in seconds, given by `id`, `second` and `handler`.
static IN_SECONDS: Sql = Sql::new(|| {
    let place = only_if(
        "it.partition = $1 AND it.level = 0 AND it.bucket = given.second AND it.handler = given.handler",
    );
    format!("it.id = given.id AND {place}")
});

/// Timers in any bucket, given by `id` and `handler`.
static ANYWHERE: Sql = Sql::new(|| {
    let place = only_if("it.partition = $1 AND it.handler = given.handler");
    format!("it.id = given.id AND {place}")
});

/// Counts the timers in a CTE, which has `handler`, `level` and `bucket`.
fn count(cte: &str, sign: &str) -> String {
    let place = counted("level", "bucket");
    format!(
        "INSERT INTO waterwheel.pending_changes (partition, handler, level, bucket, count)
        SELECT $1, handler, {place}, {sign}count(*) FROM {cte} GROUP BY 2, 3, 4"
    )
}

/// Counts dead letters in a CTE, which has `handler` and `kind`.
fn count_dead(cte: &str, sign: &str) -> String {
    format!(
        "INSERT INTO waterwheel.dead_changes (partition, handler, kind, count)
        SELECT $1, handler, kind, {sign}count(*) FROM {cte} GROUP BY handler, kind"
    )
}

/// Counts the timers that were moved, from the CTE `moved (handler, old_level, old_bucket, level, bucket)`.
static COUNT_MOVED: Sql = Sql::new(|| {
    let (from, to) = (
        counted("old_level", "old_bucket"),
        counted("level", "bucket"),
    );
    format!(
        "INSERT INTO waterwheel.pending_changes (partition, handler, level, bucket, count)
        SELECT $1, handler, level, bucket, sum(change) FROM (
            SELECT handler, {from}, -1 FROM moved UNION ALL SELECT handler, {to}, 1 FROM moved
        ) AS changes (handler, level, bucket, change) GROUP BY 2, 3, 4 HAVING sum(change) <> 0"
    )
});

/// Deletes the keys of timers that have left, from the CTE `gone (handler, key, id)`.
const FREE_KEYS: &str = "
    DELETE FROM waterwheel.keys it USING gone
    WHERE it.partition = $1 AND it.handler = gone.handler AND it.name = waterwheel.key_name(gone.key) AND it.id = gone.id";

const INSERT_KEYS: &str = "
    INSERT INTO waterwheel.keys (partition, handler, name, id, first_due)
    SELECT $1, handler, waterwheel.key_name(key), id, first_due
    FROM unnest($2::integer[], $3::bytea[], $4::bigint[], $5::bigint[]) AS given (handler, key, id, first_due)";

/// `LATERAL` with a limit is a lookup for each key, whatever the planner expects.
const HOLDERS: &str = "
    SELECT given.number, it.id, it.first_due
    FROM unnest($2::integer[], $3::bytea[]) WITH ORDINALITY AS given (handler, key, number)
    CROSS JOIN LATERAL (
        SELECT id, first_due FROM waterwheel.keys
        WHERE partition = $1 AND handler = given.handler AND name = waterwheel.key_name(given.key) LIMIT 1
    ) AS it";

/// Deletes timers that are in seconds, and returns other columns that are given.
fn delete_seconds(types: &str, given: &str, returning: &str) -> String {
    let in_seconds = &*IN_SECONDS;
    format!(
        "DELETE FROM waterwheel.timers it
        USING unnest($2::bigint[], $3::bigint[], $4::integer[]{types}) WITH ORDINALITY AS given (id, second, handler{given}, number)
        WHERE {in_seconds}
        RETURNING it.handler, it.level, it.bucket, it.id, it.key{returning}"
    )
}

static SETTLE: Sql = Sql::new(|| {
    let (gone, count) = (delete_seconds("", "", ""), count("gone", "-"));
    format!("WITH gone AS ({gone}) {count}")
});

static SETTLE_KEYED: Sql = Sql::new(|| {
    let (gone, count) = (delete_seconds("", "", ""), count("gone", "-"));
    format!("WITH gone AS ({gone}), freed AS ({FREE_KEYS}) {count}")
});

static ARCHIVE: Sql = Sql::new(|| {
    let returning = ", it.due, it.failures, given.at, given.day, given.number";
    let gone = delete_seconds(", $5::bigint[], $6::bigint[]", ", at, day", returning);
    let count = count("gone", "-");
    format!(
        "WITH gone AS ({gone}), counted AS ({count})
        INSERT INTO waterwheel.archive (partition, handler, day, block, index, id, due, at, failures, key)
        SELECT $1, gone.handler, gone.day, blocks.next,
            row_number() OVER (PARTITION BY gone.handler, gone.day ORDER BY gone.number),
            gone.id, gone.due, gone.at, gone.failures, gone.key
        FROM gone JOIN (
            SELECT handler, day, coalesce((
                SELECT max(block) FROM waterwheel.archive it
                WHERE it.partition = $1 AND it.handler = given.handler AND it.day = given.day
            ) + 1, 0) AS next FROM unnest($7::integer[], $8::bigint[]) AS given (handler, day)
        ) blocks ON blocks.handler = gone.handler AND blocks.day = gone.day"
    )
});

static START: Sql = Sql::new(|| {
    let in_seconds = &*IN_SECONDS;
    format!(
        "UPDATE waterwheel.timers it SET starts = given.starts
        FROM unnest($2::bigint[], $3::bigint[], $4::integer[], $5::bigint[]) AS given (id, second, handler, starts)
        WHERE {in_seconds}"
    )
});

static MOVE: Sql = Sql::new(|| {
    let (in_seconds, count) = (&*IN_SECONDS, &*COUNT_MOVED);
    format!(
        "WITH moved AS (
            UPDATE waterwheel.timers it SET due = given.due, level = given.level, bucket = given.bucket, starts = 0,
                failures = least(it.failures + given.failed, 4294967295)
            FROM unnest($2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::smallint[], $7::bigint[], $8::integer[])
                AS given (id, second, handler, due, level, bucket, failed)
            WHERE {in_seconds}
            RETURNING it.handler, 0::smallint AS old_level, given.second AS old_bucket, it.level, it.bucket
        ) {count}"
    )
});

static CANCEL: Sql = Sql::new(|| {
    let (anywhere, count) = (&*ANYWHERE, count("gone", "-"));
    format!(
        "WITH gone AS (
            DELETE FROM waterwheel.timers it USING unnest($2::bigint[], $3::integer[]) AS given (id, handler)
            WHERE {anywhere}
            RETURNING it.handler, it.level, it.bucket, it.id, it.key
        ), freed AS ({FREE_KEYS}), counted AS ({count}) SELECT id FROM gone"
    )
});

static RESCHEDULE: Sql = Sql::new(|| {
    let (anywhere, count) = (&*ANYWHERE, &*COUNT_MOVED);
    format!(
        "WITH old AS (
            SELECT it.id, it.level AS old_level, it.bucket AS old_bucket, given.due, given.level, given.bucket
            FROM unnest($2::bigint[], $3::integer[], $4::bigint[], $5::smallint[], $6::bigint[])
                AS given (id, handler, due, level, bucket)
            JOIN waterwheel.timers it ON {anywhere}
        ), moved AS (
            UPDATE waterwheel.timers it SET due = old.due, level = old.level, bucket = old.bucket, starts = 0
            FROM old WHERE it.id = old.id
            RETURNING it.*, old.old_level, old.old_bucket
        ), counted AS ({count}) SELECT {ROW} FROM moved"
    )
});

static BURY: Sql = Sql::new(|| {
    let returning = ", it.due, it.first_due, it.starts, it.failures, it.tag, it.retries, it.payload, given.at, given.error, given.kind";
    let types = ", $5::bigint[], $6::bytea[], $7::bytea[]";
    let gone = delete_seconds(types, ", at, error, kind", returning);
    let (count, count_dead) = (count("gone", "-"), count_dead("gone", ""));
    let columns = "id, due, first_due, starts, failures, at, handler, key, tag, retries, payload, error, kind";
    format!(
        "WITH gone AS ({gone}), freed AS ({FREE_KEYS}), counted AS ({count}), buried AS ({count_dead})
        INSERT INTO waterwheel.dead (partition, {columns}) SELECT $1, {columns} FROM gone"
    )
});

static REDRIVE: Sql = Sql::new(|| {
    let (count, count_dead) = (count("back", ""), count_dead("back", "-"));
    let columns = "id, due, first_due, handler, level, bucket, tag, retries, payload";
    format!(
        "WITH back AS (
            DELETE FROM waterwheel.dead it
            USING unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[]) AS given (id, due, level, bucket)
            WHERE it.id = given.id AND it.partition = $1
            RETURNING it.id, given.due, it.first_due, it.handler, given.level, given.bucket, it.tag, it.retries, it.payload, it.kind
        ), uncounted AS ({count_dead}), counted AS ({count}), placed AS (
            INSERT INTO waterwheel.timers (partition, {columns}) SELECT $1, {columns} FROM back RETURNING *
        ) SELECT {ROW} FROM placed"
    )
});

static DISCARD: Sql = Sql::new(|| {
    let count = count_dead("gone", "-");
    format!(
        "WITH gone AS (
            DELETE FROM waterwheel.dead WHERE id = ANY ($2) AND partition = $1 RETURNING id, handler, kind
        ), uncounted AS ({count}) SELECT id FROM gone"
    )
});

static ERASE: Sql = Sql::new(|| {
    let place = only_if("it.partition = $1 AND it.handler = $2");
    let count = count_dead("gone", "-");
    format!(
        "WITH gone AS (
            DELETE FROM waterwheel.dead
            WHERE partition = $1 AND handler = $2 AND key IS NOT NULL AND waterwheel.key_name(key) = waterwheel.key_name($3)
            RETURNING handler, kind
        ), uncounted AS ({count}), erased AS (
            UPDATE waterwheel.archive it SET key = NULL
            WHERE it.key IS NOT NULL AND {place} AND it.id = (
                SELECT id FROM waterwheel.keys WHERE partition = $1 AND handler = $2 AND name = waterwheel.key_name($3)
            ) RETURNING it.id
        ), freed AS (
            DELETE FROM waterwheel.keys it USING erased
            WHERE it.partition = $1 AND it.handler = $2 AND it.name = waterwheel.key_name($3) AND it.id = erased.id
        ) SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM erased)"
    )
});

static EXPIRE: Sql = Sql::new(|| {
    format!(
        "WITH gone AS (
            DELETE FROM waterwheel.archive WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM waterwheel.archive WHERE partition = $1 AND handler = $2 AND day < $3
                ORDER BY day, block, index LIMIT $4
            )) RETURNING handler, key, id
        ) {FREE_KEYS}"
    )
});

const HAS_EXPIRED: &str = "
    SELECT NOT EXISTS (SELECT FROM waterwheel.archive WHERE partition = $1 AND handler = $2 AND day < $3)";

static FIRST_OF_BUCKET: Sql = Sql::new(|| {
    format!(
        "SELECT id, due, handler, {SIZE} FROM waterwheel.timers
        WHERE partition = $1 AND level > 0 AND level = $2 AND bucket >= $3 AND bucket < $3 + 1 ORDER BY bucket, id LIMIT $4"
    )
});

static CASCADE: Sql = Sql::new(|| {
    let place = only_if("it.partition = $1");
    format!(
        "UPDATE waterwheel.timers it SET level = given.level, bucket = given.bucket
        FROM unnest($2::bigint[], $3::smallint[], $4::bigint[]) AS given (id, level, bucket)
        WHERE it.id = given.id AND {place}"
    )
});

const SET: &str = "
    INSERT INTO waterwheel.settings (partition, name, value)
    SELECT $1, * FROM unnest($2::text[], $3::bytea[])
    ON CONFLICT (partition, name) DO UPDATE SET value = excluded.value";

const UNSET: &str = "DELETE FROM waterwheel.settings WHERE partition = $1 AND name = ANY ($2)";

const LAST_EPOCH: &str = "
    SELECT greatest(epoch, $2), epoch_timeline, waterwheel.timeline() FROM waterwheel.partitions WHERE partition = $1";

const SET_EPOCH: &str = "
    UPDATE waterwheel.partitions SET epoch = $2, epoch_timeline = $3 WHERE partition = $1";

const SUM_UP_PENDING: &str = "
    WITH changes AS (
        DELETE FROM waterwheel.pending_changes WHERE partition = $1 RETURNING handler, level, bucket, count
    )
    INSERT INTO waterwheel.pending_counts AS it (partition, handler, level, bucket, count)
    SELECT $1, handler, level, bucket, sum(count) FROM changes GROUP BY handler, level, bucket HAVING sum(count) <> 0
    ON CONFLICT (partition, handler, level, bucket) DO UPDATE SET count = it.count + excluded.count";

const SUM_UP_DEAD: &str = "
    WITH changes AS (
        DELETE FROM waterwheel.dead_changes WHERE partition = $1 RETURNING handler, kind, count
    )
    INSERT INTO waterwheel.dead_counts AS it (partition, handler, kind, count)
    SELECT $1, handler, kind, sum(count) FROM changes GROUP BY handler, kind HAVING sum(count) <> 0
    ON CONFLICT (partition, handler, kind) DO UPDATE SET count = it.count + excluded.count";

const HAND_OVER: &str = "
    INSERT INTO waterwheel.attempts (id, partition, node)
    SELECT it.id, $1, partitions.node FROM unnest($2::bigint[]) AS it(id), waterwheel.partitions WHERE partitions.partition = $1
    ON CONFLICT (id) DO UPDATE SET node = excluded.node, ended = NULL";

const GIVE_BACK: &str =
    "UPDATE waterwheel.partitions SET node = NULL, seen = now() WHERE partition = $1";

const DELETE_ENDS: &str = "DELETE FROM waterwheel.attempts WHERE partition = $1 AND id = ANY ($2)";

const DELETE_ZEROS: [&str; 2] = [
    "DELETE FROM waterwheel.pending_counts WHERE partition = $1 AND count = 0",
    "DELETE FROM waterwheel.dead_counts WHERE partition = $1 AND count = 0",
];

impl<'a> Group<'a> {
    /// The statements, to be sent together.
    pub(super) fn statements(&self, partition: u8, names: &Table) -> Vec<Statement<'a>> {
        let new = |sql: &'static str| Statement::new(sql).small(partition);
        let number = |handle: &Handle| names.number(&handle.handler);
        match self.kind {
            Kind::Insert | Kind::InsertUnlessTaken => self.insert(partition, names),
            Kind::Refuse => vec![self.holders(partition, names)],
            Kind::Settle => {
                let is_keyed = self.rows().any(|row| row.key.is_some());
                let sql = if is_keyed { &SETTLE_KEYED } else { &SETTLE };
                vec![self.seconds(new(sql), names)]
            }
            Kind::Archive => {
                let places = self.each(|op| match op {
                    Op::Archive(row, at) => Some((names.number(&row.handler), at.day())),
                    _ => None,
                });
                let places: BTreeSet<_> = places.collect();
                let ats = self.ats();
                let days = ats.iter().map(|at| at.day()).collect();
                let statement = self
                    .seconds(new(&ARCHIVE), names)
                    .bigs(millis(ats))
                    .bigs(days);
                let statement = statement.ints(places.iter().map(|(number, _)| *number).collect());
                vec![statement.bigs(places.iter().map(|(_, day)| *day).collect())]
            }
            Kind::Start => {
                let starts = self.rows().map(|row| starts(row).saturating_add(1));
                vec![self.seconds(new(&START), names).bigs(starts.collect())]
            }
            Kind::Move => {
                let (dues, levels, buckets) = self.moves();
                let failed = self.each(|op| Some(matches!(op, Op::Retry(..)).into()));
                let statement = self.seconds(new(&MOVE), names).bigs(dues).smalls(levels);
                vec![statement.bigs(buckets).ints(failed.collect())]
            }
            Kind::Cancel => {
                let numbers = self.handles().map(number).collect();
                vec![new(&CANCEL).bigs(self.ids()).ints(numbers)]
            }
            Kind::Reschedule => {
                let numbers = self.handles().map(number).collect();
                let (dues, levels, buckets) = self.moves();
                let statement = new(&RESCHEDULE).bigs(self.ids()).ints(numbers);
                vec![statement.bigs(dues).smalls(levels).bigs(buckets)]
            }
            Kind::Bury => {
                let errors = || {
                    self.each(|op| match op {
                        Op::Bury { error, .. } => Some(error),
                        _ => None,
                    })
                };
                let statement = self.seconds(new(&BURY), names).bigs(millis(self.ats()));
                let statement = statement.blobs(errors().map(|it| Some(it.as_bytes())).collect());
                let kinds = errors().map(|it| Some(DeadCount::kind(it).as_bytes()));
                vec![statement.blobs(kinds.collect())]
            }
            Kind::Redrive => {
                let (dues, levels, buckets) = self.moves();
                let statement = new(&REDRIVE).bigs(self.ids()).bigs(dues);
                vec![statement.smalls(levels).bigs(buckets)]
            }
            Kind::Discard => vec![new(&DISCARD).bigs(self.ids())],
            Kind::Set => {
                let settings = || {
                    self.each(|op| match op {
                        Op::Set(name, value) => Some((&**name, value.as_deref())),
                        _ => None,
                    })
                };
                let statement = new(SET).texts(settings().map(|(name, _)| Some(name)).collect());
                vec![statement.blobs(settings().map(|(_, value)| value).collect())]
            }
            Kind::Unset => {
                let names = self.each(|op| match op {
                    Op::Set(name, _) => Some(Some(&**name)),
                    _ => None,
                });
                vec![new(UNSET).texts(names.collect())]
            }
            Kind::Erase | Kind::Expire | Kind::Cascade | Kind::NextEpoch | Kind::HandOver => {
                let all = self.each(Some);
                all.flat_map(|op| alone(op, partition, names)).collect()
            }
            Kind::Nothing => Vec::new(),
        }
    }

    fn insert(&self, partition: u8, names: &Table) -> Vec<Statement<'a>> {
        let keyed: Vec<&Row> = self.rows().filter(|row| row.key.is_some()).collect();
        let looks = self.kind == Kind::InsertUnlessTaken;
        let mut statements = Vec::new();
        if !keyed.is_empty() {
            let sql = match looks {
                true => format!("{INSERT_KEYS} ON CONFLICT (partition, handler, name) DO NOTHING")
                    .into(),
                false => INSERT_KEYS.into(),
            };
            let keys = Statement {
                sql,
                parameters: Vec::new(),
            }
            .small(partition);
            let keys = keys.ints(keyed.iter().map(|row| names.number(&row.handler)).collect());
            let keys = keys.blobs(keyed.iter().map(|row| row.key.as_deref()).collect());
            let keys = keys.bigs(keyed.iter().map(|row| stored(row.id)).collect());
            let first_due = keyed.iter().map(|row| row.first_due.as_millis());
            statements.push(keys.bigs(first_due.collect()));
        }
        if looks {
            statements.push(self.holders(partition, names));
        }
        statements.push(self.insert_rows(partition, names));
        statements
    }

    /// Selects the timers that have the keys of inserts.
    fn holders(&self, partition: u8, names: &Table) -> Statement<'a> {
        let select = Statement::new(HOLDERS).small(partition);
        let select = select.ints(self.rows().map(|row| names.number(&row.handler)).collect());
        select.blobs(self.rows().map(|row| row.key.as_deref()).collect())
    }

    /// Inserts rows. Columns that have no other than their default value are left out.
    fn insert_rows(&self, partition: u8, names: &Table) -> Statement<'a> {
        let rows = || self.rows();
        let mut insert = Statement::new("").small(partition);
        insert = insert.bigs(rows().map(|row| stored(row.id)).collect());
        insert = insert.smalls(
            self.inserted()
                .map(|(_, it)| it.level.number().into())
                .collect(),
        );
        insert = insert.bigs(self.inserted().map(|(_, it)| it.number).collect());
        insert = insert.ints(rows().map(|row| names.number(&row.handler)).collect());
        insert = insert.bigs(rows().map(|row| row.due.as_millis()).collect());
        insert = insert.blobs(rows().map(|row| Some(&*row.payload)).collect());
        let mut columns = vec!["id", "level", "bucket", "handler", "due", "payload"];
        if rows().any(Row::has_moved) {
            columns.push("first_due");
            insert = insert.bigs(rows().map(|row| row.first_due.as_millis()).collect());
        }
        if rows().any(|row| row.failures > 0) {
            columns.push("failures");
            insert = insert.bigs(rows().map(|row| row.failures.into()).collect());
        }
        if rows().any(|row| row.starts > 0) {
            columns.push("starts");
            insert = insert.bigs(rows().map(starts).collect());
        }
        if rows().any(|row| row.key.is_some()) {
            columns.push("key");
            insert = insert.blobs(rows().map(|row| row.key.as_deref()).collect());
        }
        if rows().any(|row| row.extras.is_some()) {
            columns.extend(["tag", "retries"]);
            insert = insert.texts(rows().map(Row::tag).collect());
            let retries = |row: &'a Row| row.extras.as_ref()?.retries.as_deref();
            insert = insert.blobs(rows().map(retries).collect());
        }
        insert.sql = self.insert_sql(&columns, &insert).into();
        insert
    }

    fn insert_sql(&self, columns: &[&str], insert: &Statement<'_>) -> String {
        let arrays: Vec<_> = insert
            .parameters
            .iter()
            .enumerate()
            .skip(1)
            .map(|(at, (_, of))| {
                // The type of an array begins with an underscore.
                format!("${}::{}[]", at + 1, of.name().trim_start_matches('_'))
            })
            .collect();
        let has = |column| columns.contains(&column);
        let (has_first_due, has_key) = (has("first_due"), has("key"));
        let (arrays, columns) = (arrays.join(", "), columns.join(", "));
        let (and_first_due, first_due) = match has_first_due {
            true => ("", ""),
            false => (", first_due", ", due"),
        };
        let sql = format!(
            "INSERT INTO waterwheel.timers (partition, {columns}{and_first_due})
            SELECT $1, {columns}{first_due} FROM unnest({arrays}) AS given ({columns})"
        );
        if self.kind == Kind::Insert {
            return sql;
        }
        let is_free = match has_key {
            true => "WHERE key IS NULL OR given.id = (
                SELECT it.id FROM waterwheel.keys it
                WHERE it.partition = $1 AND it.handler = given.handler AND it.name = waterwheel.key_name(given.key)
            )",
            false => "",
        };
        let count = count("placed", "");
        format!(
            "WITH placed AS ({sql} {is_free} ON CONFLICT (id) DO NOTHING RETURNING handler, level, bucket) {count}"
        )
    }

    /// Values of all steps.
    fn each<T>(&self, value: impl Fn(&'a Op) -> Option<T>) -> impl Iterator<Item = T> {
        self.steps.iter().filter_map(move |(_, op)| value(op))
    }

    /// The rows that are passed by value.
    fn rows(&self) -> impl Iterator<Item = &'a Row> {
        self.each(|op| match op {
            Op::Insert(row, _)
            | Op::Settle(row)
            | Op::Archive(row, _)
            | Op::Start(row)
            | Op::Retry(row, ..)
            | Op::Snooze(row, ..)
            | Op::Bury { row, .. } => Some(row),
            _ => None,
        })
    }

    fn handles(&self) -> impl Iterator<Item = &'a Handle> {
        self.each(|op| match op {
            Op::Cancel(handle) | Op::Reschedule(handle, ..) => Some(handle),
            _ => None,
        })
    }

    fn ids(&self) -> Vec<i64> {
        let ids = self.each(|op| match op {
            Op::Cancel(handle) | Op::Reschedule(handle, ..) => Some(stored(handle.id)),
            Op::Redrive(id, ..) | Op::Discard(id) => Some(stored(*id)),
            _ => None,
        });
        ids.collect()
    }

    /// Adds the ids, the seconds and the handlers of rows.
    fn seconds(&self, statement: Statement<'a>, names: &Table) -> Statement<'a> {
        let statement = statement.bigs(self.rows().map(|row| stored(row.id)).collect());
        let statement = statement.bigs(self.rows().map(|row| row.due.second()).collect());
        statement.ints(self.rows().map(|row| names.number(&row.handler)).collect())
    }

    /// When the steps are carried out.
    fn ats(&self) -> Vec<Due> {
        let ats = self.each(|op| match op {
            Op::Archive(_, at) | Op::Bury { at, .. } => Some(*at),
            _ => None,
        });
        ats.collect()
    }

    /// The due times, levels and buckets to which timers move.
    fn moves(&self) -> (Vec<i64>, Vec<i16>, Vec<i64>) {
        let moves = || {
            self.each(|op| match op {
                Op::Retry(_, due, bucket)
                | Op::Snooze(_, due, bucket)
                | Op::Reschedule(_, due, bucket)
                | Op::Redrive(_, due, bucket) => Some((due.as_millis(), *bucket)),
                _ => None,
            })
        };
        (
            moves().map(|(due, _)| due).collect(),
            moves().map(|(_, it)| it.level.number().into()).collect(),
            moves().map(|(_, it)| it.number).collect(),
        )
    }
}

fn alone<'a>(op: &'a Op, partition: u8, names: &Table) -> Vec<Statement<'a>> {
    let new = |sql: &'static str| Statement::new(sql).small(partition);
    match op {
        Op::Erase { handler, key } => {
            vec![new(&ERASE).int(names.number(handler)).bytes(key)]
        }
        Op::Expire {
            handler,
            before,
            limit,
        } => {
            let number = names.number(handler);
            let expire = new(&EXPIRE).int(number).big(*before).big(bytes(*limit));
            vec![expire, new(HAS_EXPIRED).int(number).big(*before)]
        }
        Op::Cascade { bucket, limit, .. } => {
            // One more shows whether the bucket is empty afterwards.
            let rows = bytes(limit.rows.saturating_add(1));
            let select = new(&FIRST_OF_BUCKET).small(bucket.level.number());
            vec![select.big(bucket.number).big(rows)]
        }
        Op::NextEpoch(after) => vec![new(LAST_EPOCH).big(after.cast_signed())],
        Op::HandOver(ids) => {
            let ids = ids.iter().map(|id| stored(*id)).collect();
            vec![new(HAND_OVER).bigs(ids), new(GIVE_BACK)]
        }
        _ => Vec::new(),
    }
}

/// Deletes the ends of deliveries that were handed over, since they are applied.
pub(super) fn delete_ends<'a>(partition: u8, ids: Vec<i64>) -> Statement<'a> {
    Statement::new(DELETE_ENDS).small(partition).bigs(ids)
}

/// Adds the changes of the counts to the counts.
pub(super) fn sum_up<'a>(partition: u8) -> impl Iterator<Item = Statement<'a>> {
    let all = [SUM_UP_PENDING, SUM_UP_DEAD]
        .into_iter()
        .chain(DELETE_ZEROS);
    all.map(move |sql| Statement::new(sql).small(partition))
}

/// Moves timers to these buckets.
pub(super) fn cascade<'a>(partition: u8, moved: &[(i64, Bucket)]) -> Statement<'a> {
    let update = Statement::new(&**CASCADE).small(partition);
    let update = update.bigs(moved.iter().map(|(id, _)| *id).collect());
    let update = update.smalls(
        moved
            .iter()
            .map(|(_, it)| it.level.number().into())
            .collect(),
    );
    update.bigs(moved.iter().map(|(_, it)| it.number).collect())
}

pub(super) fn set_epoch<'a>(partition: u8, epoch: u64, timeline: u32) -> Statement<'a> {
    let update = Statement::new(SET_EPOCH).small(partition);
    update.big(epoch.cast_signed()).int(timeline.cast_signed())
}

/// The starts of a row; they fit in an `i64`.
fn starts(row: &Row) -> i64 {
    i64::try_from(row.starts).unwrap_or(i64::MAX)
}

fn millis(times: Vec<Due>) -> Vec<i64> {
    times.into_iter().map(Due::as_millis).collect()
}
