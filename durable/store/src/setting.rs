use std::sync::Arc;

/// What a store keeps by a name: see [`Op::Set`](crate::Op::Set).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: Arc<str>,
    /// The value.
    pub value: Arc<[u8]>,
}
