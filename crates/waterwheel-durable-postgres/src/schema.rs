//! The tables of this version, and how they are created.

use std::time::Duration;

use crate::connection::Connection;
use crate::error::{Error, get};
use crate::statement::Statement;

/// The version of the tables that this version of the store creates. It also uses those of a newer version whose changes it need not know.
pub(crate) const VERSION: i32 = 1;

/// Timers are loaded in the order of `timers_seconds`, and cascade in that of `timers_buckets`. A move changes indexed columns, so that updates in place are
/// impossible except for `starts`, and the default fill factor is kept.
///
/// Commits insert the changes of counts, and every so often these are added to the counts. If each commit updated counters, it would walk through all versions of
/// these rows that an old snapshot keeps alive.
const TABLES: &str = r#"
    CREATE SCHEMA IF NOT EXISTS waterwheel;

    -- The version, that of the oldest store that may use the tables, the TTL of all processes in milliseconds, and the cluster id.
    CREATE TABLE waterwheel.version (version integer NOT NULL, oldest integer NOT NULL, ttl integer NOT NULL, cluster_id text);

    CREATE TABLE waterwheel.nodes (
        id bigint PRIMARY KEY,
        counter bigint NOT NULL,
        host text NOT NULL,
        process bigint NOT NULL,
        -- For cleaning up, and to tell a restore from a failover.
        seen timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 50);

    CREATE TABLE waterwheel.partitions (
        partition smallint PRIMARY KEY,
        timeline integer NOT NULL,
        node bigint,
        owner bigint NOT NULL DEFAULT 0,
        previous bigint NOT NULL DEFAULT 0,
        opened bigint NOT NULL DEFAULT 0,
        epoch bigint NOT NULL DEFAULT 0,
        epoch_timeline integer NOT NULL,
        -- The identity of the database and the timeline of the server when the tables were used last; and whether deliveries wait because they were restored since.
        identity text NOT NULL,
        known_timeline integer NOT NULL,
        is_suspended boolean NOT NULL DEFAULT false,
        -- When it was taken or given back.
        seen timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 50);

    -- The timers whose handlers are running in processes that have given the partition back, and the ends of such deliveries that the owner has not applied.
    CREATE TABLE waterwheel.attempts (
        id bigint PRIMARY KEY,
        node bigint REFERENCES waterwheel.nodes (id) ON DELETE CASCADE,
        partition smallint NOT NULL,
        ended bytea,
        CHECK ((node IS NULL) <> (ended IS NULL))
    );
    CREATE INDEX attempts_partition ON waterwheel.attempts (partition, node);
    CREATE INDEX attempts_node ON waterwheel.attempts (node);

    CREATE TABLE waterwheel.commits (
        partition smallint NOT NULL,
        epoch bigint NOT NULL,
        number bigint NOT NULL,
        PRIMARY KEY (partition, epoch, number)
    );

    CREATE TABLE waterwheel.handlers (
        partition smallint NOT NULL,
        number integer NOT NULL,
        name text COLLATE "C" NOT NULL,
        PRIMARY KEY (partition, number),
        UNIQUE (partition, name)
    );

    CREATE TABLE waterwheel.timers (
        id bigint PRIMARY KEY,
        bucket bigint NOT NULL,
        due bigint NOT NULL,
        first_due bigint NOT NULL,
        starts bigint NOT NULL DEFAULT 0,
        failures bigint NOT NULL DEFAULT 0,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        level smallint NOT NULL,
        key bytea,
        tag text COLLATE "C",
        retries bytea,
        payload bytea NOT NULL
    );
    CREATE INDEX timers_seconds ON waterwheel.timers (partition, handler, bucket, id) WHERE level = 0;
    CREATE INDEX timers_buckets ON waterwheel.timers (partition, level, bucket, id) WHERE level > 0;
    CREATE INDEX timers_tags ON waterwheel.timers (partition, tag, id) WHERE tag IS NOT NULL;

    -- Maps a key to an index entry of bounded size: an entry of a B-tree has at most 2 704 bytes. Distinct keys have distinct names.
    CREATE FUNCTION waterwheel.key_name(key bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE WHEN octet_length(key) <= 256 THEN '\x00'::bytea || key ELSE '\x01'::bytea || sha256(key) END
    $$;

    CREATE TABLE waterwheel.keys (
        id bigint NOT NULL,
        first_due bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        name bytea NOT NULL,
        PRIMARY KEY (partition, handler, name)
    );

    CREATE TABLE waterwheel.dead (
        id bigint NOT NULL,
        due bigint NOT NULL,
        first_due bigint NOT NULL,
        starts bigint NOT NULL,
        failures bigint NOT NULL,
        at bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        key bytea,
        tag text COLLATE "C",
        retries bytea,
        payload bytea NOT NULL,
        error bytea NOT NULL,
        kind bytea NOT NULL,
        PRIMARY KEY (partition, id)
    );
    CREATE INDEX dead_keys ON waterwheel.dead (partition, handler, waterwheel.key_name(key)) WHERE key IS NOT NULL;

    CREATE TABLE waterwheel.archive (
        day bigint NOT NULL,
        block bigint NOT NULL,
        index bigint NOT NULL,
        id bigint NOT NULL,
        due bigint NOT NULL,
        at bigint NOT NULL,
        failures bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        key bytea,
        PRIMARY KEY (partition, handler, day, block, index)
    );
    CREATE INDEX archive_keys ON waterwheel.archive (id) WHERE key IS NOT NULL;

    CREATE TABLE waterwheel.settings (
        partition smallint NOT NULL,
        name text COLLATE "C" NOT NULL,
        value bytea NOT NULL,
        PRIMARY KEY (partition, name)
    );

    CREATE TABLE waterwheel.pending_counts (
        bucket bigint NOT NULL,
        count bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        level smallint NOT NULL,
        PRIMARY KEY (partition, handler, level, bucket)
    );
    CREATE INDEX pending_counts_zeros ON waterwheel.pending_counts (partition) WHERE count = 0;

    CREATE TABLE waterwheel.pending_changes (
        bucket bigint NOT NULL,
        count bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        level smallint NOT NULL
    );
    CREATE INDEX pending_changes_partition ON waterwheel.pending_changes (partition);

    CREATE TABLE waterwheel.dead_counts (
        count bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        kind bytea NOT NULL,
        PRIMARY KEY (partition, handler, kind)
    );
    CREATE INDEX dead_counts_zeros ON waterwheel.dead_counts (partition) WHERE count = 0;

    CREATE TABLE waterwheel.dead_changes (
        count bigint NOT NULL,
        handler integer NOT NULL,
        partition smallint NOT NULL,
        kind bytea NOT NULL
    );
    CREATE INDEX dead_changes_partition ON waterwheel.dead_changes (partition);

    -- The timeline of the server, which a failover increments.
    CREATE FUNCTION waterwheel.timeline() RETURNS integer LANGUAGE sql AS $$
        SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
    $$;

    -- Changes if the database is restored from a dump or by `pg_upgrade`, on another server or on the same one.
    CREATE FUNCTION waterwheel.identity() RETURNS text LANGUAGE sql AS $$
        SELECT concat_ws(' ', system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()), 'waterwheel.partitions'::regclass::oid)
        FROM pg_control_system()
    $$;

    -- Returns whether the tables were restored since the last heartbeat. A failover takes less than ten minutes.
    CREATE FUNCTION waterwheel.is_restored(of_partition smallint) RETURNS boolean LANGUAGE sql AS $$
        SELECT opened > 0 AND (identity <> waterwheel.identity() OR known_timeline <> waterwheel.timeline()
            AND greatest(seen, (SELECT max(nodes.seen) FROM waterwheel.nodes WHERE counter > 0)) < now() - interval '10 minutes')
        FROM waterwheel.partitions WHERE partition = of_partition
    $$;

    -- An epoch that was not reached since the backup, and that another copy of the same backup does not begin with.
    CREATE FUNCTION waterwheel.epoch_of_copy(epoch bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT epoch + 65536 + floor(random() * 65536)::bigint $$;

    -- Lets deliveries begin.
    CREATE FUNCTION waterwheel.accept_restore() RETURNS void LANGUAGE sql AS $$
        UPDATE waterwheel.partitions SET is_suspended = false, identity = waterwheel.identity(), known_timeline = waterwheel.timeline(), seen = now(),
            epoch = CASE WHEN waterwheel.is_restored(partition) THEN waterwheel.epoch_of_copy(epoch) ELSE epoch END
    $$;

    -- Functions that avoid sequential scans turn JIT off: those that are needed nevertheless count as expensive.

    -- A heartbeat. `within` is the time in milliseconds after which the client gives up. The function sets what it needs, so that a heartbeat is one statement. The row of the partition is read by a statement of its own: that of the update may have waited for a take-over.
    CREATE FUNCTION waterwheel.beat(of_node bigint, of_partition smallint, within integer)
    RETURNS TABLE (
        is_registered boolean, timeline integer, node bigint, counter bigint, owner bigint, written_on integer, others bigint[], counters bigint[],
        is_suspended boolean
    )
    LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
        -- Before the heartbeat, which is a sign of life.
        is_restored boolean := waterwheel.is_restored(of_partition);
    BEGIN
        PERFORM set_config('lock_timeout', (2 * within)::text, true),
            set_config('idle_in_transaction_session_timeout', within::text, true),
            set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'local'), true);
        UPDATE waterwheel.nodes SET counter = nodes.counter + 1, seen = now() WHERE id = of_node;
        is_registered := FOUND;
        IF is_restored THEN
            UPDATE waterwheel.partitions it SET is_suspended = true, identity = waterwheel.identity(), known_timeline = waterwheel.timeline(), seen = now(),
                epoch = waterwheel.epoch_of_copy(epoch)
                WHERE partition = of_partition AND (identity <> waterwheel.identity() OR known_timeline <> waterwheel.timeline());
        END IF;
        timeline := waterwheel.timeline();
        SELECT it.node, nodes.counter, it.owner, it.timeline, it.is_suspended INTO node, counter, owner, written_on, is_suspended
            FROM waterwheel.partitions it LEFT JOIN waterwheel.nodes ON nodes.id = it.node
            WHERE it.partition = of_partition;
        IF node = of_node THEN
            SELECT array_agg(it.id), array_agg(it.counter) INTO others, counters FROM waterwheel.nodes it
                WHERE it.id <> of_node AND it.id IN (SELECT attempts.node FROM waterwheel.attempts WHERE attempts.partition = of_partition);
        END IF;
        RETURN NEXT;
    END $$;

    -- The fence, and the commit row. The lock excludes a take-over, and any other transaction of the opening. The commit row is inserted by a
    -- statement of its own, since one that has waited for the lock would not see what was committed meanwhile.
    CREATE FUNCTION waterwheel.begin_commit(of_partition smallint, of_owner bigint, of_epoch bigint, new_number bigint, keeps_from bigint)
    RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
        held record;
    BEGIN
        SELECT owner, timeline INTO held FROM waterwheel.partitions WHERE partition = of_partition FOR NO KEY UPDATE;
        IF held.owner IS DISTINCT FROM of_owner THEN
            RAISE EXCEPTION 'another process has taken the timers over' USING ERRCODE = 'WW001';
        END IF;
        IF held.timeline <> waterwheel.timeline() THEN
            RAISE EXCEPTION 'the database has failed over' USING ERRCODE = 'WW002';
        END IF;
        INSERT INTO waterwheel.commits (partition, epoch, number)
            SELECT of_partition, of_epoch, new_number
            WHERE EXISTS (SELECT FROM waterwheel.commits WHERE partition = of_partition AND epoch = of_epoch AND number = new_number - 1);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the previous commit is missing' USING ERRCODE = 'WW003';
        END IF;
        IF keeps_from > 0 THEN
            DELETE FROM waterwheel.commits WHERE partition = of_partition AND epoch = of_epoch AND number < keeps_from;
        END IF;
    END $$;

    -- Records the ends of deliveries that a node has handed over, and deletes those without an end. After a failover, returns false until the partition is opened or confirmed.
    CREATE FUNCTION waterwheel.report(of_partition smallint, of_node bigint, ids bigint[], ends bytea[])
    RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        IF NOT EXISTS (SELECT FROM waterwheel.partitions WHERE partition = of_partition AND timeline = waterwheel.timeline()) THEN
            RETURN false;
        END IF;
        UPDATE waterwheel.attempts SET node = NULL, ended = it.ended FROM unnest(ids, ends) AS it (id, ended)
            WHERE attempts.id = it.id AND attempts.node = of_node AND it.ended IS NOT NULL;
        DELETE FROM waterwheel.attempts WHERE id = ANY (ids) AND node = of_node;
        RETURN true;
    END $$;

    INSERT INTO waterwheel.partitions (partition, timeline, epoch_timeline, known_timeline, identity)
        SELECT 0, waterwheel.timeline(), waterwheel.timeline(), waterwheel.timeline(), waterwheel.identity();
"#;

/// Creates the tables, unless they exist. Concurrent calls wait for each other. Returns the version of the tables.
pub(crate) async fn migrate(
    connection: &mut Connection,
    ttl: Duration,
    cluster_id: Option<&str>,
) -> Result<Version, Error> {
    connection.begin_transaction().await?;
    let lock = Statement::new("SELECT pg_advisory_xact_lock(8463527409187)");
    connection.query(lock).await?;
    let found = match version(connection).await? {
        Some(found) => found,
        None => {
            connection.script(TABLES).await?;
            let new = Version {
                version: VERSION,
                oldest: 1,
                ttl,
                cluster_id: cluster_id.map(str::to_owned),
            };
            let insert = "INSERT INTO waterwheel.version (version, oldest, ttl, cluster_id) VALUES ($1, $2, $3, $4)";
            let insert = Statement::new(insert).int(new.version).int(new.oldest);
            let millis = i32::try_from(ttl.as_millis()).unwrap_or(i32::MAX);
            let insert = insert.int(millis).text(cluster_id);
            connection.query(insert).await?;
            new
        }
    };
    connection.commit().await?;
    Ok(found)
}

/// Lets a role use the tables, without the right to change them or their version.
pub(crate) async fn grant(connection: &mut Connection, role: &str) -> Result<(), Error> {
    let role = format!("\"{}\"", role.replace('"', "\"\""));
    let sql = format!(
        "GRANT USAGE ON SCHEMA waterwheel TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA waterwheel TO {role};
        REVOKE INSERT, UPDATE, DELETE ON waterwheel.version FROM {role}"
    );
    connection.script(&sql).await
}

/// Lets deliveries begin in a restored database.
pub(crate) async fn accept_restore(connection: &mut Connection) -> Result<(), Error> {
    connection
        .script("SELECT waterwheel.accept_restore()")
        .await
}

/// Checks what the tables and the statements need of a database.
pub(crate) async fn check(connection: &mut Connection) -> Result<(), Error> {
    let sql =
        "SELECT current_setting('server_encoding'), current_setting('server_version_num')::integer";
    let rows = connection.query(Statement::new(sql)).await?;
    let (encoding, version) = match rows.first() {
        Some(row) => (get::<String>(row, 0)?, get::<i32>(row, 1)?),
        None => (String::new(), 0),
    };
    if encoding != "UTF8" {
        let message = format!("the database has the encoding {encoding}: create one with UTF8");
        return Err(Error::Unexpected(message.into()));
    }
    if version < OLDEST_SERVER {
        let (version, oldest) = (version / 10_000, OLDEST_SERVER / 10_000);
        let message = format!("the server is PostgreSQL {version}: {oldest} or later is needed");
        return Err(Error::Unexpected(message.into()));
    }
    Ok(())
}

/// The oldest version of the server whose statements are known to be supported.
const OLDEST_SERVER: i32 = 140_000;

/// The version of the tables, that of the oldest store that may use them, and what all processes have to agree on.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) version: i32,
    pub(crate) oldest: i32,
    pub(crate) ttl: Duration,
    pub(crate) cluster_id: Option<String>,
}

/// Returns the version of the tables, or `None` if there are none.
pub(crate) async fn version(connection: &mut Connection) -> Result<Option<Version>, Error> {
    let exists = Statement::new("SELECT to_regclass('waterwheel.version') IS NOT NULL");
    let exists: bool = connection.one(exists).await?;
    if !exists {
        return Ok(None);
    }
    let rows = Statement::new("SELECT version, oldest, ttl, cluster_id FROM waterwheel.version");
    match &connection.query(rows).await?[..] {
        [row] => Ok(Some(Version {
            version: get(row, 0)?,
            oldest: get(row, 1)?,
            ttl: Duration::from_millis(get::<i32>(row, 2)?.unsigned_abs().into()),
            cluster_id: get(row, 3)?,
        })),
        _ => Err(Error::Unexpected(
            "the table `version` does not have one row".into(),
        )),
    }
}
