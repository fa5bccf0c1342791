//! What the project says of itself holds.

mod layering;
mod pitfalls;
mod words;
