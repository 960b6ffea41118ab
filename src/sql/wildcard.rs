//! `*` without the rowkey.
//!
//! When a query names `rowkey`, the tables it reads get one more column of that name, and every `*` in the
//! query must leave it out again: over one table, `*` becomes `* EXCLUDE (rowkey)`; over several relations,
//! `a.* EXCLUDE (rowkey), b.*`, because DataFusion refuses to exclude a column that two tables have.

use std::ops::ControlFlow;

use sqlparser::ast::{
    ExcludeSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use super::rewrite::{ROWKEY, constraint_of, excludes_rowkey};
use super::{name_of, span_of};
use crate::error::{Error, Result};

/// Rewrites every `*` and `t.*` of `query`, at every depth, so that it leaves out the pseudo-column of the
/// tables for which `has_pseudo` says yes. A name that a WITH defines is no table. `count(*)` stays.
///
/// Errors, all unsupported: where the columns of a `*` cannot be told without the tables' schemas: two
/// tables in a NATURAL join, `* EXCLUDE (..)` over several tables, a FULL join USING, a subquery without an alias.
pub fn hide_rowkey_in_wildcards(query: &mut Query, has_pseudo: &dyn Fn(&ObjectName) -> bool) -> Result<()> {
    let mut hider = Hider { has_pseudo, scopes: Vec::new() };
    match VisitMut::visit(query, &mut hider) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Hider<'a> {
    has_pseudo: &'a dyn Fn(&ObjectName) -> bool,
    /// Of the queries around this place, outermost first.
    scopes: Vec<Scope>,
}

/// The WITH of one query.
#[derive(Default)]
struct Scope {
    names: Vec<String>,
    recursive: bool,
    /// How many of their queries have been walked: these names are defined from here on.
    walked: usize,
}

impl Scope {
    fn of(query: &Query) -> Self {
        let Some(with) = &query.with else { return Scope::default() };
        let names = with.cte_tables.iter().map(|cte| name_of(&cte.alias.name)).collect();
        Scope { names, recursive: with.recursive, walked: 0 }
    }

    fn defines(&self, name: &str) -> bool {
        let defined = (self.walked + usize::from(self.recursive)).min(self.names.len());
        self.names[..defined].iter().any(|defined| defined == name)
    }
}

impl VisitorMut for Hider<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scopes.push(Scope::of(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        // The queries of a WITH are walked before everything else, in order.
        if let Some(around) = self.scopes.last_mut() {
            around.walked = (around.walked + 1).min(around.names.len());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        match self.hide(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error.at(span_of(&*select))),
        }
    }
}

/// One thing a FROM joins.
struct Relation {
    /// What stands before `.*`; `None` for a subquery without an alias.
    name: Option<ObjectName>,
    /// Has the pseudo-column.
    pseudo: bool,
    /// Columns of USING, already shown by an earlier relation.
    shared: Vec<Ident>,
}

/// Everything a FROM joins.
#[derive(Default)]
struct Relations {
    list: Vec<Relation>,
    natural: bool,
    /// A join USING whose shared columns belong to no one side.
    full_using: bool,
}

impl Hider<'_> {
    fn hide(&self, select: &mut Select) -> Result<()> {
        let mut relations = Relations::default();
        for table in &select.from {
            let joined = self.relations(table);
            relations.list.extend(joined.list);
            relations.natural |= joined.natural;
            relations.full_using |= joined.full_using;
        }
        if relations.natural && relations.list.iter().filter(|r| r.pseudo).count() > 1 {
            return Err(Error::unsupported("a NATURAL join in a query that names rowkey")
                .why("both tables have a rowkey, and it would be joined on, too")
                .hint("write JOIN ... USING (columns)"));
        }
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) => projection.extend(relations.expand(options)?),
                SelectItem::QualifiedWildcard(kind, options) => {
                    projection.push(relations.qualified(kind, options));
                }
                item => projection.push(item),
            }
        }
        select.projection = projection;
        Ok(())
    }

    fn relations(&self, table: &TableWithJoins) -> Relations {
        let mut all = self.relation(&table.relation);
        for join in &table.joins {
            all.join(self.relation(&join.relation), &join.join_operator);
        }
        all
    }

    fn relation(&self, factor: &TableFactor) -> Relations {
        let one = |name, pseudo| Relations {
            list: vec![Relation { name, pseudo, shared: Vec::new() }],
            ..Relations::default()
        };
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let pseudo = args.is_none() && !self.is_cte(name) && (self.has_pseudo)(name);
                one(Some(alias_name(alias).unwrap_or_else(|| name.clone())), pseudo)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inside = self.relations(table_with_joins);
                match alias_name(alias) {
                    Some(name) => one(Some(name), inside.list.iter().any(|r| r.pseudo)),
                    None => inside,
                }
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. } => one(alias_name(alias), false),
            _ => one(None, false),
        }
    }

    fn is_cte(&self, name: &ObjectName) -> bool {
        match name.0.as_slice() {
            [part] => part.as_ident().is_some_and(|ident| {
                let name = name_of(ident);
                self.scopes.iter().any(|scope| scope.defines(&name))
            }),
            _ => false,
        }
    }
}

fn alias_name(alias: &Option<TableAlias>) -> Option<ObjectName> {
    alias.as_ref().map(|alias| ObjectName::from(vec![alias.name.clone()]))
}

impl Relations {
    /// Adds the right side of a join.
    fn join(&mut self, mut right: Relations, operator: &JoinOperator) {
        self.natural |= right.natural || matches!(constraint_of(operator), Some(JoinConstraint::Natural));
        self.full_using |= right.full_using;
        if let Some(JoinConstraint::Using(columns)) = constraint_of(operator) {
            let columns: Vec<Ident> = columns.iter().filter_map(last_ident).collect();
            self.share(&mut right, operator, &columns);
        }
        match operator {
            // These show the rows of one side only.
            JoinOperator::Semi(_)
            | JoinOperator::LeftSemi(_)
            | JoinOperator::Anti(_)
            | JoinOperator::LeftAnti(_) => {}
            JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => self.list = right.list,
            _ => self.list.extend(right.list),
        }
    }

    /// Columns of USING are shown once: on the left, or on the right by a RIGHT join.
    fn share(&mut self, right: &mut Relations, operator: &JoinOperator, columns: &[Ident]) {
        let from_right = matches!(operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_));
        let side = if from_right { &mut self.list } else { &mut right.list };
        match side.as_mut_slice() {
            [one] if !matches!(operator, JoinOperator::FullOuter(_)) => one.shared.extend_from_slice(columns),
            _ => self.full_using = true,
        }
    }

    /// What `*` becomes.
    fn expand(&self, options: WildcardAdditionalOptions) -> Result<Vec<SelectItem>> {
        let pseudo = self.list.iter().filter(|r| r.pseudo).count();
        if pseudo == 0 {
            return Ok(vec![SelectItem::Wildcard(options)]);
        }
        if self.list.len() == 1 || (pseudo == 1 && self.natural) {
            return Ok(vec![SelectItem::Wildcard(excluding(options, &[]))]);
        }
        let place = span_of(&options);
        let refused = |why: &str, hint: &str| {
            Error::unsupported("this * in a query that names rowkey").why(why).hint(hint).at(place)
        };
        if is_qualified(&options) {
            return Err(refused(
                "it is over several tables",
                "name the columns, or write t.* for each table",
            ));
        }
        if self.natural || self.full_using {
            return Err(refused("the join decides which side a column is from", "name the columns"));
        }
        let items = self.list.iter().map(|relation| {
            let name = relation.name.clone().ok_or_else(|| {
                refused(
                    "it is over a subquery without a name",
                    "give the subquery an alias: (SELECT ...) AS s",
                )
            })?;
            Ok(relation.wildcard(name, WildcardAdditionalOptions::default()))
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
        let wanted = last_ident(name).map(|ident| name_of(&ident));
        let pseudo = self.list.iter().any(|relation| {
            let relation_name = relation.name.as_ref().and_then(last_ident).map(|ident| name_of(&ident));
            relation.pseudo && relation_name == wanted
        });
        let options = if pseudo { excluding(options, &[]) } else { options };
        SelectItem::QualifiedWildcard(kind, options)
    }
}

impl Relation {
    fn wildcard(&self, name: ObjectName, options: WildcardAdditionalOptions) -> SelectItem {
        let options = match (self.pseudo, self.shared.as_slice()) {
            (true, shared) => excluding(options, shared),
            (false, []) => options,
            (false, shared) => WildcardAdditionalOptions {
                opt_exclude: Some(ExcludeSelectItem::Multiple(shared.iter().map(folded).collect())),
                ..options
            },
        };
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
    }
}

/// Adds `EXCLUDE (rowkey, columns)` to what is excluded already.
fn excluding(mut options: WildcardAdditionalOptions, columns: &[Ident]) -> WildcardAdditionalOptions {
    if excludes_rowkey(&options) {
        return options;
    }
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    names.push(ObjectName::from(vec![Ident::new(ROWKEY)]));
    names.extend(columns.iter().map(folded));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
    options
}

/// DataFusion compares excluded names as they are.
fn folded(column: &Ident) -> ObjectName {
    ObjectName::from(vec![Ident::new(name_of(column))])
}

fn is_qualified(options: &WildcardAdditionalOptions) -> bool {
    options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_ilike.is_some()
}

fn last_ident(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ast::Statement;
    use crate::sql::{parse, table_name_of};

    /// Tables `t` and `u` have the pseudo-column, others do not.
    fn hidden(sql: &str) -> Result<String> {
        let Statement::Query(mut query) = parse(sql)? else { panic!("{sql}") };
        let has_pseudo = |name: &ObjectName| matches!(table_name_of(name).as_deref(), Ok("t" | "u"));
        hide_rowkey_in_wildcards(&mut query, &has_pseudo)?;
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
                "SELECT t.* EXCLUDE (rowkey), u.* EXCLUDE (rowkey, id), v.* EXCLUDE (id) \
                 FROM t JOIN u USING(Id) LEFT JOIN v USING(id)",
            ),
            (
                "SELECT * FROM t RIGHT JOIN v USING (id)",
                "SELECT t.* EXCLUDE (rowkey, id), v.* FROM t RIGHT JOIN v USING(id)",
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
            ("SELECT * EXCLUDE (a) FROM t, u", "it is over several tables"),
            ("SELECT * FROM t, (SELECT 1)", "it is over a subquery without a name"),
            ("SELECT * FROM t FULL JOIN u USING (a)", "the join decides which side a column is from"),
        ] {
            assert_eq!(hidden(sql).unwrap_err().reason(), Some(why), "{sql}");
        }
    }
}
