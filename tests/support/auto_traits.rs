//! The auto traits of types.

/// Whether a type has a trait: the inherent constant wins where its bound holds.
macro_rules! has {
    ($type:ty: $bound:ident) => {{
        // Unused where the bound holds always or never.
        #[allow(dead_code)]
        trait Not {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Not for T {}
        #[allow(dead_code)]
        struct Is<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $bound> Is<T> {
            const HAS: bool = true;
        }
        <Is<$type>>::HAS
    }};
}

macro_rules! assert_auto_traits {
    ($($type:ty: $send:literal $sync:literal $unpin:literal;)*) => {$(
        let found = (has!($type: Send), has!($type: Sync), has!($type: Unpin));
        assert_eq!(found, ($send, $sync, $unpin), "Send, Sync, Unpin of {}", stringify!($type));
    )*};
}
