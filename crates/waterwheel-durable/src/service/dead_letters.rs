use std::sync::Arc;

use waterwheel_durable_core::store::{Id, PageLimit, Scope, Store};

use super::{Durable, Namespace};
use crate::dead_letter::DeadLetter;
use crate::error::Error;
use crate::shell::shared::Shared;

/// The approximate size of the dead letters read in one call of the store, in bytes: the one that reaches it is the last.
const READ_AT_A_TIME: usize = 4 << 20;

impl Durable {
    /// Returns at most `limit` dead letters in order of their ids, starting after `after`: `None` for the first page,
    /// and the id of the last one for the next page.
    ///
    /// A page is held in memory with its payloads, so a few hundred is a good size. It is read a few megabytes at a
    /// time, and commits proceed in between.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let mut page = timers.dead_letters(None, 100).await?;
    /// while let Some(last) = page.last() {
    ///     for dead in &page {
    ///         println!("{} {}: {}", dead.id(), dead.handler(), dead.error());
    ///     }
    ///     page = timers.dead_letters(Some(last.id()), 100).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn dead_letters(
        &self,
        after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        read(&self.shared, None, after, limit).await
    }
}

impl Namespace {
    /// Returns at most `limit` dead letters of this namespace in order of their ids, starting after `after`: see
    /// [`Durable::dead_letters`].
    ///
    /// Dead letters of other namespaces are skipped without reading their payloads, a thousand at a time, and commits
    /// proceed in between.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn dead_letters(
        &self,
        after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        read(&self.timers.shared, Some(&self.name), after, limit).await
    }
}

/// Reads the dead letters of a namespace, or of all.
async fn read(
    shared: &Shared,
    namespace: Option<&Arc<str>>,
    after: Option<Id>,
    limit: usize,
) -> Result<Vec<DeadLetter>, Error> {
    let mut after = after.unwrap_or(Id::NONE);
    let mut found = Vec::new();
    while found.len() < limit {
        let namespace = namespace.cloned();
        let limit = PageLimit {
            rows: limit - found.len(),
            bytes: READ_AT_A_TIME,
        };
        let page = shared.read(move |store: &mut dyn Store| {
            let scope = namespace.as_deref().map_or(Scope::All, Scope::Namespace);
            store.dead(scope, after, limit)
        });
        let page = page.await?;
        found.extend(page.dead.into_iter().map(DeadLetter::new));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(found)
}
