//! The calendar: expressions, errors, and the policy for clock changes, compared to an oracle.

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
