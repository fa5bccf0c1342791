//! A disk in memory on which SQLite has its files, and whose power can be cut: a VFS. Each [`Disk`] is one.
//!
//! # What is left after a power cut
//!
//! A disk keeps what was synced, and of the rest what it likes. [`Disk::restart`] decides:
//!
//! - A file is cut into sectors, of 512 bytes or of 4 KB. Of each sector the disk has the content as it was synced, or after any of the writes since:
//!   so a write is lost, is there, or is torn at the borders of sectors, whatever became of writes before and after it, in this file and in others.
//! - The length of a file is that of the last sync, or after any of the changes since. What is beyond the sectors that were kept is zeros. A file that was
//!   cut off and has grown again does not show what was there before.
//! - Files are created and deleted in order, and any number of the last such changes is lost. The first sync of a WAL or a journal that was created syncs the
//!   folder as well: this is what SQLite's own VFS does.
//! - A sync makes durable what was written to its file before. One that fails leaves it open, or drops it although the system's cache has it
//!   ([`Fault::Dropped`]): then a second sync says that all is well.
//!
//! A [`Choice`] is asked for each sector: [`Chance`] by a random number, [`Each`] goes through all there are.
//!
//! # How much fits on it
//!
//! A disk may have a [capacity](Disk::set_capacity), of which others' files take some. It counts bytes, not blocks. If it [copies on
//! write](Disk::set_copies_on_write), what is written over is kept until the file is synced, and takes space as well. What is missing may be a
//! [quota](Disk::set_quota): SQLite has no word for that.
//!
//! # What differs from a real file
//!
//! One connection at a time has a file: there are no locks between connections. The index of the WAL is the connection's own, and is built again by the
//! next one, as it is where no process has the file open. SQLite draws the salt of the WAL itself: the same seed repeats all but these bytes.
//!
//! | file | question |
//! |---|---|
//! | `disk` | when is its power cut, which call fails? |
//! | `content` | what is on it, and what is left of that? |
//! | `file` | what is in a file, and what is left of it? |
//! | `choice` | which of the things that may be left is left? |
//! | `vfs` | what does SQLite call? |
//! | `beside` | what else is done with its files? |

mod beside;
mod choice;
mod content;
mod disk;
mod file;
mod vfs;

pub use choice::{Chance, Choice, Each};
pub use content::Content;
pub use disk::{Call, Cut, Disk, Fault, Kind, Moment};
