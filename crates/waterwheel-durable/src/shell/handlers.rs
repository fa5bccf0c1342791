use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use waterwheel_durable_core::store::Row;

use super::shared::Shared;
use waterwheel_durable_core::engine::Ended;

/// The handlers, by their names.
#[derive(Debug, Default)]
pub(crate) struct Handlers(RwLock<HashMap<Arc<str>, Arc<Handler>>>);

/// A user's function, and how it is called.
pub(crate) struct Handler {
    pub(crate) name: Arc<str>,
    pub(crate) attempt_limit: Option<Duration>,
    pub(crate) function: Function,
}

/// Begins an attempt. It is handed the present as well, in microseconds since 1970.
pub(crate) type Function = Box<dyn Fn(Row, i64, &Arc<Shared>) -> Attempt + Send + Sync>;

pub(crate) type Attempt = Pin<Box<dyn Future<Output = Ended> + Send>>;

impl Handlers {
    /// `false` if there is one of this name already.
    pub(crate) fn add(&self, handler: Handler) -> bool {
        let mut handlers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !handlers.contains_key(&handler.name);
        if is_new {
            handlers.insert(Arc::clone(&handler.name), Arc::new(handler));
        }
        is_new
    }

    pub(crate) fn of(&self, name: &str) -> Option<Arc<Handler>> {
        let handlers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(name).map(Arc::clone)
    }

    /// Takes all of them out: to be dropped where no lock is held.
    pub(crate) fn take(&self) -> HashMap<Arc<str>, Arc<Handler>> {
        std::mem::take(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("name", &self.name)
            .field("attempt_limit", &self.attempt_limit)
            .finish_non_exhaustive()
    }
}
