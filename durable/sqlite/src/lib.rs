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
//! file itself, after a commit that has left the log long. One that has become far longer, beside a reader whose transaction was open for long, is copied by a
//! thread of its own while commits go on. As the store is dropped, it copies the log as well, but one that is far longer: this is left to the process that has
//! the file next. A sync of the file that is under way then is waited for.
//!
//! | file | what it is |
//! |---|---|
//! | `timers.db` | the tables |
//! | `timers.db-wal`, `timers.db-shm` | SQLite's log and its index. The log has committed rows: copy it with the file |
//! | `timers.db-reserve` | space that is given up when the disk is full: twice as long as the others together, from 1 to 16 MiB, of bytes that mean nothing. It may be deleted while no process has the store open |
//! | `timers.db-acked` | the count of the last commit that was acknowledged. Without it, a log that is cut or deleted after a crash goes undetected |
//! | `timers.db-lock` | a file that the process locks which has the store open; its process number is in it. Its user alone may read it; the others have the modes that the process gives new files (`umask`) |
//!
//! In the process that has the store open, no other code may open `timers.db`, not even to read it: on Unix, the locks that SQLite has on a file are the
//! process's, and any descriptor of the file that is closed drops them. Another process that reads may then delete the log as it ends.
//!
//! # Beside the process that has the file open
//!
//! A [`Reader`] counts and lists what is there, and [`backup`] makes a copy. Both take no lock and hold up no commit; while they read, the log grows by what is
//! committed. They change nothing in the file. [`ask`] hands the process an order, such as to cancel a timer, and waits for its answer; what is not carried out
//! in time is withdrawn. One that cannot be withdrawn, because the process that asked was killed, is not carried out later by the wall clock: if that is set
//! back meanwhile, it may be.
//!
//! ```
//! use waterwheel_store::{Due, Id, Most, Whose};
//! use waterwheel_store_sqlite::{Reader, SqliteStore, backup};
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
//! | the disk is full, or a quota is used up | inserts are answered with [`Full`](waterwheel_store::Outcome::Full), and all else goes on: see [below](#when-the-disk-is-full) |
//! | the file has a [limit](Options::limit), and seven eighths of it are used | the same |
//! | the file is removed or replaced while it is open | the store fails after the next commit, which it has answered |
//! | another connection writes | after 50 ms the commit is refused, and the store goes on |
//! | another connection reads, in a transaction that stays open | the log grows until it ends, and the disk may fill. Then the log becomes short again |
//! | the log is missing, cut short or damaged after a crash | the file is [not opened](OpenError::AcknowledgedLost) if acknowledged commits are gone, unless that is [accepted](Options::accept_loss) |
//! | a file is damaged, newer, or another application's | it is not opened, and not written to |
//! | a file is of an older version | it is brought up to date, each version in one transaction, so that it is never between two of them |
//!
//! # When the disk is full
//!
//! SQLite's log needs space also to delete rows, and the file does to have the log copied into it. So the last space is kept for that:
//!
//! 1. A commit that finds no space is done without its inserts. The log is copied, and begun again in the space that it has.
//! 2. If there is none without them either, or none to copy the log, the reserve is deleted, and it is done in that space. What is settled leaves free pages for
//!    retries, dead letters and what is archived.
//! 3. After a second, and then less and less often, down to each 16 s, the disk is asked how much space it has. If it is enough for the reserve, and each
//!    fourth time whatever it says, this is written again, with a quarter of it more to see that there is space for inserts, too, also by a quota. Then they are done again.
//!
//! Meanwhile the runs of the index of the keys are not merged, nor does the file become shorter: its free pages are for what is still written. The last 64 K changes
//! of that index become a run as soon as there are free pages and a log for it. Until then they stay in memory, with those that follow, some 50 bytes each; a
//! run that was refused is tried again after a second, and then less and less often, as the disk is looked at.
//!
//! What was answered with `Full` was certainly not written. If even the reserve is used up, commits are refused, and nothing is lost. A full disk keeps no store
//! from opening either. A copy that [`backup`] makes, and what [`ask`] writes, have no reserve.
//!
//! On a file system that copies what is written over (btrfs, ZFS), the log may have the whole of a commit that found no space for its last bytes. It is written
//! over in the space of the reserve. If that is gone, the store fails. And on btrfs, a disk on which no byte is left ends the process (`SIGBUS`): SQLite has the
//! index of the log as memory that is mapped, which needs new blocks as well. Nothing is lost by that, and the next start goes on when there is space. A limit or
//! a quota that leaves the file system some space avoids it. `waterwheel-chaos disk-full` was kept on ext4, XFS and tmpfs.
//!
//! Damage is found where it is read. SQLite checks how its pages are built, and the log by checksums, but not what is in a row: a flipped bit in a payload is
//! delivered, and what SQLite reads of a damaged log ends before the damage. To look for damage at each opening, as `PRAGMA quick_check` does, would
//! read the whole file: seconds for 10 million timers that are to be delivered after some hundred milliseconds. [`check()`] looks for it, also beside a service.
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
//! Free pages are used again. When more than 4 MB of them are a sixth of the file, it becomes shorter, until a twentieth is left: by half a megabyte at most
//! each time that the log is copied, and by two a second while there is no commit, in steps of some 5 ms. That needs notes of who refers to which page (`auto_vacuum=INCREMENTAL`), which new
//! files have, and which cost inserts and settles 1 to 3 % more bytes. A file that was made by version 1 has none, and stays as long as it is. To change that
//! once, while no process has it open: `sqlite3 timers.db 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'`, which needs as much space again as the file.

mod acked;
mod archive;
mod backup;
mod cascade;
mod check;
mod copier;
mod epoch;
mod error;
mod failure;
mod find;
mod handlers;
mod identity;
mod keys;
mod lock;
mod log;
mod orders;
mod pause;
mod read;
mod reader;
mod reserve;
mod schema;
mod space;
mod store;
mod trial;
mod vacuum;
mod words;
mod write;

pub use backup::{Backup, BackupError, backup};
pub use check::{Checked, Finding, check};
pub use epoch::EPOCHS_AHEAD;
pub use error::{Loss, OpenError};
#[doc(hidden)]
pub use keys::Sizes;
pub use lock::Holder;
pub use orders::{AskError, Asked, ask};
pub use reader::{Count, Extent, Keyed, Pending, ReadError, Reader};
#[doc(hidden)]
pub use schema::{STEPS, Step, VERSION};
pub use store::{Options, SqliteStore};
#[doc(hidden)]
pub use trial::{Files, Trial};
#[doc(hidden)]
pub use vacuum::Vacuum;
