use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use waterwheel_durable_core::store::{OpenError, OpenStore};

use crate::connection::Connection;
use crate::owner::{NotOpened, Patience};
use crate::protocol::{Database as _, Failure, Terms};
use crate::schema::{self, Version};
use crate::server::{Access, Server, runtime};
use crate::session;
use crate::store::PostgresStore;

/// A PostgreSQL database with durable timers, and how to use it.
///
/// ```no_run
/// # use std::time::Duration;
/// # use waterwheel_durable_core::store::OpenError;
/// # use waterwheel_durable_postgres::{Postgres, PostgresStore};
/// # fn example() -> Result<PostgresStore, OpenError> {
/// let postgres = Postgres::new("postgres://app@db.example.com/orders?sslmode=verify-full");
/// postgres.password_file("/run/secrets/orders").wait_at_most(Duration::from_secs(60)).open()
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "this does nothing until it is opened"]
pub struct Postgres {
    /// How it is reached, or what is wrong with its description.
    access: Result<Access, Arc<str>>,
    ttl: Option<Duration>,
    cluster_id: Option<Arc<str>>,
    limit: Option<u64>,
    wait_at_most: Option<Duration>,
}

impl Postgres {
    /// Describes a database by a URL such as `postgres://user@host/database`, or by a
    /// [connection string](https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING) such as `host=db user=app`. An
    /// invalid description is an error when it is used.
    ///
    /// With `sslmode=verify-full`, connections are encrypted, and the certificate of the server is verified: it has to be signed by one in
    /// the file `sslrootcert`, or by one that the system trusts, and name the host. `sslmode=require` means the same here. Without `sslmode`
    /// and `sslrootcert`, connections are not encrypted.
    pub fn new(config: &str) -> Postgres {
        Postgres {
            access: Access::parse(config).map_err(Arc::from),
            ttl: None,
            cluster_id: None,
            limit: None,
            wait_at_most: None,
        }
    }

    /// Reads the password from this file, for each new connection. White space at its end is ignored.
    pub fn password_file(self, path: impl Into<PathBuf>) -> Postgres {
        let path = path.into();
        self.password_with(move || {
            let read = fs::read_to_string(&path);
            let password = read.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(password.trim_end().to_owned())
        })
    }

    /// Gets the password from this closure, for each new connection: for tokens that expire, for example. It may block: it is called on a thread of its
    /// own. A connection fails if it takes longer than a third of the [TTL](Postgres::ttl).
    pub fn password_with(
        mut self,
        password: impl Fn() -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Postgres {
        if let Ok(access) = &mut self.access {
            access.password = Some(Arc::new(password));
        }
        self
    }

    /// Sets how long a process may be unreachable until another one takes its timers over, from 300 ms to an hour, in whole milliseconds. Default: 3 s.
    ///
    /// [`migrate`](Postgres::migrate) stores the TTL with the tables that it creates, and all processes use that one: a process that counted on
    /// its lease for longer than another one waits would deliver the timers of that one. Another value is an error then. To change the TTL,
    /// end all processes, and set the column `ttl` of the table `waterwheel.version`, in milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> Postgres {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the name of this installation, such as `orders-production`. [`migrate`](Postgres::migrate) stores it with the tables that it creates, and another
    /// one, or none, is an error then. So a copy of the database for tests, with another name in the configuration of its services, delivers nothing.
    ///
    /// To change it, set the column `cluster_id` of the table `waterwheel.version`.
    pub fn cluster_id(mut self, id: &str) -> Postgres {
        self.cluster_id = Some(id.into());
        self
    }

    /// Sets the maximum number of pending timers and dead letters. Further inserts are refused, as on a full disk; deliveries continue. No
    /// limit unless set: a disk without space for its WAL stops the server.
    pub fn limit(mut self, rows: u64) -> Postgres {
        self.limit = Some(rows);
        self
    }

    /// Sets how long opening waits while another process owns the timers: with [`Duration::ZERO`], it fails as soon as a heartbeat of that process
    /// is seen, and the error [says](OpenError::is_held) which process it is. Unless this is set, it waits as a standby, indefinitely.
    ///
    /// The timers of a process that has ended without giving them back are taken over after one [TTL](Postgres::ttl), however short the wait.
    /// Opening fails in any case if the database cannot be used at first. Later it may be unreachable, for example while it is restarted, and the
    /// wait goes on.
    pub fn wait_at_most(mut self, wait: Duration) -> Postgres {
        self.wait_at_most = Some(wait);
        self
    }

    /// Creates the tables, or upgrades them, in a schema named `waterwheel`. The role needs the right to create a schema in this
    /// database. Blocks; may be called by several processes at a time.
    ///
    /// # Errors
    ///
    /// [`DatabaseError`].
    pub fn migrate(&self) -> Result<(), DatabaseError> {
        let ttl = self.ttl.unwrap_or(TTL);
        self.call(ttl, async |connection| {
            connection.begin_long_call(MIGRATE_WITHIN);
            let found = schema::migrate(connection, ttl, self.cluster_id.as_deref()).await?;
            self.check(&found)
        })
    }

    /// Grants a role what a service needs, without the right to change the tables. All services of a database have to use the same role, since one may have
    /// to terminate connections of another. Run it again after each migration. Blocks.
    ///
    /// # Errors
    ///
    /// [`DatabaseError`].
    pub fn grant(&self, role: &str) -> Result<(), DatabaseError> {
        self.call(self.ttl.unwrap_or(TTL), async |connection| {
            Ok(schema::grant(connection, role).await?)
        })
    }

    /// Lets deliveries begin in a database that was restored from a backup, or moved to another server by `pg_upgrade` or a dump, also if processes have it
    /// open. Blocks.
    ///
    /// A database that was restored from a dump is recognized by its identity: that of the server, of the database and of the tables. One that was recovered to a
    /// point in time is recognized by the timeline of the server, which differs although ten minutes have passed between the last heartbeat and the first
    /// one on that timeline. So a failover counts as a restore if no process runs within ten minutes. Copies of a server's files, such as a snapshot of its volume, and
    /// replicas that are promoted to be used as copies are not recognized: see [`cluster_id`](Postgres::cluster_id).
    ///
    /// Until the restore is accepted, no deliveries begin, and everything else works. For example, timers can be cancelled. Ids that were assigned since the
    /// backup are not assigned again, except by a coincidence of one in thousands.
    ///
    /// # Errors
    ///
    /// [`DatabaseError`].
    pub fn accept_restore(&self) -> Result<(), DatabaseError> {
        self.call(self.ttl.unwrap_or(TTL), async |connection| {
            self.version(connection).await?;
            Ok(schema::accept_restore(connection).await?)
        })
    }

    /// Opens the timers. Blocks until this process owns them, or [the wait](Postgres::wait_at_most) ends.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(&self) -> Result<PostgresStore, OpenError> {
        self.open_while(&|| true)
    }

    fn open_while(&self, is_wanted: &dyn Fn() -> bool) -> Result<PostgresStore, OpenError> {
        let ttl = self.ttl.unwrap_or(TTL);
        let ttl = self.call(ttl, async |connection| {
            Ok(self.version(connection).await?.ttl)
        })?;
        let patience = Patience {
            at_most: self.wait_at_most,
            unreached: ttl,
            is_wanted,
        };
        let opened = PostgresStore::open(self.server(ttl)?, self.limit, &patience);
        opened.map_err(|why| match why {
            NotOpened::Held => self.held(ttl),
            NotOpened::Failed(failure) => self.error(failure).into(),
            why => OpenError::new(why.to_string()),
        })
    }

    /// The error that another process owns the timers.
    fn held(&self, ttl: Duration) -> OpenError {
        let holder = self.call(ttl, async |connection| {
            Ok(session::holder(connection).await?)
        });
        let database = self.access.as_ref().map(Access::name).unwrap_or_default();
        match holder {
            Ok(Some((process, host))) => {
                let message = format!(
                    "process {process} on {host} owns the timers in {database}: end it first, or wait for it as a standby (`wait_at_most`)"
                );
                OpenError::held(process.try_into().ok(), message)
            }
            // It has just given them back.
            Ok(None) => {
                let message =
                    format!("another process owned the timers in {database} until now: try again");
                OpenError::held(None, message)
            }
            Err(error) => error.into(),
        }
    }

    /// Makes a call on a thread of its own, since the caller may be a task, which must not block on a runtime.
    fn call<T: Send>(
        &self,
        ttl: Duration,
        call: impl AsyncFnOnce(&mut Connection) -> Result<T, Why> + Send,
    ) -> Result<T, DatabaseError> {
        let server = self.server(ttl)?;
        let run = || {
            let runtime = runtime()?;
            let done = runtime.block_on(async {
                let mut connection = server.connect(server.terms().call_within()).await?;
                connection.begin_call();
                schema::check(&mut connection).await?;
                call(&mut connection).await
            });
            runtime.shutdown_background();
            done
        };
        thread::scope(|scope| match scope.spawn(run).join() {
            Ok(done) => done.map_err(|why: Why| self.error(why)),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Returns the version of the tables, if this process can use them.
    async fn version(&self, connection: &mut Connection) -> Result<Version, Why> {
        let found = schema::version(connection).await?;
        let found = found.ok_or(Why::NoTables)?;
        self.check(&found)?;
        Ok(found)
    }

    /// Checks that this process supports these tables, and was not configured otherwise than those that use them.
    fn check(&self, found: &Version) -> Result<(), Why> {
        let own = self.cluster_id.as_deref();
        if found.oldest > schema::VERSION {
            Err(Why::Newer(found.version))
        } else if found.version < schema::VERSION {
            Err(Why::Older(found.version))
        } else if let Some(own) = self.ttl.filter(|it| *it != found.ttl) {
            let stored = found.ttl;
            Err(Why::OtherTtl { own, stored })
        } else if own != found.cluster_id.as_deref() {
            Err(Why::OtherCluster {
                own: own.map(str::to_owned),
                stored: found.cluster_id.clone(),
            })
        } else {
            Ok(())
        }
    }

    fn error(&self, why: impl Into<Why>) -> DatabaseError {
        let database = self.access.as_ref().ok().map(Access::name);
        let why = why.into();
        DatabaseError { database, why }
    }

    fn server(&self, ttl: Duration) -> Result<Server, DatabaseError> {
        if !TTLS.contains(&ttl) || !ttl.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(self.error(Why::Ttl(ttl)));
        }
        let access = self.access.clone();
        let access = access.map_err(|why| self.error(Why::Description(why)))?;
        let terms = Terms {
            ttl,
            kept_commits: 1_024,
        };
        Ok(Server::new(access, terms))
    }
}

impl OpenStore for Postgres {
    type Store = PostgresStore;

    fn open_store(self, is_wanted: &dyn Fn() -> bool) -> Result<PostgresStore, OpenError> {
        self.open_while(is_wanted)
    }
}

/// The TTL unless another one was set.
const TTL: Duration = Duration::from_secs(3);

/// The values of the TTL that are useful: calls have a third of it.
const TTLS: RangeInclusive<Duration> = Duration::from_millis(300)..=Duration::from_secs(3_600);

/// The deadline of a migration, as a multiple of that of other calls: it may wait for another one.
const MIGRATE_WITHIN: u32 = 60;

/// A database could not be reached, or cannot be used.
#[derive(Debug)]
pub struct DatabaseError {
    /// `None` if its description is invalid.
    database: Option<String>,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Description(Arc<str>),
    Failed(Failure),
    Io(io::Error),
    NoTables,
    Ttl(Duration),
    OtherTtl {
        own: Duration,
        stored: Duration,
    },
    OtherCluster {
        own: Option<String>,
        stored: Option<String>,
    },
    Older(i32),
    Newer(i32),
}

impl From<Failure> for Why {
    fn from(failure: Failure) -> Why {
        Why::Failed(failure)
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Why {
        Why::Io(error)
    }
}

impl From<crate::error::Error> for Why {
    fn from(error: crate::error::Error) -> Why {
        Failure::from(error).into()
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = &self.database {
            write!(f, "{database}: ")?;
        }
        match &self.why {
            Why::Description(why) => {
                write!(f, "invalid description of a PostgreSQL database: {why}")
            }
            Why::Failed(failure) => failure.fmt(f),
            Why::Io(error) => write!(f, "cannot start a thread or a runtime: {error}"),
            Why::Ttl(ttl) => write!(
                f,
                "invalid TTL {ttl:?}: expected {:?} to {:?}, in whole milliseconds",
                TTLS.start(),
                TTLS.end()
            ),
            Why::OtherTtl { own, stored } => write!(
                f,
                "this process has a TTL of {own:?}, but the database one of {stored:?}: use that one, or end all processes and change it in the table `waterwheel.version`"
            ),
            Why::OtherCluster { own, stored } => {
                let named = |id: &Option<String>| match id {
                    Some(id) => format!("the cluster id {id:?}"),
                    None => "no cluster id".to_owned(),
                };
                let (own, stored) = (named(own), named(stored));
                write!(
                    f,
                    "this process has {own}, but the database {stored}: check that this is the right database, and set the id by `Postgres::cluster_id`, or in the table `waterwheel.version`"
                )
            }
            Why::NoTables => {
                f.write_str("the tables of waterwheel are missing: call `Postgres::migrate`")
            }
            Why::Newer(version) => write!(
                f,
                "the schema has version {version}, but this waterwheel supports version {}: upgrade waterwheel",
                schema::VERSION
            ),
            Why::Older(version) => write!(
                f,
                "the schema has version {version}, but this waterwheel needs version {}: call `Postgres::migrate`",
                schema::VERSION
            ),
        }
    }
}

impl Error for DatabaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.why {
            Why::Failed(failure) => Some(failure),
            Why::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> OpenError {
        match error.why {
            Why::Newer(_) => OpenError::newer(error),
            _ => OpenError::new(error),
        }
    }
}
