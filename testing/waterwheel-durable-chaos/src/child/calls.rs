//! Requests, each with a line before it and one after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable::{
    Cancelled, Durable, Error, Handle, Id, Inserted, NewTimer, Redriven, Rescheduled,
};

use super::log::Log;
use crate::protocol::{Answer, ChildOptions, Line, Named};

#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) log: Arc<Log>,
    /// The number of the next request. It is another one in each round.
    next: AtomicU64,
    /// How many bytes payloads have at most, but for a few of 5 000.
    largest: usize,
}

/// A timer to insert.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) handler: &'static str,
    /// In microseconds of the wall clock.
    pub(crate) due: i64,
    pub(crate) key: Option<String>,
}

impl Calls {
    pub(crate) fn new(log: Arc<Log>, options: &ChildOptions) -> Calls {
        Calls {
            log,
            next: AtomicU64::new(options.round * 1_000_000_000),
            largest: options.largest,
        }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn payload(&self, request: u64) -> Vec<u8> {
        payload(request, length(request, self.largest))
    }

    /// Announces an insert. What the timer carries names the request.
    fn announce(&self, wish: &Wish) -> (u64, NewTimer) {
        let request = self.number();
        self.log.say(&Line::Insert {
            request,
            thread: self.log.thread(),
            handler: wish.handler.into(),
            due: wish.due,
            key: wish.key.clone(),
        });
        let timer = NewTimer::at(wish.handler, time(wish.due)).bytes(self.payload(request));
        let timer = match &wish.key {
            Some(key) => timer.key(key),
            None => timer,
        };
        (request, timer)
    }

    fn inserted(&self, request: u64, inserted: Inserted) -> Handle {
        let timer = named(inserted.handle());
        self.log.say(&match inserted.is_new() {
            true => Line::Created { request, timer },
            false => Line::Existing { request, timer },
        });
        inserted.into_handle()
    }

    pub(crate) async fn insert(&self, timers: &Durable, wish: &Wish) -> Option<Handle> {
        let (request, _) = self.announce(wish);
        let insert = timers
            .at(wish.handler, time(wish.due))
            .bytes(self.payload(request));
        let insert = match &wish.key {
            Some(key) => insert.key(key),
            None => insert,
        };
        match insert.insert().await {
            Ok(inserted) => Some(self.inserted(request, inserted)),
            Err(Error::Full) => {
                self.log.say(&Line::Full { request });
                None
            }
            Err(error) => self.failed("an insert", &error),
        }
    }

    pub(crate) async fn insert_many(&self, timers: &Durable, wishes: &[Wish]) -> Vec<Handle> {
        let (requests, batch): (Vec<_>, Vec<_>) =
            wishes.iter().map(|wish| self.announce(wish)).unzip();
        match timers.insert_many(batch).await {
            Ok(all) => {
                let all = requests.into_iter().zip(all);
                all.map(|(request, it)| self.inserted(request, it))
                    .collect()
            }
            Err(Error::Full) => {
                for request in requests {
                    self.log.say(&Line::Unknown { request });
                }
                Vec::new()
            }
            Err(error) => {
                self.failed::<()>("inserts", &error);
                Vec::new()
            }
        }
    }

    /// Returns whether the timer may still be there.
    pub(crate) async fn cancel(&self, timers: &Durable, handle: &Handle) -> bool {
        let request = self.number();
        self.log.say(&Line::Cancel {
            request,
            thread: self.log.thread(),
            id: handle.id.get(),
        });
        let answer = match timers.cancel(handle).await {
            Ok(Cancelled::Done) => Answer::Done,
            Ok(Cancelled::AlreadyFired) => Answer::AlreadyFired,
            Ok(Cancelled::NotFound) => Answer::NotFound,
            Err(error) => return self.failed::<()>("a cancel", &error).is_some(),
        };
        self.log.say(&answer.line(request));
        answer == Answer::AlreadyFired
    }

    /// Returns whether the timer may still be there.
    pub(crate) async fn reschedule(&self, timers: &Durable, handle: &Handle, due: i64) -> bool {
        let request = self.number();
        self.log.say(&Line::Reschedule {
            request,
            thread: self.log.thread(),
            id: handle.id.get(),
            due,
        });
        let answer = match timers.reschedule(handle, time(due)).await {
            Ok(Rescheduled::Done) => Answer::Done,
            Ok(Rescheduled::AlreadyFired) => Answer::AlreadyFired,
            Ok(Rescheduled::NotFound) => Answer::NotFound,
            Err(error) => return self.failed::<()>("a reschedule", &error).is_some(),
        };
        self.log.say(&answer.line(request));
        answer != Answer::NotFound
    }

    pub(crate) async fn redrive(&self, timers: &Durable, id: Id) {
        let request = self.number();
        self.log.say(&Line::Redrive {
            request,
            thread: self.log.thread(),
            id: id.get(),
        });
        let answer = match timers.redrive(id).await {
            Ok(Redriven::Done) => Answer::Done,
            Ok(Redriven::NotFound) => Answer::NotFound,
            Err(error) => {
                self.failed::<()>("a redrive", &error);
                return;
            }
        };
        self.log.say(&answer.line(request));
    }

    /// The store of a child has no faults, and a full disk is one for inserts alone: no request fails.
    fn failed<T>(&self, what: &str, error: &Error) -> Option<T> {
        self.log.wrong(format!("{what} has failed: {error}"));
        None
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

/// The request's number, how many bytes follow, and these, which follow from the number.
fn payload(request: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(request);
    let mut payload = request.to_le_bytes().to_vec();
    payload.extend((length as u64).to_le_bytes());
    payload.extend(std::iter::repeat_with(|| rng.u8(..)).take(length));
    payload
}

/// How many bytes follow in the payload of a request: so many at most, but for a few.
fn length(request: u64, largest: usize) -> usize {
    let mut rng = fastrand::Rng::with_seed(!request);
    match rng.u8(..) {
        0 => 5_000,
        _ => rng.usize(0..largest),
    }
}

/// The request's number, if nothing has become of the payload.
pub(super) fn request_of(read: &[u8]) -> Option<u64> {
    let number = read.get(..8)?.try_into().ok()?;
    let request = u64::from_le_bytes(number);
    let length = read.len().checked_sub(16)?;
    (payload(request, length) == read).then_some(request)
}
