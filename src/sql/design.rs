//! Statements about the design of keys.

use std::fmt::{self, Display, Formatter};

use sqlparser::ast::Ident;

use crate::value::{Literal, Value};

/// A statement that looks at a design; none changes anything.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Design {
    /// `DESCRIBE KEY ['key'] OF t`: a key of a table or an index, part by part; without one, the first there is.
    DescribeKey { key: Option<Value>, of: Ident },
    /// `LINT TABLE t`, or `LINT` of all tables
    Lint { table: Option<Ident> },
}

impl Design {
    /// As [`Statement::kind_name`](super::Statement::kind_name).
    pub fn kind_name(&self) -> &'static str {
        match self {
            Design::DescribeKey { .. } => "DESCRIBE KEY",
            Design::Lint { .. } => "LINT",
        }
    }
}

impl Display for Design {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Design::DescribeKey { key: Some(key), of } => {
                write!(f, "DESCRIBE KEY {} OF {of}", Literal(key.as_ref()))
            }
            Design::DescribeKey { key: None, of } => write!(f, "DESCRIBE KEY OF {of}"),
            Design::Lint { table: Some(table) } => write!(f, "LINT TABLE {table}"),
            Design::Lint { table: None } => f.write_str("LINT"),
        }
    }
}
