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
//!     starts: 0,
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
//! The file is in WAL mode with `synchronous=EXTRA`, which is `FULL` there: a commit returns after an `fsync` of the log. The store copies the log into the
//! file itself, after a commit that has left the log long.
//!
//! | file | what it is |
//! |---|---|
//! | `timers.db` | the tables |
//! | `timers.db-wal`, `timers.db-shm` | SQLite's log and its index. The log has committed rows: copy it with the file |
//! | `timers.db-lock` | a file that the process locks which has the store open; its process number is in it. Its user alone may read it; the others have the modes that the process gives new files (`umask`) |
//!
//! # When something fails
//!
//! | what | what follows |
//! |---|---|
//! | the power is cut, the process is killed | what was answered is there; the commit that was under way is there as a whole, or not at all |
//! | an `fsync` fails, in a commit or as the log is copied | the store fails. Nothing is written or synced any more, nor as it is dropped |
//! | a read or a write fails, a page or a row makes no sense, a value is too large for SQLite | the same |
//! | the disk is full | the commit is refused, and the store goes on; the log is copied once there is space. On a file system that copies as it writes, the log may have the whole of that commit: then the store fails |
//! | the file is removed or replaced while it is open | the store fails after the next commit, which it has answered |
//! | a quota is used up (`EDQUOT`) | SQLite calls it an I/O error, so the store fails |
//! | another connection writes | after 50 ms the commit is refused, and the store goes on |
//! | another connection reads, in a transaction that stays open | the log grows until it ends, and the disk may fill. Then the log becomes short again |
//! | a file is damaged, newer, or another application's | it is not opened, and not written to |
//! | a file is of an older version | it is brought up to date, each version in one transaction, so that it is never between two of them |
//!
//! Damage is found where it is read. SQLite checks how its pages are built, and the log by checksums, but not what is in a row: a flipped bit in a payload is
//! delivered, and a damaged log ends before the damage, as it does after a power cut. To look for damage at each opening, as `PRAGMA quick_check` does, would
//! read the whole file: seconds for 10 million timers that are to be delivered after some hundred milliseconds.
//!
//! # Tables
//!
//! A timer without a key is one row in one table without a row number, `timers`. Its primary key is the level, the handler (0 in far levels, so that their
//! buckets have rows of all handlers), the bucket and the id.

mod archive;
mod cascade;
mod error;
mod failure;
mod handlers;
mod identity;
mod lock;
mod log;
mod read;
mod reserve;
mod schema;
mod space;
mod store;
mod trial;
mod write;

pub use error::OpenError;
#[doc(hidden)]
pub use schema::{STEPS, Step, VERSION};
pub use store::SqliteStore;
#[doc(hidden)]
pub use trial::{Files, Trial};
