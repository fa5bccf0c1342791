use std::sync::Arc;

/// A named value in a store: see [`Op::Set`](crate::store::Op::Set).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Arc<[u8]>,
}
