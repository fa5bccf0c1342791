//! Empty: this package consists of its tests. See `Cargo.toml`.

#![forbid(unsafe_code)]
