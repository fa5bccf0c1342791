//! The project's statements about itself are true.

mod layering;
mod links;
mod pitfalls;
