//! Names a query's output columns.
//!
//! An expression is named by its own text, as in SQLite. DataFusion refuses two columns of one name, so a
//! repeated name is marked here, and [`output_name`] removes the mark.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Spanned, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use super::name_of;
use super::outer_names::tables_of;
use super::parser::parse_query;
use super::same::folded;
use super::star::is_star;
use super::using::replace_names;
use super::visit::{visit_expressions, visit_expressions_mut, visit_mut};

/// Separates a repeated name from its number; no name can contain it.
pub(super) const MARK: char = '\0';

/// Nodes (count) of an expression beyond which it is not named by its text as written, which may be too deep to print
/// before it is balanced.
const WRITTEN_MAX: usize = 200;

/// The text of an output as written, if it is to be named by it.
pub(super) fn written(item: &SelectItem) -> Option<String> {
    let SelectItem::UnnamedExpr(expr) = item else { return None };
    let mut nodes = 0;
    let counted = visit_expressions(expr, |_| {
        nodes += 1;
        if nodes > WRITTEN_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (column_name(expr).is_none() && counted.is_continue()).then(|| text_of(expr))
}

/// Names outputs that were rewritten by their text as written.
pub(super) fn name_as_written(select: &mut Select, written: Vec<Option<String>>) {
    for (item, text) in select.projection.iter_mut().zip(written) {
        if let (SelectItem::UnnamedExpr(expr), Some(text)) = (&*item, text)
            && text_of(expr) != text
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', text) };
        }
    }
}

/// The text of an expression, as a name.
fn text_of(expr: &Expr) -> String {
    // The dialect reads SYMMETRIC as this operator.
    let text = expr.to_string().replace("BETWEEN PRIOR ", "BETWEEN SYMMETRIC ");
    text.replace(MARK, "\\0")
}

/// Gives the output columns of a query and its subqueries unique names. References to a marked output (in
/// ORDER BY, DISTINCT ON, HAVING, QUALIFY) are renamed with it.
pub fn name_outputs(query: &mut Query) {
    // Outermost first: its outputs are named by the text of their expressions as written.
    name_query(query, true);
    let _ = visit_mut(query, &mut Inner);
}

/// Subqueries: outer queries refer to an output by the name that it was given.
struct Inner;

impl VisitorMut for Inner {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_query(query, false);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        name_outer_columns(select);
        ControlFlow::Continue(())
    }
}

/// Gives columns of an outer row their own names: DataFusion's would be `outer_ref(a.v)`.
fn name_outer_columns(select: &mut Select) {
    let tables = tables_of(select);
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = &*item else { continue };
        let is_outer = match expr {
            Expr::Identifier(_) => tables.is_empty(),
            Expr::CompoundIdentifier(parts) => {
                matches!(&parts[..], [.., table, _] if !tables.contains(&name_of(table)))
            }
            _ => false,
        };
        if let Some(name) = column_name(expr).filter(|_| is_outer) {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
        }
    }
}

/// Names the outputs of a query; gives the marked names.
fn name_query(query: &mut Query, is_outer: bool) -> MarkedNames {
    let in_tables = query.order_by.as_ref().map(names_in_tables).unwrap_or_default();
    let marked = name_body(&mut query.body, is_outer, &in_tables);
    name_grouped_values(query);
    if let Some(order) = &mut query.order_by {
        if let SetExpr::Select(select) = &*query.body
            && let (Some(Distinct::Distinct), OrderByKind::Expressions(by)) =
                (&select.distinct, &mut order.kind)
        {
            order_by_names(&select.projection, by);
        }
        follow(&marked, order);
    }
    if is_outer || marked.is_empty() {
        return marked;
    }
    name_again(query);
    MarkedNames::default()
}

/// Marks the columns of subqueries by whose value a query groups: DataFusion calls the group like that column, and would
/// take it for one of a table.
fn name_grouped_values(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return };
    let of_items = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let mut values = groups.iter().chain(of_items.filter(|_| !groups.is_empty()));
    if !values.any(|expr| matches!(expr, Expr::Subquery(_))) {
        return;
    }
    let mut mark = |expr: &mut Expr| {
        if let Expr::Subquery(value) = expr
            && let SetExpr::Select(select) = &mut *value.body
            && let [item] = &mut select.projection[..]
            && (value.order_by.is_none() || matches!(item, SelectItem::UnnamedExpr(_)))
            && let Some(name) = name_of_item(item).filter(|name| !name.contains(MARK))
            && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = &*item
        {
            let alias = Ident::with_quote('"', format!("{name}{MARK}"));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = visit_expressions_mut(&mut **select, &mut mark);
    let _ = visit_expressions_mut(&mut query.order_by, &mut mark);
}

/// Puts a query around a subquery that gives its outputs the names without marks.
fn name_again(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    let names = select.projection.iter().filter_map(name_of_item);
    let name = |value: &str| Ident::with_quote('"', value);
    let items = names.map(|marked| SelectItem::ExprWithAlias {
        expr: Expr::Identifier(name(&marked)),
        alias: name(output_name(&marked)),
    });
    let items = items.collect();
    // The parser knows this text.
    let Ok(mut around) = parse_query("SELECT 1 FROM (SELECT 1) AS named") else { return };
    if let SetExpr::Select(select) = &mut *around.body
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|f| &mut f.relation)
    {
        select.projection = items;
        std::mem::swap(&mut **subquery, query);
    }
    *query = around;
}

/// An ORDER BY expression that is also selected refers to the output: DataFusion does not find expressions
/// above DISTINCT.
fn order_by_names(items: &[SelectItem], order: &mut [OrderByExpr]) {
    let named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((folded(expr), alias.clone())),
        _ => None,
    };
    let named: Vec<(Expr, Ident)> = items.iter().filter_map(named).collect();
    for by in order {
        let is_name = matches!(by.expr, Expr::Identifier(_) | Expr::Value(_));
        let wanted = folded(&by.expr);
        if let Some((_, name)) = named.iter().find(|(expr, _)| !is_name && *expr == wanted) {
            by.expr = Expr::Identifier(Ident { span: by.expr.span(), ..name.clone() });
        }
    }
}

/// Columns that an ORDER BY qualifies with their table. They are no outputs, but DataFusion confuses them
/// with an output of the same name.
fn names_in_tables(order: &OrderBy) -> HashSet<String> {
    let mut names = HashSet::new();
    let _ = visit_expressions(order, |expr| {
        if let Expr::CompoundIdentifier(parts) = expr {
            names.extend(parts.last().map(name_of));
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

#[recursive::recursive]
fn name_body(body: &mut SetExpr, is_outer: bool, in_tables: &HashSet<String>) -> MarkedNames {
    match body {
        // A set operation takes the names of its left side.
        SetExpr::SetOperation { left, right, .. } => {
            name_body(right, is_outer, &HashSet::new());
            name_body(left, is_outer, &HashSet::new())
        }
        SetExpr::Query(inner) => name_query(inner, is_outer),
        SetExpr::Select(select) => {
            if let Some(Distinct::On(keys)) = &mut select.distinct {
                keys.iter_mut().for_each(|key| by_place(key, &select.projection));
            }
            let marked = name_items(select, is_outer, in_tables);
            if let Some(Distinct::On(keys)) = &mut select.distinct {
                follow(&marked, keys);
            }
            follow(&marked, &mut select.having);
            follow(&marked, &mut select.qualify);
            marked
        }
        _ => MarkedNames::default(),
    }
}

/// A number in DISTINCT ON is an output's position, as in ORDER BY.
fn by_place(key: &mut Expr, items: &[SelectItem]) {
    let Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) = key else { return };
    let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
    // Positions are known only before the first wildcard.
    let known = items.iter().take_while(|item| !is_star(item)).nth(place.unwrap_or(usize::MAX));
    if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = known {
        *key = expr.clone();
    }
}

/// Output names beside a wildcard, and their marked names.
type MarkedNames = HashMap<String, String>;

/// Renames references to marked outputs.
fn follow(marked: &MarkedNames, node: &mut impl VisitMut) {
    if marked.is_empty() {
        return;
    }
    replace_names(node, &|name| {
        let value = marked.get(&name_of(name))?.clone();
        Some(Expr::Identifier(Ident { value, quote_style: Some('"'), span: name.span }))
    });
}

/// The name that the query gave the output column.
pub fn output_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

fn name_items(select: &mut Select, is_outer: bool, in_tables: &HashSet<String>) -> MarkedNames {
    // A wildcard's columns are unknown here: a plain column beside it may be a duplicate.
    let wildcard = is_outer && select.projection.iter().any(is_star);
    // Outer queries cannot refer to either of two columns with the same name.
    let mut taken = if is_outer { HashSet::new() } else { twice(&select.projection) };
    // Nor can names be given again where not all of them are known.
    let is_named = is_outer || !select.projection.iter().any(is_star);
    // DataFusion tells `t.a` and an output that is called `"t.a"` apart no more.
    let columns = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        _ => None,
    });
    let (tables, columns): (Vec<String>, HashSet<String>) = (tables_of(select), columns.collect());
    let is_in_full = |name: &str| {
        let column = |table: &String| name.strip_prefix(&**table)?.strip_prefix('.');
        tables.iter().filter_map(column).any(|column| columns.contains(column))
    };
    let mut marked = MarkedNames::default();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let renames = matches!(item, SelectItem::ExprWithAlias { .. });
        let (name, expr, plain) = match item {
            SelectItem::UnnamedExpr(expr) => match column_name(expr) {
                Some(name) => (name, expr, true),
                None => (text_of(expr), expr, false),
            },
            SelectItem::ExprWithAlias { expr, alias } => (name_of(alias), expr, true),
            _ => continue,
        };
        if name.contains(MARK) {
            // A query in parentheses is visited twice.
            continue;
        }
        let is_read = in_tables.contains(&name) || is_in_full(&name);
        let hides = renames && is_read && (is_outer || (is_named && !taken.contains(&name)));
        let repeated = !taken.insert(name.clone()) || (wildcard && plain) || hides;
        if plain && !repeated {
            continue;
        }
        let unique = if repeated { format!("{name}{MARK}{n}") } else { name.clone() };
        if (wildcard && repeated) || hides {
            marked.entry(name).or_insert_with(|| unique.clone());
        }
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', unique) };
    }
    marked
}

/// Names that occur twice.
fn twice(items: &[SelectItem]) -> HashSet<String> {
    let mut seen = HashSet::new();
    items.iter().filter_map(name_of_item).filter(|name| !seen.insert(name.clone())).collect()
}

fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        SelectItem::ExprWithAlias { alias, .. } => Some(name_of(alias)),
        _ => None,
    }
}

/// The name of a column, without its table's.
pub(super) fn column_name(expr: &Expr) -> Option<String> {
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
    fn beside_a_wildcard_an_order_asks_for_the_mark() {
        let cases = [
            ("SELECT *, -a AS b FROM t ORDER BY B, a", r#"SELECT *, -a AS "b#1" FROM t ORDER BY "b#1", a"#),
            (
                "SELECT *, x AS b, y AS b FROM t ORDER BY b",
                r#"SELECT *, x AS "b#1", y AS "b#2" FROM t ORDER BY "b#1""#,
            ),
            (
                "SELECT DISTINCT ON (b) *, f(a) AS b FROM t QUALIFY b > 1",
                r#"SELECT DISTINCT ON ("b#1") *, f(a) AS "b#1" FROM t QUALIFY "b#1" > 1"#,
            ),
            (
                "(SELECT *, 1 AS b FROM t) UNION SELECT * FROM u ORDER BY b",
                r#"(SELECT *, 1 AS "b#1" FROM t) UNION SELECT * FROM u ORDER BY "b#1""#,
            ),
            (
                "SELECT *, 1 AS b FROM t ORDER BY (SELECT max(b) FROM u)",
                r#"SELECT *, 1 AS "b#1" FROM t ORDER BY (SELECT max(b) AS "max(b)" FROM u)"#,
            ),
        ];
        for (from, to) in cases {
            assert_eq!(named(from), to);
        }
    }

    #[test]
    fn an_order_asks_a_table_past_an_output() {
        let cases = [
            (
                "SELECT a AS b, c FROM t ORDER BY t.b, b, c",
                r#"SELECT a AS "b#0", c FROM t ORDER BY t.b, "b#0", c"#,
            ),
            ("SELECT u.b FROM t, u ORDER BY t.b", "SELECT u.b FROM t, u ORDER BY t.b"),
            (
                "SELECT q.b FROM (SELECT a AS b, c FROM t ORDER BY t.b, b) q",
                "SELECT q.b FROM (SELECT \"b#0\" AS \"b\", \"c\" AS \"c\" \
                 FROM (SELECT a AS \"b#0\", c FROM t ORDER BY t.b, \"b#0\") AS named) q",
            ),
            (
                "SELECT 1 AS b FROM (SELECT *, a AS b FROM t ORDER BY t.b) q",
                "SELECT 1 AS b FROM (SELECT *, a AS b FROM t ORDER BY t.b) q",
            ),
        ];
        for (from, to) in cases {
            assert_eq!(named(from), to);
        }
    }

    #[test]
    fn above_distinct_an_order_asks_for_the_output() {
        assert_eq!(
            named("SELECT DISTINCT a + 1, f(T.b) AS c FROM t ORDER BY F(t.B), A + 1, b, 1"),
            r#"SELECT DISTINCT a + 1 AS "a + 1", f(T.b) AS c FROM t ORDER BY c, "a + 1", b, 1"#
        );
    }

    #[test]
    fn a_union_is_called_as_its_left_side() {
        assert_eq!(named("SELECT 1 UNION SELECT 2"), r#"SELECT 1 AS "1" UNION SELECT 2 AS "2""#);
    }
}
