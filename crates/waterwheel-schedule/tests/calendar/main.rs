//! The calendar: expressions, what is refused, and the policy for changes of the clock.

mod bad_input;
mod expressions;
mod policy;
mod support;
mod types;
