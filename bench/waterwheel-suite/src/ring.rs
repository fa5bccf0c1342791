//! Many pending sleeps, of which an operation takes one after the other, round and round.

use std::pin::Pin;

/// Each in a box of its own, since it must not move.
pub(crate) struct Ring<T> {
    all: Vec<Pin<Box<T>>>,
    next: usize,
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Self {
            all: Vec::new(),
            next: 0,
        }
    }

    /// Adds one and shows it in its place.
    pub(crate) fn add(&mut self, item: T) -> Pin<&mut T> {
        self.all.push(Box::pin(item));
        let last = self.all.len() - 1;
        self.all[last].as_mut()
    }

    /// The one that was taken the longest time ago. The ring must not be empty.
    pub(crate) fn turn(&mut self) -> Pin<&mut T> {
        let now = self.next;
        self.next = if now + 1 == self.all.len() {
            0
        } else {
            now + 1
        };
        self.all[now].as_mut()
    }
}
