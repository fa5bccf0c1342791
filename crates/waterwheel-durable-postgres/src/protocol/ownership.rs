use std::time::Duration;

use waterwheel_durable_core::engine::planted::{self, Planted};

use super::observation::Observation;
use super::unblock::unblocking;
use super::{
    Beat, Claim, Database, Failure, Holder, Lease, NodeId, Opening, OwnerId, Session, Terms,
};

/// A change of who owns the partition.
#[derive(Debug, Clone)]
pub enum Event {
    /// This node has opened the partition. The lease tells whether it may deliver.
    Opened(Opening, Lease),
    /// This node no longer owns the partition: its engine has to end.
    Lost,
    /// A heartbeat has succeeded, but this node cannot take the partition yet.
    Standby {
        /// Whether the heartbeat proves that another node holds it: the counter of that node has changed.
        is_held: bool,
    },
    /// Deliveries may continue: the lease of this node is held again after it was not for a while, or they are no longer suspended.
    Regained,
    /// While this node does not own the partition, a heartbeat or a take-over has failed.
    Failed(Failure),
}

/// The part of a node that renews its lease of a partition, or waits to take it over.
#[derive(Debug)]
pub struct Ownership<D: Database> {
    db: D,
    terms: Terms,
    partition: u8,
    node: NodeId,
    session: Option<D::Session>,
    is_registered: bool,
    /// Whether its row may exist: the reply to its insert may be lost.
    may_be_registered: bool,
    observation: Observation,
    /// The current opening, or the last one as long as it may be current.
    opening: Option<(Opening, Lease)>,
    /// Whether its engine runs.
    is_open: bool,
    /// The last opening that was claimed. The claim may succeed although the reply is lost.
    claimed: Option<OwnerId>,
    next_beat: Duration,
    /// The holder from which a take-over is possible now.
    may_take: Option<Holder>,
    /// A node that has handed the partition over and may be declared dead now, with its counter.
    may_be_dead: Option<(NodeId, u64)>,
    /// Whether deliveries were suspended at the last heartbeat.
    is_suspended: bool,
    /// The timeline of the server at the last heartbeat.
    timeline: Option<u32>,
}

impl<D: Database> Ownership<D> {
    /// Creates a node that owns nothing yet.
    pub fn new(db: D, partition: u8, terms: Terms) -> Ownership<D> {
        Ownership {
            terms,
            partition,
            node: NodeId(db.random()),
            session: None,
            is_registered: false,
            may_be_registered: false,
            observation: Observation::default(),
            opening: None,
            is_open: false,
            claimed: None,
            next_beat: Duration::ZERO,
            may_take: None,
            may_be_dead: None,
            is_suspended: false,
            timeline: None,
            db,
        }
    }

    /// Sends heartbeats until the next event. If it is called again after a loss, it waits as a standby. Has to be called again after any other event, since the
    /// lease ends otherwise. May be cancelled, which closes the connection.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.turn().await {
                return event;
            }
        }
    }

    /// Gives the partition back, so that another node opens it at once. The engine of this node must write nothing any more. A lost connection is replaced once.
    ///
    /// # Errors
    ///
    /// [`Failure`]. Then the lease runs out.
    pub async fn release(&mut self) -> Result<(), Failure> {
        if let Some((_, lease)) = self.opening.take() {
            lease.end();
        }
        self.is_open = false;
        if !self.may_be_registered {
            return Ok(());
        }
        match self.leave().await {
            Err(Failure::Disconnected(_)) => self.leave().await,
            left => left,
        }
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.db.connect(self.terms.call_within()).await?,
        };
        session.leave(self.node, self.partition, self.claimed).await
    }

    async fn turn(&mut self) -> Option<Event> {
        let was_closed = self.is_open && self.lease().is_some_and(Lease::is_closed);
        if was_closed {
            (self.is_open, self.next_beat) = (false, self.db.now());
        } else if let Some(holder) = self.may_take.take() {
            return self.take(holder).await;
        } else if let Some((node, counter)) = self.may_be_dead.take() {
            if self.declare_dead(node, counter).await.is_err() {
                self.observation.reset();
            }
            return None;
        }
        let now = self.db.now();
        let wakes_at = match self.takes_at() {
            Some(at) => at.min(self.next_beat),
            None => self.next_beat,
        };
        if now < wakes_at {
            let sleep = self.db.sleep_until(wakes_at);
            match self.lease().filter(|_| self.is_open) {
                Some(lease) => tokio::select! {
                    biased;
                    () = lease.closed() => {}
                    () = sleep => {}
                },
                None => sleep.await,
            }
            return None;
        }
        self.next_beat = now
            + match self.is_open {
                true => self.terms.beat_every(),
                false => self.terms.standby_beat_every(),
            };
        let (db, fails_at) = (self.db.clone(), now + self.terms.call_within());
        let beat = tokio::select! {
            biased;
            beat = self.beat() => beat,
            () = db.sleep_until(fails_at) => {
                let why = format!("no reply within {:?}", self.terms.call_within());
                Err(Failure::Disconnected(why.into()))
            }
        };
        match beat {
            Ok((sent, beat)) => self.handle_beat(sent, beat),
            Err(failure) => {
                // The holder's heartbeats may fail as well.
                self.observation.reset();
                self.next_beat = self.db.now() + self.terms.reconnect_every();
                (!self.is_open).then_some(Event::Failed(failure))
            }
        }
    }

    fn lease(&self) -> Option<&Lease> {
        self.opening.as_ref().map(|(_, lease)| lease)
    }

    /// When the holder will have been observed for long enough.
    fn takes_at(&self) -> Option<Duration> {
        let since = self.observation.since().filter(|_| !self.is_open)?;
        Some(since + self.terms.ttl)
    }

    /// Takes the session, or connects. A call that fails or is cancelled drops its session, which may have a transaction open.
    async fn connect(&mut self) -> Result<D::Session, Failure> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                // Nothing is known about the time without a session.
                self.observation.reset();
                self.db.connect(self.terms.call_within()).await?
            }
        };
        if !self.is_registered {
            self.may_be_registered = true;
            session.register(self.node).await?;
            self.is_registered = true;
        }
        Ok(session)
    }

    /// Sends a heartbeat. Returns when it was sent.
    async fn beat(&mut self) -> Result<(Duration, Beat), Failure> {
        let mut session = self.connect().await?;
        let sent = self.db.now();
        let beat = session.beat(self.node, self.partition).await?;
        self.session = Some(session);
        let sent = match planted::is(Planted::TrustByReceipt) {
            true => self.db.now(),
            false => sent,
        };
        Ok((sent, beat))
    }

    /// Handles the reply to a heartbeat that was sent at this time.
    fn handle_beat(&mut self, sent: Duration, mut beat: Beat) -> Option<Event> {
        let now = self.db.now();
        let until = sent + self.terms.trusted();
        if !beat.is_registered {
            if planted::is(Planted::HeartbeatOfNoRows) && self.is_open {
                self.lease()?.extend(until);
                return None;
            }
            // Another node has declared this one dead: it begins again as a new one.
            (self.node, self.is_registered) = (NodeId(self.db.random()), false);
            self.observation.reset();
            return self.lose();
        }
        // It is no part of what is observed.
        self.is_suspended = std::mem::take(&mut beat.is_suspended);
        let before = self.timeline.replace(beat.timeline);
        if let Some(lease) = self.lease().filter(|it| self.is_open && it.hands_over()) {
            // A failover may have lost the hand-over.
            if before != Some(beat.timeline) {
                lease.set_unconfirmed(true);
            }
            // If it was not held for a while, the new owner may have declared this node dead, and a failover may have lost that.
            if lease.is_held(now) && !lease.is_unconfirmed() {
                lease.extend(until);
            }
            return None;
        }
        let others = std::mem::take(&mut beat.others);
        let holder = &mut beat.holder;
        // After a failover, the row may miss a take-over that was lost, and the lease of that node may last. Nobody has taken over while a lease of this node
        // was held.
        let is_current =
            holder.timeline == beat.timeline || planted::is(Planted::OldTimelineCounts);
        let is_own = holder.node == Some(self.node);
        let mine = self
            .opening
            .as_ref()
            .filter(|(opening, _)| opening.owner == holder.owner && is_own);
        let is_held = mine.is_some_and(|(_, lease)| lease.is_held(now));
        if let Some((_, lease)) = mine.filter(|_| self.is_open && (is_held || is_current)) {
            lease.extend(until);
            lease.set_unconfirmed(!is_current);
            let was_suspended = lease.set_suspended(self.is_suspended);
            let is_regained = !is_held && lease.is_held(now) || was_suspended && !self.is_suspended;
            self.observe_others(others, is_current, now);
            return is_regained.then_some(Event::Regained);
        }
        let from = holder.clone();
        if is_own {
            // Its own heartbeats say nothing about an opening that it has lost.
            holder.counter = None;
        }
        let is_free = holder.node.is_none() || is_own;
        let has_changed = self.observation.see(&beat, now);
        let is_held_by_another = has_changed && !is_free;
        let was_observed = self
            .observation
            .since()
            .is_some_and(|at| at + self.terms.ttl <= now);
        if was_observed || is_free && is_current || is_held {
            self.may_take = Some(from);
        }
        if self.is_open {
            return self.lose();
        }
        self.may_take.is_none().then_some(Event::Standby {
            is_held: is_held_by_another,
        })
    }

    /// Observes the nodes that have handed this partition over and whose handlers are running.
    fn observe_others(&mut self, others: Vec<(NodeId, u64)>, is_current: bool, now: Duration) {
        if !is_current {
            self.observation.reset();
        }
        let longest = self.observation.see_others(others, now);
        let longest = longest.filter(|(since, ..)| *since + self.terms.ttl <= now);
        if !planted::is(Planted::DeadNodesKept) {
            self.may_be_dead = longest.map(|(_, node, counter)| (node, counter));
        }
    }

    /// Declares a node dead if its counter is still the same. Its deliveries that have not ended are given back.
    async fn declare_dead(&mut self, node: NodeId, counter: u64) -> Result<(), Failure> {
        let (Some((opening, _)), Some(mut session)) = (&self.opening, self.session.take()) else {
            return Ok(());
        };
        let claim = Claim {
            partition: self.partition,
            node: self.node,
            owner: opening.owner,
            from: Holder {
                node: Some(node),
                counter: Some(counter),
                owner: opening.owner,
                timeline: 0,
            },
        };
        let pid = session.begin().await?;
        let claimed = session.claim(&claim);
        if unblocking(&self.db, self.terms, pid, claimed).await? {
            session.remove(&claim).await?;
        }
        self.session = Some(session);
        Ok(())
    }

    /// Ends the current opening.
    fn lose(&mut self) -> Option<Event> {
        if let Some((_, lease)) = self.opening.take() {
            lease.end();
        }
        std::mem::take(&mut self.is_open).then_some(Event::Lost)
    }

    /// Takes the partition over from this holder, unless it lives.
    async fn take(&mut self, from: Holder) -> Option<Event> {
        let sent = self.db.now();
        let owner = OwnerId(self.db.random());
        self.claimed = Some(owner);
        let claim = Claim {
            partition: self.partition,
            node: self.node,
            owner,
            from,
        };
        let taken = self.claim(&claim).await;
        // Whatever has happened, the next heartbeat tells who holds the partition.
        self.next_beat = self.db.now();
        self.observation.reset();
        match taken {
            Ok(Some(epoch)) => {
                let opening = Opening {
                    partition: self.partition,
                    node: self.node,
                    owner,
                    epoch,
                };
                let lease = Lease::default();
                lease.set_suspended(self.is_suspended);
                lease.extend(sent + self.terms.trusted());
                self.opening = Some((opening, lease.clone()));
                self.is_open = true;
                Some(Event::Opened(opening, lease))
            }
            Ok(None) => None,
            Err(failure) => {
                self.next_beat += self.terms.reconnect_every();
                Some(Event::Failed(failure))
            }
        }
    }

    async fn claim(&mut self, claim: &Claim) -> Result<Option<u64>, Failure> {
        let Some(mut session) = self.session.take() else {
            return Ok(None);
        };
        let mut epoch = None;
        let pid = session.begin().await?;
        let claimed = session.claim(claim);
        if unblocking(&self.db, self.terms, pid, claimed).await? {
            let take = session.take(claim);
            epoch = unblocking(&self.db, self.terms, pid, take).await?;
        }
        self.session = Some(session);
        Ok(epoch.map(|drawn| drawn.epoch))
    }
}
