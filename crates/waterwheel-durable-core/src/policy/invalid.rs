use std::fmt;

/// The error of [`Policy::check`](crate::policy::Policy::check): a field has a value that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPolicy {
    /// The name of the method that sets the field.
    pub field: &'static str,
    /// The problem with its value, and the values that are allowed.
    pub why: &'static str,
}

impl std::error::Error for InvalidPolicy {}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidPolicy { field, why } = self;
        write!(f, "the policy's `{field}` is invalid: {why}")
    }
}
