//! A server, and the processes that share the timers in one of its databases.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Proxy, Server, database_of};

use crate::log::{Event, Noted, Story, read};
use crate::node::Order;

/// How long to wait for something that happens within seconds on a machine with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Cluster {
    pub(crate) server: Server,
    /// Through which the processes reach the server.
    pub(crate) proxy: Proxy,
    url: String,
    logs: TempDir,
    processes: Vec<Process>,
}

struct Process {
    child: Child,
    log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cluster {
    pub(crate) fn new(server: Server, ttl: Duration) -> Result<Cluster, Box<dyn Error>> {
        let url = server.database();
        Postgres::new(&url).ttl(ttl).migrate()?;
        Ok(Cluster {
            proxy: Proxy::start(&server)?,
            server,
            url,
            logs: tempfile::tempdir()?,
            processes: Vec::new(),
        })
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(database_of(&self.url), sql)
    }

    /// Another server continues, at the same address.
    pub(crate) fn fail_over_to(&mut self, other: Server) {
        self.proxy.move_to(&other);
        self.server = other;
    }

    /// Starts a process. Returns its number.
    pub(crate) fn add(&mut self) -> Result<usize, Box<dyn Error>> {
        self.add_with(|_| {})
    }

    /// Starts a process whose wall clock can be [set](Cluster::set_clock).
    pub(crate) fn add_with_clock(&mut self) -> Result<usize, Box<dyn Error>> {
        self.set_clock("+0")?;
        let (library, clock) = (fake_clock()?, self.clock());
        self.add_with(|command| {
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME_TIMESTAMP_FILE", &clock)
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        })
    }

    fn clock(&self) -> PathBuf {
        self.logs.path().join("clock")
    }

    /// Sets the clock of processes, by this many seconds, such as `+3`.
    pub(crate) fn set_clock(&self, offset: &str) -> Result<(), Box<dyn Error>> {
        // By a rename, so that no process reads half of it.
        let next = self.logs.path().join("next-clock");
        fs::write(&next, offset)?;
        fs::rename(next, self.clock())?;
        Ok(())
    }

    fn add_with(&mut self, set: impl FnOnce(&mut Command)) -> Result<usize, Box<dyn Error>> {
        let number = self.processes.len();
        let log = self.logs.path().join(number.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["node", &self.proxy.url(&self.url)]).arg(&log);
        set(&mut command);
        let child = command.stdin(Stdio::piped()).spawn()?;
        self.processes.push(Process { child, log });
        Ok(number)
    }

    /// Starts a standby, and waits until it has seen the owner.
    pub(crate) fn add_standby(&mut self) -> Result<usize, Box<dyn Error>> {
        let before = "SELECT count(*) FROM waterwheel.nodes WHERE counter > 0";
        let before: u32 = self.sql(before).trim().parse()?;
        let number = self.add()?;
        let sql = format!("SELECT count(*) > {before} FROM waterwheel.nodes WHERE counter > 0");
        until("a standby waits", || self.sql(&sql) == "t\n")?;
        Ok(number)
    }

    pub(crate) fn order(&mut self, process: usize, order: Order) -> Result<(), Box<dyn Error>> {
        let stdin = self.processes[process].child.stdin.as_mut();
        let stdin = stdin.ok_or("it has no standard input")?;
        stdin.write_all(order.to_line().as_bytes())?;
        Ok(())
    }

    pub(crate) fn signal(&self, process: usize, signal: Signal) -> Result<(), Box<dyn Error>> {
        let pid = i32::try_from(self.processes[process].child.id())?;
        let pid = Pid::from_raw(pid).ok_or("it has no id")?;
        kill_process(pid, signal)?;
        Ok(())
    }

    pub(crate) fn events(&self, process: usize) -> Vec<Noted> {
        read(&self.processes[process].log, process)
    }

    pub(crate) fn story(&self) -> Story {
        let processes = 0..self.processes.len();
        Story::new(processes.flat_map(|it| self.events(it)).collect())
    }

    /// Waits until a process has noted such an event.
    pub(crate) fn until_noted(
        &self,
        process: usize,
        what: &str,
        is_it: impl Fn(Event) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        until(what, || {
            self.events(process).iter().any(|it| is_it(it.event))
        })
    }

    /// Waits until all timers that were inserted were delivered.
    pub(crate) fn until_delivered(&self) -> Result<(), Box<dyn Error>> {
        until("all timers are delivered", || {
            self.sql("SELECT count(*) FROM waterwheel.timers") == "0\n"
        })
    }

    /// Waits until a process has ended.
    pub(crate) fn until_ended(&mut self, process: usize) -> Result<(), Box<dyn Error>> {
        let child = &mut self.processes[process].child;
        until("a process ends", || matches!(child.try_wait(), Ok(Some(_))))
    }
}

/// The library that sets the clock of a process.
fn fake_clock() -> Result<PathBuf, Box<dyn Error>> {
    let folders = fs::read_dir("/usr/lib")?.flatten().map(|it| it.path());
    let mut libraries = folders.map(|it| it.join("faketime/libfaketimeMT.so.1"));
    let found = libraries.find(|it| it.exists());
    Ok(found.ok_or("libfaketime is not installed: on Debian, `apt-get install faketime`")?)
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("not within {PATIENCE:?}: {what}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
