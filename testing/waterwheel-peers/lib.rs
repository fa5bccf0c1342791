//! Empty: this package consists of its tests. See its README.

#![forbid(unsafe_code)]
