//! What the project says of itself holds.

mod layering;
mod links;
mod pitfalls;
