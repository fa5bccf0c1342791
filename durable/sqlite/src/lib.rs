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
//! # Beside the process that has the file open
//!
//! A [`Reader`] counts and lists what is there, and [`backup`] makes a copy. Both take no lock and hold up no commit; while they read, the log grows by what is
//! committed. They change nothing in the file. [`ask`] hands the process an order, such as to cancel a timer, and waits for its answer; what is not carried out
//! in time is not carried out later.
//!
//! ```
//! use waterwheel_store::{Due, Id, Most};
//! use waterwheel_store_sqlite::{Reader, SqliteStore, Whose, backup};
//!
//! # let folder = std::env::temp_dir().join(format!("waterwheel-beside-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let (path, copy) = (folder.join("timers.db"), folder.join("copy.db"));
//! let store = SqliteStore::open(&path)?; // a service has it
//!
//! let reader = Reader::open(&path)?;
//! let now = Due::at_or_after(std::time::SystemTime::now()).ok_or("a clock far off")?;
//! for count in reader.count(now)? {
//!     println!("{}: {} wait, {} of them are due", count.handler, count.pending(), count.overdue);
//! }
//! let overdue = reader.pending(&Whose::All, Reader::START, now, Most::rows(100))?;
//! assert!(overdue.is_empty() && reader.dead(&Whose::All, Id::NONE, Most::rows(100))?.is_empty());
//!
//! backup(&path, &copy)?; // a whole file of its own, synced
//! # drop((store, reader));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//!
//! A business key costs an entry of 32 bytes in an index, which is written in order of time and put in order by later steps: random keys are inserted at about
//! the rate of timers without keys, however many there are. In memory, the index takes 1 to 2 bytes a key, and some megabytes for the last 64 K changes. It
//! knows a key by a hash of 128 bits with a secret of the file, and two keys of one hash would be one: with 10 million keys, the chance is 1 in 10²⁴. A file
//! of version 1, whose index was a table in order of the keys, gets this one as it is opened, which takes about a second for a million keys.
//!
//! # How long the file is
//!
//! Free pages are used again. When more than 4 MB of them are a sixth of the file, it becomes shorter, until a twentieth is left: by half a megabyte each time
//! that the log is copied, and by two a second while there is no commit. That needs notes of who refers to which page (`auto_vacuum=INCREMENTAL`), which new
//! files have, and which cost inserts and settles 1 to 3 % more bytes. A file that was made by version 1 has none, and stays as long as it is. To change that
//! once, while no process has it open: `sqlite3 timers.db 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'`, which needs as much space again as the file.

mod archive;
mod backup;
mod cascade;
mod error;
mod failure;
mod handlers;
mod identity;
mod keys;
mod lock;
mod log;
mod orders;
mod read;
mod reader;
mod reserve;
mod schema;
mod space;
mod store;
mod trial;
mod vacuum;
mod write;

pub use backup::{Backup, BackupError, EPOCHS_AHEAD, backup};
pub use error::OpenError;
#[doc(hidden)]
pub use keys::Sizes;
pub use lock::Holder;
pub use orders::{AskError, Asked, ask};
pub use reader::{Count, Extent, Pending, ReadError, Reader, Whose};
#[doc(hidden)]
pub use schema::{STEPS, Step, VERSION};
pub use store::SqliteStore;
#[doc(hidden)]
pub use trial::{Files, Trial};
#[doc(hidden)]
pub use vacuum::Vacuum;
