//! The allocator, which counts.

use std::alloc::System;

use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The number of bytes of heap that are in use.
pub(crate) fn allocated() -> usize {
    ALLOCATOR.allocated()
}
