//! A VFS on which SQLite keeps its files in memory, and whose power can be cut. Each [`Disk`] is one.
//!
//! # What is left after a power cut
//!
//! A disk keeps everything that was synced, and any part of the rest. [`Disk::restart`] decides:
//!
//! - A file is divided into sectors of 512 bytes or 4 KB. Each sector has its content as of the last sync, or after any of the writes since: so a
//!   write is lost, survives, or is torn at sector borders, independently of earlier and later writes to this file and to others.
//! - The length of a file is that of the last sync, or after any of the changes since. Bytes beyond the surviving sectors are zeros. A file that was
//!   truncated and has grown again does not show its earlier bytes.
//! - Files are created and deleted in order, and any number of the last such changes is lost. The first sync of a new WAL or journal syncs the folder as
//!   well, as in SQLite's own VFS.
//! - A sync makes earlier writes to its file durable. A failed sync leaves that open, or drops the writes although the system's cache has
//!   them ([`Fault::Dropped`]): then a second sync succeeds.
//!
//! A [`Choice`] is made for each sector: [`Chance`] chooses at random, [`Each`] iterates over all possibilities.
//!
//! # Capacity
//!
//! A disk may have a [capacity](Disk::set_capacity), of which foreign files take up some. It counts bytes, not blocks. If it [copies on
//! write](Disk::set_copies_on_write), overwritten blocks are kept until the file is synced, and take up space as well. A lack of space may
//! come from a [quota](Disk::set_quota), for which SQLite has no error code.
//!
//! # Differences from a real file
//!
//! A file is open in one connection at a time: there are no locks between connections. Each connection has its own index of the WAL, which is rebuilt
//! by the next one, as when no process has the file open. SQLite draws the salt of the WAL itself: the same seed repeats everything but these bytes.
//!
//! | file | question |
//! |---|---|
//! | `disk` | when is its power cut, which call fails? |
//! | `content` | what is on it, and what survives? |
//! | `file` | what is in a file, and what survives of it? |
//! | `choice` | which of the unsynced changes survive? |
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
