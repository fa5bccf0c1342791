//! The load that an idle process puts on the server.

use std::thread;
use std::time::{Duration, Instant};

use waterwheel_durable_core::store::Store;
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Server, database_of};

use crate::database::Database;

#[test]
fn an_idle_owner_and_a_standby_send_few_statements() {
    let options = ["-c", "shared_preload_libraries=pg_stat_statements"];
    let server = Server::start(&options).unwrap();
    let url = server.database();
    let name = database_of(&url);
    server.sql(name, "CREATE EXTENSION pg_stat_statements");
    let postgres = Postgres::new(&url);
    postgres.migrate().unwrap();
    let mut owner = postgres.open().unwrap();
    owner.begin().unwrap();
    let (begun, standby) = (Instant::now(), postgres.clone());
    let standby = thread::spawn(move || standby.wait_at_most(Duration::from_secs(6)).open());
    server.sql(name, "SELECT pg_stat_statements_reset()");
    // As the service does while there are no commits.
    while !standby.is_finished() {
        owner.maintain().unwrap();
        thread::sleep(Duration::from_secs(1));
    }
    let calls = "SELECT query, calls FROM pg_stat_statements WHERE query !~ '^(BEGIN|COMMIT)' ORDER BY calls DESC";
    let sent = server.sql(name, calls);
    let seconds = begun.elapsed().as_secs_f64();
    assert!(standby.join().unwrap().unwrap_err().is_held());
    let counts = sent
        .lines()
        .filter_map(|line| line.rsplit_once('|')?.1.parse::<u32>().ok());
    let count: u32 = counts.sum();
    // Two processes.
    let rate = f64::from(count) / seconds / 2.0;
    assert!(rate > 1.0 && rate < 5.0, "{rate} a second:\n{sent}");
}

/// They hold for the rest of its transaction.
#[test]
fn a_heartbeat_has_the_settings_that_it_needs() {
    let database = Database::new();
    let settings = database.sql(
        "BEGIN; SET LOCAL synchronous_commit = off; SELECT is_registered FROM waterwheel.beat(1, 0::smallint, 1500);
        SELECT name, setting FROM pg_settings WHERE name IN
            ('synchronous_commit', 'lock_timeout', 'idle_in_transaction_session_timeout') ORDER BY name",
    );
    let expected = "f\nidle_in_transaction_session_timeout|1500\nlock_timeout|3000\nsynchronous_commit|local\n";
    assert!(settings.ends_with(expected), "{settings}");
}

/// That would take a tenth of a second each time.
#[test]
fn no_function_of_the_protocol_is_compiled() {
    let database = Database::new();
    let compiled = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'waterwheel'::regnamespace
        AND 'enable_seqscan=off' = ANY (proconfig) AND NOT 'jit=off' = ANY (proconfig)";
    assert_eq!(database.sql(compiled), "0\n");
    let all = compiled.replace("AND NOT 'jit", "AND 'jit");
    assert_ne!(database.sql(&all), "0\n");
}
