//! Many pending sleeps, which an operation takes one after the other, round-robin.

use std::pin::Pin;

/// The items, each in its own box, since it must not move.
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

    /// Adds an item and returns it in its place.
    pub(crate) fn add(&mut self, item: T) -> Pin<&mut T> {
        self.all.push(Box::pin(item));
        let last = self.all.len() - 1;
        self.all[last].as_mut()
    }

    /// The item that was not taken for the longest time. The ring must not be empty.
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
