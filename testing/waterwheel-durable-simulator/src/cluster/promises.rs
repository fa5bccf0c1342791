//! The oracle of a cluster: what was promised to callers and handlers, compared to what the server has committed.

use std::collections::HashMap;
use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Token};
use waterwheel_durable_core::store::{Due, Ended, Handle, Id, Op, Row, Store};
use waterwheel_durable_postgres::protocol::{Opening, OwnerId};

use super::server::{Committed, Tables, Write};

/// The error of a delivery that fails.
const FAILS: &str = "no";

#[derive(Debug)]
struct Insert {
    /// The node that was asked.
    node: usize,
    handler: Arc<str>,
    due: Due,
    key: Option<Arc<[u8]>>,
    /// Whether it was ever committed, and whether a failover has lost that commit.
    is_written: bool,
    was_reverted: bool,
    answer: Option<Answer>,
}

/// A timer that was committed.
#[derive(Debug)]
struct Timer {
    token: Token,
    handle: Handle,
    /// Whether it was ever delivered.
    was_delivered: bool,
    /// The openings that have delivered it, since a failover has brought it back if one has.
    attempts: Vec<OwnerId>,
    /// The number of deliveries that have failed.
    failed: u32,
    /// When a delivery has ended for the last time.
    ended_at: u64,
    /// Whether a commit has settled, cancelled or buried it.
    is_settled: bool,
    is_cancelled: bool,
    is_buried: bool,
    /// Whether a commit has ever done so, even if a failover has lost it since.
    was_settled: bool,
    was_cancelled: bool,
    /// Whether a failover has lost its insert. An engine may still deliver it from memory.
    is_gone: bool,
}

#[derive(Debug, Default)]
pub(super) struct Promises {
    tokens: Token,
    inserts: HashMap<Token, Insert>,
    cancels: HashMap<Token, Id>,
    timers: HashMap<Id, Timer>,
    /// Whether there were faults lately that excuse an answer that says that the outcome is unknown.
    pub(super) may_be_unknown: bool,
    /// The last opening that has begun, on any timeline.
    pub(super) latest: Option<OwnerId>,
}

impl Promises {
    /// Notes an insert.
    pub(super) fn inserts(
        &mut self,
        node: usize,
        handler: &str,
        due: Due,
        key: Option<Arc<[u8]>>,
    ) -> Token {
        self.tokens += 1;
        let insert = Insert {
            node,
            handler: handler.into(),
            due,
            key,
            is_written: false,
            was_reverted: false,
            answer: None,
        };
        self.inserts.insert(self.tokens, insert);
        self.tokens
    }

    /// The payload of an insert.
    pub(super) fn payload(token: Token) -> Arc<[u8]> {
        token.to_le_bytes().into()
    }

    /// Notes a cancel.
    pub(super) fn cancels(&mut self, handle: &Handle) -> Token {
        self.tokens += 1;
        self.cancels.insert(self.tokens, handle.id);
        self.tokens
    }

    /// A random timer.
    pub(super) fn any(&self, rng: &mut fastrand::Rng) -> Option<Handle> {
        let mut ids: Vec<_> = self.timers.keys().collect();
        ids.sort_unstable();
        rng.choice(ids).map(|id| self.timers[id].handle.clone())
    }

    fn token_of(row: &Row) -> Token {
        let token = row.payload.first_chunk().copied();
        token.map_or(0, Token::from_le_bytes)
    }

    /// Checks a commit of the server, and notes it.
    pub(super) fn committed(
        &mut self,
        committed: &Committed,
        tables: &mut Tables,
    ) -> Result<(), String> {
        if let Some((opening, false)) = committed.opening {
            return Err(format!("a stale write by {opening:?}"));
        }
        for write in &committed.writes {
            match write {
                Write::Hold {
                    node: Some(_),
                    owner,
                    ..
                } => self.latest = Some(*owner),
                Write::Steps(steps) => self.written(steps, tables)?,
                Write::Report(_, ends) => {
                    for (id, _) in ends.iter().filter(|(id, _)| tables.has_ended_well(*id)) {
                        if let Some(timer) = self.timers.get_mut(id) {
                            (timer.is_settled, timer.was_settled) = (true, true);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn written(&mut self, steps: &[Op], tables: &mut Tables) -> Result<(), String> {
        for op in steps {
            match op {
                Op::All(steps) => self.written(steps, tables)?,
                Op::Insert(row, _) => {
                    // Not if its key was taken.
                    let found = tables.timers.get(&row.handle());
                    if found.is_ok_and(|it| it.is_some()) {
                        self.is_inserted(row)?;
                    }
                }
                Op::Settle(row) => {
                    if let Some(timer) = self.timers.get_mut(&row.id) {
                        (timer.is_settled, timer.was_settled) = (true, true);
                    }
                }
                Op::Retry(row, ..) => {
                    if let Some(timer) = self.timers.get_mut(&row.id) {
                        timer.attempts.clear();
                    }
                }
                Op::Bury { row, error, .. } => {
                    if let Some(timer) = self.timers.get_mut(&row.id) {
                        if **error == *FAILS && timer.failed < 2 {
                            return Err(format!("a failure counts twice: {timer:?}"));
                        }
                        (timer.is_buried, timer.was_settled) = (true, true);
                    }
                }
                Op::Cancel(handle) => {
                    if let Some(timer) = self.timers.get_mut(&handle.id)
                        && tables.timers.get(handle).is_ok_and(|it| it.is_none())
                    {
                        (timer.is_cancelled, timer.was_cancelled) = (true, true);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_inserted(&mut self, row: &Row) -> Result<(), String> {
        let token = Promises::token_of(row);
        let Some(insert) = self.inserts.get_mut(&token) else {
            return Err(format!("never inserted: {row:?}"));
        };
        let answer = insert.answer.as_ref();
        if let Some(answer) = answer.filter(|it| !matches!(it, Answer::Unknown(_))) {
            return Err(format!("written after the answer {answer:?}: {row:?}"));
        }
        (insert.is_written, insert.was_reverted) = (true, false);
        let timer = self.timers.entry(row.id).or_insert_with(|| Timer {
            token,
            handle: row.handle(),
            was_delivered: false,
            attempts: Vec::new(),
            failed: 0,
            ended_at: 0,
            is_settled: false,
            is_cancelled: false,
            is_buried: false,
            was_settled: false,
            was_cancelled: false,
            is_gone: false,
        });
        timer.is_gone = false;
        match timer.token == token {
            true => Ok(()),
            false => Err(format!("an id was assigned twice: {row:?} {timer:?}")),
        }
    }

    /// Notes the commits that a failover has lost.
    pub(super) fn reverted(&mut self, lost: &[Vec<Write>], tables: &mut Tables) {
        for write in lost.iter().flatten() {
            match write {
                Write::Steps(steps) => self.steps_reverted(steps, tables),
                Write::Report(_, ends) => {
                    let ids = ends.iter().map(|(id, _)| *id);
                    ids.for_each(|id| self.is_open_again(id, tables));
                }
                _ => {}
            }
        }
    }

    fn steps_reverted(&mut self, steps: &[Op], tables: &mut Tables) {
        for op in steps {
            let id = match op {
                Op::All(steps) => {
                    self.steps_reverted(steps, tables);
                    continue;
                }
                Op::Settle(row)
                | Op::Start(row)
                | Op::Insert(row, _)
                | Op::Retry(row, ..)
                | Op::Bury { row, .. } => row.id,
                Op::Cancel(handle) => handle.id,
                _ => continue,
            };
            self.is_open_again(id, tables);
            let Some(timer) = self.timers.get_mut(&id) else {
                continue;
            };
            let found = tables.timers.get(&timer.handle);
            if found.is_ok_and(|it| it.is_none())
                && let (Op::Insert(..), Some(insert)) = (op, self.inserts.get_mut(&timer.token))
            {
                timer.is_gone = true;
                insert.was_reverted = true;
            }
        }
    }

    /// Notes that a failover has lost what a commit did with a timer, if it is in the store again.
    fn is_open_again(&mut self, id: Id, tables: &mut Tables) {
        let Some(timer) = self.timers.get_mut(&id) else {
            return;
        };
        let found = tables.timers.get(&timer.handle);
        if found.is_ok_and(|it| it.is_some()) {
            (timer.is_settled, timer.is_cancelled, timer.is_buried) = (false, false, false);
            timer.attempts.clear();
        }
    }

    /// Notes that a delivery ends.
    pub(super) fn ends(&mut self, id: Id, now: u64) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.ended_at = now;
        }
    }

    /// Whether a delivery has ended since this time. The store may not know it yet.
    pub(super) fn has_ended_since(&self, id: Id, since: u64) -> bool {
        self.timers.get(&id).is_some_and(|it| it.ended_at >= since)
    }

    /// The end of a delivery that fails.
    pub(super) fn fails(&mut self, id: Id) -> Ended {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.failed += 1;
        }
        Ended::Failed(FAILS.into())
    }

    /// Notes that a process was killed: its requests may have been carried out.
    pub(super) fn killed(&mut self, node: usize) {
        let open = self.inserts.values_mut();
        let open = open.filter(|it| it.node == node && it.answer.is_none());
        open.for_each(|it| it.answer = Some(Answer::Unknown("killed".into())));
    }

    /// Checks that a delivery may begin.
    pub(super) fn delivered(&mut self, row: &Row, opening: &Opening) -> Result<(), String> {
        if self.latest != Some(opening.owner) {
            return Err(format!(
                "delivered by an opening that another one has followed: {row:?} {opening:?}"
            ));
        }
        let Some(timer) = self.timers.get_mut(&row.id) else {
            return Err(format!("delivered, and never written: {row:?}"));
        };
        let wrong = if timer.token != Promises::token_of(row) {
            "another timer"
        } else if timer.is_settled && !timer.is_gone {
            "settled"
        } else if timer.is_cancelled && !timer.is_gone {
            "cancelled"
        } else if timer.attempts.contains(&opening.owner) {
            "delivered twice by an opening"
        } else {
            timer.attempts.push(opening.owner);
            timer.was_delivered = true;
            return Ok(());
        };
        Err(format!("{wrong}: {row:?} {timer:?}"))
    }

    /// Checks an answer.
    pub(super) fn answered(&mut self, token: Token, answer: &Answer) -> Result<(), String> {
        if let Some(id) = self.cancels.remove(&token) {
            return self.cancel_answered(id, answer);
        }
        let Some(insert) = self.inserts.get_mut(&token) else {
            return Err(format!("{answer:?} to no request"));
        };
        let is_right = match answer {
            Answer::Created(handle) => {
                insert.is_written && handle.due == insert.due && handle.handler == insert.handler
            }
            Answer::Existing(handle) => {
                let holder = self.timers.get(&handle.id);
                let holder = holder.and_then(|it| self.inserts.get(&it.token));
                let insert = &self.inserts[&token];
                let is_same = |it: &Insert| it.key == insert.key && it.handler == insert.handler;
                insert.key.is_some() && !insert.is_written && holder.is_some_and(is_same)
            }
            Answer::Unknown(_) => self.may_be_unknown,
            Answer::Failed(_)
            | Answer::Refused(_)
            | Answer::ShuttingDown
            | Answer::OutOfIds
            | Answer::Full => !insert.is_written || insert.was_reverted,
            _ => false,
        };
        let insert = self.inserts.get_mut(&token);
        let Some(insert) = insert.filter(|it| is_right && it.answer.is_none()) else {
            return Err(format!(
                "{answer:?} to insert {token}, {:?}",
                self.inserts[&token]
            ));
        };
        insert.answer = Some(answer.clone());
        Ok(())
    }

    fn cancel_answered(&mut self, id: Id, answer: &Answer) -> Result<(), String> {
        let Some(timer) = self.timers.get(&id).filter(|it| !it.is_gone) else {
            return Ok(());
        };
        let is_right = match answer {
            Answer::Done => timer.was_cancelled,
            Answer::NotFound => timer.was_cancelled || timer.was_settled,
            // It may have been handed out, and wait for the lease or until its start is noted.
            _ => true,
        };
        match is_right {
            true => Ok(()),
            false => Err(format!("{answer:?} to a cancel of {timer:?}")),
        }
    }

    /// Checks that nothing is left, at the end of a life.
    pub(super) fn is_done(&self) -> Result<(), String> {
        if let Some(insert) = self.inserts.values().find(|it| it.answer.is_none()) {
            return Err(format!("not answered: {insert:?}"));
        }
        let lost = self.timers.values().find(|it| {
            let is_over = it.was_delivered || it.is_cancelled || it.is_buried;
            !is_over && !it.is_gone
        });
        match lost {
            None => Ok(()),
            Some(timer) => Err(format!("never delivered: {timer:?}")),
        }
    }
}
