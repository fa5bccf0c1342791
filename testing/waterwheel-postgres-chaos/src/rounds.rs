//! The common part of all rounds: timers are inserted, something happens, and the checks follow.

use std::error::Error;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use waterwheel_postgres_server::Server;

use crate::cluster::Cluster;
use crate::log::{Event, Story, now};
use crate::node::Order;

pub(crate) type Done = Result<(), Box<dyn Error>>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    /// Whether the pauses are judged.
    pub(crate) is_quiet: bool,
}

/// The timers of a round: those of each short handler, and how long they take.
const TIMERS: Order = Order::Insert {
    count: 3_000,
    within: Duration::from_secs(8),
};

/// When something happens in a round.
const HAPPENS_AFTER: Duration = Duration::from_secs(2);

/// How late a settle may be written after its handler has returned, in microseconds: a kill in between is followed by another delivery.
pub(crate) const SETTLES_WITHIN: u64 = 1_000_000;

/// A cluster whose first process owns the timers and has inserted those of the first round.
pub(crate) struct Rounds {
    pub(crate) terms: Terms,
    pub(crate) cluster: Cluster,
    pub(crate) owner: usize,
    /// How long no delivery began in each round, in milliseconds.
    pub(crate) pauses: Vec<f64>,
    /// When timers were inserted that a failover may have lost.
    pub(crate) may_be_lost: Range<u64>,
    /// When the clock of a process was set, by that clock. A call that has begun just before may be noted as an early one.
    pub(crate) clock_was_set: Vec<Range<u64>>,
}

impl Rounds {
    pub(crate) fn new(terms: Terms) -> Result<Rounds, Box<dyn Error>> {
        Rounds::of(terms, Server::start(&[])?, Cluster::add)
    }

    /// Starts the rounds on this server. `add` starts the first process.
    pub(crate) fn of(
        terms: Terms,
        server: Server,
        add: impl FnOnce(&mut Cluster) -> Result<usize, Box<dyn Error>>,
    ) -> Result<Rounds, Box<dyn Error>> {
        let mut cluster = Cluster::new(server, terms.ttl)?;
        let owner = add(&mut cluster)?;
        cluster.until_noted(owner, "the first process opens", |it| {
            matches!(it, Event::Opens)
        })?;
        Ok(Rounds {
            terms,
            cluster,
            owner,
            pauses: Vec::new(),
            may_be_lost: 0..0,
            clock_was_set: Vec::new(),
        })
    }

    /// Inserts the timers of a round, and waits until its middle. Returns the standby.
    pub(crate) fn begin(&mut self) -> Result<usize, Box<dyn Error>> {
        let standby = self.cluster.add_standby()?;
        self.insert()?;
        Ok(standby)
    }

    pub(crate) fn insert(&mut self) -> Done {
        self.cluster.order(self.owner, TIMERS)?;
        // Not always in the same phase of the heartbeats.
        thread::sleep(HAPPENS_AFTER + Duration::from_micros(now() % 500_000));
        Ok(())
    }

    /// Ends a round in which the timers have changed hands.
    pub(crate) fn end(&mut self, owner: usize) -> Result<Story, Box<dyn Error>> {
        let story = self.check()?;
        let pause = story.pause(self.owner, owner);
        self.pauses
            .push(pause.ok_or("the new owner has delivered nothing")?);
        self.owner = owner;
        Ok(story)
    }

    /// Waits until all timers of a round were delivered, and checks what must be true of all rounds so far.
    pub(crate) fn check(&mut self) -> Result<Story, Box<dyn Error>> {
        self.cluster.until_delivered()?;
        let story = self.cluster.story();
        match (
            story.lost(&self.may_be_lost),
            story.early(&self.clock_was_set),
            story.assigned_twice(),
        ) {
            (0, 0, 0) => Ok(story),
            (lost, early, twice) => Err(format!(
                "{lost} timers were lost, {early} deliveries were early, {twice} ids were assigned twice"
            )
            .into()),
        }
    }

    /// Prints the pauses, and checks the longest one.
    pub(crate) fn report(mut self, what: &str, limit: Duration) -> Done {
        self.pauses.sort_by(f64::total_cmp);
        let (count, limit) = (self.pauses.len(), limit.as_secs_f64() * 1_000.0);
        let at = |part: usize| self.pauses[(count * part).div_ceil(100) - 1];
        let (median, p99, longest) = (at(50), at(99), at(100));
        println!(
            "{what}: {count} rounds, no delivery for {median:.0} ms (median), {p99:.0} ms (p99), {longest:.0} ms (longest)"
        );
        match p99 <= limit || !self.terms.is_quiet {
            true => Ok(()),
            false => Err(format!("{what}: {p99:.0} ms is longer than {limit:.0} ms").into()),
        }
    }
}
