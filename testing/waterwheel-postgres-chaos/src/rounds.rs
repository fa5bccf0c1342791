//! The rounds: an event in the life of a process or of the server, and the checks that follow.

use std::error::Error;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::cluster::{Cluster, until};
use crate::log::{Event, Noted, Story, now};
use crate::node::Order;

type Done = Result<(), Box<dyn Error>>;

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
const SETTLES_WITHIN: u64 = 1_000_000;

/// A cluster whose first process owns the timers and has inserted those of the first round.
struct Rounds {
    terms: Terms,
    cluster: Cluster,
    owner: usize,
    /// How long no delivery began in each round, in milliseconds.
    pauses: Vec<f64>,
}

impl Rounds {
    fn new(terms: Terms) -> Result<Rounds, Box<dyn Error>> {
        let mut cluster = Cluster::start(terms.ttl)?;
        let owner = cluster.add()?;
        cluster.until_noted(owner, "the first process opens", |it| {
            matches!(it, Event::Opens)
        })?;
        Ok(Rounds {
            terms,
            cluster,
            owner,
            pauses: Vec::new(),
        })
    }

    /// Inserts the timers of a round, and waits until its middle. Returns the standby.
    fn begin(&mut self) -> Result<usize, Box<dyn Error>> {
        let standby = self.cluster.add_standby()?;
        self.insert()?;
        Ok(standby)
    }

    fn insert(&mut self) -> Done {
        self.cluster.order(self.owner, TIMERS)?;
        // Not always in the same phase of the heartbeats.
        thread::sleep(HAPPENS_AFTER + Duration::from_micros(now() % 500_000));
        Ok(())
    }

    /// Ends a round in which the timers have changed hands.
    fn end(&mut self, owner: usize) -> Result<Story, Box<dyn Error>> {
        let story = self.check()?;
        let pause = story.pause(self.owner, owner);
        self.pauses
            .push(pause.ok_or("the new owner has delivered nothing")?);
        self.owner = owner;
        Ok(story)
    }

    /// Waits until all timers of a round were delivered, and checks what must be true of all rounds so far.
    fn check(&mut self) -> Result<Story, Box<dyn Error>> {
        self.cluster.until_delivered()?;
        let story = self.cluster.story();
        let (inserted, ended) = story.inserted();
        if inserted.len() != ended.len() {
            let lost = inserted.len() - ended.len();
            return Err(format!("{lost} of {} timers were lost", inserted.len()).into());
        }
        match story.early() {
            0 => Ok(story),
            early => Err(format!("{early} deliveries were early").into()),
        }
    }

    /// Prints the pauses, and checks the longest one.
    fn report(mut self, what: &str, limit: Duration) -> Done {
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

/// The owner is killed.
pub(crate) fn kill(terms: Terms, rounds: u32) -> Done {
    let mut it = Rounds::new(terms)?;
    let mut twice = 0;
    for _ in 0..rounds {
        let (owner, standby) = (it.owner, it.begin()?);
        it.cluster.signal(owner, Signal::KILL)?;
        let killed_at = now();
        let story = it.end(standby)?;
        let repeated = story.twice();
        let of_round = repeated
            .iter()
            .filter(|(_, calls)| calls[0].process == owner);
        for (id, calls) in of_round {
            let ended = story.ended(*id, owner);
            let was_settled = ended.is_some_and(|at| at + SETTLES_WITHIN < killed_at);
            if was_settled || calls.len() > 2 || calls[1].process != standby {
                return Err(format!("{id} was delivered again: {calls:?}").into());
            }
            twice += 1;
        }
        if let Some((id, calls)) = repeated.iter().find(|it| begins_twice(&it.1)) {
            return Err(format!("{id} was delivered twice by a process: {calls:?}").into());
        }
    }
    println!("kill: {twice} deliveries that the killed processes had begun were repeated");
    // The pause begins before the kill, with the last delivery.
    it.report("kill", terms.ttl + Duration::from_secs(1))
}

/// Whether a process has delivered a timer twice.
fn begins_twice(calls: &[Noted]) -> bool {
    let mut processes: Vec<usize> = calls.iter().map(|it| it.process).collect();
    processes.sort_unstable();
    processes.windows(2).any(|pair| pair[0] == pair[1])
}

/// The owner shuts down while handlers run.
pub(crate) fn hand_over(terms: Terms, rounds: u32) -> Done {
    let mut it = Rounds::new(terms)?;
    for _ in 0..rounds {
        let (owner, standby) = (it.owner, it.begin()?);
        it.cluster.order(owner, Order::ShutDown)?;
        it.cluster.until_ended(owner)?;
        let abandoned = it
            .cluster
            .events(owner)
            .iter()
            .find_map(|it| match it.event {
                Event::Ended { abandoned } => Some(abandoned),
                _ => None,
            });
        if abandoned != Some(0) {
            return Err(format!("the owner has abandoned {abandoned:?} deliveries").into());
        }
        let story = it.end(standby)?;
        if let Some((id, calls)) = story.twice().first() {
            return Err(format!("{id} was delivered twice: {calls:?}").into());
        }
        if let Some((handler, count)) = story.over_limit().first() {
            return Err(format!("{count} deliveries of {handler} ran at a time").into());
        }
    }
    it.report("hand-over", Duration::from_millis(500))
}

/// The owner is stopped for longer than one TTL in the middle of a commit, and goes on.
pub(crate) fn stop(terms: Terms, rounds: u32, without_fence: bool) -> Done {
    let mut it = Rounds::new(terms)?;
    it.cluster.sql(AUDIT);
    if without_fence {
        it.cluster.sql(NO_FENCE);
    }
    for _ in 0..rounds {
        let (owner, standby) = (it.owner, it.begin()?);
        // One of its commits arrives after the take-over.
        it.cluster.proxy.hold_next("begin_commit(");
        until("a commit is held", || it.cluster.proxy.is_held())?;
        it.cluster.signal(owner, Signal::STOP)?;
        it.cluster.until_noted(standby, "the standby opens", |it| {
            matches!(it, Event::Opens)
        })?;
        it.cluster.proxy.release();
        it.cluster.signal(owner, Signal::CONT)?;
        let goes_on_at = now();
        let story = it.end(standby)?;
        let begun = story.begins_from(owner, goes_on_at);
        if begun > 0 {
            return Err(format!("{begun} deliveries began in a process that was replaced").into());
        }
        let stale = "WITH stale AS (DELETE FROM audit WHERE writer IS DISTINCT FROM owner RETURNING 1) SELECT count(*) FROM stale";
        let stale = it.cluster.sql(stale);
        if (stale == "0\n") == without_fence {
            return Err(format!("{} stale writes", stale.trim()).into());
        }
        it.cluster.signal(owner, Signal::KILL)?;
    }
    let writes = it.cluster.sql("SELECT count(*) FROM audit");
    match without_fence {
        false => println!("stop: none of {} writes was stale", writes.trim()),
        true => println!("stop: without the fence, there were stale writes in each round"),
    }
    it.report("stop", terms.ttl + Duration::from_secs(1))
}

/// The server crashes and starts again at once.
pub(crate) fn restart(terms: Terms, rounds: u32) -> Done {
    interrupt(
        "restart",
        terms,
        rounds,
        Duration::from_secs(1),
        |cluster| {
            cluster.server.stop()?;
            cluster.server.start_again()?;
            Ok(())
        },
    )
}

/// All connections are closed by the server.
pub(crate) fn terminate(terms: Terms, rounds: u32) -> Done {
    interrupt(
        "terminate",
        terms,
        rounds,
        Duration::from_millis(500),
        |cluster| {
            let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
            cluster.sql(others);
            Ok(())
        },
    )
}

/// Something happens that a lease outlasts: the same process delivers each timer once.
fn interrupt(
    what: &str,
    terms: Terms,
    rounds: u32,
    limit: Duration,
    happens: impl Fn(&Cluster) -> Done,
) -> Done {
    let mut it = Rounds::new(terms)?;
    it.cluster.add_standby()?;
    for _ in 0..rounds {
        it.insert()?;
        let from = now();
        happens(&it.cluster)?;
        let story = it.check()?;
        let gap = story.longest_gap(it.owner, from);
        it.pauses.push(gap.ok_or("nothing was delivered")?);
        if let Some((id, calls)) = story.twice().first() {
            return Err(format!("{id} was delivered twice: {calls:?}").into());
        }
    }
    it.report(what, limit)
}

/// The server is away for longer than one TTL.
pub(crate) fn away(terms: Terms, rounds: u32) -> Done {
    let mut it = Rounds::new(terms)?;
    for _ in 0..rounds {
        // One of them may have failed, and another one has taken over.
        let owner = it.owner;
        let standby = it.begin()?;
        let stopped_at = now();
        it.cluster.server.stop()?;
        thread::sleep(terms.ttl + Duration::from_secs(2));
        it.cluster.server.start_again()?;
        let back_at = now();
        let story = it.check()?;
        let first = story.first_begin(back_at).ok_or("nothing was delivered")?;
        it.pauses.push((first - back_at) as f64 / 1_000.0);
        for (id, calls) in story.twice() {
            let ended = story.ended(id, calls[0].process);
            let was_settled = ended.is_some_and(|at| at + SETTLES_WITHIN < stopped_at);
            let is_of_round = calls[0].process == owner && calls[1].at >= stopped_at;
            if is_of_round && (was_settled || calls.len() > 2) {
                return Err(format!("{id} was delivered again: {calls:?}").into());
            }
        }
        let opens = |it: &Noted| matches!(it.event, Event::Opens);
        let has_taken_over = it.cluster.events(standby).iter().any(opens);
        let other = match has_taken_over {
            true => std::mem::replace(&mut it.owner, standby),
            false => standby,
        };
        it.cluster.signal(other, Signal::KILL)?;
    }
    it.report("away", Duration::from_secs(5))
}

/// Commits no longer compare the owner.
const NO_FENCE: &str = "
    DO $$ BEGIN
        EXECUTE replace(pg_get_functiondef('waterwheel.begin_commit'::regproc), 'held.owner IS DISTINCT FROM of_owner', 'false');
    END $$";

/// Notes who writes timers, and who owns them then. Each process has a name of its own.
const AUDIT: &str = "
    CREATE TABLE audit (writer text, owner text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO audit SELECT current_setting('application_name'), nodes.process
            FROM waterwheel.partitions LEFT JOIN waterwheel.nodes ON nodes.id = partitions.node;
        RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON waterwheel.timers FOR EACH STATEMENT EXECUTE FUNCTION note()";
