//! `rowkey_explain`: a key in words.

use std::sync::Arc;

use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};

use super::row_function::{FunctionBuffers, RowBody, RowFunction};
use crate::catalog::{Catalog, Relation, index_of};
use crate::design::keys::KeyspaceLayout;
use crate::error::{Error, Result, sqlstate};
use crate::value::{ColumnType, ValueRef};

/// `rowkey_explain('orders', rowkey)`: a key of a table or an index of this catalog, part by part.
pub fn rowkey_explain(catalog: &Catalog) -> Arc<ScalarUDF> {
    let catalog = catalog.clone();
    // The result depends on the definitions, so no plan with it is kept.
    let signature = Signature::variadic_any(Volatility::Stable);
    let explained = RowFunction::new(ROWKEY_EXPLAIN, Explained(catalog), ColumnType::Varchar);
    Arc::new(ScalarUDF::new_from_impl(explained.taking(signature)))
}

/// Name of that function.
pub const ROWKEY_EXPLAIN: &str = "rowkey_explain";

struct Explained(Catalog);

impl RowBody for Explained {
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
        let Explained(catalog) = self;
        let (name, key) = match args {
            [_, ValueRef::Null] | [ValueRef::Null, _] => return Ok(ValueRef::Null),
            [ValueRef::Text(name), key] => (*name, key.to_value()),
            _ => {
                return Err(Error::invalid(
                    "rowkey_explain takes the name of a table or an index, and a key",
                )
                .hint("rowkey_explain('orders', rowkey)"));
            }
        };
        let relation = catalog.find(name).ok_or_else(|| catalog.unknown(name))?;
        let mut words = |table, keyspace: KeyspaceLayout<'_>| {
            buffers.text = keyspace.in_words(table, &keyspace.key(&key)?);
            Ok::<(), Error>(())
        };
        match &relation {
            Relation::Table(table) => words(table, KeyspaceLayout::of_table(table))?,
            Relation::Index(table, id) => {
                words(table, KeyspaceLayout::of_index(table, index_of(table, *id)?))?;
            }
            Relation::View(_) => {
                return Err(Error::invalid(format!("\"{name}\" is a view, whose rows have no keys"))
                    .state(sqlstate::WRONG_OBJECT));
            }
        }
        Ok(ValueRef::Text(&buffers.text))
    }
}
