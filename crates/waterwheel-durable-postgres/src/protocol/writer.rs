use waterwheel_durable_core::engine::planted::{self, Planted};
use waterwheel_durable_core::store::{Ended, Id, Op, Outcome, StoreError};

use super::unblock::unblocking;
use super::{Attempts, Commit, Database, Failure, Lease, Opening, Rejection, Session, Terms};

const TAKEN_OVER: &str = "another process owns the timers now";
const FAILED_OVER: &str = "a failover of the database may have lost earlier commits";

/// Makes the commits of an opening, each carried out once and answered correctly, over as many connections as that takes.
///
/// A commit whose reply is lost is sent again, with the same number. It waits for the lost transaction, if that is still in progress, and violates the unique
/// constraint of the commit rows if that was carried out. A lost transaction that arrives later finds its own commit row, or finds that the row of the commit
/// before was deleted, which is refused as a gap.
///
/// If a call is cancelled, the writer must not be used again.
#[derive(Debug)]
pub struct Writer<D: Database> {
    db: D,
    terms: Terms,
    opening: Opening,
    lease: Lease,
    session: Option<D::Session>,
    /// The number of the last commit that was carried out.
    number: u64,
    /// The last commit that was carried out, by the number of the caller.
    last: Option<(u64, Vec<Outcome>)>,
    /// The number of the commit that has handed the partition over.
    handed_over: Option<u64>,
    /// The ends of deliveries that have been reported since, and whether a failover may have lost some.
    reported: Vec<(Id, Option<Ended>)>,
    repeats_reports: bool,
}

/// A commit that is sent until its outcome is known.
#[derive(Debug, Default)]
struct Sending {
    /// How often it was sent.
    count: u32,
    looks_for_keys: bool,
    /// The outcomes of an attempt that may have been carried out.
    doubt: Option<Vec<Outcome>>,
}

impl<D: Database> Writer<D> {
    /// Creates the writer of a new opening.
    pub fn new(db: D, terms: Terms, opening: Opening, lease: Lease) -> Writer<D> {
        Writer {
            db,
            terms,
            opening,
            lease,
            session: None,
            number: 0,
            last: None,
            handed_over: None,
            reported: Vec::new(),
            repeats_reports: false,
        }
    }

    /// Carries out a commit: see [`Store::commit`](waterwheel_durable_core::store::Store::commit). If the database cannot be reached, it tries again for
    /// one TTL.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        if let Some((last, outcomes)) = &self.last
            && *last == number
        {
            return Ok(outcomes.clone());
        }
        let reports = reports(steps);
        let outcomes = match reports.len() {
            0 => self.carry_out(steps).await?,
            count if count == steps.len() => {
                let outcomes = self.report(&reports).await?;
                self.reported.extend(reports);
                outcomes
            }
            _ => {
                let mixed = "a commit has reports of deliveries and other steps";
                return Err(StoreError::indeterminate(mixed));
            }
        };
        self.last = Some((number, outcomes.clone()));
        Ok(outcomes)
    }

    async fn carry_out(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let hands_over = steps.iter().any(|op| matches!(op, Op::HandOver(_)));
        if hands_over {
            self.lease.set_hands_over(true);
        }
        let sent = self.send(steps).await;
        match &sent {
            Ok(_) => {
                self.number += 1;
                self.handed_over = hands_over.then_some(self.number);
            }
            Err(error) if error.is_definite() => self.lease.set_hands_over(false),
            Err(_) => {}
        }
        sent
    }

    /// Reports the ends of deliveries that were handed over. Tries again for one TTL, since repetitions do no harm: if the database cannot be reached, and after a
    /// failover that may have lost a take-over, whose lease may last.
    async fn report(&mut self, ends: &[(Id, Option<Ended>)]) -> Result<Vec<Outcome>, StoreError> {
        let opening = self.opening;
        let give_up_at = self.db.now() + self.terms.ttl;
        loop {
            let mut report = async |session: &mut D::Session| session.report(&opening, ends).await;
            let why = match self.call_once(&mut report).await {
                Ok(true) => return Ok(vec![Outcome::Done; ends.len()]),
                Ok(false) => FAILED_OVER.to_owned(),
                Err(Failure::Disconnected(why)) => why.to_string(),
                Err(failure) => return Err(StoreError::definite(failure.to_string())),
            };
            if self.db.now() >= give_up_at {
                return Err(StoreError::definite(why));
            }
            let next = self.db.now() + self.terms.reconnect_every();
            self.db.sleep_until(next).await;
        }
    }

    /// Finds out whether another node has taken over, and after a failover, whether commits of this opening were lost. Call it at least once a second: an owner
    /// that makes no commits does not notice either otherwise.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn confirm(&mut self) -> Result<(), StoreError> {
        if self.lease.has_ended() {
            return Err(StoreError::lost(TAKEN_OVER));
        }
        if self.repeats_reports {
            self.report(&self.reported.clone()).await?;
            self.repeats_reports = false;
        }
        if !self.lease.is_unconfirmed() {
            return Ok(());
        }
        if let Some(number) = self.handed_over {
            return self.confirm_hand_over(number).await;
        }
        match self.confirm_once().await {
            Ok(()) => Ok(()),
            Err(Rejection::Fenced) => {
                self.lease.end();
                Err(StoreError::lost(TAKEN_OVER))
            }
            Err(Rejection::Refused(why) | Rejection::Disconnected(why)) => {
                Err(StoreError::definite(&*why))
            }
            Err(_) => Err(StoreError::lost(FAILED_OVER)),
        }
    }

    /// After a failover, finds out whether the hand-over was lost, and repeats the reports, which may be lost.
    async fn confirm_hand_over(&mut self, number: u64) -> Result<(), StoreError> {
        let opening = self.opening;
        let was_committed =
            self.call(async |session| session.was_committed(&opening, number).await);
        if was_committed.await? != Some(true) && !planted::is(Planted::LostHandOverKept) {
            self.lease.end();
            return Err(StoreError::lost(FAILED_OVER));
        }
        self.lease.set_unconfirmed(false);
        self.repeats_reports = !self.reported.is_empty();
        Ok(())
    }

    /// Returns the deliveries that were handed over to this opening: see [`Store::ends`](waterwheel_durable_core::store::Store::ends).
    ///
    /// # Errors
    ///
    /// [`StoreError`], which is definite.
    pub async fn attempts(&mut self) -> Result<Attempts, StoreError> {
        let opening = self.opening;
        let read = self.call(async |session| session.attempts(&opening).await);
        read.await?.ok_or_else(|| StoreError::definite(FAILED_OVER))
    }

    async fn send(&mut self, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let give_up_at = self.db.now() + self.terms.ttl;
        let mut sending = Sending::default();
        loop {
            let rejection = match self.attempt(steps, &mut sending).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(rejection) => rejection,
            };
            let is_in_doubt = sending.doubt.is_some();
            let lost = |why| match is_in_doubt {
                true => StoreError::indeterminate(why),
                false => StoreError::lost(why),
            };
            let rejection = match rejection {
                Rejection::Fenced => {
                    let resolved = self.resolve(is_in_doubt).await;
                    // If this commit has handed the partition over, handlers that are running keep the lease.
                    let may_be_done = matches!(resolved, Ok(Some(true)) | Err(_));
                    if !(self.lease.hands_over() && may_be_done) {
                        self.lease.end();
                    }
                    match resolved {
                        Ok(Some(true)) => return Ok(sending.doubt.unwrap_or_default()),
                        Ok(Some(false)) => return Err(StoreError::lost(TAKEN_OVER)),
                        Ok(None) => return Err(lost(TAKEN_OVER)),
                        Err(failure) => failure.into(),
                    }
                }
                Rejection::OtherTimeline => match self.confirm_once().await {
                    // The next attempt is fenced as well, and resolves a doubt.
                    Ok(()) | Err(Rejection::Fenced) => continue,
                    Err(rejection) => rejection,
                },
                rejection => rejection,
            };
            let why = match rejection {
                Rejection::Repeated => {
                    return sending.doubt.ok_or_else(|| {
                        StoreError::indeterminate("another process has written this commit")
                    });
                }
                Rejection::KeyTaken if planted::is(Planted::UniqueViolationIsDone) => {
                    return Ok(steps.iter().map(assumed).collect());
                }
                Rejection::KeyTaken if !sending.looks_for_keys => {
                    sending.looks_for_keys = true;
                    continue;
                }
                Rejection::KeyTaken => "a unique constraint is violated".into(),
                // The commits after a missing one are missing too, so this one was not carried out.
                Rejection::Gap => return Err(StoreError::lost(FAILED_OVER)),
                Rejection::OtherTimeline | Rejection::Fenced => return Err(lost(FAILED_OVER)),
                Rejection::Refused(why) if !is_in_doubt => return Err(StoreError::definite(&*why)),
                Rejection::Refused(why) | Rejection::Disconnected(why) => why,
                Rejection::InDoubt(outcomes, why) => {
                    if planted::is(Planted::DoubtIsRefusal) {
                        return Err(StoreError::definite(&*why));
                    }
                    sending.doubt = Some(outcomes);
                    why
                }
            };
            sending.count += 1;
            // A lost reply is followed by another attempt, however long it was waited for.
            if self.db.now() >= give_up_at && sending.count > 1 {
                return Err(match sending.doubt {
                    Some(_) => StoreError::indeterminate(&*why),
                    None => StoreError::definite(&*why),
                });
            }
            if sending.count > 1 {
                self.db
                    .sleep_until(self.db.now() + self.terms.reconnect_every())
                    .await;
            }
        }
    }

    /// Sends a commit once.
    async fn attempt(
        &mut self,
        steps: &[Op],
        sending: &mut Sending,
    ) -> Result<Vec<Outcome>, Rejection> {
        let mut session = self.connect().await?;
        let number = self.number + 1;
        let kept = self.terms.kept_commits.max(1);
        let commit = Commit {
            opening: &self.opening,
            number,
            steps,
            looks_for_keys: sending.looks_for_keys,
            keeps_from: number.saturating_sub(kept) / kept * kept,
        };
        let sent = if sending.count > 0 && self.lease.is_held(self.db.now()) {
            // The lost transaction may have the lock.
            let pid = session.begin().await?;
            unblocking(&self.db, self.terms, pid, session.transact(&commit)).await
        } else {
            session.transact(&commit).await
        };
        self.keep(session, &sent);
        sent
    }

    /// Keeps the session for the next call, unless its connection is lost.
    fn keep<T>(&mut self, session: D::Session, sent: &Result<T, Rejection>) {
        if !matches!(
            sent,
            Err(Rejection::Disconnected(_) | Rejection::InDoubt(..))
        ) {
            self.session = Some(session);
        }
    }

    /// Confirms the opening on another timeline of the server, if the lease is held: then no other opening can have begun before the failover.
    async fn confirm_once(&mut self) -> Result<(), Rejection> {
        let mut session = self.connect().await?;
        if !self.lease.is_held(self.db.now()) {
            return Err(Rejection::OtherTimeline);
        }
        let confirmed = session.confirm(&self.opening, self.number).await;
        self.keep(session, &confirmed);
        if confirmed.is_ok() {
            self.lease.set_unconfirmed(false);
        }
        confirmed
    }

    async fn connect(&mut self) -> Result<D::Session, Failure> {
        match self.session.take() {
            Some(session) => Ok(session),
            None => self.db.connect(self.terms.commit_within()).await,
        }
    }

    /// Another opening has begun: a commit in doubt was carried out before, or never will be. Returns whether it was, or `None` if that is no longer known.
    async fn resolve(&mut self, is_in_doubt: bool) -> Result<Option<bool>, Failure> {
        if !is_in_doubt {
            return Ok(Some(false));
        }
        let mut session = self.connect().await?;
        let number = self.number + 1;
        let was_committed = session.was_committed(&self.opening, number).await?;
        self.session = Some(session);
        Ok(was_committed)
    }

    /// Makes a call that may be repeated. A lost connection is replaced once.
    ///
    /// # Errors
    ///
    /// [`StoreError`], which is definite.
    pub async fn call<T>(
        &mut self,
        mut call: impl AsyncFnMut(&mut D::Session) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let was_connected = self.session.is_some();
        let reply = match self.call_once(&mut call).await {
            Err(Failure::Disconnected(_)) if was_connected => self.call_once(&mut call).await,
            reply => reply,
        };
        reply.map_err(|failure| StoreError::definite(failure.to_string()))
    }

    async fn call_once<T>(
        &mut self,
        call: &mut impl AsyncFnMut(&mut D::Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut session = self.connect().await?;
        let reply = call(&mut session).await;
        if !matches!(reply, Err(Failure::Disconnected(_))) {
            self.session = Some(session);
        }
        reply
    }
}

/// The ends of deliveries among these steps.
fn reports(steps: &[Op]) -> Vec<(Id, Option<Ended>)> {
    let reports = steps.iter().filter_map(|op| match op {
        Op::Report(id, end) => Some((*id, end.clone())),
        _ => None,
    });
    reports.collect()
}

/// The outcome of a step that is assumed by a planted fault.
fn assumed(op: &Op) -> Outcome {
    match op {
        Op::Insert(..) => Outcome::Inserted,
        Op::Cancel(_) | Op::Discard(_) => Outcome::Cancelled(true),
        _ => Outcome::Done,
    }
}
