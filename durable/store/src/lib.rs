//! What the durable timers of `waterwheel-durable` ask of a store, and a store in memory.
//!
//! A store keeps rows, a [`Row`] for each timer that has not been settled, and no state beside them: a row that is there is a timer that is to be
//! delivered. A row lies in a [`Bucket`] of a [`Level`]: far timers in coarse ones, and each [cascades](Op::Cascade) into finer ones as its time
//! comes. So timers that are due over a month are written to a few places of the store, and not to a place each.
//!
//! | to | use |
//! |---|---|
//! | write a store | [`Store`]; the crate `waterwheel-conformance` tests it |
//! | say what is to be written | [`Op`], and what came of it: [`Outcome`] |
//! | know a timer | [`Row`], [`Id`], [`Due`], [`Handle`], [`InvalidHandle`], [`InvalidId`], [`Dead`] |
//! | know what was delivered | [`Archived`], [`Mark`] |
//! | keep settings beside the timers | [`Setting`] |
//! | take what another process asks | [`Order`], [`InvalidOrder`] |
//! | know where it lies | [`Level`], [`Bucket`], [`Position`] |
//! | load as much as there is room for | [`Most`] |
//! | list dead letters, of all handlers or of some | [`Letters`], [`Whose`] |
//! | say what went wrong | [`StoreError`] |
//! | have a store without a file | [`MemoryStore`] |
//!
//! The idea of buckets that are coarser with distance is the timing wheel's, by [Varghese and Lauck](https://doi.org/10.1145/41457.37504): here the outermost
//! dials lie on disk.

mod archived;
mod bucket;
mod due;
mod error;
mod letters;
mod memory;
mod most;
mod notice;
mod op;
mod order;
mod pass_on;
mod row;
mod setting;
mod store;
mod whose;

pub use archived::{Archived, Mark};
pub use bucket::{Bucket, Level, Position};
pub use due::Due;
pub use error::StoreError;
pub use letters::Letters;
pub use memory::MemoryStore;
pub use most::Most;
pub use notice::Notice;
pub use op::{Op, Outcome};
pub use order::{InvalidOrder, Order};
pub use row::{Dead, Handle, Id, InvalidHandle, InvalidId, Row};
pub use setting::Setting;
pub use store::Store;
pub use whose::Whose;
