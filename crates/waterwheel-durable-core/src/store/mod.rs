//! The storage interface of `waterwheel-durable`, and a store in memory.
//!
//! A store keeps a [`Row`] for each timer that has not been settled, and no other state of it: a row that exists is a
//! timer to deliver. A row is in a [`Bucket`] of a [`Level`]. Timers far ahead are in coarse buckets, and each bucket
//! [cascades](Op::Cascade) into finer ones as its time comes. Timers that are due over a month are therefore written to
//! a few places of the store, rather than to one place each.
//!
//! | to | use |
//! |---|---|
//! | write a store | [`Store`]; `conformance`, with the feature `testing`, tests it |
//! | open a store, and describe why it could not be opened | [`OpenStore`], [`OpenError`] |
//! | tell whether another process may have taken a store over | [`Lease`] |
//! | describe what is written, and the result | [`Op`], [`Outcome`], [`Ended`], [`Erased`] |
//! | identify and describe a timer | [`Row`], [`Id`], [`Due`], [`Handle`], [`InvalidHandle`], [`InvalidId`], [`Dead`] |
//! | list archived timers | [`Archived`], [`ArchiveCursor`] |
//! | store settings next to the timers | [`Setting`] |
//! | receive commands from other processes | [`Command`], [`InvalidCommand`], [`Hint`] |
//! | locate a timer | [`Level`], [`Bucket`], [`RowCursor`] |
//! | limit how much is loaded | [`PageLimit`] |
//! | list pending timers and dead letters, of all handlers or of some | [`HandlePage`], [`PendingCursor`], [`DeadLetters`], [`Scope`] |
//! | count pending timers and dead letters | [`Counts`], [`PendingCount`], [`DeadCount`] |
//! | report an error, or something that the operator should know | [`StoreError`], [`Notice`] |
//! | use a store without a file | [`MemoryStore`] |
//! | move everything to another store | [`transfer`], [`abandon_transfer`], [`Contents`], [`TransferError`], [`refused_by_transfer`] |
//!
//! Buckets that get coarser with distance are the idea of the timing wheel, by [Varghese and
//! Lauck](https://doi.org/10.1145/41457.37504); here, its outermost dials are on disk.

mod command;
mod contract;
mod count;
mod due;
mod ended;
mod lease;
mod memory;
mod op;
mod opening;
mod page;
mod row;
mod transfer;

#[doc(hidden)]
pub use crate::forward;
pub use command::{Command, InvalidCommand, PolicyChange};
pub use contract::{Hint, Notice, Store, StoreError};
pub use count::{Counts, DeadCount, PendingCount};
pub use due::{Bucket, Due, Level};
pub use ended::Ended;
pub use lease::Lease;
pub use memory::MemoryStore;
pub use op::{Erased, Op, Outcome, Setting};
pub use opening::{OpenError, OpenStore};
pub use page::{DeadLetters, HandlePage, PageLimit, PendingCursor, Scope};
pub use row::{
    ArchiveCursor, Archived, Dead, Extras, Handle, Id, InvalidHandle, InvalidId, Row, RowCursor,
};
#[doc(hidden)]
pub use transfer::transfer_by;
pub use transfer::{Contents, TransferError, abandon_transfer, refused_by_transfer, transfer};
