//! Nothing: this package is its tests. See its README.

#![forbid(unsafe_code)]
