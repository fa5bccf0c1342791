use std::borrow::Cow;
use std::fmt;

use tokio_postgres::types::{ToSql, Type};

/// A statement with its parameters. It is sent unnamed and with the types of the parameters, in one round trip, so that it may be served by any backend behind
/// a pooler, and is planned for these parameters and the current size of the tables.
pub(crate) struct Statement<'a> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) parameters: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>) -> Statement<'a> {
        Statement {
            sql: sql.into(),
            parameters: Vec::new(),
        }
    }

    fn with(mut self, value: impl ToSql + Sync + Send + 'a, of: Type) -> Statement<'a> {
        self.parameters.push((Box::new(value), of));
        self
    }

    /// Adds a `smallint`.
    pub(crate) fn small(self, value: impl Into<i16>) -> Statement<'a> {
        self.with(value.into(), Type::INT2)
    }

    /// Adds an `integer`.
    pub(crate) fn int(self, value: i32) -> Statement<'a> {
        self.with(value, Type::INT4)
    }

    /// Adds a `bigint`.
    pub(crate) fn big(self, value: i64) -> Statement<'a> {
        self.with(value, Type::INT8)
    }

    /// Adds a `text`.
    pub(crate) fn text(self, value: impl Into<Option<&'a str>>) -> Statement<'a> {
        self.with(value.into(), Type::TEXT)
    }

    /// Adds a `bytea`.
    pub(crate) fn bytes(self, value: &'a [u8]) -> Statement<'a> {
        self.with(value, Type::BYTEA)
    }

    /// Adds a `smallint[]`.
    pub(crate) fn smalls(self, values: Vec<i16>) -> Statement<'a> {
        self.with(values, Type::INT2_ARRAY)
    }

    /// Adds an `integer[]`.
    pub(crate) fn ints(self, values: Vec<i32>) -> Statement<'a> {
        self.with(values, Type::INT4_ARRAY)
    }

    /// Adds a `bigint[]`.
    pub(crate) fn bigs(self, values: Vec<i64>) -> Statement<'a> {
        self.with(values, Type::INT8_ARRAY)
    }

    /// Adds a `text[]`.
    pub(crate) fn texts(self, values: Vec<Option<&'a str>>) -> Statement<'a> {
        self.with(values, Type::TEXT_ARRAY)
    }

    /// Adds a `text[]`.
    pub(crate) fn owned_texts(self, values: Vec<String>) -> Statement<'a> {
        self.with(values, Type::TEXT_ARRAY)
    }

    /// Adds a `bytea[]`.
    pub(crate) fn blobs(self, values: Vec<Option<&'a [u8]>>) -> Statement<'a> {
        self.with(values, Type::BYTEA_ARRAY)
    }
}

impl fmt::Debug for Statement<'_> {
    /// Without the parameters, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Statement").field(&self.sql).finish()
    }
}
