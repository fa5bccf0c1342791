//! The runtimes' timers: one a runtime, found by the runtime's id. [`Timer::current`] and the free functions use them.
//!
//! The current runtime is what it is to tokio, `Handle::current()`. So within `enter()` or a nested `block_on` it is the inner
//! runtime, and on a `spawn_blocking` thread the runtime that the thread belongs to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use tokio::runtime::{Handle, Id};

use super::core::{Core, Plan};
use super::host::assert_time_is_enabled;
use super::shard::Shard;
use super::timer::Timer;

type Registry = HashMap<Id, Arc<Core>>;

/// No foreign code runs and nothing is spawned while this is locked: `Handle::spawn` on a finished runtime drops the driver
/// inside the call, and with it a [`Registration`], which locks this.
static REGISTRY: std::sync::Mutex<Option<Registry>> = std::sync::Mutex::new(None);

thread_local! {
    /// The shard that this thread used last, and the runtime it belongs to. Weak, so that a thread which outlives a runtime
    /// does not keep the memory of its timer.
    static LAST: RefCell<Option<(Id, Weak<Shard>)>> = const { RefCell::new(None) };
}

impl Timer {
    /// Returns the timer of the current runtime. The first call starts it.
    ///
    /// The current runtime is [`Handle::current`], as for tokio's timers: the runtime that runs this task, or the one whose
    /// `block_on`, `spawn_blocking` or `enter` is innermost on this thread. It may be of any flavor.
    ///
    /// # Panics
    ///
    /// Panics outside a runtime, or in one without `enable_time`, as `tokio::time::sleep` does.
    #[must_use]
    #[track_caller]
    pub fn current() -> Timer {
        Timer {
            core: core_of(&Handle::current()),
        }
    }
}

/// This thread's shard of the current runtime's timer.
#[inline]
#[track_caller]
pub(crate) fn current_shard() -> Arc<Shard> {
    let handle = Handle::current();
    let id = handle.id();
    match last(id) {
        Some(shard) => shard,
        None => find_shard(&handle),
    }
}

#[inline]
fn last(id: Id) -> Option<Arc<Shard>> {
    let shard = LAST.try_with(|last| match &*last.borrow() {
        Some((known, shard)) if *known == id => shard.upgrade(),
        _ => None,
    });
    // tokio may give a finished runtime's id to another.
    shard
        .ok()
        .flatten()
        .filter(|shard| !shard.lifecycle().is_over())
}

#[cold]
#[track_caller]
fn find_shard(handle: &Handle) -> Arc<Shard> {
    let shard = Arc::clone(core_of(handle).shard());
    let new = (handle.id(), Arc::downgrade(&shard));
    let _ = LAST.try_with(|last| last.replace(Some(new)));
    shard
}

#[track_caller]
fn core_of(handle: &Handle) -> Arc<Core> {
    let id = handle.id();
    if let Some(core) = with_registry(|registry| registry.get(&id).cloned()) {
        return core;
    }
    assert_time_is_enabled(handle);
    let new = Core::new(handle, Plan::of_runtime());
    let core = with_registry(|registry| Arc::clone(registry.entry(id).or_insert(Arc::clone(&new))));
    // Another thread may have been first. Then `new` is dropped, and no driver was spawned for it.
    if Arc::ptr_eq(&core, &new) {
        let core = Arc::downgrade(&core);
        new.spawn_driver(handle, Some(Registration { id, core }));
    }
    core
}

/// The place of a timer in the registry. It is dropped when its runtime is over.
struct Registration {
    id: Id,
    core: Weak<Core>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = with_registry(|registry| {
            // tokio may have given the id to another runtime, whose timer has the place now.
            let is_own = registry
                .get(&self.id)
                .is_some_and(|core| std::ptr::eq(Arc::as_ptr(core), self.core.as_ptr()));
            is_own.then(|| registry.remove(&self.id))
        });
        // Without the lock: it may be the last handle.
        drop(removed);
    }
}

fn with_registry<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    f(registry.get_or_insert_default())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::{Core, LAST, Plan, Registration, core_of, current_shard, with_registry};
    use crate::tests::current_thread;

    #[test]
    fn a_runtime_that_ends_takes_its_timer_off_the_registry() {
        for _ in 0..100 {
            let runtime = current_thread();
            let handle = runtime.handle().clone();
            let is_known = || with_registry(|registry| registry.contains_key(&handle.id()));
            runtime.block_on(async { drop(current_shard()) });
            assert!(is_known());
            drop(runtime);
            assert!(!is_known());
            // A timer that is started too late does not stay there.
            let _entered = handle.enter();
            drop(current_shard());
            assert!(!is_known());
        }
    }

    #[test]
    fn a_runtime_that_ends_leaves_the_timer_that_got_its_id() {
        let runtime = current_thread();
        let handle = runtime.handle();
        let timer = core_of(handle);
        let before = Core::new(handle, Plan::of_runtime());
        drop(Registration {
            id: handle.id(),
            core: Arc::downgrade(&before),
        });
        assert!(Arc::ptr_eq(&core_of(handle), &timer));
    }

    #[test]
    fn a_thread_that_outlives_a_runtime_does_not_keep_its_timer() {
        let runtime = current_thread();
        let is_kept = || {
            LAST.with_borrow(|last| {
                let (_, shard) = last.as_ref().expect("this thread has used a shard");
                shard.strong_count() > 0
            })
        };
        runtime.block_on(async { drop(current_shard()) });
        assert!(is_kept());
        drop(runtime);
        assert!(!is_kept());
    }

    #[test]
    fn a_thread_finds_its_last_shard_without_the_registry() {
        let runtime = current_thread();
        let (sender, receiver) = mpsc::channel();
        let (go, held) = mpsc::channel();
        let handle = runtime.handle().clone();
        let asks = thread::spawn(move || {
            let _entered = handle.enter();
            sender.send(current_shard()).unwrap();
            held.recv().unwrap();
            sender.send(current_shard()).unwrap();
        });
        let first = receiver.recv().unwrap();
        let again = with_registry(|_| {
            go.send(()).unwrap();
            receiver.recv_timeout(Duration::from_secs(20))
        });
        assert!(Arc::ptr_eq(
            &again.expect("it waits for the registry"),
            &first
        ));
        asks.join().unwrap();
    }
}
