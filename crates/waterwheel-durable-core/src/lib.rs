//! The part of `waterwheel-durable` that performs no I/O: the engine of durable timers, the interface of their stores, and a store in
//! memory.
//!
//! Applications use `waterwheel-durable`, which runs the engine on a tokio runtime. This crate is for those who write a [store], or
//! drive the engine themselves.
//!
//! | to | use |
//! |---|---|
//! | write a store | [`store::Store`]; [`conformance`] tests it |
//! | use a store without a file | [`store::MemoryStore`] |
//! | limit how a namespace is served | [`policy::Policy`] |
//!
//! # Features
//!
//! | feature | enables |
//! |---|---|
//! | `testing` | the conformance tests of a store |

#![forbid(unsafe_code)]

#[cfg(any(feature = "testing", doc))]
pub mod conformance;
#[doc(hidden)]
pub mod engine;
pub mod limits;
pub mod policy;
pub mod store;
