use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
#[cfg(feature = "tls")]
use tokio_postgres::config::SslMode;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls, Row, SimpleQueryMessage};

use crate::error::{Error, get};
use crate::names::Names;
use crate::protocol::Pid;
use crate::statement::Statement;
use crate::tls::Tls;

/// A connection to the server.
pub(crate) struct Connection {
    client: Client,
    /// Transfers messages while the runtime runs.
    driver: JoinHandle<()>,
    pub(crate) deadline: Duration,
    /// How long the current call may take, and its deadline.
    within: Duration,
    until: Instant,
    /// Begins a transaction with the settings that the statements depend on.
    begin: Arc<str>,
    pub(crate) names: Arc<Names>,
    pub(crate) is_in_transaction: bool,
    /// The number below which it has deleted the commit rows of its opening.
    pub(crate) forgot_below: u64,
}

/// A message to the server.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    Begin,
    /// Without the settings, for a statement that fails on a standby.
    BeginPlain,
    Statement(Statement<'a>),
    Commit,
}

/// Begins a transaction. `BEGIN` itself cannot fail, on a standby either: what is sent together with it would be carried out nevertheless. `SET TRANSACTION`
/// refuses a standby.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET TRANSACTION READ WRITE";

/// Returns the SQL that begins a transaction and reports the backend's PID. The planner's costs favour index lookups over sequential scans, except on small tables.
fn begin_with(idle_within: Duration, deadline: Duration) -> String {
    // The client gives up first.
    let (idle, deadline) = (idle_within.as_millis(), 2 * deadline.as_millis());
    format!(
        "{BEGIN};
        SELECT pg_backend_pid(),
            set_config('idle_in_transaction_session_timeout', '{idle}', true),
            set_config('statement_timeout', '{deadline}', true),
            set_config('lock_timeout', '0', true),
            set_config('random_page_cost', '0.1', true),
            set_config('seq_page_cost', '0.1', true),
            set_config('jit', 'off', true),
            set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'local'), true)"
    )
}

impl Connection {
    pub(crate) async fn connect(
        config: &tokio_postgres::Config,
        tls: &Tls,
        idle_within: Duration,
        deadline: Duration,
        names: Arc<Names>,
    ) -> Result<Connection, Error> {
        let until = Instant::now() + deadline;
        let connected = timeout_at(until, connect(config, tls)).await;
        let (client, driver) = connected.map_err(|_| Error::no_reply(deadline))??;
        Ok(Connection {
            client,
            driver,
            deadline,
            within: deadline,
            until,
            begin: begin_with(idle_within, deadline).into(),
            names,
            is_in_transaction: false,
            forgot_below: 0,
        })
    }

    /// Begins a call, which has to end within the deadline.
    pub(crate) fn begin_call(&mut self) {
        self.begin_long_call(1);
    }

    /// Begins a call that may take a multiple of the deadline.
    pub(crate) fn begin_long_call(&mut self, times: u32) {
        self.within = self.deadline * times;
        self.until = Instant::now() + self.within;
    }

    /// Begins a transaction, and returns the backend that serves it.
    pub(crate) async fn begin_transaction(&mut self) -> Result<Pid, Error> {
        let begun = timeout_at(self.until, self.client.simple_query(&self.begin)).await;
        let begun = begun.map_err(|_| self.no_reply())?;
        let begun = begun.map_err(|error| Error::from(error).lost())?;
        let pid = begun.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
            _ => None,
        });
        self.is_in_transaction = true;
        pid.map(Pid)
            .ok_or_else(|| Error::Unexpected("the server did not report its backend PID".into()))
    }

    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        self.is_in_transaction = false;
        self.script("COMMIT").await
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), Error> {
        self.is_in_transaction = false;
        self.script("ROLLBACK").await
    }

    /// Carries out statements without parameters.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), Error> {
        let done = timeout_at(self.until, self.client.batch_execute(sql)).await;
        Ok(done.map_err(|_| self.no_reply())??)
    }

    /// Carries out a statement in the current transaction, and returns its rows.
    pub(crate) async fn query(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, Error> {
        let mut replies = self.send(vec![Request::Statement(statement)]).await;
        replies.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Carries out statements in a transaction, sent together. Returns the rows of the last one. Reads have one too: a standby would answer them with
    /// rows that have been changed since.
    pub(crate) async fn transaction(
        &mut self,
        statements: Vec<Statement<'_>>,
    ) -> Result<Vec<Row>, Error> {
        self.transaction_after(Request::Begin, statements).await
    }

    /// Carries out a statement that writes in a transaction of its own, without the settings that others depend on.
    pub(crate) async fn plain_transaction(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<Vec<Row>, Error> {
        self.transaction_after(Request::BeginPlain, vec![statement])
            .await
    }

    async fn transaction_after(
        &mut self,
        begin: Request<'_>,
        statements: Vec<Statement<'_>>,
    ) -> Result<Vec<Row>, Error> {
        let mut requests = vec![begin];
        requests.extend(statements.into_iter().map(Request::Statement));
        requests.push(Request::Commit);
        let mut replies = Vec::new();
        for reply in self.send(requests).await {
            replies.push(reply?);
        }
        // The last one is that of `COMMIT`.
        replies.pop();
        Ok(replies.pop().unwrap_or_default())
    }

    /// Carries out a statement that has one row with one column.
    pub(crate) async fn one<T>(&mut self, statement: Statement<'_>) -> Result<T, Error>
    where
        T: for<'a> FromSql<'a>,
    {
        match &self.query(statement).await?[..] {
            [row] => get(row, 0),
            rows => {
                let message = format!("a statement has {} rows instead of one", rows.len());
                Err(Error::Unexpected(message.into()))
            }
        }
    }

    /// Sends requests together, in this order, and waits for all replies.
    pub(crate) async fn send(
        &mut self,
        requests: Vec<Request<'_>>,
    ) -> Vec<Result<Vec<Row>, Error>> {
        let count = requests.len();
        for request in &requests {
            match request {
                Request::Begin | Request::BeginPlain => self.is_in_transaction = true,
                Request::Commit => self.is_in_transaction = false,
                Request::Statement(_) => {}
            }
        }
        let (client, begin) = (&self.client, &*self.begin);
        let replies = requests
            .into_iter()
            .map(|request| reply(client, begin, request));
        match timeout_at(self.until, in_order(replies)).await {
            Ok(replies) => replies,
            Err(_) => (0..count).map(|_| Err(self.no_reply())).collect(),
        }
    }
}

impl Connection {
    fn no_reply(&self) -> Error {
        Error::no_reply(self.within)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Connects. Returns the client, and the task that transfers its messages.
async fn connect(
    config: &tokio_postgres::Config,
    tls: &Tls,
) -> Result<(Client, JoinHandle<()>), Error> {
    match tls {
        Tls::Off => {
            let (client, driver) = config.connect(NoTls).await?;
            Ok((client, tokio::spawn(async { drop(driver.await) })))
        }
        #[cfg(feature = "tls")]
        Tls::Verified(file) => {
            let connector = crate::tls::connector(file.as_deref());
            let connector = connector.map_err(|error| Error::Lost(error.to_string().into()))?;
            let mut config = config.clone();
            config.ssl_mode(SslMode::Require);
            let (client, driver) = config.connect(connector).await?;
            Ok((client, tokio::spawn(async { drop(driver.await) })))
        }
        #[cfg(not(feature = "tls"))]
        Tls::Verified(_) => Err(Error::Lost(
            "encrypted connections need the feature `tls` of waterwheel".into(),
        )),
    }
}

async fn reply(client: &Client, begin: &str, request: Request<'_>) -> Result<Vec<Row>, Error> {
    match request {
        Request::Begin | Request::BeginPlain => {
            let sql = if let Request::Begin = request {
                begin
            } else {
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
            };
            let begun = client.batch_execute(sql).await;
            begun.map_err(|error| Error::from(error).lost())?;
        }
        Request::Commit => client.batch_execute("COMMIT").await?,
        Request::Statement(Statement { sql, parameters }) => {
            let parameters: Vec<_> = parameters
                .iter()
                .map(|(value, of)| {
                    (
                        &**value as &(dyn tokio_postgres::types::ToSql + Sync),
                        of.clone(),
                    )
                })
                .collect();
            return Ok(client.query_typed(&sql, &parameters).await?);
        }
    }
    Ok(Vec::new())
}

/// Completes all futures. The first poll of each sends its request, so these polls are in order, which `join_all` does not promise.
async fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in &mut futures {
            if output.is_none()
                && let Poll::Ready(ready) = Pin::as_mut(future).poll(context)
            {
                *output = Some(ready);
            }
        }
        match futures.iter().all(|(_, output)| output.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    futures
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}
