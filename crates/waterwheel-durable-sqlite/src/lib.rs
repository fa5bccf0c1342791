//! Durable timers in a SQLite file: a [`Store`](waterwheel_durable_core::store::Store) for `waterwheel-durable`.
//!
//! ```
//! use waterwheel_durable_core::store::{Bucket, Due, Id, Level, PageLimit, Op, Outcome, RowCursor, Row, Store};
//! use waterwheel_durable_sqlite::SqliteStore;
//!
//! # let folder = std::env::temp_dir().join(format!("waterwheel-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("timers.db");
//! let mut store = SqliteStore::open(&path)?;
//! let epoch = store.begin()?;
//! let id = Id::new(epoch, 1).ok_or("too many openings")?;
//! let row = Row::new(id, Due::from_millis(5_000), "reminder", *b"order 17");
//! let insert = Op::Insert(row.clone(), Level::Second.bucket(row.due));
//! assert_eq!(store.commit(1, &[insert])?, [Outcome::Inserted]); // synced to the disk
//! assert_eq!(store.load("reminder", RowCursor::START, 6, PageLimit::rows(10))?, [row]);
//! # drop(store);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file is in WAL mode with `synchronous=EXTRA`, which in this mode is the same as `FULL`: a commit returns after
//! an `fsync` of the WAL. The store runs checkpoints itself, after a commit that has left a long WAL. If the WAL has
//! become much longer, because a reader had a transaction open for long, it is copied by a separate thread while
//! commits continue. When the store is dropped, it also runs a checkpoint, unless the WAL is that long: this is left to
//! the next process that opens the file. Dropping the store waits for a sync of the file that is in progress.
//!
//! | file | content |
//! |---|---|
//! | `timers.db` | the tables |
//! | `timers.db-wal`, `timers.db-shm` | SQLite's WAL and its index. The WAL contains committed rows: copy it together with the file |
//! | `timers.db-reserve` | space that is released when the disk is full: twice the size of the other files together, from 1 to 16 MiB. Its content has no meaning. It may be deleted while no process has the store open |
//! | `timers.db-acknowledged` | the number of the last acknowledged commit. Without it, a WAL that is truncated or deleted after a crash goes undetected |
//! | `timers.db-lock` | locked by the process that has the store open; contains its process id. Only its owner may read it; the other files have the mode that the process gives to new files (`umask`) |
//!
//! In the process that has the store open, no other code may open `timers.db`, not even to read it: on Unix, SQLite's
//! locks on a file belong to the process, and closing any descriptor of the file releases them. Another process that
//! reads the file may then delete the WAL when it ends.
//!
//! # Access from other processes
//!
//! A [`Reader`] counts and lists the content of the file, and [`backup()`] copies it. Both take no lock, delay no commit
//! and change nothing in the file; while they read, the WAL grows by what is committed. [`send_commands`] sends commands to the
//! process that has the file open, for example to cancel a timer, and waits for the answers. A command that is not
//! accepted in time is withdrawn. If it cannot be withdrawn, because the process that sent it was killed, it expires by
//! the wall clock: if the clock is set back meanwhile, the command may still be carried out.
//!
//! ```
//! use waterwheel_durable_core::store::{Due, Id, PageLimit, Scope};
//! use waterwheel_durable_sqlite::{Reader, SqliteStore, backup};
//!
//! # let folder = std::env::temp_dir().join(format!("waterwheel-beside-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let (path, copy) = (folder.join("timers.db"), folder.join("copy.db"));
//! let store = SqliteStore::open(&path)?; // as a service does
//!
//! let reader = Reader::open(&path)?;
//! let now = Due::at_or_after(std::time::SystemTime::now()).ok_or("a clock far off")?;
//! for count in reader.count(now)? {
//!     println!("{}: {} pending, {} of them due", count.handler, count.pending(), count.overdue);
//! }
//! let overdue = reader.pending(&Scope::All, Reader::START, now, PageLimit::rows(100))?;
//! assert!(overdue.is_empty() && reader.dead(&Scope::All, Id::NONE, PageLimit::rows(100))?.is_empty());
//!
//! backup(&path, &copy)?; // a complete, synced copy
//! # drop((store, reader));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Failures
//!
//! | event | result |
//! |---|---|
//! | power failure, or the process is killed | everything acknowledged is there. A commit in progress is there completely, or not at all |
//! | an `fsync` fails, in a commit or during a checkpoint | the store fails. Nothing is written or synced any more, not even when it is dropped |
//! | a read or a write fails, a page or a row is invalid, a value is too large for SQLite | the store fails in the same way |
//! | the disk is full, or a quota is exhausted | inserts are answered with [`Full`](waterwheel_durable_core::store::Outcome::Full), and everything else continues: see [below](#when-the-disk-is-full) |
//! | the file has a [limit](Sqlite::limit), and seven eighths of it are used | the same as for a full disk |
//! | the file is removed or replaced while it is open | the store fails after the next commit, which it has acknowledged |
//! | another connection writes | after 50 ms the commit is refused, and the store continues |
//! | another connection keeps a read transaction open | the WAL grows until the transaction ends, and the disk may become full. Then the WAL becomes short again |
//! | the WAL is missing, truncated or damaged after a crash | if acknowledged commits are gone, the file is [not opened](OpenError::AcknowledgedLost), unless that is [accepted](Sqlite::accept_loss) |
//! | the file is damaged, newer, or belongs to another application | it is not opened, and not modified |
//! | the file is of an older version | it is upgraded, with one transaction for each version, so that it is never between two versions. A reader refuses it |
//!
//! # When the disk is full
//!
//! SQLite's WAL needs space even to delete rows, and the file needs space for the WAL to be copied into it. The last
//! space is therefore reserved for that:
//!
//! 1. A commit that finds no space is carried out without its inserts. The WAL is copied into the file and started
//!    again in the space that it has.
//! 2. If there is no space even without the inserts, or none to copy the WAL, the reserve is deleted, and the commit is
//!    carried out in its space. Settled timers leave free pages for retries, dead letters and archived records.
//! 3. After a second, and then at increasing intervals of up to 16 s, the free space of the disk is queried. If it is
//!    enough for the reserve, and every fourth time in any case, the reserve is written again, with an additional
//!    quarter to verify, also in case of a quota, that there is space for inserts. Then inserts are accepted again.
//!
//! Until then, the runs of the index of the keys are not merged, and the file does not shrink: its free pages are
//! needed for other writes. The last 64 K changes of that index become a run as soon as there are free pages and WAL
//! space for it. Until then they stay in memory together with later changes, at about 50 bytes each. A run that was
//! refused is retried after a second and then at increasing intervals, like the query of the disk.
//!
//! An insert that was answered with `Full` was definitely not written. If even the reserve is used up, commits are
//! refused, and nothing is lost. A full disk does not prevent a store from opening. The reserve is not used for a copy
//! made by [`backup()`], or for what [`send_commands`] writes.
//!
//! On a copy-on-write file system (btrfs, ZFS), the WAL may contain the whole of a commit that found no space for its
//! last bytes. It is overwritten in the space of the reserve. If the reserve is gone, the store fails. On btrfs, a disk
//! without a single free byte ends the process (`SIGBUS`): SQLite maps the index of the WAL into memory, and writing it
//! needs new blocks as well. Nothing is lost by that, and the next start continues once there is space. A limit or a
//! quota that leaves the file system some space avoids it. `waterwheel-durable-chaos disk-full` was passed on ext4, XFS and
//! tmpfs.
//!
//! Damage is found where it is read. SQLite checks the structure of its pages, and the WAL by checksums, but not the
//! content of rows: a flipped bit in a payload is delivered, and what SQLite reads of a damaged WAL ends before the
//! damage. Checking for damage at each open, as `PRAGMA quick_check` does, would read the whole file: seconds for 10
//! million timers that should be delivered within a few hundred milliseconds. [`check()`] looks for damage, also while
//! a service is running.
//!
//! # Tables
//!
//! A timer without a key is one row in the table `timers`, which is a `WITHOUT ROWID` table. Its primary key consists
//! of the level, the handler (0 in coarser levels, because their buckets contain rows of all handlers), the bucket and the
//! id.
//!
//! A business key costs an entry of 32 bytes in an index that is written in order of time and sorted by later steps.
//! Random keys are therefore inserted at about the rate of timers without keys, however many there are. In memory, the
//! index takes 1 to 2 bytes per key, plus a few megabytes for the last 64 K changes. The index identifies a key by a
//! 128-bit hash with a secret of the file, and two keys with the same hash would be one: with 10 million keys, the
//! probability is 1 in 10²⁴.
//!
//! A tag costs a row in the table `tags`, which is written with the insert and deleted with the timer.
//!
//! # Size of the file
//!
//! Free pages are reused. When there are more than 4 MB of them and they make up more than a sixth of the file, the
//! file shrinks until a twentieth is left: by at most half a megabyte in each checkpoint, and by two megabytes a second
//! while there are no commits, in steps of about 5 ms. This requires SQLite's pointer map (`auto_vacuum=INCREMENTAL`),
//! which costs inserts and settles 1 to 3 % more bytes.

mod acknowledged;
mod archive;
mod backup;
mod cascade;
mod check;
mod commands;
mod connection;
mod counts;
mod error;
mod files;
mod handles;
mod lock;
mod lsm;
mod meta;
mod options;
mod read;
mod reader;
mod schema;
mod space;
mod sqlite;
mod store;
mod vacuum;
mod wal;
mod write;

pub use backup::{Backup, BackupError, backup};
pub use check::{Checked, Finding, check};
pub use commands::{CommandResult, SendError, send_commands};
pub use error::{Loss, OpenError};
#[doc(hidden)]
pub use files::Files;
pub use lock::Holder;
#[doc(hidden)]
pub use lsm::Sizes;
pub use meta::EPOCHS_AHEAD;
#[doc(hidden)]
pub use options::OpenOptions;
pub use reader::{Count, Extent, Keyed, Pending, ReadError, Reader};
#[doc(hidden)]
pub use schema::{STEPS, Step, VERSION};
pub use sqlite::Sqlite;
pub use store::SqliteStore;
#[doc(hidden)]
pub use vacuum::Vacuum;
