//! Nothing: this package is its tests. See `Cargo.toml`.

#![forbid(unsafe_code)]
