/// The calls of a [`Store`](crate::store::Store) that passes them on to another one: `pass_on!(this => this.inner; load dead)`. `reads` stands for all but `begin`, `commit` and
/// `maintain`; `rest` for those of them that have no name here.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on {
    ($this:ident => $inner:expr; $($call:ident)+) => {
        $($crate::pass_on!(@$call $this $inner);)+
    };
    (@reads $this:ident $inner:expr) => {
        $crate::pass_on!($this => $inner; load first_second first_bucket handlers dead find rest);
    };
    (@begin $this:ident $inner:expr) => {
        fn begin(&mut self) -> Result<u64, $crate::store::StoreError> {
            let $this = self;
            $inner.begin()
        }
    };
    (@maintain $this:ident $inner:expr) => {
        fn maintain(&mut self) -> Result<(), $crate::store::StoreError> {
            let $this = self;
            $inner.maintain()
        }
    };
    (@load $this:ident $inner:expr) => {
        fn load(
            &mut self,
            handler: &str,
            after: $crate::store::RowCursor,
            before: i64,
            limit: $crate::store::PageLimit,
        ) -> Result<Vec<$crate::store::Row>, $crate::store::StoreError> {
            let $this = self;
            $inner.load(handler, after, before, limit)
        }
    };
    (@first_second $this:ident $inner:expr) => {
        fn first_second(
            &mut self,
            handler: &str,
            from: i64,
        ) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_second(handler, from)
        }
    };
    (@first_bucket $this:ident $inner:expr) => {
        fn first_bucket(
            &mut self,
            level: $crate::store::Level,
        ) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_bucket(level)
        }
    };
    (@handlers $this:ident $inner:expr) => {
        fn handlers(&mut self) -> Result<Vec<std::sync::Arc<str>>, $crate::store::StoreError> {
            let $this = self;
            $inner.handlers()
        }
    };
    (@dead $this:ident $inner:expr) => {
        fn dead(
            &mut self,
            scope: $crate::store::Scope<'_>,
            after: $crate::store::Id,
            limit: $crate::store::PageLimit,
        ) -> Result<$crate::store::DeadLetters, $crate::store::StoreError> {
            let $this = self;
            $inner.dead(scope, after, limit)
        }
    };
    (@find $this:ident $inner:expr) => {
        fn find(
            &mut self,
            handler: &str,
            key: &[u8],
        ) -> Result<Option<$crate::store::Handle>, $crate::store::StoreError> {
            let $this = self;
            $inner.find(handler, key)
        }
    };
    (@rest $this:ident $inner:expr) => {
        fn archived(
            &mut self,
            handler: &str,
            after: $crate::store::ArchiveCursor,
            before: i64,
            limit: usize,
        ) -> Result<Vec<($crate::store::ArchiveCursor, $crate::store::Archived)>, $crate::store::StoreError> {
            let $this = self;
            $inner.archived(handler, after, before, limit)
        }

        fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, $crate::store::StoreError> {
            let $this = self;
            $inner.first_archived(handler)
        }

        fn settings(
            &mut self,
        ) -> Result<Vec<$crate::store::Setting>, $crate::store::StoreError> {
            let $this = self;
            $inner.settings()
        }

        fn takes_commands(&self) -> bool {
            let $this = self;
            $inner.takes_commands()
        }

        fn commands(&mut self) -> Result<Vec<(u64, $crate::store::Command)>, $crate::store::StoreError> {
            let $this = self;
            $inner.commands()
        }

        fn notices(&mut self) -> Vec<$crate::store::Notice> {
            let $this = self;
            $inner.notices()
        }
    };
}
