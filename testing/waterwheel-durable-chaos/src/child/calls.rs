//! Requests, each with a line before it and one after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{
    Cancelled, Durable, Error, Handle, Id, Inserted, NewTimer, Redriven, Rescheduled,
};

use super::log::Log;
use crate::protocol::{self, Answer, ChildOptions, Line, Named, Request};

#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) log: Arc<Log>,
    /// The number of the next request. Each round uses different numbers.
    next: AtomicU64,
    is_shutting_down: AtomicBool,
    /// The maximum length of payloads in bytes, apart from a few of 5 000.
    largest: usize,
}

impl Calls {
    pub(crate) fn new(log: Arc<Log>, options: &ChildOptions) -> Calls {
        Calls {
            log,
            next: AtomicU64::new(options.round * 1_000_000_000),
            is_shutting_down: AtomicBool::new(false),
            largest: options.largest,
        }
    }

    /// Notes that the service is about to be shut down, so that inserts of handlers may be refused from now on.
    pub(crate) fn shutdown_begins(&self) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
    }

    /// Announces a request.
    fn asks(&self, what: Request) -> u64 {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        self.log.say(&Line::Asked {
            request,
            thread: self.log.thread(),
            what,
        });
        request
    }

    /// Notes an answer. The store of a child has no faults, and a full disk and a shutdown affect inserts alone: no request fails.
    fn answers(&self, request: u64, answer: Result<Answer, Error>) -> Option<Answer> {
        match answer {
            Ok(answer) => {
                self.log.say(&Line::Answered {
                    request,
                    answer: answer.clone(),
                });
                Some(answer)
            }
            Err(error) => {
                self.log.wrong(format!("{request} has failed: {error}"));
                None
            }
        }
    }

    fn inserted(&self, request: u64, inserted: Result<Inserted, Error>) -> Option<Handle> {
        let (answer, handle) = match inserted {
            Ok(inserted) => {
                let named = named(inserted.handle());
                let answer = match inserted.is_new() {
                    true => Answer::Created(named),
                    false => Answer::Existing(named),
                };
                (Ok(answer), Some(inserted.into_handle()))
            }
            Err(Error::Full) => (Ok(Answer::Full), None),
            Err(Error::ShuttingDown) if self.is_shutting_down.load(Ordering::Relaxed) => {
                (Ok(Answer::ShuttingDown), None)
            }
            Err(error) => (Err(error), None),
        };
        self.answers(request, answer);
        handle
    }

    pub(crate) async fn insert(
        &self,
        timers: &Durable,
        new: &protocol::NewTimer,
    ) -> Option<Handle> {
        let request = self.asks(Request::Insert(new.clone()));
        let insert = timers.at(&new.handler, time(new.due));
        let insert = insert.bytes(payload(request, self.length(request)));
        let insert = match &new.key {
            Some(key) => insert.key(key),
            None => insert,
        };
        self.inserted(request, insert.insert().await)
    }

    pub(crate) async fn insert_many(
        &self,
        timers: &Durable,
        all: Vec<protocol::NewTimer>,
    ) -> Vec<Handle> {
        let (requests, batch): (Vec<_>, Vec<_>) = all
            .into_iter()
            .map(|new| {
                let request = self.asks(Request::Insert(new.clone()));
                let timer = NewTimer::at(&new.handler, time(new.due));
                let timer = timer.bytes(payload(request, self.length(request)));
                (request, new.key.iter().fold(timer, NewTimer::key))
            })
            .unzip();
        match timers.insert_many(batch).await {
            Ok(all) => {
                let all = requests.into_iter().zip(all);
                all.filter_map(|(request, it)| self.inserted(request, Ok(it)))
                    .collect()
            }
            Err(error) => {
                let is_full = matches!(error, Error::Full);
                if !is_full {
                    self.log.wrong(format!("inserts have failed: {error}"));
                }
                for request in requests.into_iter().filter(|_| is_full) {
                    self.answers(request, Ok(Answer::Unknown));
                }
                Vec::new()
            }
        }
    }

    /// Returns whether the timer may still exist.
    pub(crate) async fn cancel(&self, timers: &Durable, handle: &Handle) -> bool {
        let id = handle.id.get();
        let request = self.asks(Request::Cancel { id });
        let answer = timers.cancel(handle).await.map(|answer| match answer {
            Cancelled::Done => Answer::Done,
            Cancelled::AlreadyFired => Answer::AlreadyFired,
            Cancelled::NotFound => Answer::NotFound,
        });
        self.answers(request, answer) == Some(Answer::AlreadyFired)
    }

    /// Returns whether the timer may still exist.
    pub(crate) async fn reschedule(&self, timers: &Durable, handle: &Handle, due: i64) -> bool {
        let id = handle.id.get();
        let request = self.asks(Request::Reschedule { id, due });
        let answer = timers.reschedule(handle, time(due)).await;
        let answer = answer.map(|answer| match answer {
            Rescheduled::Done => Answer::Done,
            Rescheduled::AlreadyFired => Answer::AlreadyFired,
            Rescheduled::NotFound => Answer::NotFound,
        });
        let answer = self.answers(request, answer);
        answer.is_some_and(|it| it != Answer::NotFound)
    }

    pub(crate) async fn redrive(&self, timers: &Durable, id: u64) {
        let request = self.asks(Request::Redrive { id });
        let answer = timers.redrive(Id::from_stored(id)).await;
        let answer = answer.map(|answer| match answer {
            Redriven::Done => Answer::Done,
            Redriven::NotFound => Answer::NotFound,
        });
        self.answers(request, answer);
    }

    /// The number of bytes that follow in the payload of a request: less than `largest`, apart from a few.
    fn length(&self, request: u64) -> usize {
        let mut rng = fastrand::Rng::with_seed(!request);
        match rng.u8(..) {
            0 => 5_000,
            _ => rng.usize(0..self.largest),
        }
    }
}

fn named(handle: &Handle) -> Named {
    Named {
        id: handle.id.get(),
        due: handle.due.as_millis(),
        handler: (*handle.handler).into(),
    }
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}

/// The request's number, the length, and that many bytes, which are derived from the number.
fn payload(request: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(request);
    let mut payload = request.to_le_bytes().to_vec();
    payload.extend((length as u64).to_le_bytes());
    payload.extend(std::iter::repeat_with(|| rng.u8(..)).take(length));
    payload
}

/// The request's number, if the payload is intact.
pub(super) fn request_of(read: &[u8]) -> Option<u64> {
    let number = read.get(..8)?.try_into().ok()?;
    let request = u64::from_le_bytes(number);
    let length = read.len().checked_sub(16)?;
    (payload(request, length) == read).then_some(request)
}
