use std::sync::Arc;

use waterwheel_store::{Handle, Store};

use super::{Durable, Namespace};
use crate::engine::namespace_in;
use crate::error::Error;
use crate::new_timer::check_name;

impl Durable {
    /// The timer of a handler that has this [key](crate::Insert::key), to cancel or to move it: `find("shop/close", "order-17")`. It is the handle that an insert with
    /// the key would give, and nothing is written.
    ///
    /// `None` if there is no timer to cancel: it was never inserted, or it was settled, cancelled or given up. That is so also while the namespace's
    /// [retention](crate::Policy::retention) keeps its key taken.
    ///
    /// What was answered before is seen: an insert, a cancel, a settle. The timer may be delivered as this resolves, and then a cancel of it is
    /// [`AlreadyFired`](crate::Cancelled::AlreadyFired) or [`NotFound`](crate::Cancelled::NotFound). It costs a look into the index of the keys, however many there are.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// if let Some(timer) = timers.find("shop/close", "order-17").await? {
    ///     timers.cancel(timer).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn find(
        &self,
        handler: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Handle>, Error> {
        check_name(handler)?;
        self.namespace(namespace_in(handler))?;
        let handler: Arc<str> = handler.into();
        let key: Arc<[u8]> = key.as_ref().into();
        let read = move |store: &mut dyn Store| store.find(&handler, &key);
        self.shared.read(read).await
    }
}

impl Namespace {
    /// As [`Durable::find`], for a handler of this namespace: `shop.find("close", "order-17")`.
    ///
    /// # Errors
    ///
    /// As [`Durable::find`].
    pub async fn find(
        &self,
        handler: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Handle>, Error> {
        self.timers.find(&self.full_name(handler), key).await
    }
}
