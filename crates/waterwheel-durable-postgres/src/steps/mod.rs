//! How the steps of a commit are carried out.
//!
//! Steps of a kind form groups. A group is carried out by a few statements over arrays. A step joins an earlier group if no group since then has a step with the
//! same timer, key or setting; a group contains each of them at most once. Most steps have an outcome that is known before, so that all statements
//! are sent together, with `COMMIT`.
//!
//! | file | content |
//! |---|---|
//! | `group` | which steps go together |
//! | `statements` | the statements of a group |
//! | `replies` | the outcomes of a group, and the statements that follow from them |

mod group;
mod replies;
mod statements;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::Row;
use waterwheel_durable_core::store::{Bucket, Op, Outcome, PendingCount};

use crate::error::Error;
use crate::names::Table;
use crate::protocol::Commit;
use crate::read::stored;
use crate::statement::Statement;

use group::Group;

/// A commit, as it is carried out.
pub(crate) struct Plan<'a> {
    partition: u8,
    steps: &'a [Op],
    groups: Vec<Group<'a>>,
    /// The handlers whose names may not be in the database.
    new_names: Vec<(i32, Arc<str>)>,
    /// The outcomes, without the nesting of `Op::All`.
    outcomes: Vec<Option<Outcome>>,
    /// The changes of the counts that no statement counts.
    counts: BTreeMap<(i32, Bucket), i64>,
    /// The number of groups that were sent.
    sent: usize,
    /// Statements that follow from replies.
    follow_up: Vec<Statement<'a>>,
    /// The group of each statement that was sent last.
    expected: Vec<Option<usize>>,
    /// The timers that were handed over, and whose ends these steps apply.
    ended: Vec<i64>,
    /// Whether it adds the changes of the counts to the counts.
    sums_up: bool,
    is_finished: bool,
}

/// How many commits there are between those that add the changes of the counts to the counts. The first one does.
const SUM_UP_EVERY: u64 = 64;

impl<'a> Plan<'a> {
    pub(crate) fn of(commit: &Commit<'a>, names: &mut Table) -> Plan<'a> {
        let (groups, count) = group::of(commit.steps, commit.looks_for_keys, names.room);
        for group in &groups {
            group.assign_names(names);
        }
        let new_names = names.not_stored();
        let mut plan = Plan {
            partition: commit.opening.partition,
            steps: commit.steps,
            groups,
            new_names,
            outcomes: vec![None; count],
            counts: BTreeMap::new(),
            sent: 0,
            follow_up: Vec::new(),
            expected: Vec::new(),
            ended: ended(commit.steps, names),
            sums_up: commit.number % SUM_UP_EVERY == 1,
            is_finished: false,
        };
        for group in &plan.groups {
            if let Some(known) = group.kind.known() {
                for (at, _) in &group.steps {
                    plan.outcomes[*at] = Some(known.clone());
                }
            }
        }
        plan
    }

    /// Returns the outcomes, if they are known before the steps are carried out.
    pub(crate) fn known(&self) -> Option<Vec<Outcome>> {
        let is_known = self.outcomes.iter().all(Option::is_some);
        is_known.then(|| self.outcomes())
    }

    /// Returns the next statements, to be sent together, or `None` if there are no more. Their replies have to be [read](Plan::read) before the next call.
    pub(crate) fn next(&mut self, names: &Table) -> Option<Vec<Statement<'a>>> {
        if self.is_finished {
            return None;
        }
        let mut statements = std::mem::take(&mut self.follow_up);
        statements.extend(self.store_names());
        self.expected = vec![None; statements.len()];
        while let Some(group) = self.groups.get(self.sent) {
            let of_group = group.statements(self.partition, names);
            self.expected
                .extend(of_group.iter().map(|_| Some(self.sent)));
            statements.extend(of_group);
            let (has_follow_up, places) = (group.kind.has_follow_up(), group.places(names));
            self.sent += 1;
            for (number, bucket) in places {
                self.count(number, bucket, 1);
            }
            if has_follow_up {
                return Some(statements);
            }
        }
        statements.extend(self.store_counts());
        if !self.ended.is_empty() {
            let ended = std::mem::take(&mut self.ended);
            statements.push(statements::delete_ends(self.partition, ended));
        }
        if self.sums_up {
            statements.extend(statements::sum_up(self.partition));
        }
        self.is_finished = true;
        Some(statements)
    }

    /// Reads the replies to the last statements.
    pub(crate) fn read(&mut self, replies: &[Vec<Row>], names: &Table) -> Result<(), Error> {
        let expected = std::mem::take(&mut self.expected);
        let mut at = 0;
        while let Some(group) = expected.get(at) {
            let end = at + expected[at..].iter().take_while(|it| *it == group).count();
            let replies = replies.get(at..end).unwrap_or_default();
            if let Some(group) = group {
                let read = self.groups[*group].read(self.partition, replies, names)?;
                for (at, outcome) in read.outcomes {
                    self.outcomes[at] = Some(outcome);
                }
                for (number, bucket, change) in read.counts {
                    self.count(number, bucket, change);
                }
                self.follow_up.extend(read.follow_up);
            }
            at = end;
        }
        Ok(())
    }

    /// Returns the outcome of each step.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        // No statement leaves out an outcome.
        let mut flat = self.outcomes.iter().cloned();
        let mut next = || flat.next().flatten().unwrap_or(Outcome::Done);
        let nested = self.steps.iter().map(|op| match op {
            Op::All(steps) => Outcome::All(steps.iter().map(|_| next()).collect()),
            _ => next(),
        });
        nested.collect()
    }

    fn count(&mut self, number: i32, bucket: Bucket, change: i64) {
        let bucket = PendingCount::bucket_of(bucket);
        *self.counts.entry((number, bucket)).or_default() += change;
    }

    fn store_names(&mut self) -> Option<Statement<'a>> {
        let new = std::mem::take(&mut self.new_names).into_iter();
        let (numbers, names): (_, Vec<_>) =
            new.map(|(number, name)| (number, name.to_string())).unzip();
        let sql = "
            INSERT INTO waterwheel.handlers (partition, number, name)
            SELECT $1, * FROM unnest($2::integer[], $3::text[]) ON CONFLICT DO NOTHING";
        let insert = Statement::new(sql).small(self.partition).ints(numbers);
        (!names.is_empty()).then(|| insert.owned_texts(names))
    }

    fn store_counts(&mut self) -> Option<Statement<'a>> {
        let counts = std::mem::take(&mut self.counts);
        let counts: Vec<_> = counts
            .into_iter()
            .filter(|(_, change)| *change != 0)
            .collect();
        let sql = "
            INSERT INTO waterwheel.pending_changes (partition, handler, level, bucket, count)
            SELECT $1, * FROM unnest($2::integer[], $3::smallint[], $4::bigint[], $5::bigint[])";
        let insert = Statement::new(sql).small(self.partition);
        let insert = insert.ints(counts.iter().map(|((number, _), _)| *number).collect());
        let insert = insert.smalls(
            counts
                .iter()
                .map(|((_, it), _)| it.level.number().into())
                .collect(),
        );
        let insert = insert.bigs(counts.iter().map(|((_, it), _)| it.number).collect());
        let is_any = !counts.is_empty();
        is_any.then(|| insert.bigs(counts.into_iter().map(|(_, change)| change).collect()))
    }
}

/// The timers that were handed over, and that these steps settle or move.
fn ended(steps: &[Op], names: &Table) -> Vec<i64> {
    if names.handed_over.is_empty() {
        return Vec::new();
    }
    let ids = steps.iter().filter_map(|op| match op {
        Op::Settle(row)
        | Op::Archive(row, _)
        | Op::Retry(row, ..)
        | Op::Snooze(row, ..)
        | Op::Bury { row, .. } => Some(row.id),
        _ => None,
    });
    let ended = ids.filter(|id| names.handed_over.contains(id));
    ended.map(stored).collect()
}
