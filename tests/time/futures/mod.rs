//! Whole futures on a simulated clock, against a naive oracle.

mod corpus;
mod model;
mod properties;
