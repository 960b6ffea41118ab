//! Resolves joins and wildcards: the relations of a FROM, and what `*` shows of them.
//!
//! When a query names `rowkey`, the tables it reads get a pseudo-column of that name, and every `*` in the
//! query must hide it: over one table, `*` becomes `* EXCLUDE (rowkey)`; over several relations, `a.* EXCLUDE
//! (rowkey), b.*`, because DataFusion refuses to exclude a column that two tables have. After a join USING,
//! `*` shows the [merged](super::using) columns first, then the others without them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    ExcludeSelectItem, Ident, JoinConstraint, ObjectName, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    VisitorMut, WildcardAdditionalOptions,
};

use super::natural::{ColumnNames, called_by, columns_of_factor, outputs_of};
use super::ordered::bare_name;
use super::rewrite::{ROWKEY, constraint_mut, constraint_of, is_rowkey};
use super::scopes::{Scopes, factors};
use super::star::{check_names, chosen, excluding_rowkey, fold_names, folded, has_options, star_options};
use super::using::{FromItem, FromItems, Shown, replace_names, replace_outer_names, shows};
use super::visit::{or_break, or_error, visit_mut};
use super::{name_of, span_of};
use crate::error::{Error, Result};

/// Rewrites every `*` and `t.*` of `query`, at every depth, to hide the pseudo-column of the tables for which
/// `has_pseudo` says yes, and replaces names of merged columns by their values. `columns_of` gives the
/// columns of a table or view, if known. A name that a WITH defines is no table. `count(*)` stays.
///
/// Errors, all unsupported: the columns of a `*` or a join would have to be known: two tables with a rowkey
/// in a NATURAL join, an outer NATURAL join, `* EXCLUDE (..)` over several tables, a subquery without an
/// alias.
pub fn resolve_joins(
    query: &mut Query,
    has_pseudo: &dyn Fn(&ObjectName) -> bool,
    columns_of: &dyn Fn(&ObjectName) -> ColumnNames,
) -> Result<()> {
    let mut hider = Hider { has_pseudo, columns_of, scopes: Scopes::default() };
    or_error(visit_mut(query, &mut hider))
}

struct Hider<'a> {
    has_pseudo: &'a dyn Fn(&ObjectName) -> bool,
    columns_of: &'a dyn Fn(&ObjectName) -> ColumnNames,
    scopes: Scopes,
}

impl VisitorMut for Hider<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scopes.enter(query, self.columns_of);
        let SetExpr::Select(select) = &*query.body else { return ControlFlow::Continue(()) };
        let Some(order) = &mut query.order_by else { return ControlFlow::Continue(()) };
        let relations = or_break(self.joined(select))?;
        let is_output = |name: &Ident| select.projection.iter().any(|item| shows(item, name));
        let merged = |name: &Ident| relations.merged(name);
        if let OrderByKind::Expressions(by) = &mut order.kind {
            for by in by {
                match bare_name(&by.expr) {
                    Some(name) if is_output(name) => {}
                    _ => replace_outer_names(by, &merged, &|query| self.seen_in(query)),
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.scopes.leave();
        ControlFlow::Continue(())
    }

    /// An alias that names all columns names the rowkey, too.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Table { name, alias: Some(alias), args: None, .. } = factor
            && !alias.columns.is_empty()
            && self.scopes.columns_of(name).is_none()
            && (self.has_pseudo)(name)
        {
            alias.columns.push(TableAliasColumnDef { name: Ident::new(ROWKEY), data_type: None });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        or_break(self.hide(select).map_err(|error| error.at(span_of(&*select))))
    }
}

impl Hider<'_> {
    /// All relations of a FROM.
    fn joined(&self, select: &Select) -> Result<FromItems> {
        let mut all = FromItems::default();
        let told = merges(select) || select.projection.iter().filter_map(star_options).any(has_options);
        for table in &select.from {
            all.beside(self.relations(table, told)?);
        }
        Ok(all)
    }

    /// What names in a subquery may be, beside columns of the queries around it; `None` if that is not known.
    fn seen_in(&self, query: &Query) -> ColumnNames {
        let (SetExpr::Select(select), None) = (&*query.body, &query.with) else { return None };
        let columns = |factor| columns_of_factor(factor, &self.scopes, self.columns_of);
        let tables = factors(&select.from).into_iter().map(columns).collect::<Option<Vec<_>>>()?;
        let outputs = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(name_of(alias)),
            _ => None,
        });
        Some(tables.into_iter().flatten().chain(outputs).collect())
    }

    /// Writes out conditions for which DataFusion would choose the wrong side.
    fn spell(&self, table: &mut TableWithJoins) -> Result<()> {
        let mut all = self.relation(&table.relation, true)?;
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut table.relation {
            self.spell(table_with_joins)?;
        }
        for join in &mut table.joins {
            let right = self.relation(&join.relation, true)?;
            if let TableFactor::NestedJoin { table_with_joins, .. } = &mut join.relation {
                self.spell(table_with_joins)?;
            }
            let at = |e: Error| e.at(span_of(&join.relation));
            let condition = all.mixed_condition(&right, &join.join_operator).map_err(at)?;
            all.join(right, &join.join_operator).map_err(at)?;
            match (condition, constraint_mut(&mut join.join_operator)) {
                (Some(condition), Some(constraint)) => *constraint = JoinConstraint::On(condition),
                (None, Some(JoinConstraint::On(condition))) => {
                    replace_names(condition, &|name| all.merged(name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn hide(&self, select: &mut Select) -> Result<()> {
        let relations = self.joined(select)?;
        if merges(select) {
            select.from.iter_mut().try_for_each(|table| self.spell(table))?;
        }
        if relations.natural && relations.each().filter(|r| r.pseudo).count() > 1 {
            return Err(Error::unsupported("a NATURAL join in a query that names rowkey")
                .why("both tables have a rowkey, and it would be joined on, too")
                .hint("write JOIN ... USING (columns)"));
        }
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(mut options) => {
                    relations.resolve_names(&mut options, |_| true)?;
                    projection.extend(relations.expand(options)?);
                }
                SelectItem::QualifiedWildcard(kind, mut options) => {
                    if let SelectItemQualifiedWildcardKind::ObjectName(name) = &kind {
                        relations.resolve_names(&mut options, |relation| relation.is_called(name))?;
                    }
                    projection.push(relations.qualified(kind, options));
                }
                item => projection.push(item),
            }
        }
        select.projection = projection;
        relations.name_merged(select, &|query| self.seen_in(query));
        Ok(())
    }

    /// The relations of a join; `told`: their columns are needed and looked up.
    fn relations(&self, table: &TableWithJoins, told: bool) -> Result<FromItems> {
        let mut all = self.relation(&table.relation, told)?;
        for join in &table.joins {
            let right = self.relation(&join.relation, told)?;
            all.join(right, &join.join_operator).map_err(|e| e.at(span_of(&join.relation)))?;
        }
        Ok(all)
    }

    fn relation(&self, factor: &TableFactor, told: bool) -> Result<FromItems> {
        let one = |name, pseudo, columns| FromItems {
            shown: vec![Shown::Own(FromItem { name, pseudo, shared: Vec::new(), columns })],
            ..FromItems::default()
        };
        Ok(match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let is_table = args.is_none() && self.scopes.columns_of(name).is_none();
                let pseudo = is_table && (self.has_pseudo)(name);
                let columns = (is_table && told).then(|| (self.columns_of)(name)).flatten();
                let mut columns = called_by(alias, columns);
                if let Some(columns) = columns.as_mut().filter(|_| pseudo) {
                    columns.push(ROWKEY.to_owned());
                }
                one(Some(alias_name(alias).unwrap_or_else(|| name.clone())), pseudo, columns)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inside = self.relations(table_with_joins, told)?;
                match alias_name(alias) {
                    Some(name) => one(Some(name), inside.each().any(|r| r.pseudo), None),
                    None => inside,
                }
            }
            TableFactor::Derived { alias, subquery, .. } => one(
                alias_name(alias),
                false,
                called_by(alias, outputs_of(subquery, &self.scopes, self.columns_of)),
            ),
            TableFactor::Function { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. } => one(alias_name(alias), false, None),
            _ => one(None, false, None),
        })
    }
}

/// Does a FROM contain a USING join?
fn merges(select: &Select) -> bool {
    fn in_table(table: &TableWithJoins) -> bool {
        let using = |operator| matches!(constraint_of(operator), Some(JoinConstraint::Using(_)));
        in_factor(&table.relation)
            || table.joins.iter().any(|join| using(&join.join_operator) || in_factor(&join.relation))
    }
    fn in_factor(factor: &TableFactor) -> bool {
        matches!(factor, TableFactor::NestedJoin { table_with_joins, .. } if in_table(table_with_joins))
    }
    select.from.iter().any(in_table)
}

pub(super) fn alias_name(alias: &Option<TableAlias>) -> Option<ObjectName> {
    alias.as_ref().map(|alias| ObjectName::from(vec![alias.name.clone()]))
}

impl FromItems {
    /// Folds the names that EXCLUDE and REPLACE have. Errors: one is no column of the relations that are `meant`, if all
    /// of these columns are known.
    fn resolve_names(
        &self,
        options: &mut WildcardAdditionalOptions,
        meant: impl Fn(&FromItem) -> bool,
    ) -> Result<()> {
        let columns =
            self.each().filter(|relation| meant(relation)).map(|relation| relation.columns.as_deref());
        let mut columns = columns.collect::<Option<Vec<_>>>().unwrap_or_default().concat();
        let mut seen = HashSet::new();
        columns.retain(|column| seen.insert(column.clone()));
        if !columns.is_empty() {
            check_names(options, &columns)?;
        }
        fold_names(options);
        Ok(())
    }

    /// What `*` with EXCLUDE and REPLACE stands for, column by column; `None` if not all columns are known.
    fn told(&self, options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
        if self.natural {
            return None;
        }
        let pseudo = self.each().any(|relation| relation.pseudo);
        let mut items: Vec<(String, SelectItem)> = Vec::new();
        for shown in &self.shown {
            match shown {
                Shown::Merged(merged) if pseudo && is_rowkey(&merged.name) => {}
                Shown::Merged(merged) => items.push((name_of(&merged.name), merged.output())),
                Shown::Own(relation) => {
                    let hidden = |column: &&String| {
                        relation.pseudo && **column == ROWKEY
                            || relation.shared.iter().any(|shared| name_of(shared) == **column)
                    };
                    for column in relation.columns.as_ref()?.iter().filter(|column| !hidden(column)) {
                        let expr = relation.column(&Ident::with_quote('"', column))?;
                        items.push((column.clone(), SelectItem::UnnamedExpr(expr)));
                    }
                }
            }
        }
        Some(chosen(options, items))
    }

    /// What `*` becomes.
    fn expand(&self, options: WildcardAdditionalOptions) -> Result<Vec<SelectItem>> {
        let pseudo = self.each().filter(|r| r.pseudo).count();
        let using = self.each().any(|r| !r.shared.is_empty());
        if pseudo == 0 && !using {
            return Ok(vec![SelectItem::Wildcard(options)]);
        }
        if self.each().count() == 1 || (pseudo == 1 && self.natural && !using) {
            return Ok(vec![SelectItem::Wildcard(excluding_rowkey(options))]);
        }
        let place = span_of(&options);
        let refused = |why: &str, hint: &str| {
            let what =
                if using { "this * behind a join USING" } else { "this * in a query that names rowkey" };
            Error::unsupported(what).why(why).hint(hint).at(place)
        };
        if has_options(&options) {
            let told = self.told(&options);
            return told.ok_or_else(|| {
                refused("it is over several tables, and not all columns are known", "name the columns")
            });
        }
        if self.natural {
            return Err(refused("the join decides which side a column is from", "name the columns"));
        }
        let items = self.shown.iter().filter_map(|shown| match shown {
            Shown::Merged(merged) if pseudo > 0 && is_rowkey(&merged.name) => None,
            Shown::Merged(merged) => Some(Ok(merged.output())),
            Shown::Own(relation) => Some(match &relation.name {
                Some(name) => Ok(relation.wildcard(name.clone())),
                None => Err(refused(
                    "it is over a subquery without a name",
                    "give the subquery an alias: (SELECT ...) AS s",
                )),
            }),
        });
        items.collect()
    }

    /// What `t.*` becomes.
    fn qualified(
        &self,
        kind: SelectItemQualifiedWildcardKind,
        options: WildcardAdditionalOptions,
    ) -> SelectItem {
        let SelectItemQualifiedWildcardKind::ObjectName(name) = &kind else {
            return SelectItem::QualifiedWildcard(kind, options);
        };
        let pseudo = self.each().any(|relation| relation.pseudo && relation.is_called(name));
        let options = if pseudo { excluding_rowkey(options) } else { options };
        SelectItem::QualifiedWildcard(kind, options)
    }
}

impl FromItem {
    fn is_called(&self, name: &ObjectName) -> bool {
        let called = |name: &ObjectName| last_ident(name).map(|ident| name_of(&ident));
        self.name.as_ref().is_some_and(|own| called(own) == called(name))
    }

    /// `t.*` without the columns that `*` does not show.
    fn wildcard(&self, name: ObjectName) -> SelectItem {
        let rowkey = self.pseudo.then(|| Ident::new(ROWKEY));
        let shared = self.shared.iter().filter(|column| !(self.pseudo && is_rowkey(column)));
        let hidden: Vec<ObjectName> = rowkey.iter().chain(shared).map(folded).collect();
        let options = WildcardAdditionalOptions {
            opt_exclude: (!hidden.is_empty()).then_some(ExcludeSelectItem::Multiple(hidden)),
            ..Default::default()
        };
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
    }
}

pub(super) fn last_ident(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::{parse, table_name_of};

    /// Tables `t` and `u` have the pseudo-column, others do not. The columns of `k` and `k2` are known.
    fn hidden(sql: &str) -> Result<String> {
        let Statement::Query(mut query) = parse(sql)? else { panic!("{sql}") };
        let has_pseudo = |name: &ObjectName| matches!(table_name_of(name).as_deref(), Ok("t" | "u"));
        let columns_of = |name: &ObjectName| match name.to_string().as_str() {
            "k" => Some(vec!["a".to_owned()]),
            "k2" => Some(vec!["b".to_owned()]),
            _ => None,
        };
        resolve_joins(&mut query, &has_pseudo, &columns_of)?;
        Ok(query.to_string())
    }

    #[test]
    fn every_star_leaves_out_the_rowkey() {
        let cases = [
            ("SELECT rowkey, * FROM t", "SELECT rowkey, * EXCLUDE (rowkey) FROM t"),
            ("SELECT * FROM v", "SELECT * FROM v"),
            ("SELECT * FROM public.T", "SELECT * EXCLUDE (rowkey) FROM public.T"),
            ("SELECT * EXCLUDE (a) FROM t", "SELECT * EXCLUDE (a, rowkey) FROM t"),
            ("SELECT * EXCLUDE (rowkey) FROM t", "SELECT * EXCLUDE (rowkey) FROM t"),
            ("SELECT count(*), a.* FROM t AS A", "SELECT count(*), a.* EXCLUDE (rowkey) FROM t AS A"),
            (
                "SELECT * FROM t, v JOIN u AS x ON true",
                "SELECT t.* EXCLUDE (rowkey), v.*, x.* EXCLUDE (rowkey) FROM t, v JOIN u AS x ON true",
            ),
            (
                "SELECT * FROM t JOIN u USING (Id) LEFT JOIN v USING (id)",
                "SELECT t.Id AS id, t.* EXCLUDE (rowkey, id), u.* EXCLUDE (rowkey, id), v.* EXCLUDE (id) \
                 FROM t JOIN u USING(Id) LEFT JOIN v USING(id)",
            ),
            (
                "SELECT * FROM t RIGHT JOIN v USING (id)",
                "SELECT v.id AS id, t.* EXCLUDE (rowkey, id), v.* EXCLUDE (id) FROM t RIGHT JOIN v USING(id)",
            ),
            (
                "SELECT * FROM t JOIN u USING (rowkey)",
                "SELECT t.* EXCLUDE (rowkey), u.* EXCLUDE (rowkey) FROM t JOIN u USING(rowkey)",
            ),
            ("SELECT * FROM t NATURAL JOIN v", "SELECT * EXCLUDE (rowkey) FROM t NATURAL JOIN v"),
            (
                "SELECT * FROM t SEMI JOIN u ON t.a = u.a",
                "SELECT * EXCLUDE (rowkey) FROM t SEMI JOIN u ON t.a = u.a",
            ),
            (
                "SELECT * FROM (SELECT * FROM t) x WHERE EXISTS (SELECT * FROM u)",
                "SELECT * FROM (SELECT * EXCLUDE (rowkey) FROM t) x \
                 WHERE EXISTS (SELECT * EXCLUDE (rowkey) FROM u)",
            ),
            (
                "SELECT * FROM t UNION SELECT * FROM u",
                "SELECT * EXCLUDE (rowkey) FROM t UNION SELECT * EXCLUDE (rowkey) FROM u",
            ),
        ];
        for (from, to) in cases {
            assert_eq!(hidden(from).unwrap(), to);
        }
    }

    #[test]
    fn a_column_of_using_is_that_of_the_side_which_always_has_it() {
        let cases = [
            ("SELECT id FROM v JOIN w USING (id)", "SELECT v.id AS id FROM v JOIN w USING(id)"),
            (
                "SELECT max(id) FROM v RIGHT JOIN w AS x USING (id) WHERE id > 1 ORDER BY id",
                "SELECT max(x.id) FROM v RIGHT JOIN w AS x USING(id) WHERE x.id > 1 ORDER BY x.id",
            ),
            (
                "SELECT id FROM v FULL JOIN w USING (id) JOIN x USING (id) GROUP BY id ORDER BY id",
                "SELECT coalesce(v.id, w.id) AS id FROM v FULL JOIN w USING(id) \
                 JOIN x ON coalesce(v.id, w.id) = x.id GROUP BY coalesce(v.id, w.id) ORDER BY id",
            ),
            (
                "SELECT * FROM v JOIN w ON true JOIN x USING (id) WHERE EXISTS (SELECT id FROM y)",
                "SELECT v.*, w.*, x.* EXCLUDE (id) FROM v JOIN w ON true JOIN x USING(id) \
                 WHERE EXISTS (SELECT id FROM y)",
            ),
            (
                "SELECT * FROM v, k JOIN k2 ON true JOIN w USING (a) JOIN x USING (a) JOIN y USING (A)",
                "SELECT v.*, k.a AS A, k.* EXCLUDE (a), k2.*, w.* EXCLUDE (a), x.* EXCLUDE (a), y.* EXCLUDE (a) \
                 FROM v, k JOIN k2 ON true JOIN w USING(a) JOIN x USING(a) JOIN y ON k.a = y.A",
            ),
        ];
        for (from, to) in cases {
            assert_eq!(hidden(from).unwrap(), to);
        }
    }

    #[test]
    fn a_name_of_a_with_is_no_table() {
        let cases = [
            ("WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
            (
                "WITH t AS (SELECT * FROM t) SELECT * FROM t",
                "WITH t AS (SELECT * EXCLUDE (rowkey) FROM t) SELECT * FROM t",
            ),
            (
                "WITH x AS (SELECT * FROM u), u AS (SELECT * FROM x) SELECT (SELECT 1 FROM (SELECT * FROM u))",
                "WITH x AS (SELECT * EXCLUDE (rowkey) FROM u), u AS (SELECT * FROM x) \
                 SELECT (SELECT 1 FROM (SELECT * FROM u))",
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM public.t",
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) \
                 SELECT * EXCLUDE (rowkey) FROM public.t",
            ),
            (
                "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, t",
                "SELECT x.*, t.* EXCLUDE (rowkey) FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, t",
            ),
        ];
        for (from, to) in cases {
            assert_eq!(hidden(from).unwrap(), to);
        }
    }

    #[test]
    fn what_needs_the_schemas_is_refused() {
        for (sql, why) in [
            ("SELECT a FROM t NATURAL JOIN u", "both tables have a rowkey, and it would be joined on, too"),
            ("SELECT * EXCLUDE (a) FROM t, u", "it is over several tables, and not all columns are known"),
            ("SELECT * FROM t, (SELECT 1)", "it is over a subquery without a name"),
            (
                "SELECT a FROM t LEFT JOIN u ON true FULL JOIN v USING (a)",
                "it cannot be told which of several tables has the column",
            ),
            (
                "SELECT a FROM t NATURAL LEFT JOIN v",
                "the columns that both sides have must be known where they are named",
            ),
        ] {
            assert_eq!(hidden(sql).unwrap_err().reason(), Some(why), "{sql}");
        }
    }
}
