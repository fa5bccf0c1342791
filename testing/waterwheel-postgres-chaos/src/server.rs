//! Rounds in which something happens to the server, or to the connections to it.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use waterwheel_postgres_server::Server;

use crate::cluster::{Cluster, until};
use crate::log::{Event, Noted, now};
use crate::rounds::{Done, Rounds, SETTLES_WITHIN, Terms};

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
    let end = |cluster: &Cluster| Ok(cluster.server.start_again()?);
    outage(
        "away",
        Rounds::new(terms)?,
        rounds,
        |it| Ok(it.server.stop()?),
        end,
    )
}

/// No transaction can commit for longer than one TTL, because a synchronous standby is lost. Reads work.
pub(crate) fn stall(terms: Terms, rounds: u32) -> Done {
    let set = |cluster: &Cluster, standbys: &str| {
        cluster.sql(&format!(
            "ALTER SYSTEM SET synchronous_standby_names = '{standbys}'"
        ));
        cluster.sql("SELECT pg_reload_conf()");
        Ok(())
    };
    let it = Rounds::new(terms)?;
    outage(
        "stall",
        it,
        rounds,
        |it| set(it, "missing"),
        |it| set(it, ""),
    )
}

/// The volume of the WAL is full for longer than one TTL, which ends the server.
pub(crate) fn full(terms: Terms, rounds: u32) -> Done {
    let it = Rounds::of(terms, Server::start_with_small_wal()?, Cluster::add)?;
    let end = |cluster: &Cluster| Ok(cluster.server.free_wal()?);
    outage("full", it, rounds, |it| Ok(it.server.fill_wal()?), end)
}

/// Something begins that no lease outlasts, and ends. Timers whose deliveries were in progress are delivered again.
fn outage(
    what: &str,
    mut it: Rounds,
    rounds: u32,
    begin: impl Fn(&Cluster) -> Done,
    end: impl Fn(&Cluster) -> Done,
) -> Done {
    for _ in 0..rounds {
        // One of them may have failed, and another one has taken over.
        let owner = it.owner;
        let standby = it.begin()?;
        let began_at = now();
        begin(&it.cluster)?;
        thread::sleep(it.terms.ttl + Duration::from_secs(2));
        if it.cluster.story().first_begin(now() - 1_000_000).is_some() {
            return Err(format!("{what}: deliveries go on without the server").into());
        }
        end(&it.cluster)?;
        let ended_at = now();
        let story = it.check()?;
        let first = story.first_begin(ended_at);
        let first = first.ok_or("nothing was delivered")?;
        it.pauses.push((first - ended_at) as f64 / 1_000.0);
        for (id, calls) in story.twice() {
            let ended = story.ended(id, calls[0].process);
            let was_settled = ended.is_some_and(|at| at + SETTLES_WITHIN < began_at);
            let is_of_round = calls[0].process == owner && calls[1].at >= began_at;
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
    it.report(what, Duration::from_secs(5))
}

/// The replies to this many commits are lost.
pub(crate) fn replies(terms: Terms, count: u32) -> Done {
    let mut it = Rounds::new(terms)?;
    it.cluster.add_standby()?;
    while it.cluster.proxy.swallowed() < count {
        it.insert()?;
        // The timers of a round last for longer than that.
        for _ in 0..10 {
            let before = it.cluster.proxy.swallowed();
            it.cluster.proxy.swallow_next_commit();
            until("a reply is lost", || it.cluster.proxy.swallowed() > before)?;
            thread::sleep(Duration::from_millis(100));
        }
        let story = it.check()?;
        if let Some((id, calls)) = story.twice().first() {
            return Err(format!("{id} was delivered twice: {calls:?}").into());
        }
    }
    let count = it.cluster.proxy.swallowed();
    println!("replies: {count} lost, each commit was carried out once");
    Ok(())
}

/// A standby of the server is promoted that misses the last WAL.
pub(crate) fn promote(terms: Terms, rounds: u32, without_check: bool) -> Done {
    let (mut reported, mut loaded) = (Vec::new(), 0);
    for _ in 0..rounds {
        let mut it = Rounds::new(terms)?;
        if without_check {
            it.cluster.sql(NO_CHECK);
        }
        let copy = it.cluster.server.start_standby()?;
        let (owner, standby) = (it.owner, it.begin()?);
        copy.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
        copy.sql("postgres", "SELECT pg_reload_conf()");
        let receives = "SELECT count(*) FROM pg_stat_wal_receiver";
        until("the standby is cut off", || {
            copy.sql("postgres", receives) == "0\n"
        })?;
        let cut_at = now();
        it.insert()?;
        it.cluster.server.stop()?;
        if copy.sql("postgres", "SELECT pg_promote()") != "t\n" {
            return Err("the standby was not promoted".into());
        }
        let promoted_at = now();
        it.cluster.fail_over_to(copy);
        it.may_be_lost = cut_at..promoted_at;
        // Those of a handler that needs no time.
        let unloaded =
            "SELECT count(*) FROM waterwheel.timers JOIN waterwheel.handlers ON number = handler
            WHERE name = 'instant' AND due < extract(epoch FROM now()) * 1000 - 1000";
        if without_check {
            thread::sleep(Duration::from_secs(5));
            match &*it.cluster.sql(unloaded) {
                "0\n" => return Err("an engine knows all timers that are due".into()),
                _ => continue,
            }
        }
        it.cluster.until_noted(standby, "the standby opens", |it| {
            matches!(it, Event::Opens)
        })?;
        until("an engine knows all timers that are due", || {
            it.cluster.sql(unloaded) == "0\n"
        })?;
        loaded = loaded.max(now() - promoted_at);
        let failed = it.cluster.events(owner);
        let failed = failed.iter().find(|it| matches!(it.event, Event::Fails));
        let failed_at = failed.ok_or("the failover was not reported")?.at;
        reported.push(failed_at.saturating_sub(promoted_at));
        it.owner = standby;
        it.insert()?;
        let story = it.check()?;
        for (id, calls) in story.twice() {
            let ended = calls
                .iter()
                .filter_map(|call| story.ended(id, call.process));
            let was_settled = ended.min().is_some_and(|at| at + SETTLES_WITHIN < cut_at);
            if was_settled {
                return Err(format!("{id} was delivered again: {calls:?}").into());
            }
        }
    }
    if without_check {
        println!(
            "promote: without the check, timers were due that no engine knew in each of {rounds} rounds"
        );
        return Ok(());
    }
    let longest = reported.into_iter().max().unwrap_or_default() / 1_000;
    let loaded = loaded / 1_000;
    println!(
        "promote: {rounds} rounds, reported within {longest} ms, all that was due known within {loaded} ms"
    );
    match longest <= 1_000 && loaded <= 5_000 || !terms.is_quiet {
        true => Ok(()),
        false => Err("promote: that took too long".into()),
    }
}

/// No commit finds out that those before it are missing.
const NO_CHECK: &str = "
    CREATE OR REPLACE FUNCTION waterwheel.timeline() RETURNS integer LANGUAGE sql AS 'SELECT 1';
    DO $$ BEGIN
        EXECUTE replace(pg_get_functiondef('waterwheel.begin_commit'::regproc), 'WHERE EXISTS', 'WHERE true OR EXISTS');
    END $$";
