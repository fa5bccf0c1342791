//! What the project says of itself holds.

mod pitfalls;
