//! What was the store asked, and was the reply lost?

use std::collections::{BTreeSet, VecDeque};

use foldhash::HashMap;
use waterwheel_store::{Level, PageLimit, StoreError};

use super::{Call, Config, Engine, Now, Output, Reply, Request};

#[derive(Debug, Default)]
pub(super) struct Asked {
    number: u64,
    waiting: HashMap<u64, (Call, What, u64)>,
    /// Those of them that load rows.
    loads: BTreeSet<u64>,
    /// When which one is held for lost, if its reply can be lost.
    deadlines: BTreeSet<(u64, u64)>,
}

/// What a reply is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Commit,
    Rows {
        lane: usize,
        before: i64,
        limit: PageLimit,
    },
    Second(usize),
    Bucket(Level),
    Archive(usize),
}

impl Asked {
    fn ask(
        &mut self,
        call: Call,
        what: What,
        now: Now,
        config: &Config,
        output: &mut VecDeque<Output>,
    ) {
        self.number += 1;
        let number = self.number;
        let deadline = now.boot_micros.saturating_add(config.reply_micros);
        self.wait(call.clone(), what, deadline);
        output.push_back(Output::Store(Request { number, call }));
    }

    /// The request with this number was answered. `None` if that was known.
    fn answered(&mut self, number: u64) -> Option<(Call, What)> {
        let (call, what, deadline) = self.waiting.remove(&number)?;
        self.loads.remove(&number);
        self.deadlines.remove(&(deadline, number));
        Some((call, what))
    }

    /// The last request waits for its reply.
    fn wait(&mut self, call: Call, what: What, deadline: u64) {
        let number = self.number;
        if matches!(what, What::Rows { .. }) {
            self.loads.insert(number);
        }
        if deadline < u64::MAX {
            self.deadlines.insert((deadline, number));
        }
        self.waiting.insert(number, (call, what, deadline));
    }

    /// A read was refused. It is asked again as if its reply were lost, and soon.
    fn put_off(&mut self, call: Call, what: What, now: Now, config: &Config) {
        self.number += 1;
        let again = now.boot_micros.saturating_add(config.refused_micros);
        self.wait(call, what, again);
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
    pub(super) fn ask(&mut self, call: Call, what: What) {
        self.asked
            .ask(call, what, self.now, &self.config, &mut self.output);
    }

    /// Asks again for what was not answered in time: its reply was lost.
    pub(super) fn ask_again(&mut self) {
        let now = self.now.boot_micros;
        let last = self.asked.number;
        while let Some(&(deadline, number)) = self.asked.deadlines.first()
            && deadline <= now
            && number <= last
        {
            let Some((call, what)) = self.asked.answered(number) else {
                return;
            };
            self.ask(call, what);
        }
    }

    /// A refusal is reported, and those that follow it are counted.
    fn note_refusal(&mut self, what: What, reply: &Result<Reply, StoreError>) {
        let goes_on = &mut self.refusals.goes_on[usize::from(matches!(what, What::Commit))];
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
        let Some((call, what)) = self.asked.answered(number) else {
            return;
        };
        self.note_refusal(what, &reply);
        match (what, reply) {
            (What::Commit, Ok(Reply::Committed(outcomes))) => self.committed(outcomes),
            (
                What::Rows {
                    lane,
                    before,
                    limit,
                },
                Ok(Reply::Loaded(rows)),
            ) => {
                self.loaded(lane, before, limit, rows, number);
                let oldest = self.asked.oldest_load();
                self.near.gone.loads_since(oldest);
            }
            (What::Second(lane), Ok(Reply::First(first))) => self.second_found(lane, first),
            (What::Bucket(level), Ok(Reply::First(first))) => self.bucket_found(level, first),
            (What::Archive(lane), Ok(Reply::First(first))) => self.archive_found(lane, first),
            (What::Commit, Err(error)) if error.is_definite() => self.refused(&error),
            // Of a read, too: a store that is damaged is not asked for ever.
            (_, Err(error)) if !error.is_definite() => self.fail(&error),
            (What::Commit, Ok(reply)) => {
                let error = format!("the store returned {reply:?} for a commit");
                self.fail(&StoreError::indeterminate(error));
            }
            (what, _) => self.asked.put_off(call, what, self.now, &self.config),
        }
        match what {
            // One of as many as there are handlers: no other is looked at.
            What::Rows { lane, .. } | What::Second(lane) => self.go_on_loading(lane),
            What::Archive(lane) => self.go_on_expiring(lane),
            What::Commit | What::Bucket(_) => self.go_on(),
        }
    }
}
