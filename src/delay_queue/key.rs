use std::fmt;

use crate::wheel;

/// Names one item of one [`DelayQueue`](super::DelayQueue), from its insertion until it is handed out, removed or cleared.
///
/// A key has a generation: no two of the queue's last 2³² − 1 insertions have the same one. So a key whose item is gone names no
/// later item. Keep a key with its queue: to another queue it may name an item of that one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub(super) wheel::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
