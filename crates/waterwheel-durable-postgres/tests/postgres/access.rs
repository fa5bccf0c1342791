//! Passwords and encrypted connections.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use waterwheel_durable_core::conformance::mixed;
use waterwheel_durable_core::store::Store;
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Encrypted, Server, database_of};

use crate::database::{Database, postgres};

#[test]
fn a_server_is_trusted_if_its_certificate_is_signed_and_names_the_host() {
    let Encrypted { server, port, root } = Server::start_encrypted().unwrap();
    let open = |host: &str, options: &str| {
        let url = format!("postgres://waterwheel@{host}:{port}/postgres?{options}");
        let opened = postgres(&url);
        opened.migrate().map_err(|error| error.to_string())?;
        opened.open().unwrap().begin().unwrap();
        Ok::<_, String>(())
    };
    let trusted = format!("sslmode=verify-full&sslrootcert={}", root.display());
    open("localhost", &trusted).unwrap();
    let encrypted = "SELECT count(*) FROM waterwheel.partitions";
    assert_eq!(server.sql("postgres", encrypted), "1\n");
    for (host, options, why) in [
        ("127.0.0.1", &*trusted, "certificate not valid for name"),
        ("localhost", "sslmode=verify-full", "UnknownIssuer"),
        ("localhost", "sslmode=require", "UnknownIssuer"),
        ("localhost", "sslmode=disable", "no encryption"),
        (
            "localhost",
            "sslrootcert=/nowhere.pem",
            "`sslrootcert` /nowhere.pem: ",
        ),
    ] {
        let error = open(host, options).unwrap_err();
        assert!(error.contains(why), "{host} {options}: {error}");
    }
}

#[test]
fn a_password_is_read_for_each_connection() {
    let server = Server::of_process();
    let url = server.database().replace("waterwheel@", "secured@");
    server.sql(
        "postgres",
        "CREATE ROLE secured LOGIN SUPERUSER PASSWORD 'a secret'",
    );
    let error = postgres(&url).migrate().unwrap_err().to_string();
    assert!(error.contains("password missing"), "{error}");

    let file = std::env::temp_dir().join(format!("waterwheel-password-{}", std::process::id()));
    fs::write(&file, "a secret\n").unwrap();
    let opened = postgres(&url).password_file(&file);
    opened.migrate().unwrap();
    fs::write(&file, "another").unwrap();
    let error = opened.migrate().unwrap_err().to_string();
    assert!(error.contains("password authentication failed"), "{error}");
    fs::remove_file(&file).unwrap();
    let error = opened.migrate().unwrap_err().to_string();
    assert!(
        error.contains("no password: ") && error.contains("waterwheel-password-"),
        "{error}"
    );

    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let opened = postgres(&url).password_with(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok("a secret".into())
    });
    opened.open().unwrap().begin().unwrap();
    assert!(calls.load(Ordering::Relaxed) > 1);
    assert!(!format!("{opened:?}").contains("secret"));
}

#[test]
fn a_password_that_does_not_come_is_an_error() {
    let (keep, never) = mpsc::channel::<()>();
    let never = Mutex::new(never);
    let opened = Postgres::new(&Server::of_process().database());
    let opened = opened.ttl(Duration::from_secs(3)).password_with(move || {
        let _ = never.lock().unwrap().recv();
        Ok(String::new())
    });
    let error = opened.migrate().unwrap_err().to_string();
    let text = ": cannot reach the database: no password: it did not come in time";
    assert!(error.ends_with(text), "{error}");
    drop(keep);
    let opened = opened.password_with(|| panic!("a bug"));
    let error = opened.migrate().unwrap_err().to_string();
    assert!(
        error.contains("no password: ") && error.contains("a bug"),
        "{error}"
    );
}

#[test]
fn a_role_that_cannot_change_the_tables_can_use_them() {
    let database = Database::new();
    let (owner, role) = (database.at(&database.url), "an \"app\"");
    database.sql("CREATE ROLE \"an \"\"app\"\"\" LOGIN");
    let url = database.url.replace("waterwheel@", "an%20%22app%22@");
    let error = database.at(&url).open().unwrap_err().to_string();
    assert!(
        error.contains("permission denied for schema waterwheel"),
        "{error}"
    );
    owner.grant(role).unwrap();
    mixed(&mut database.at(&url).open().unwrap(), 1, 50);
    let name = database_of(&url);
    for forbidden in [
        "UPDATE waterwheel.version SET version = 2",
        "DROP TABLE waterwheel.timers",
        "CREATE TABLE waterwheel.more (it integer)",
    ] {
        let sql = format!("SET ROLE \"an \"\"app\"\"\"; {forbidden}");
        let error = Server::of_process().try_sql(name, &sql).unwrap_err();
        assert!(
            error.contains("permission denied") || error.contains("must be owner"),
            "{error}"
        );
    }
}
