//! The calendar: expressions, what is refused, and the policy for changes of the clock, held against an oracle.

mod bad_input;
mod by_croner;
mod days;
mod expressions;
mod oracle;
mod policy;
mod random;
mod search_time;
mod support;
mod transitions;
mod types;
