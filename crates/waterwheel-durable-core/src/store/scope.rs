/// Selects handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All handlers.
    All,
    /// The handler with this name.
    Handler(&'a str),
    /// The handlers of this namespace: the part of their names before the `/`, or `default` if there is none.
    Namespace(&'a str),
}

impl Scope<'_> {
    /// Returns whether the handler is selected.
    #[must_use]
    pub fn contains(&self, handler: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Handler(name) => handler == *name,
            Scope::Namespace(name) => Scope::namespace_of(handler) == *name,
        }
    }

    /// Returns the namespace of a handler.
    #[must_use]
    pub fn namespace_of(handler: &str) -> &str {
        handler.split_once('/').map_or("default", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_what_is_before_the_slash() {
        let of = |scope: Scope<'_>| {
            let all = [
                "close",
                "shop/close",
                "shopping/close",
                "shop",
                "default/close",
            ];
            all.into_iter()
                .filter(|it| scope.contains(it))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Scope::Namespace("shop")), ["shop/close"]);
        let default = ["close", "shop", "default/close"];
        assert_eq!(of(Scope::Namespace("default")), default);
        assert_eq!(of(Scope::Handler("shop")), ["shop"]);
        assert_eq!(of(Scope::All).len(), 5);
    }
}
