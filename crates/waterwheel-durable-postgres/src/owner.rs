use std::fmt;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;
use waterwheel_durable_core::store::Hint;

use crate::protocol::{Event, Failure, Lease, Opening, Ownership};
use crate::server::{Server, runtime};

/// How often a caller that waits is asked whether it still does.
const ASKS_EVERY: Duration = Duration::from_millis(100);

/// How long giving the partition back may delay the end of a service.
const RELEASES_WITHIN: Duration = Duration::from_secs(5);

/// The thread that sends the heartbeats of a node, until the node has lost the partition or gives it back. It does nothing else, so that a busy service does not
/// lose its lease.
pub(crate) struct Owner {
    hint: Arc<Mutex<Option<Hint>>>,
    events: mpsc::Receiver<Event>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Why a partition was not opened.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// Another node holds it.
    Held,
    /// The last heartbeat has failed.
    Failed(Failure),
    /// The caller no longer waits.
    Unwanted,
    /// The thread has ended: the partition was lost, if it was opened before.
    Ended,
    /// There is no thread.
    Io(io::Error),
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> NotOpened {
        NotOpened::Io(error)
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOpened::Held => f.write_str("another process owns the timers"),
            NotOpened::Failed(failure) => failure.fmt(f),
            NotOpened::Unwanted => f.write_str("the caller no longer waits for the timers"),
            NotOpened::Ended => {
                f.write_str("the thread for the lease has ended (please report this bug)")
            }
            NotOpened::Io(error) => write!(f, "cannot start a thread or a runtime: {error}"),
        }
    }
}

/// How long to wait for an opening.
pub(crate) struct Patience<'a> {
    /// While another node holds the partition or the database cannot be reached. `None`: without limit.
    pub(crate) at_most: Option<Duration>,
    /// Until the database is reached for the first time.
    pub(crate) unreached: Duration,
    pub(crate) is_wanted: &'a dyn Fn() -> bool,
}

impl Owner {
    pub(crate) fn start(server: Server, partition: u8) -> io::Result<Owner> {
        let (sender, events) = mpsc::channel();
        let (stop, mut stopped) = oneshot::channel();
        let runtime = runtime()?;
        let hint = Arc::new(Mutex::new(None::<Hint>));
        let regained = Arc::clone(&hint);
        let run = async move {
            let terms = server.terms();
            let mut ownership = Ownership::new(server, partition, terms);
            loop {
                let event = tokio::select! {
                    biased;
                    _ = &mut stopped => break,
                    event = ownership.next() => event,
                };
                if let Event::Regained = event {
                    let hint = regained.lock().unwrap_or_else(PoisonError::into_inner);
                    let hint = hint.clone();
                    if let Some(hint) = hint {
                        hint.give();
                    }
                    continue;
                }
                let is_lost = matches!(event, Event::Lost);
                if sender.send(event).is_err() || is_lost {
                    break;
                }
            }
            // If this fails, the lease runs out.
            let _ = timeout(RELEASES_WITHIN, ownership.release()).await;
        };
        let thread = thread::Builder::new().name("waterwheel-lease".into());
        let thread = thread.spawn(move || {
            runtime.block_on(run);
            runtime.shutdown_background();
        })?;
        Ok(Owner {
            hint,
            events,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Waits until this node has opened the partition.
    pub(crate) fn opened(&self, patience: &Patience<'_>) -> Result<(Opening, Lease), NotOpened> {
        opened(&self.events, patience)
    }

    /// Sets the hint that is given when the lease is held again.
    pub(crate) fn set_hint(&self, hint: Hint) {
        *self.hint.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
    }

    /// Begins to give the partition back.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }
}

/// Waits for the event that this node has opened the partition.
fn opened(
    events: &mpsc::Receiver<Event>,
    patience: &Patience<'_>,
) -> Result<(Opening, Lease), NotOpened> {
    let begun = Instant::now();
    let mut is_reached = false;
    let mut why = None;
    loop {
        let news = match events.recv_timeout(ASKS_EVERY) {
            Ok(Event::Opened(opening, lease)) => return Ok((opening, lease)),
            Ok(Event::Standby { is_held }) => {
                is_reached = true;
                why = why.filter(|why| matches!(why, NotOpened::Held));
                is_held.then_some(NotOpened::Held)
            }
            Ok(Event::Failed(failure)) => Some(NotOpened::Failed(failure)),
            Ok(Event::Lost | Event::Regained) | Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(NotOpened::Ended),
        };
        why = news.or(why);
        if !(patience.is_wanted)() {
            return Err(NotOpened::Unwanted);
        }
        let limit = match is_reached {
            true => patience.at_most,
            false => Some(patience.unreached),
        };
        if limit.is_some_and(|limit| begun.elapsed() >= limit)
            && let Some(why) = why.take()
        {
            return Err(why);
        }
    }
}

impl Drop for Owner {
    /// Gives the partition back.
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{NodeId, OwnerId};

    const NOT_HELD: Event = Event::Standby { is_held: false };
    const HELD: Event = Event::Standby { is_held: true };

    fn failed() -> Event {
        Event::Failed(Failure::Disconnected("no".into()))
    }

    fn open() -> Event {
        let opening = Opening {
            partition: 0,
            node: NodeId(1),
            owner: OwnerId(2),
            epoch: 3,
        };
        Event::Opened(opening, Lease::default())
    }

    /// Waits for an opening in a thread that sends these events and then goes on for long, or ends.
    fn wait(
        events: Vec<Event>,
        ends: bool,
        at_most: Option<Duration>,
        unreached: Duration,
    ) -> String {
        let (sender, receiver) = mpsc::channel();
        for event in events {
            sender.send(event).unwrap();
        }
        let _going_on = (!ends).then_some(sender);
        let patience = Patience {
            at_most,
            unreached,
            is_wanted: &|| true,
        };
        match opened(&receiver, &patience) {
            Ok((opening, _)) => format!("opened {}", opening.epoch),
            Err(NotOpened::Failed(failure)) => failure.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_opening_waits_for_as_long_as_it_should() {
        let (now, later) = (Duration::ZERO, Duration::from_secs(3_600));
        let (held, no) = (
            "another process owns the timers",
            "cannot reach the database: no",
        );
        for (events, at_most, unreached, result) in [
            // An owner that lives ends an opening that does not wait, and no other one.
            (vec![HELD, open()], Some(now), now, held),
            (vec![HELD, open()], Some(later), now, "opened 3"),
            (vec![HELD, open()], None, now, "opened 3"),
            (vec![NOT_HELD, NOT_HELD, open()], Some(now), now, "opened 3"),
            (vec![NOT_HELD, HELD], Some(now), now, held),
            // The database is not reached at first, or later.
            (vec![failed(), open()], None, now, no),
            (vec![failed(), open()], None, later, "opened 3"),
            (
                vec![failed(), NOT_HELD, open()],
                Some(now),
                later,
                "opened 3",
            ),
            (vec![NOT_HELD, failed(), open()], None, now, "opened 3"),
            (vec![NOT_HELD, failed(), open()], Some(now), later, no),
        ] {
            let words = format!("{events:?}");
            assert_eq!(wait(events, false, at_most, unreached), result, "{words}");
        }
        let ended = wait(vec![NOT_HELD], true, None, now);
        assert!(
            ended.contains("the thread for the lease has ended"),
            "{ended}"
        );
    }
}
