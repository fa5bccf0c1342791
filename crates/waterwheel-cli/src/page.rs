//! How much is read at a time, and which names does the file know?

use std::collections::BTreeSet;

use waterwheel_durable_core::store::{PageLimit, Scope};
use waterwheel_durable_sqlite::Reader;

use crate::failure::Failure;
use crate::submit::namespaces;

/// A page ends with the row that reaches this many bytes of payloads, keys and errors. A payload may have 16 MB.
const BYTES: usize = 32 << 20;

/// The maximum number of known names that the error for an unknown name lists.
const NAMES: usize = 20;

/// The limit of a page with this many rows.
pub(crate) fn limit(rows: usize) -> PageLimit {
    PageLimit { rows, bytes: BYTES }
}

/// Returns the last row of a page, if more rows may follow.
pub(crate) fn last<T>(page: &[T], limit: PageLimit, bytes_of: impl Fn(&T) -> usize) -> Option<&T> {
    let bytes: usize = page.iter().map(bytes_of).sum();
    page.last()
        .filter(|_| page.len() == limit.rows || bytes >= limit.bytes)
}

/// Refuses a name that the file does not know: after a typo, a command would find nothing to do. Until a first timer is inserted,
/// the file knows no handler, and none is refused.
pub(crate) fn is_known(reader: &Reader, scope: &Scope<'_>) -> Result<(), Failure> {
    let (handlers, settings);
    let (name, what, known): (_, _, BTreeSet<&str>) = match *scope {
        Scope::All => return Ok(()),
        Scope::Handler(name) => {
            handlers = reader.handlers()?;
            if handlers.is_empty() {
                return Ok(());
            }
            let what = format!("no timer was ever inserted for the handler {name:?}");
            (name, what, handlers.iter().map(|name| &**name).collect())
        }
        Scope::Namespace(name) => {
            let what = format!("there is no namespace {name:?}");
            handlers = reader.handlers()?;
            let of_handlers = handlers.iter().map(|name| Scope::namespace_of(name));
            // Only the names are read: calendars are settings, too, and have payloads.
            settings = reader.setting_names()?;
            let created = namespaces(settings.iter().map(|name| &**name));
            (name, what, created.chain(of_handlers).collect())
        }
    };
    match known.contains(name) {
        true => Ok(()),
        false => Err(Failure::because(format!("{what}; {}", list(&known)))),
    }
}

fn list(names: &BTreeSet<&str>) -> String {
    let first: Vec<_> = names.iter().copied().take(NAMES).collect();
    let first = first.join(", ");
    match names.len() {
        0 => "none is known".to_owned(),
        count if count > NAMES => format!("known: {first}, and {} more", count - NAMES),
        _ => format!("known: {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_its_rows_or_its_bytes() {
        let last = |page: &[usize]| last(page, PageLimit { rows: 3, bytes: 10 }, |it| *it).copied();
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[4, 5]), None);
        assert_eq!(last(&[4, 6]), Some(6));
        assert_eq!(last(&[1, 2, 3]), Some(3));
    }

    #[test]
    fn a_list_of_names_is_short() {
        let names: Vec<_> = (10..40).map(|it: u32| it.to_string()).collect();
        let list = |count: usize| list(&names[..count].iter().map(|it| &**it).collect());
        assert_eq!(list(0), "none is known");
        assert_eq!(list(2), "known: 10, 11");
        assert!(list(20).ends_with(", 29"));
        assert!(list(30).ends_with(", 29, and 10 more"));
    }
}
