use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use tokio_postgres::Row;
use waterwheel_durable_core::store::{
    Bucket, Due, Erased, Handle, Id, Level, Op, Outcome, PageLimit,
};

use super::group::{Group, Kind};
use super::statements::{cascade, set_epoch};
use crate::error::{Error, get};
use crate::names::Table;
use crate::read::{drawn, id, row};
use crate::statement::Statement;

/// The result of a group.
#[derive(Debug, Default)]
pub(super) struct Read<'a> {
    /// The outcomes of steps that were not known before, by their index.
    pub(super) outcomes: Vec<(usize, Outcome)>,
    /// Statements to be sent before those of the next group.
    pub(super) follow_up: Vec<Statement<'a>>,
    /// Changes of counts.
    pub(super) counts: Vec<(i32, Bucket, i64)>,
}

impl<'a> Group<'a> {
    /// Reads the replies to the statements of this group.
    pub(super) fn read(
        &self,
        partition: u8,
        replies: &[Vec<Row>],
        names: &Table,
    ) -> Result<Read<'a>, Error> {
        let mut read = Read::default();
        let last = replies.last().map(Vec::as_slice).unwrap_or_default();
        match self.kind {
            Kind::InsertUnlessTaken => {
                // The statement before the last one.
                let holders = replies.iter().rev().nth(1).map(Vec::as_slice);
                self.inserts(holders.unwrap_or_default(), Outcome::Inserted, &mut read)?;
            }
            Kind::Refuse => self.inserts(last, Outcome::Full, &mut read)?,
            Kind::Cancel | Kind::Discard => {
                let gone: HashSet<Id> = last
                    .iter()
                    .map(|row| id(row, 0))
                    .collect::<Result<_, Error>>()?;
                read.outcomes = self.by_id(|id| Outcome::Cancelled(gone.contains(&id)));
            }
            Kind::Reschedule | Kind::Redrive => {
                let mut rows = HashMap::new();
                for from in last {
                    let row = row(from, names)?;
                    rows.insert(row.id, row);
                }
                let is_redrive = self.kind == Kind::Redrive;
                read.outcomes = self.by_id(|id| {
                    let row = rows.remove(&id);
                    if is_redrive {
                        Outcome::Redriven(row)
                    } else {
                        Outcome::Rescheduled(row)
                    }
                });
            }
            Kind::Erase | Kind::Expire | Kind::Cascade | Kind::NextEpoch => {
                for (at, op) in &self.steps {
                    let outcome = alone(op, partition, last, names, &mut read)?;
                    read.outcomes.push((*at, outcome));
                }
            }
            _ => {}
        }
        Ok(read)
    }

    /// The outcomes of inserts: `free`, if no other timer has the key.
    fn inserts(&self, holders: &[Row], free: Outcome, read: &mut Read<'a>) -> Result<(), Error> {
        let mut by_number = HashMap::new();
        for holder in holders {
            let (number, due): (i64, i64) = (get(holder, 0)?, get(holder, 2)?);
            by_number.insert(number, (id(holder, 1)?, Due::from_millis(due)));
        }
        let inserted = self.inserted().map(|(row, _)| row);
        for (number, ((at, _), row)) in (1..).zip(self.steps.iter().zip(inserted)) {
            let holder = by_number.get(&number);
            let outcome = match holder {
                Some((id, due)) if *id != row.id => Outcome::Exists(Handle {
                    id: *id,
                    due: *due,
                    handler: Arc::clone(&row.handler),
                }),
                _ => free.clone(),
            };
            read.outcomes.push((*at, outcome));
        }
        Ok(())
    }

    fn by_id(&self, mut outcome: impl FnMut(Id) -> Outcome) -> Vec<(usize, Outcome)> {
        let ids = self.steps.iter().filter_map(|(at, op)| match op {
            Op::Cancel(handle) | Op::Reschedule(handle, ..) => Some((*at, handle.id)),
            Op::Redrive(id, ..) | Op::Discard(id) => Some((*at, *id)),
            _ => None,
        });
        ids.map(|(at, id)| (at, outcome(id))).collect()
    }
}

/// The outcome of a step that is a group of its own.
fn alone(
    op: &Op,
    partition: u8,
    rows: &[Row],
    names: &Table,
    read: &mut Read<'_>,
) -> Result<Outcome, Error> {
    if let Op::Cascade { bucket, now, limit } = op {
        return cascaded(*bucket, *now, *limit, partition, rows, names, read);
    }
    let Some(row) = rows.first() else {
        return Err(Error::Unexpected("a step has no reply".into()));
    };
    Ok(match op {
        Op::Erase { .. } => Outcome::Erased(Erased {
            dead_letters: get::<i64>(row, 0)?.cast_unsigned(),
            is_archived: get::<i64>(row, 1)? > 0,
        }),
        Op::Expire { .. } => Outcome::Expired {
            is_empty: get(row, 0)?,
        },
        _ => {
            let drawn = drawn(row, 0)?;
            let set = set_epoch(partition, drawn.epoch, drawn.timeline);
            read.follow_up.push(set);
            Outcome::Epoch(drawn.epoch)
        }
    })
}

/// The outcome of a cascade, from the first rows of the bucket.
fn cascaded(
    bucket: Bucket,
    now: Due,
    limit: PageLimit,
    partition: u8,
    rows: &[Row],
    names: &Table,
    read: &mut Read<'_>,
) -> Result<Outcome, Error> {
    let mut all = Vec::new();
    for row in rows {
        let (id, due, number): (i64, i64, i32) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        all.push((id, Due::from_millis(due), number, get::<i32>(row, 3)?));
    }
    let count = all.len();
    let first = all.into_iter().map(Ok::<_, Infallible>);
    let Ok(first) = limit.take_sized(first, |(.., size)| usize::try_from(*size).unwrap_or(0));
    let is_empty = first.len() == count;
    let (mut buckets, mut seconds) = (BTreeMap::new(), BTreeMap::new());
    let mut moved = Vec::new();
    for (id, due, number, _) in first {
        let finer = bucket.finer(due, now);
        let first = match finer.level {
            Level::Second => seconds.entry(number).or_insert(finer.number),
            level => buckets.entry(level).or_insert(finer.number),
        };
        *first = finer.number.min(*first);
        read.counts.push((number, bucket, -1));
        read.counts.push((number, finer, 1));
        moved.push((id, finer));
    }
    if !moved.is_empty() {
        read.follow_up.push(cascade(partition, &moved));
    }
    let mut named = Vec::new();
    for (number, second) in seconds {
        named.push((names.name(number)?, second));
    }
    let buckets = buckets.into_iter();
    Ok(Outcome::Cascaded {
        is_empty,
        buckets: buckets
            .map(|(level, number)| Bucket { level, number })
            .collect(),
        seconds: named,
    })
}
