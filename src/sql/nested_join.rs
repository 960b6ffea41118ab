//! Rewrites an aliased join in parentheses, `(a JOIN b USING (k)) AS x`, as a subquery of that alias.
//!
//! DataFusion would keep the columns of both sides under the alias, where `x.k` is the first of them and not
//! the merged one.

use sqlparser::ast::{SetExpr, TableFactor};

use super::parse_query;
use crate::error::Result;

/// Rewrites such a join as `(SELECT * FROM a JOIN b USING (k)) AS x`.
pub fn as_subquery(factor: &mut TableFactor) -> Result<()> {
    if let TableFactor::NestedJoin { table_with_joins, alias: alias @ Some(_) } = factor {
        let mut subquery = Box::new(parse_query("SELECT * FROM t")?);
        if let SetExpr::Select(select) = &mut *subquery.body {
            select.from = vec![(**table_with_joins).clone()];
        }
        *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    }
    Ok(())
}
