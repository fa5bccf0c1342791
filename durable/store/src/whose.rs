/// Selects handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// All handlers.
    All,
    /// The handler with this name.
    Handler(&'a str),
    /// The handlers of this namespace: the part of their names before the `/`, or `default` if there is none.
    Namespace(&'a str),
}

impl Whose<'_> {
    /// Returns whether the handler is selected.
    #[must_use]
    pub fn is(&self, handler: &str) -> bool {
        match self {
            Whose::All => true,
            Whose::Handler(name) => handler == *name,
            Whose::Namespace(name) => Whose::namespace(handler) == *name,
        }
    }

    /// Returns the namespace of a handler.
    #[must_use]
    pub fn namespace(handler: &str) -> &str {
        handler.split_once('/').map_or("default", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_what_is_before_the_slash() {
        let of = |whose: Whose<'_>| {
            let all = [
                "close",
                "shop/close",
                "shopping/close",
                "shop",
                "default/close",
            ];
            all.into_iter()
                .filter(|it| whose.is(it))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Whose::Namespace("shop")), ["shop/close"]);
        let default = ["close", "shop", "default/close"];
        assert_eq!(of(Whose::Namespace("default")), default);
        assert_eq!(of(Whose::Handler("shop")), ["shop"]);
        assert_eq!(of(Whose::All).len(), 5);
    }
}
