use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::TargetSessionAttrs;

use crate::connection::Connection;
use crate::error::words;
use crate::protocol::{Database as _, Failure, Terms};
use crate::schema;
use crate::server::{Access, Server};
use crate::store::PostgresStore;
use crate::tls;

/// A PostgreSQL database with durable timers, and how to use it.
#[derive(Debug, Clone)]
pub struct Postgres {
    access: Access,
    ttl: Duration,
    limit: Option<u64>,
}

impl Postgres {
    /// Describes a database by a URL such as `postgres://user@host/database`, or by a
    /// [connection string](https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING) such as `host=db user=app`.
    ///
    /// With `sslmode=verify-full`, connections are encrypted, and the certificate of the server is verified: it has to be signed by one in
    /// the file `sslrootcert`, or by one that the system trusts, and name the host. `sslmode=require` means the same here. Without `sslmode`
    /// and `sslrootcert`, connections are not encrypted.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`].
    pub fn new(config: &str) -> Result<Postgres, InvalidConfig> {
        let (config, tls) = tls::split(config).map_err(InvalidConfig)?;
        let config = tokio_postgres::Config::from_str(&config);
        let mut config = config.map_err(|error| InvalidConfig(words(&error)))?;
        // If there are several hosts, the primary is used.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("waterwheel");
        }
        let access = Access {
            config,
            tls,
            password: None,
        };
        Ok(Postgres {
            access,
            ttl: Duration::from_secs(3),
            limit: None,
        })
    }

    /// Reads the password from this file, for each new connection. White space at its end is ignored.
    #[must_use]
    pub fn password_file(self, path: impl Into<PathBuf>) -> Postgres {
        let path = path.into();
        self.password_with(move || {
            let read = fs::read_to_string(&path);
            let password = read.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(password.trim_end().to_owned())
        })
    }

    /// Gets the password from this closure, for each new connection: for tokens that expire, for example. It may block, but should take less than
    /// a third of the [TTL](Postgres::ttl).
    #[must_use]
    pub fn password_with(
        mut self,
        password: impl Fn() -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Postgres {
        self.access.password = Some(Arc::new(password));
        self
    }

    /// Sets how long a process may be unreachable until another one takes its timers over: 3 s unless set. All processes that use the
    /// database must have the same value.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Postgres {
        self.ttl = ttl;
        self
    }

    /// Sets the maximum number of pending timers and dead letters. Further inserts are refused, as on a full disk; deliveries continue. No
    /// limit unless set: a disk without space for its WAL stops the server.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Postgres {
        self.limit = Some(rows);
        self
    }

    /// Creates the tables, or upgrades them, in a schema named `waterwheel`. The role needs the right to create a schema in this
    /// database. Blocks; may be called by several processes at a time.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn migrate(&self) -> Result<(), OpenError> {
        self.call(async |connection| {
            connection.begin_long_call(MIGRATE_WITHIN);
            Ok(schema::migrate(connection).await?)
        })
    }

    /// Grants a role what a service needs, without the right to change the tables. All services of a database have to use the same role, since one may have
    /// to terminate connections of another. Run it again after each migration. Blocks.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn grant(&self, role: &str) -> Result<(), OpenError> {
        self.call(async |connection| Ok(schema::grant(connection, role).await?))
    }

    /// Opens the timers. Blocks while the database is reached; [`begin`](waterwheel_durable_core::store::Store::begin) waits until no other
    /// process owns them.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(&self) -> Result<PostgresStore, OpenError> {
        self.call(
            async |connection| match schema::version(connection).await? {
                Some(it) if it.version < schema::VERSION => Err(OpenError(Why::Older(it.version))),
                Some(it) if it.oldest > schema::VERSION => Err(OpenError(Why::Newer(it.version))),
                Some(_) => Ok(()),
                None => Err(OpenError(Why::NoTables)),
            },
        )?;
        Ok(PostgresStore::new(self.server(), runtime()?, self.limit)?)
    }

    /// Makes a call on a thread of its own, since the caller may be a task, which must not block on a runtime.
    fn call(
        &self,
        call: impl AsyncFnOnce(&mut Connection) -> Result<(), OpenError> + Send,
    ) -> Result<(), OpenError> {
        if !TTLS.contains(&self.ttl) {
            return Err(OpenError(Why::Ttl(self.ttl)));
        }
        let server = self.server();
        let run = || {
            runtime()?.block_on(async {
                let mut connection = server.connect(server.terms().call_within()).await?;
                connection.begin_call();
                schema::check(&mut connection).await?;
                call(&mut connection).await
            })
        };
        thread::scope(|scope| match scope.spawn(run).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    fn server(&self) -> Server {
        let terms = Terms {
            ttl: self.ttl,
            kept_commits: 1_024,
        };
        Server::new(self.access.clone(), terms)
    }
}

/// The values of the TTL that are useful: calls have a third of it.
const TTLS: RangeInclusive<Duration> = Duration::from_millis(300)..=Duration::from_secs(3_600);

/// The deadline of a migration, as a multiple of that of other calls: it may wait for another one.
const MIGRATE_WITHIN: u32 = 60;

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The description of a database is invalid.
#[derive(Debug)]
pub struct InvalidConfig(String);

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid description of a PostgreSQL database: {}",
            self.0
        )
    }
}

impl Error for InvalidConfig {}

/// The timers in a database could not be opened.
#[derive(Debug)]
pub struct OpenError(Why);

#[derive(Debug)]
enum Why {
    Failed(Failure),
    Io(io::Error),
    NoTables,
    Ttl(Duration),
    Older(i32),
    Newer(i32),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> OpenError {
        OpenError(Why::Failed(failure))
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError(Why::Io(error))
    }
}

impl From<crate::error::Error> for OpenError {
    fn from(error: crate::error::Error) -> OpenError {
        Failure::from(error).into()
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Failed(failure) => failure.fmt(f),
            Why::Io(error) => write!(f, "cannot start a thread or a runtime: {error}"),
            Why::Ttl(ttl) => write!(
                f,
                "invalid TTL {ttl:?}: expected {:?} to {:?}",
                TTLS.start(),
                TTLS.end()
            ),
            Why::NoTables => {
                f.write_str("the database has no waterwheel tables: run `waterwheel migrate`")
            }
            Why::Newer(version) => write!(
                f,
                "the schema has version {version}, but this waterwheel supports version {}: upgrade waterwheel",
                schema::VERSION
            ),
            Why::Older(version) => write!(
                f,
                "the schema has version {version}, but this waterwheel needs version {}: run `waterwheel migrate`",
                schema::VERSION
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Why::Failed(failure) => Some(failure),
            Why::Io(error) => Some(error),
            Why::NoTables | Why::Ttl(_) | Why::Older(_) | Why::Newer(_) => None,
        }
    }
}
