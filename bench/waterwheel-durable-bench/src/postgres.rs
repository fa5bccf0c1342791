//! A PostgreSQL server and what it costs.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use waterwheel_postgres_server::{NotStarted, Server, database_of, sql_at};

use crate::place::Failure;

/// Starts a server that syncs, with memory and WAL as on a small server of its own.
pub(crate) fn start() -> Result<Server, NotStarted> {
    let options = [
        "fsync=on",
        "shared_buffers=1GB",
        "max_wal_size=8GB",
        "wal_compression=lz4",
    ];
    let options: Vec<_> = options.into_iter().flat_map(|it| ["-c", it]).collect();
    Server::start(&options)
}

/// Returns the URL of a database of this name, which is created anew or is there already.
pub(crate) fn database(server: &Server, name: &str, is_new: bool) -> Result<String, String> {
    if is_new {
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        server.try_sql("postgres", &drop)?;
        server.try_sql("postgres", &format!("CREATE DATABASE {name}"))?;
    }
    Ok(server.url(name))
}

/// The CPU time of a server with all processes that it has started. It is in the folder of the socket that the URL names.
pub(crate) fn cpu_time(url: &str) -> Result<Duration, Failure> {
    let host = url
        .split_once('@')
        .and_then(|(_, rest)| rest.split_once(':'));
    let folder = host.ok_or("no socket in the URL")?.0.replace("%2F", "/");
    let lock = fs::read_to_string(format!("{folder}/.s.PGSQL.5432.lock"))?;
    let pid = lock.lines().next().ok_or("an empty lock file")?.trim();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    // With those of its children that have ended.
    let mut ticks: u64 = ticks(pid).ok_or("no server")?.iter().sum();
    for child in children.split_whitespace() {
        // It may have ended.
        ticks += self::ticks(child).map_or(0, |it| it[0] + it[1]);
    }
    let second = clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / second as f64))
}

/// The user and system time of a process, and those of its children that have ended.
fn ticks(pid: &str) -> Option<[u64; 4]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: Vec<u64> = fields.take(4).filter_map(|it| it.parse().ok()).collect();
    ticks.try_into().ok()
}

/// The bytes of WAL and of pages that the server has written.
pub(crate) fn written(url: &str) -> Result<f64, Failure> {
    let sql = "SELECT wal_bytes + 8192 * (buffers_checkpoint + buffers_clean + buffers_backend) FROM pg_stat_bgwriter, pg_stat_wal";
    Ok(sql_at(url, sql)?.trim().parse()?)
}

/// The size of the database in bytes.
pub(crate) fn size(url: &str) -> Result<f64, Failure> {
    let sql = format!("SELECT pg_database_size('{}')", database_of(url));
    Ok(sql_at(url, &sql)?.trim().parse()?)
}
