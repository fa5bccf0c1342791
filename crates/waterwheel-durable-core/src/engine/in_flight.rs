//! Which requests to the store are in flight, and was a reply lost?

use std::collections::{BTreeSet, VecDeque};

use crate::store::{Level, PageLimit, StoreError};
use foldhash::HashMap;

use super::{Call, Config, Engine, Now, Output, Reply, Request};

#[derive(Debug, Default)]
pub(super) struct InFlight {
    number: u64,
    waiting: HashMap<u64, (Call, Purpose, u64)>,
    /// Those of them that load rows.
    loads: BTreeSet<u64>,
    /// When which one is held for lost, if its reply can be lost.
    deadlines: BTreeSet<(u64, u64)>,
}

/// The purpose of a request, which says what its reply is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Commit,
    Rows {
        queue: usize,
        before: i64,
        limit: PageLimit,
    },
    Second(usize),
    Bucket(Level),
    Archive(usize),
}

impl InFlight {
    fn send(
        &mut self,
        call: Call,
        purpose: Purpose,
        now: Now,
        config: &Config,
        output: &mut VecDeque<Output>,
    ) {
        self.number += 1;
        let number = self.number;
        let deadline = now.boot_micros.saturating_add(config.reply_micros);
        self.insert(call.clone(), purpose, deadline);
        output.push_back(Output::Store(Request { number, call }));
    }

    /// The request with this number was answered. `None` if that was known.
    fn complete(&mut self, number: u64) -> Option<(Call, Purpose)> {
        let (call, purpose, deadline) = self.waiting.remove(&number)?;
        self.loads.remove(&number);
        self.deadlines.remove(&(deadline, number));
        Some((call, purpose))
    }

    /// The last request waits for its reply.
    fn insert(&mut self, call: Call, purpose: Purpose, deadline: u64) {
        let number = self.number;
        if matches!(purpose, Purpose::Rows { .. }) {
            self.loads.insert(number);
        }
        if deadline < u64::MAX {
            self.deadlines.insert((deadline, number));
        }
        self.waiting.insert(number, (call, purpose, deadline));
    }

    /// A read was refused. It is sent again as if its reply were lost, and soon.
    fn retry_later(&mut self, call: Call, purpose: Purpose, now: Now, config: &Config) {
        self.number += 1;
        let again = now.boot_micros.saturating_add(config.refused_micros);
        self.insert(call, purpose, again);
    }

    /// The number of the last request, if rows are being loaded.
    pub(super) fn loading(&self) -> Option<u64> {
        (!self.loads.is_empty()).then_some(self.number)
    }

    /// The number of the first request for rows that is not answered.
    fn oldest_load(&self) -> Option<u64> {
        self.loads.first().copied()
    }

    /// When the first reply is held for lost. Never, of a store whose replies cannot be lost.
    pub(super) fn first_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
}

impl Engine {
    pub(super) fn send(&mut self, call: Call, purpose: Purpose) {
        self.in_flight
            .send(call, purpose, self.now, &self.config, &mut self.output);
    }

    /// Sends requests again that were not answered in time: their replies were lost.
    pub(super) fn resend_overdue(&mut self) {
        let now = self.now.boot_micros;
        let last = self.in_flight.number;
        while let Some(&(deadline, number)) = self.in_flight.deadlines.first()
            && deadline <= now
            && number <= last
        {
            let Some((call, purpose)) = self.in_flight.complete(number) else {
                return;
            };
            self.send(call, purpose);
        }
    }

    /// A refusal is reported, and those that follow it are counted.
    fn note_refusal(&mut self, purpose: Purpose, reply: &Result<Reply, StoreError>) {
        let goes_on = &mut self.refusals.goes_on[usize::from(matches!(purpose, Purpose::Commit))];
        let went_on = *goes_on;
        let error = reply.as_ref().err().filter(|error| error.is_definite());
        *goes_on = error.is_some();
        if let Some(error) = error {
            self.refusals.count += 1;
            if !went_on {
                self.output
                    .push_back(Output::Refused(error.to_string().into()));
            }
        }
    }

    /// The store has replied to a request.
    pub fn replied(&mut self, number: u64, reply: Result<Reply, StoreError>) {
        if self.has_failed {
            return;
        }
        let Some((call, purpose)) = self.in_flight.complete(number) else {
            return;
        };
        self.note_refusal(purpose, &reply);
        match (purpose, reply) {
            (Purpose::Commit, Ok(Reply::Committed(outcomes))) => self.committed(outcomes),
            (
                Purpose::Rows {
                    queue,
                    before,
                    limit,
                },
                Ok(Reply::Loaded(rows)),
            ) => {
                self.rows_loaded(queue, before, limit, rows, number);
                let oldest = self.in_flight.oldest_load();
                self.loaded.tombstones.prune(oldest);
            }
            (Purpose::Second(queue), Ok(Reply::First(first))) => self.second_found(queue, first),
            (Purpose::Bucket(level), Ok(Reply::First(first))) => self.bucket_found(level, first),
            (Purpose::Archive(queue), Ok(Reply::First(first))) => self.archive_found(queue, first),
            (Purpose::Commit, Err(error)) if error.is_definite() => self.refused(&error),
            // Of a read, too: a store that is damaged is not asked for ever.
            (_, Err(error)) if !error.is_definite() => self.fail(&error),
            (Purpose::Commit, Ok(reply)) => {
                let error = format!("the store returned {reply:?} for a commit");
                self.fail(&StoreError::indeterminate(error));
            }
            (purpose, _) => self
                .in_flight
                .retry_later(call, purpose, self.now, &self.config),
        }
        match purpose {
            // One of as many as there are handlers: no other is looked at.
            Purpose::Rows { queue, .. } | Purpose::Second(queue) => self.go_on_loading(queue),
            Purpose::Archive(queue) => self.go_on_expiring(queue),
            Purpose::Commit | Purpose::Bucket(_) => self.go_on(),
        }
    }
}
