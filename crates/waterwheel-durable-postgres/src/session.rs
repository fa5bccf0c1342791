//! The statements of the protocol.

use waterwheel_durable_core::store::{Ended, Id, Outcome};

use crate::connection::{Connection, Request};
use crate::error::{Error, get};
use crate::protocol::{
    Attempts, Beat, Claim, Commit, Drawn, Failure, Holder, NodeId, Opening, OwnerId, Pid,
    Rejection, Session,
};
use crate::read::{drawn, id, stored};
use crate::server::host_name;
use crate::statement::Statement;
use crate::steps::Plan;

const LOCK_PARTITION: &str = "
    SELECT node, owner, opened, epoch, epoch_timeline, waterwheel.timeline()
    FROM waterwheel.partitions WHERE partition = $1 FOR NO KEY UPDATE";

const TAKE: &str = "
    UPDATE waterwheel.partitions
    SET node = $2, previous = owner, owner = $3, timeline = $4, opened = $5, epoch = $5, epoch_timeline = $4, known_timeline = $4, identity = waterwheel.identity(),
        seen = now()
    WHERE partition = $1";

/// Returns the process that owns the timers, and the name of its machine.
pub(crate) async fn holder(connection: &mut Connection) -> Result<Option<(i64, String)>, Error> {
    let sql = "SELECT process, host FROM waterwheel.partitions JOIN waterwheel.nodes ON nodes.id = partitions.node WHERE partition = 0";
    match connection.query(Statement::new(sql)).await?.first() {
        Some(row) => Ok(Some((get(row, 0)?, get(row, 1)?))),
        None => Ok(None),
    }
}

impl Session for Connection {
    async fn register(&mut self, node: NodeId) -> Result<(), Failure> {
        self.begin_call();
        let sql = "INSERT INTO waterwheel.nodes (id, counter, host, process) VALUES ($1, 0, $2, $3) ON CONFLICT (id) DO NOTHING";
        let (insert, host) = (Statement::new(sql).big(node.0.cast_signed()), host_name());
        let insert = insert.text(&*host).big(std::process::id().into());
        // Rows that killed standbys have left. A node that was stopped for so long begins again as a new one.
        let forget = "DELETE FROM waterwheel.nodes WHERE seen < now() - interval '1 day'
            AND NOT EXISTS (SELECT FROM waterwheel.partitions WHERE node = nodes.id)";
        self.transaction(vec![insert, Statement::new(forget)])
            .await?;
        Ok(())
    }

    /// The order of the locks is that of a take-over.
    async fn leave(
        &mut self,
        node: NodeId,
        partition: u8,
        owner: Option<OwnerId>,
    ) -> Result<(), Failure> {
        self.begin_call();
        let mut statements = vec![delete_node(node)];
        if let Some(owner) = owner {
            // A restore stays recognizable.
            let sql = "
                UPDATE waterwheel.partitions SET node = NULL, seen = CASE WHEN known_timeline = waterwheel.timeline() THEN now() ELSE seen END
                WHERE partition = $1 AND owner = $2";
            let give_back = Statement::new(sql).small(partition);
            statements.push(give_back.big(owner.0.cast_signed()));
        }
        self.transaction(statements).await?;
        Ok(())
    }

    async fn beat(&mut self, node: NodeId, partition: u8) -> Result<Beat, Failure> {
        self.begin_call();
        let beat = Statement::new("SELECT * FROM waterwheel.beat($1, $2, $3)");
        let within = i32::try_from(self.deadline.as_millis()).unwrap_or(i32::MAX);
        let beat = beat.big(node.0.cast_signed()).small(partition).int(within);
        let rows = self.plain_transaction(beat).await?;
        match rows.first() {
            Some(row) => Ok(beat_of(row)?),
            None => Err(Failure::Refused("a heartbeat has no reply".into())),
        }
    }

    async fn begin(&mut self) -> Result<Pid, Failure> {
        self.begin_call();
        Ok(self.begin_transaction().await?)
    }

    async fn claim(&mut self, claim: &Claim) -> Result<bool, Failure> {
        self.begin_call();
        let claimed = self.lock_nodes(claim).await;
        self.or_roll_back(claimed, |is_claimed| *is_claimed).await
    }

    async fn take(&mut self, claim: &Claim) -> Result<Option<Drawn>, Failure> {
        self.begin_call();
        let taken = self.lock_and_take(claim).await;
        self.or_roll_back(taken, Option::is_some).await
    }

    async fn remove(&mut self, claim: &Claim) -> Result<(), Failure> {
        self.begin_call();
        let removed = self.delete_node(claim.from.node).await;
        self.or_roll_back(removed, |()| true).await
    }

    async fn transact(&mut self, commit: &Commit<'_>) -> Result<Vec<Outcome>, Rejection> {
        self.begin_call();
        let plan = Plan::of(commit, &mut self.names.lock());
        match self.carry_out(plan, commit).await {
            Ok(outcomes) => {
                self.forgot_below = commit.keeps_from;
                Ok(outcomes)
            }
            Err((Error::Lost(why), Some(outcomes))) => Err(Rejection::InDoubt(outcomes, why)),
            Err((error, _)) => {
                let rejection = error.rejection();
                if self.is_in_transaction && !matches!(rejection, Rejection::Disconnected(_)) {
                    self.roll_back().await.map_err(Failure::from)?;
                }
                Err(rejection)
            }
        }
    }

    async fn confirm(&mut self, opening: &Opening, number: u64) -> Result<(), Rejection> {
        self.begin_call();
        let confirmed = self.lock_and_confirm(opening, number).await;
        match self.or_roll_back(confirmed, Result::is_ok).await {
            Ok(confirmed) => confirmed,
            Err(failure) => Err(failure.into()),
        }
    }

    async fn was_committed(
        &mut self,
        opening: &Opening,
        number: u64,
    ) -> Result<Option<bool>, Failure> {
        self.begin_call();
        let sql = "
            SELECT it.owner = $2 OR it.previous = $2, EXISTS (
                SELECT FROM waterwheel.commits WHERE partition = $1 AND epoch = $3 AND number = $4
            ) FROM waterwheel.partitions it WHERE it.partition = $1";
        let select = Statement::new(sql).small(opening.partition);
        let select = select.big(opening.owner.0.cast_signed());
        let select = select
            .big(opening.epoch.cast_signed())
            .big(number.cast_signed());
        let rows = self.transaction(vec![select]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (is_known, has_row): (bool, bool) = (get(row, 0)?, get(row, 1)?);
        Ok(is_known.then_some(has_row))
    }

    async fn report(
        &mut self,
        opening: &Opening,
        ends: &[(Id, Option<Ended>)],
    ) -> Result<bool, Failure> {
        self.begin_call();
        let ended = ends.iter().map(|(_, end)| end.as_ref());
        let ended: Vec<_> = ended.map(|end| end.map(Ended::to_stored)).collect();
        let report = Statement::new("SELECT waterwheel.report($1, $2, $3, $4)");
        let report = report
            .small(opening.partition)
            .big(opening.node.0.cast_signed());
        let report = report.bigs(ends.iter().map(|(id, _)| stored(*id)).collect());
        let report = report.blobs(ended.iter().map(Option::as_deref).collect());
        let rows = self.transaction(vec![report]).await?;
        match rows.first() {
            Some(row) => Ok(get(row, 0)?),
            None => Ok(false),
        }
    }

    async fn attempts(&mut self, opening: &Opening) -> Result<Option<Attempts>, Failure> {
        self.begin_call();
        let sql = "
            SELECT attempts.id, attempts.ended FROM waterwheel.partitions it
            LEFT JOIN waterwheel.attempts ON attempts.partition = it.partition
            WHERE it.partition = $1 AND it.owner = $2 AND it.timeline = waterwheel.timeline()";
        let select = Statement::new(sql).small(opening.partition);
        let select = select.big(opening.owner.0.cast_signed());
        let rows = self.transaction(vec![select]).await?;
        let mut attempts = Vec::new();
        for row in &rows {
            let (of, stored): (Option<i64>, Option<&[u8]>) = (get(row, 0)?, get(row, 1)?);
            if of.is_some() {
                attempts.push((id(row, 0)?, stored.map(end)));
            }
        }
        Ok((!rows.is_empty()).then_some(attempts))
    }

    async fn terminate_blockers(&mut self, of: Pid) -> Result<(), Failure> {
        self.begin_call();
        let sql =
            "SELECT count(pg_terminate_backend(pid)) FROM unnest(pg_blocking_pids($1)) AS it(pid)";
        self.query(Statement::new(sql).int(of.0)).await?;
        Ok(())
    }
}

impl Connection {
    /// Rolls back, unless the transaction has succeeded or the connection is lost.
    async fn or_roll_back<T>(
        &mut self,
        done: Result<T, Error>,
        has_succeeded: impl Fn(&T) -> bool,
    ) -> Result<T, Failure> {
        let is_over = match &done {
            Ok(done) => has_succeeded(done),
            Err(error) => matches!(error, Error::Lost(_)),
        };
        if !is_over {
            self.roll_back().await?;
        }
        Ok(done?)
    }

    async fn lock_nodes(&mut self, claim: &Claim) -> Result<bool, Error> {
        let node = claim.node.0.cast_signed();
        let other = claim.from.node.filter(|it| *it != claim.node);
        let ids: Vec<i64> = [Some(claim.node), other]
            .into_iter()
            .flatten()
            .map(|it| it.0.cast_signed())
            .collect();
        let lock = "SELECT FROM waterwheel.nodes WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        let increment =
            "UPDATE waterwheel.nodes SET counter = counter + 1 WHERE id = $1 RETURNING id";
        // A statement of its own: that of the lock may have waited for a heartbeat.
        let read = "SELECT counter FROM waterwheel.nodes WHERE id = $1";
        let other = other.map_or(0, |it| it.0.cast_signed());
        let requests = [
            Statement::new(lock).bigs(ids),
            Statement::new(increment).big(node),
            Statement::new(read).big(other),
        ];
        let mut replies = Vec::new();
        for reply in self.send(requests.map(Request::Statement).into()).await {
            replies.push(reply?);
        }
        let is_registered = !replies[1].is_empty();
        let counter = match replies[2].first() {
            Some(row) => Some(get::<i64>(row, 0)?.cast_unsigned()),
            None => None,
        };
        let is_own = claim.from.node == Some(claim.node);
        Ok(is_registered && (is_own || counter == claim.from.counter))
    }

    async fn lock_and_take(&mut self, claim: &Claim) -> Result<Option<Drawn>, Error> {
        let lock = Statement::new(LOCK_PARTITION).small(claim.partition);
        let rows = self.query(lock).await?;
        let Some(row) = rows.first() else {
            let message = format!("there is no partition {}", claim.partition);
            return Err(Error::Unexpected(message.into()));
        };
        let node: Option<i64> = get(row, 0)?;
        let holder = (
            node.map(i64::cast_unsigned),
            get::<i64>(row, 1)?.cast_unsigned(),
        );
        if holder != (claim.from.node.map(|it| it.0), claim.from.owner.0) {
            return Ok(None);
        }
        let opened: i64 = get(row, 2)?;
        let drawn = drawn(row, 3)?;
        let (epoch, timeline) = (drawn.epoch.cast_signed(), drawn.timeline.cast_signed());
        let take = Statement::new(TAKE).small(claim.partition);
        let take = take
            .big(claim.node.0.cast_signed())
            .big(claim.owner.0.cast_signed());
        let forget = "DELETE FROM waterwheel.commits WHERE partition = $1 AND epoch < $2";
        let begin = "INSERT INTO waterwheel.commits (partition, epoch, number) VALUES ($1, $2, 0)";
        let mut statements = vec![
            take.int(timeline).big(epoch),
            Statement::new(forget).small(claim.partition).big(opened),
            Statement::new(begin).small(claim.partition).big(epoch),
        ];
        if let Some(node) = claim.from.node.filter(|it| *it != claim.node) {
            statements.push(delete_node(node));
        }
        let mut requests: Vec<_> = statements.into_iter().map(Request::Statement).collect();
        requests.push(Request::Commit);
        for reply in self.send(requests).await {
            reply?;
        }
        Ok(Some(drawn))
    }

    async fn delete_node(&mut self, node: Option<NodeId>) -> Result<(), Error> {
        let delete = node.map(delete_node);
        let requests = delete.into_iter().map(Request::Statement);
        for reply in self.send(requests.chain([Request::Commit]).collect()).await {
            reply?;
        }
        Ok(())
    }

    async fn lock_and_confirm(
        &mut self,
        opening: &Opening,
        number: u64,
    ) -> Result<Result<(), Rejection>, Error> {
        self.begin_transaction().await?;
        let lock = Statement::new(LOCK_PARTITION).small(opening.partition);
        let rows = self.query(lock).await?;
        let owner = match rows.first() {
            Some(row) => Some(get::<i64>(row, 1)?),
            None => None,
        };
        if owner != Some(opening.owner.0.cast_signed()) {
            return Ok(Err(Rejection::Fenced));
        }
        let sql = "SELECT EXISTS (SELECT FROM waterwheel.commits WHERE partition = $1 AND epoch = $2 AND number = $3)";
        let exists = Statement::new(sql).small(opening.partition);
        let exists = exists
            .big(opening.epoch.cast_signed())
            .big(number.cast_signed());
        if !self.one::<bool>(exists).await? {
            return Ok(Err(Rejection::Gap));
        }
        let sql = "UPDATE waterwheel.partitions SET timeline = waterwheel.timeline(), known_timeline = waterwheel.timeline() WHERE partition = $1";
        let update = Statement::new(sql).small(opening.partition);
        for reply in self
            .send(vec![Request::Statement(update), Request::Commit])
            .await
        {
            reply?;
        }
        Ok(Ok(()))
    }

    /// Carries out a commit. `COMMIT` is sent together with the steps if their outcomes are known before. An error has the outcomes if `COMMIT` was sent.
    async fn carry_out(
        &mut self,
        mut plan: Plan<'_>,
        commit: &Commit<'_>,
    ) -> Result<Vec<Outcome>, (Error, Option<Vec<Outcome>>)> {
        let known = plan.known();
        let mut requests = match self.is_in_transaction {
            true => Vec::new(),
            false => vec![Request::Begin],
        };
        requests.push(Request::Statement(self.begin_commit(commit)));
        let mut before = requests.len();
        loop {
            let next = plan.next(&self.names.lock());
            let Some(statements) = next else { break };
            requests.extend(statements.into_iter().map(Request::Statement));
            if known.is_some() {
                requests.push(Request::Commit);
            }
            let mut replies = Vec::new();
            for reply in self.send(std::mem::take(&mut requests)).await {
                replies.push(reply.map_err(|error| (error, known.clone()))?);
            }
            let read = plan.read(&replies[before..], &self.names.lock());
            read.map_err(|error| (error, known.clone()))?;
            before = 0;
        }
        let outcomes = plan.outcomes();
        if known.is_none()
            && let Err(error) = self.commit().await
        {
            return Err((error, Some(outcomes)));
        }
        Ok(outcomes)
    }

    fn begin_commit(&self, commit: &Commit<'_>) -> Statement<'static> {
        let Opening {
            partition,
            owner,
            epoch,
            ..
        } = *commit.opening;
        // Zero deletes nothing.
        let keeps_from = match commit.keeps_from > self.forgot_below {
            true => commit.keeps_from,
            false => 0,
        };
        let begin = Statement::new("SELECT waterwheel.begin_commit($1, $2, $3, $4, $5)");
        let begin = begin.small(partition).big(owner.0.cast_signed());
        let begin = begin
            .big(epoch.cast_signed())
            .big(commit.number.cast_signed());
        begin.big(keeps_from.cast_signed())
    }
}

/// The end of a delivery that another process has reported.
fn end(stored: &[u8]) -> Ended {
    let unreadable =
        || Ended::Failed("its end cannot be read, because a newer version has written it".into());
    Ended::from_stored(stored).unwrap_or_else(unreadable)
}

/// Deletes a node, with the deliveries whose ends it has not reported.
fn delete_node<'a>(node: NodeId) -> Statement<'a> {
    let delete = Statement::new("DELETE FROM waterwheel.nodes WHERE id = $1");
    delete.big(node.0.cast_signed())
}

fn beat_of(row: &tokio_postgres::Row) -> Result<Beat, Error> {
    let owner: Option<i64> = get(row, 4)?;
    let Some(owner) = owner else {
        return Err(Error::Unexpected("the partition does not exist".into()));
    };
    let (node, counter): (Option<i64>, Option<i64>) = (get(row, 2)?, get(row, 3)?);
    let many = |at| get::<Option<Vec<i64>>>(row, at);
    let others = many(6)?.into_iter().flatten();
    let counters = many(7)?.into_iter().flatten();
    Ok(Beat {
        is_registered: get(row, 0)?,
        timeline: get::<i32>(row, 1)?.cast_unsigned(),
        holder: Holder {
            node: node.map(|it| NodeId(it.cast_unsigned())),
            counter: counter.map(i64::cast_unsigned),
            owner: OwnerId(owner.cast_unsigned()),
            timeline: get::<i32>(row, 5)?.cast_unsigned(),
        },
        others: others
            .zip(counters)
            .map(|(node, counter)| (NodeId(node.cast_unsigned()), counter.cast_unsigned()))
            .collect(),
        is_suspended: get(row, 8)?,
    })
}
