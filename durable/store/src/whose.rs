/// Of which handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Of all.
    All,
    /// Of the handler with this name.
    Handler(&'a str),
    /// Of the handlers of this namespace: what is before the `/` in their names, or `default` if there is none.
    Namespace(&'a str),
}

impl Whose<'_> {
    /// Whether a handler is one of these.
    #[must_use]
    pub fn is(&self, handler: &str) -> bool {
        match self {
            Whose::All => true,
            Whose::Handler(name) => handler == *name,
            Whose::Namespace(name) => Whose::namespace(handler) == *name,
        }
    }

    /// The namespace of a handler.
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
