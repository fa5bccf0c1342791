//! The ambient timers: one a runtime, found by the runtime's id.
//!
//! What "ambient" means is what it means to tokio: the runtime of `Handle::current()`. So within
//! `enter()` or a nested `block_on` it is the inner runtime's timer, and on a `spawn_blocking`
//! thread that of the runtime that the thread belongs to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use tokio::runtime::{Handle, Id};

use super::shard::Shard;
use super::shared::{Shared, Stage};
use super::timer::{Core, Plan};

type Registry = HashMap<Id, Arc<Core>>;

/// No foreign code runs and nothing is spawned while this is locked: `Handle::spawn` on a
/// finished runtime drops the driver inside the call, which comes back here to `forget`.
static REGISTRY: std::sync::Mutex<Option<Registry>> = std::sync::Mutex::new(None);

thread_local! {
    /// The shard that this thread used last, and the runtime it belongs to. Weak, so that a
    /// thread which outlives a runtime does not keep the memory of its timer.
    static LAST: RefCell<Option<(Id, Weak<Shard>)>> = const { RefCell::new(None) };
}

/// This thread's shard of the ambient timer.
#[inline]
#[track_caller]
pub(crate) fn shard() -> Arc<Shard> {
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
    // A finished runtime's id may be used again.
    shard
        .ok()
        .flatten()
        .filter(|shard| shard.shared().stage() != Stage::Abandoned)
}

#[cold]
#[track_caller]
fn find_shard(handle: &Handle) -> Arc<Shard> {
    let shard = Arc::clone(core_of(handle).shard());
    let new = (handle.id(), Arc::downgrade(&shard));
    let _ = LAST.try_with(|last| last.replace(Some(new)));
    shard
}

/// The ambient timer.
#[track_caller]
pub(super) fn core() -> Arc<Core> {
    core_of(&Handle::current())
}

#[track_caller]
fn core_of(handle: &Handle) -> Arc<Core> {
    let id = handle.id();
    if let Some(core) = with_registry(|registry| registry.get(&id).cloned()) {
        return core;
    }
    super::assert_time_is_enabled(handle);
    let new = Core::new(handle, Plan::ambient());
    let core = with_registry(|registry| Arc::clone(registry.entry(id).or_insert(Arc::clone(&new))));
    // Another thread may have been first; then `new` goes, unspawned.
    if Arc::ptr_eq(&core, &new) {
        core.spawn_driver(handle, Some(id));
    }
    core
}

/// The runtime is gone, and its timer with it.
pub(super) fn forget(id: Id, shared: &Arc<Shared>) {
    let forgotten = with_registry(|registry| {
        let is_it = registry
            .get(&id)
            .is_some_and(|core| Arc::ptr_eq(core.shared(), shared));
        is_it.then(|| registry.remove(&id))
    });
    drop(forgotten);
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

    use tokio::runtime::{Builder, Runtime};

    use super::{LAST, shard, with_registry};

    fn current_thread() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn a_runtime_that_ends_takes_its_timer_out_of_the_registry() {
        for _ in 0..100 {
            let runtime = current_thread();
            let handle = runtime.handle().clone();
            let is_known = || with_registry(|registry| registry.contains_key(&handle.id()));
            runtime.block_on(async { drop(shard()) });
            assert!(is_known());
            drop(runtime);
            assert!(!is_known());
            // And one that is started too late does not stay there.
            let _entered = handle.enter();
            drop(shard());
            assert!(!is_known());
        }
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
        runtime.block_on(async { drop(shard()) });
        assert!(is_kept());
        drop(runtime);
        assert!(!is_kept());
    }

    #[test]
    fn a_thread_finds_the_shard_that_it_used_last_without_the_registry() {
        let runtime = current_thread();
        let (sender, receiver) = mpsc::channel();
        let (go, held) = mpsc::channel();
        let handle = runtime.handle().clone();
        let asks = thread::spawn(move || {
            let _entered = handle.enter();
            sender.send(shard()).unwrap();
            held.recv().unwrap();
            sender.send(shard()).unwrap();
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
