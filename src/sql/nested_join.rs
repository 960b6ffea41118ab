//! A join in parentheses under a name, `(a JOIN b USING (k)) AS x`, is what a subquery under that name is.
//!
//! DataFusion would keep the columns of both sides behind the name, where `x.k` is the first of them and not the merged
//! one.

use sqlparser::ast::{Query, SetExpr, TableFactor, TableWithJoins};
use sqlparser::parser::Parser;

use super::dialect::RowkeyDialect;
use crate::error::{Error, Result};

/// Writes such a join as `(SELECT * FROM a JOIN b USING (k)) AS x`.
pub fn as_subquery(factor: &mut TableFactor) -> Result<()> {
    if let TableFactor::NestedJoin { table_with_joins, alias: alias @ Some(_) } = factor {
        let subquery = Box::new(all_of((**table_with_joins).clone())?);
        *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    }
    Ok(())
}

fn all_of(from: TableWithJoins) -> Result<Query> {
    let dialect = RowkeyDialect::default();
    let parsed = Parser::new(&dialect).try_with_sql("SELECT * FROM t").and_then(|mut sql| sql.parse_query());
    let mut query = *parsed.map_err(|e| Error::internal("a query that is none").caused_by(e))?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.from = vec![from];
    }
    Ok(query)
}
