use std::sync::Arc;

use waterwheel_durable_core::store::{Handle, Store};

use super::{Durable, Namespace};
use crate::error::Error;
use crate::new_timer::check_name;
use waterwheel_durable_core::engine::namespace_in;

impl Durable {
    /// Finds the timer of a handler that has this [key](crate::Insert::key), to cancel or reschedule it:
    /// `find("shop/close", "order-17")`. Returns the handle that an insert with the key would return, and writes
    /// nothing.
    ///
    /// Returns `None` if there is no timer to cancel: it was never inserted, was settled or cancelled, or is a dead
    /// dead letter. This also applies while the [retention](crate::Policy::retention) of the namespace keeps the key taken.
    ///
    /// All calls that have resolved before are taken into account. The timer may be delivered just as this resolves;
    /// cancelling it then returns [`AlreadyFired`](crate::Cancelled::AlreadyFired) or
    /// [`NotFound`](crate::Cancelled::NotFound). The cost is one lookup in the index of the keys, however many there
    /// are.
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
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
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
    /// Same as [`Durable::find`], for a handler of this namespace: `shop.find("close", "order-17")`.
    ///
    /// # Errors
    ///
    /// Same as [`Durable::find`].
    pub async fn find(
        &self,
        handler: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Handle>, Error> {
        self.timers.find(&self.full_name(handler), key).await
    }
}
