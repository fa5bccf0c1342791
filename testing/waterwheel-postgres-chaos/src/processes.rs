//! Rounds in which something happens to a process.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use waterwheel_postgres_server::Server;

use crate::cluster::{Cluster, until};
use crate::log::{Event, Noted, now};
use crate::node::Order;
use crate::rounds::{Done, Rounds, SETTLES_WITHIN, Terms};

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

/// The wall clock of the owner is set by some seconds in both directions. Deliveries follow that clock, and nothing else changes.
pub(crate) fn clock(terms: Terms, rounds: u32) -> Done {
    let mut it = Rounds::of(terms, Server::start(&[])?, Cluster::add_with_clock)?;
    it.cluster.add_standby()?;
    for _ in 0..rounds {
        it.insert()?;
        for seconds in [3, -3, 0] {
            it.cluster.set_clock(&format!("{seconds:+}"))?;
            let there = || now().wrapping_add_signed(seconds * 1_000_000);
            let set_at = there();
            // The next event of the owner shows that its clock was set.
            let owner = it.owner;
            until("the clock is set", || {
                let last = it.cluster.events(owner).last().map(|it| it.at);
                last.is_some_and(|at| at.abs_diff(there()) < 1_000_000)
            })?;
            it.clock_was_set.push(set_at..there() + 500_000);
            thread::sleep(Duration::from_secs(2));
        }
        let story = it.check()?;
        if let Some((id, calls)) = story.twice().first() {
            return Err(format!("{id} was delivered twice: {calls:?}").into());
        }
    }
    println!("clock: {rounds} rounds, nothing was early by the clock of the owner");
    Ok(())
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
