use std::fmt;

use crate::wheel;

/// Identifies an item of a [`DelayQueue`](super::DelayQueue), from its insertion until it is returned, removed or cleared.
///
/// A key has a generation: no two of the queue's last 2³² − 1 insertions have the same one. So the key of an item that is gone
/// never names a later item. Use a key only with its own queue: in another queue it may name an item of that one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub(super) wheel::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
