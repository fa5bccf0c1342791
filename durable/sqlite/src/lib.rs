//! Durable timers in a SQLite file: a [`Store`](waterwheel_store::Store) for `waterwheel-durable`.
//!
//! ```
//! use waterwheel_store::{Bucket, Due, Id, Level, Most, Op, Outcome, Position, Row, Store};
//! use waterwheel_store_sqlite::SqliteStore;
//!
//! # let folder = std::env::temp_dir().join(format!("waterwheel-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("timers.db");
//! let mut store = SqliteStore::open(&path)?;
//! let epoch = store.begin()?;
//! let row = Row {
//!     id: Id::new(epoch, 1).ok_or("too many openings")?,
//!     due: Due::from_millis(5_000),
//!     handler: "reminder".into(),
//!     failures: 0,
//!     has_moved: false,
//!     key: None,
//!     payload: b"order 17".as_slice().into(),
//! };
//! let insert = Op::Insert(row.clone(), Level::Second.bucket(row.due));
//! assert_eq!(store.commit(1, &[insert])?, [Outcome::Inserted]); // synced to the disk
//! assert_eq!(store.load("reminder", Position::START, 6, Most::rows(10))?, [row]);
//! # drop(store);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file is in WAL mode with `synchronous=FULL`: a commit returns after an `fsync` of the log. The store copies the log into the file itself, after a
//! commit that has left the log long. An `fsync` that fails there makes the store fail, as one that fails in a commit does.
//!
//! | file | what it is |
//! |---|---|
//! | `timers.db` | the tables |
//! | `timers.db-wal`, `timers.db-shm` | SQLite's log and its index. The log has committed rows: copy it with the file |
//! | `timers.db-lock` | a file that the process locks which has the store open; its process number is in it |
//!
//! A timer without a key is one row in one table without a row number, `timers`. Its primary key is the level, the handler (0 in far levels, so that their
//! buckets have rows of all handlers), the bucket and the id.

mod cascade;
mod error;
mod failure;
mod handlers;
mod lock;
mod log;
mod read;
mod schema;
mod store;
mod trial;
mod write;

pub use error::OpenError;
#[doc(hidden)]
pub use schema::{Step, VERSION};
pub use store::SqliteStore;
#[doc(hidden)]
pub use trial::Trial;
