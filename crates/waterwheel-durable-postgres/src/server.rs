use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::connection::Connection;
use crate::error::words;
use crate::names::Names;
use crate::protocol::{Database, Failure, Terms};
use crate::tls::{self, Tls};

/// A PostgreSQL server, and the clock of this machine.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    access: Access,
    terms: Terms,
    names: Arc<Names>,
}

/// How the server is reached.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: Tls,
    /// Returns the password for the next connection.
    pub(crate) password: Option<Arc<Password>>,
}

pub(crate) type Password = dyn Fn() -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync;

impl Access {
    /// Reads the description of a database.
    pub(crate) fn parse(config: &str) -> Result<Access, String> {
        let (config, tls) = tls::split(config)?;
        let config = tokio_postgres::Config::from_str(&config);
        let mut config = config.map_err(|error| words(&error))?;
        // If there are several hosts, the primary is used.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("waterwheel");
        }
        Ok(Access {
            config,
            tls,
            password: None,
        })
    }

    /// The hosts and the name of the database.
    pub(crate) fn name(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<_> = hosts.collect();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        format!("database {database} on {}", hosts.join(","))
    }
}

impl fmt::Debug for Access {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("hosts", &self.config.get_hosts())
            .field("database", &self.config.get_dbname())
            .field("user", &self.config.get_user())
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn new(access: Access, terms: Terms) -> Server {
        let names = Arc::default();
        Server(Arc::new(Shared {
            access,
            terms,
            names,
        }))
    }

    /// The hosts and the name of the database.
    pub(crate) fn database(&self) -> String {
        self.0.access.name()
    }

    pub(crate) fn terms(&self) -> Terms {
        self.0.terms
    }

    /// The names of the current opening.
    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.0.names
    }
}

impl Database for Server {
    type Session = Connection;

    fn now(&self) -> Duration {
        since_boot()
    }

    async fn sleep_until(&self, at: Duration) {
        // The time of tokio's clock excludes suspensions, so a sleep may be too long by those; it is never too short.
        tokio::time::sleep(at.saturating_sub(self.now())).await;
    }

    fn random(&self) -> u64 {
        // Each of these has other keys, drawn from the operating system for each thread.
        let random = RandomState::new().build_hasher().finish();
        let now = self.now().as_nanos() as u64;
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(random ^ now);
        hasher.finish().max(1)
    }

    async fn connect(&self, deadline: Duration) -> Result<Connection, Failure> {
        let Shared {
            access:
                Access {
                    config,
                    tls,
                    password,
                },
            terms,
            names,
        } = &*self.0;
        let mut config = config.clone();
        let until = Instant::now() + deadline;
        if let Some(password) = password {
            config.password(password_of(password, until).await?);
        }
        let names = Arc::clone(names);
        let deadline = until.saturating_duration_since(Instant::now());
        let connected = Connection::connect(&config, tls, terms.idle_within(), deadline, names);
        Ok(connected.await?)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.0.access).finish()
    }
}

/// Calls user code, which may block for long, on another thread.
async fn password_of(password: &Arc<Password>, until: Instant) -> Result<String, Failure> {
    let password = Arc::clone(password);
    let called = timeout_at(until, spawn_blocking(move || password())).await;
    let why = match called {
        Ok(Ok(Ok(password))) => return Ok(password),
        Ok(Ok(Err(error))) => words(&*error),
        Ok(Err(panic)) => words(&panic),
        Err(_) => "it did not come in time".to_owned(),
    };
    Err(Failure::Disconnected(format!("no password: {why}").into()))
}

/// Creates a runtime for the calls of one thread.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The name of this machine, or an empty one if it is not known.
pub(crate) fn host_name() -> String {
    #[cfg(unix)]
    return rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    #[cfg(not(unix))]
    return std::env::var("COMPUTERNAME").unwrap_or_default();
}

#[cfg(target_os = "linux")]
pub(crate) fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// On platforms whose boot clock excludes suspensions, a suspended owner may take its lease for valid.
#[cfg(not(target_os = "linux"))]
pub(crate) fn since_boot() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
