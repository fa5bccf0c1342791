use std::collections::HashMap;

use waterwheel_durable_core::store::{Bucket, Id, Op, Outcome, Row};

use crate::names::Table;

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Inserts whose keys are expected to be free.
    Insert,
    /// Inserts whose keys are looked for.
    InsertUnlessTaken,
    /// Inserts for which there is no room.
    Refuse,
    Settle,
    Archive,
    Start,
    /// Retries and snoozes.
    Move,
    Cancel,
    Reschedule,
    Bury,
    Redrive,
    Discard,
    Set,
    Unset,
    Erase,
    Expire,
    Cascade,
    NextEpoch,
    HandOver,
    /// Steps that write nothing.
    Nothing,
}

impl Kind {
    /// The outcome of each step, if it has only one.
    pub(super) fn known(self) -> Option<Outcome> {
        match self {
            Kind::Insert => Some(Outcome::Inserted),
            Kind::Settle
            | Kind::Archive
            | Kind::Start
            | Kind::Move
            | Kind::Bury
            | Kind::Set
            | Kind::Unset
            | Kind::HandOver
            | Kind::Nothing => Some(Outcome::Done),
            _ => None,
        }
    }

    /// Whether other statements follow from the replies, before those of the next group.
    pub(super) fn has_follow_up(self) -> bool {
        matches!(self, Kind::Cascade | Kind::NextEpoch)
    }

    /// Whether a step is a group of its own, which no other step overtakes.
    fn is_alone(self) -> bool {
        matches!(
            self,
            Kind::Erase | Kind::Expire | Kind::Cascade | Kind::NextEpoch | Kind::HandOver
        )
    }
}

/// Steps of a kind that are carried out together, each with its index among all steps of the commit.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) kind: Kind,
    pub(super) steps: Vec<(usize, &'a Op)>,
}

/// Something that a step reads or writes: steps that share it keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Object<'a> {
    Timer(Id),
    Key(&'a str, &'a [u8]),
    Setting(&'a str),
}

/// The groups of a commit, in order, and the number of its steps without the nesting of `Op::All`. Inserts beyond `room` are refused, apart from those in an
/// `Op::All`.
pub(super) fn of(steps: &[Op], looks_for_keys: bool, mut room: u64) -> (Vec<Group<'_>>, usize) {
    let mut groups = Groups::default();
    let mut count = 0;
    for op in steps {
        let (inner, is_nested) = match op {
            Op::All(inner) => (&inner[..], true),
            _ => (std::slice::from_ref(op), false),
        };
        for op in inner {
            let mut kind = kind(op, looks_for_keys);
            if matches!(op, Op::Insert(..)) {
                if room == 0 && !is_nested {
                    kind = Kind::Refuse;
                }
                room = room.saturating_sub(1);
            }
            groups.add(kind, count, op);
            count += 1;
        }
    }
    (groups.all, count)
}

fn kind(op: &Op, looks_for_keys: bool) -> Kind {
    match op {
        Op::Insert(..) if looks_for_keys => Kind::InsertUnlessTaken,
        Op::Insert(..) => Kind::Insert,
        Op::Settle(_) => Kind::Settle,
        Op::Archive(..) => Kind::Archive,
        Op::Expire { .. } => Kind::Expire,
        Op::Cancel(_) => Kind::Cancel,
        Op::Reschedule(..) => Kind::Reschedule,
        Op::Start(_) => Kind::Start,
        Op::Retry(..) | Op::Snooze(..) => Kind::Move,
        Op::Bury { .. } => Kind::Bury,
        Op::Redrive(..) => Kind::Redrive,
        Op::Discard(_) => Kind::Discard,
        Op::Erase { .. } => Kind::Erase,
        Op::Cascade { .. } => Kind::Cascade,
        Op::Set(_, Some(_)) => Kind::Set,
        Op::Set(_, None) => Kind::Unset,
        Op::NextEpoch(_) => Kind::NextEpoch,
        Op::HandOver(_) => Kind::HandOver,
        Op::Reply(..) | Op::Report(..) | Op::All(_) => Kind::Nothing,
    }
}

#[derive(Debug, Default)]
struct Groups<'a> {
    all: Vec<Group<'a>>,
    /// The first group that a step may join.
    barrier: usize,
    /// The last group of each kind.
    last_of: HashMap<Kind, usize>,
    /// The last group that has an object.
    last_with: HashMap<Object<'a>, usize>,
    /// The last group that has a key, and the last one that frees keys that are not known.
    last_with_key: Option<usize>,
    last_with_unknown_key: Option<usize>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, kind: Kind, at: usize, op: &'a Op) {
        let objects = objects(op);
        let has_key = objects
            .iter()
            .flatten()
            .any(|it| matches!(it, Object::Key(..)));
        let has_unknown_key = matches!(op, Op::Cancel(_));
        let mut after: Vec<usize> = Vec::new();
        after.extend(
            objects
                .iter()
                .flatten()
                .filter_map(|it| self.last_with.get(it)),
        );
        after.extend(self.last_with_key.iter().filter(|_| has_unknown_key));
        // If such a key is taken, the commit is refused, and repeated with inserts that look for their keys.
        let is_sure = kind != Kind::Insert;
        after.extend(
            self.last_with_unknown_key
                .iter()
                .filter(|_| has_key && is_sure),
        );
        let first = after.into_iter().map(|it| it + 1).max().unwrap_or(0);
        let first = first.max(self.barrier);
        let last = self.last_of.get(&kind).copied();
        let group = match last.filter(|last| *last >= first && !kind.is_alone()) {
            Some(group) => group,
            None => {
                let steps = Vec::new();
                self.all.push(Group { kind, steps });
                self.all.len() - 1
            }
        };
        self.all[group].steps.push((at, op));
        self.last_of.insert(kind, group);
        for object in objects.into_iter().flatten() {
            self.last_with.insert(object, group);
        }
        if has_key {
            self.last_with_key = self.last_with_key.max(Some(group));
        }
        if has_unknown_key {
            self.last_with_unknown_key = self.last_with_unknown_key.max(Some(group));
        }
        if kind.is_alone() {
            self.barrier = group + 1;
        }
    }
}

/// The objects of a step that is not carried out alone.
fn objects(op: &Op) -> [Option<Object<'_>>; 2] {
    match op {
        Op::Insert(row, _)
        | Op::Settle(row)
        | Op::Archive(row, _)
        | Op::Start(row)
        | Op::Retry(row, ..)
        | Op::Snooze(row, ..)
        | Op::Bury { row, .. } => {
            let key = row.key.as_ref().map(|key| Object::Key(&row.handler, key));
            [Some(Object::Timer(row.id)), key]
        }
        Op::Cancel(handle) | Op::Reschedule(handle, ..) => [Some(Object::Timer(handle.id)), None],
        Op::Redrive(id, ..) | Op::Discard(id) => [Some(Object::Timer(*id)), None],
        Op::Set(name, _) => [Some(Object::Setting(name)), None],
        Op::Expire { .. }
        | Op::Erase { .. }
        | Op::Cascade { .. }
        | Op::Reply(..)
        | Op::HandOver(_)
        | Op::Report(..)
        | Op::NextEpoch(_)
        | Op::All(_) => [None, None],
    }
}

impl<'a> Group<'a> {
    /// The rows of inserts, and their buckets.
    pub(super) fn inserted(&self) -> impl Iterator<Item = (&'a Row, Bucket)> {
        self.steps.iter().filter_map(|(_, op)| match op {
            Op::Insert(row, bucket) => Some((row, *bucket)),
            _ => None,
        })
    }

    /// The buckets into which rows are certainly inserted, with the numbers of their handlers.
    pub(super) fn places(&self, names: &Table) -> Vec<(i32, Bucket)> {
        let inserted = self.inserted().filter(|_| self.kind == Kind::Insert);
        inserted
            .map(|(row, bucket)| (names.number(&row.handler), bucket))
            .collect()
    }

    /// Assigns numbers to new handlers.
    pub(super) fn assign_names(&self, names: &mut Table) {
        if self.kind != Kind::Refuse {
            for (row, _) in self.inserted() {
                names.assign(&row.handler);
            }
        }
    }
}
