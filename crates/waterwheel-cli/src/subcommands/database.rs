//! Prepares a PostgreSQL database.

use std::path::Path;

use waterwheel_durable_postgres::Postgres;

use crate::arguments::{Database, Migrate};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn migrate(url: &Path, args: &Migrate, output: &mut Output) -> Result<(), Failure> {
    let mut postgres = of(url, &args.database)?;
    if let Some(ttl) = args.ttl {
        postgres = postgres.ttl(ttl);
    }
    postgres.migrate()?;
    if let Some(role) = &args.grant {
        postgres.grant(role)?;
    }
    output.line("the tables are up to date")
}

pub(crate) fn accept_restore(
    url: &Path,
    args: &Database,
    output: &mut Output,
) -> Result<(), Failure> {
    of(url, args)?.accept_restore()?;
    output.line("deliveries may begin")
}

/// The database with this URL.
fn of(url: &Path, args: &Database) -> Result<Postgres, Failure> {
    let not_a_url = || Failure::because("this needs the URL of a PostgreSQL database");
    database(url, args).ok_or_else(not_a_url)
}

/// Whether this is the URL of a database, and not the name of a file.
pub(super) fn is_url(place: &Path) -> bool {
    let text = place.to_str().unwrap_or_default();
    let schemes = ["postgres://", "postgresql://"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

/// The database with this URL, or `None` if it is the name of a file.
pub(super) fn database(url: &Path, args: &Database) -> Option<Postgres> {
    let text = url.to_str().filter(|_| is_url(url))?;
    let mut postgres = Postgres::new(text);
    if let Some(file) = &args.password_file {
        postgres = postgres.password_file(file);
    }
    if let Some(id) = &args.cluster_id {
        postgres = postgres.cluster_id(id);
    }
    Some(postgres)
}
