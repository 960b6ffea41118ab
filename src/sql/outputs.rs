//! Names of a query's output columns.
//!
//! An expression is named by its own text, as in SQLite. DataFusion refuses two columns of one name,
//! so a repeated name gets a mark here, and [`output_name`] takes it off again.

use std::collections::HashSet;

use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr};

use super::name_of;

/// Between a repeated name and its number; no name can hold it.
const MARK: char = '\0';

/// Names the output columns of a query, each name once.
pub fn name_outputs(query: &mut Query) {
    let mut body = &mut *query.body;
    loop {
        body = match body {
            // A set operation's columns are called as those of its left side.
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(inner) => &mut inner.body,
            SetExpr::Select(select) => return name_items(select),
            _ => return,
        };
    }
}

/// An output column as its query called it.
pub fn output_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

fn name_items(select: &mut Select) {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    // What a wildcard brings is not known here: beside one, any plain column may be a second one.
    let wildcard = select.projection.iter().any(is_wildcard);
    let mut taken = HashSet::new();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let (name, expr, plain) = match item {
            SelectItem::UnnamedExpr(expr) => match column_name(expr) {
                Some(name) => (name, expr, true),
                None => (expr.to_string(), expr, false),
            },
            SelectItem::ExprWithAlias { expr, alias } => (name_of(alias), expr, true),
            _ => continue,
        };
        let repeated = !taken.insert(name.clone()) || (wildcard && plain);
        if plain && !repeated {
            continue;
        }
        let name = if repeated { format!("{name}{MARK}{n}") } else { name };
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
    }
}

fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name_of(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(name_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sql: &str) -> String {
        let mut query = crate::sql::parse_query(sql).unwrap();
        name_outputs(&mut query);
        query.to_string().replace('\0', "#")
    }

    #[test]
    fn expressions_are_called_by_their_text() {
        assert_eq!(
            named("SELECT a, a + 1, count(*) FROM t"),
            r#"SELECT a, a + 1 AS "a + 1", count(*) AS "count(*)" FROM t"#
        );
    }

    #[test]
    fn repeated_names_are_marked() {
        assert_eq!(named("SELECT a, t.a, b AS a FROM t"), r#"SELECT a, t.a AS "a#1", b AS "a#2" FROM t"#);
        assert_eq!(named("SELECT *, a FROM t"), r#"SELECT *, a AS "a#1" FROM t"#);
        assert_eq!(output_name("a\u{0}1"), "a");
    }

    #[test]
    fn a_union_is_called_as_its_left_side() {
        assert_eq!(named("SELECT 1 UNION SELECT 2"), r#"SELECT 1 AS "1" UNION SELECT 2"#);
    }
}
