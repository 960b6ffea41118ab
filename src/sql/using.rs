//! Columns of USING joins: one name for the merged columns of both sides.
//!
//! After `a JOIN b USING (id)`, `id` is `a.id`; after a RIGHT join it is `b.id`, and after a FULL join
//! `coalesce(a.id, b.id)`. DataFusion would choose the side whose table name comes first in the alphabet for
//! `*`, and the left side for the plain name.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select,
    SelectItem, TableFactor, VisitMut, VisitorMut,
};

use super::name_of;
use super::natural::ColumnNames;
use super::rewrite::{call, constraint_of};
use super::visit::visit_mut;
use super::wildcard::last_ident;
use crate::error::{Error, Result};

/// One relation of a FROM.
pub(super) struct FromItem {
    /// The qualifier for `.*`; `None` for a subquery without an alias.
    pub name: Option<ObjectName>,
    /// It has the pseudo-column `rowkey`.
    pub pseudo: bool,
    /// Columns that `*` does not show for this relation: they are merged, or shown by an earlier one.
    pub shared: Vec<Ident>,
    /// Names of its columns, if known.
    pub columns: Option<Vec<String>>,
}

impl FromItem {
    /// Does `*` show the column as one of this relation? Unknown columns are not found.
    fn owns(&self, name: &str) -> bool {
        self.columns.as_ref().is_some_and(|columns| columns.iter().any(|column| column == name))
            && !self.shared.iter().any(|shared| name_of(shared) == name)
    }

    /// A column of this relation.
    pub fn column(&self, column: &Ident) -> Option<Expr> {
        let parts = self.name.as_ref()?.0.iter().map(|part| part.as_ident().cloned());
        parts.chain([Some(column.clone())]).collect::<Option<_>>().map(Expr::CompoundIdentifier)
    }
}

/// A part of what `*` shows.
pub(super) enum Shown {
    /// The unmerged columns of a relation.
    Own(FromItem),
    /// A column of USING whose sides are known.
    Merged(Box<Merged>),
}

/// All relations of a FROM.
#[derive(Default)]
pub(super) struct FromItems {
    /// In the order of `*`: each join shows its merged columns before the rest of its sides.
    pub shown: Vec<Shown>,
    /// There is a NATURAL join.
    pub natural: bool,
}

/// A merged column of USING.
pub(super) struct Merged {
    pub name: Ident,
    value: Expr,
    /// DataFusion would not find it by its name: it is not simply the leftmost table's column, or is merged
    /// twice.
    mixed: bool,
}

impl Merged {
    /// As an item of a select list.
    pub fn output(&self) -> SelectItem {
        SelectItem::ExprWithAlias { expr: self.value.clone(), alias: self.name.clone() }
    }
}

impl FromItems {
    /// Each relation, in the order of `*`.
    pub fn each(&self) -> impl Iterator<Item = &FromItem> {
        self.shown.iter().filter_map(|shown| match shown {
            Shown::Own(relation) => Some(relation),
            Shown::Merged(_) => None,
        })
    }

    fn all_merged(&self) -> impl Iterator<Item = &Merged> {
        self.shown.iter().filter_map(|shown| match shown {
            Shown::Merged(merged) => Some(&**merged),
            Shown::Own(_) => None,
        })
    }

    /// Adds relations after a comma.
    pub fn beside(&mut self, other: FromItems) {
        self.shown.extend(other.shown);
        self.natural |= other.natural;
    }

    /// Adds the right side of a join. Errors: its columns are not known.
    pub fn join(&mut self, mut right: FromItems, operator: &JoinOperator) -> Result<()> {
        let is_outer = matches!(
            operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        );
        let mut merged = Vec::new();
        match constraint_of(operator) {
            Some(JoinConstraint::Natural) if is_outer => {
                return Err(Error::unsupported("an outer NATURAL join")
                    .why("the columns that both sides have must be known where they are named")
                    .hint("write JOIN ... USING (columns)"));
            }
            Some(JoinConstraint::Natural) => self.natural = true,
            Some(JoinConstraint::Using(columns)) => {
                for column in columns.iter().filter_map(last_ident) {
                    merged.extend(
                        self.merge(&mut right, operator, column)?
                            .map(|merged| Shown::Merged(Box::new(merged))),
                    );
                }
            }
            _ => {}
        }
        match rows_from(operator) {
            RowsFrom::Left => {}
            RowsFrom::Right => *self = right,
            RowsFrom::Both => {
                self.shown.splice(0..0, merged);
                self.beside(right);
            }
        }
        Ok(())
    }

    /// The condition of a join USING a mixed column. Errors: the other columns it names are not known.
    pub fn mixed_condition(&self, right: &FromItems, operator: &JoinOperator) -> Result<Option<Expr>> {
        let Some(JoinConstraint::Using(columns)) = constraint_of(operator) else { return Ok(None) };
        let columns: Vec<Ident> = columns.iter().filter_map(last_ident).collect();
        let is_mixed = |side: &FromItems, name: &Ident| {
            side.all_merged().any(|merged| merged.mixed && name_of(&merged.name) == name_of(name))
        };
        if !columns.iter().any(|name| is_mixed(self, name) || is_mixed(right, name)) {
            return Ok(None);
        }
        let equal = |name: &Ident| {
            let sides = self.value(name).zip(right.value(name));
            let (left, right) = sides.ok_or_else(|| untold(name))?;
            let (left, right) = (Box::new(left), Box::new(right));
            Ok(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })
        };
        let terms: Vec<Expr> = columns.iter().map(equal).collect::<Result<_>>()?;
        Ok(terms.into_iter().reduce(|all, term| {
            let (left, right) = (Box::new(all), Box::new(term));
            Expr::BinaryOp { left, op: BinaryOperator::And, right }
        }))
    }

    /// Merges two columns into one. If it is not known which relation on the left has the column, `*` shows
    /// it there, and DataFusion finds it by its name.
    fn merge(
        &mut self,
        right: &mut FromItems,
        operator: &JoinOperator,
        column: Ident,
    ) -> Result<Option<Merged>> {
        let is_of_right = matches!(
            operator,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
        );
        let sides = self.value(&column).zip(right.value(&column));
        let Some(value) = sides.and_then(|(left, right)| merged_by(operator, left, right)) else {
            if is_of_right {
                return Err(untold(&column));
            }
            right.share(&column);
            return Ok(None);
        };
        let again = [self.share(&column), right.share(&column)].contains(&true);
        Ok(Some(Merged { name: column, value, mixed: is_of_right || again }))
    }

    /// A column of this side: a merged one, or that of the only relation that may have it.
    fn value(&self, column: &Ident) -> Option<Expr> {
        self.merged(column).or_else(|| self.relation(self.owner(column)?)?.column(column))
    }

    fn relation(&self, at: usize) -> Option<&FromItem> {
        match &self.shown[at] {
            Shown::Own(relation) => Some(relation),
            Shown::Merged(_) => None,
        }
    }

    /// The position of the only relation that may have the column, if it is not merged.
    fn owner(&self, column: &Ident) -> Option<usize> {
        let name = name_of(column);
        if self.all_merged().any(|merged| name_of(&merged.name) == name) {
            return None;
        }
        let is_only = self.each().count() == 1;
        let may_own =
            |at: &usize| self.relation(*at).is_some_and(|r| is_only || r.columns.is_none() || r.owns(&name));
        let mut owners = (0..self.shown.len()).filter(may_own);
        owners.next().filter(|_| owners.next().is_none())
    }

    /// Hides a column from `*`. Gives whether it was merged already.
    fn share(&mut self, column: &Ident) -> bool {
        let owner = self.owner(column);
        if let Some(Shown::Own(relation)) = owner.and_then(|at| self.shown.get_mut(at)) {
            relation.shared.push(column.clone());
        }
        let before = self.shown.len();
        self.shown.retain(
            |shown| !matches!(shown, Shown::Merged(merged) if name_of(&merged.name) == name_of(column)),
        );
        self.shown.len() < before
    }

    /// The value of a merged column; `None` if a comma join makes the name ambiguous.
    pub fn merged(&self, name: &Ident) -> Option<Expr> {
        let name = name_of(name);
        let mut found = self.all_merged().filter(|merged| name_of(&merged.name) == name);
        let merged = found.next().filter(|_| found.next().is_none())?;
        self.each().all(|relation| !relation.owns(&name)).then(|| merged.value.clone())
    }

    /// Replaces names of merged columns by their values. `seen_in` gives what else names in a subquery may be.
    pub fn name_merged(&self, select: &mut Select, seen_in: &dyn Fn(&Query) -> ColumnNames) {
        if self.all_merged().next().is_none() {
            return;
        }
        let merged = |name: &Ident| self.merged(name);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
                && let Some(expr) = merged(name)
            {
                *item = SelectItem::ExprWithAlias { expr, alias: name.clone() };
            }
        }
        replace_outer_names(&mut select.projection, &merged, seen_in);
        replace_outer_names(&mut select.selection, &merged, seen_in);
        replace_outer_names(&mut select.group_by, &merged, seen_in);
        replace_outer_names(&mut select.having, &merged, seen_in);
        replace_outer_names(&mut select.qualify, &merged, seen_in);
        replace_outer_names(&mut select.named_window, &merged, seen_in);
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            replace_outer_names(keys, &merged, seen_in);
        }
        for table in &mut select.from {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for factor in joined.chain([&mut table.relation]) {
                if let TableFactor::Derived { lateral: true, subquery, .. } = factor {
                    replace_outer_names(subquery, &merged, seen_in);
                }
            }
        }
    }
}

fn untold(column: &Ident) -> Error {
    Error::unsupported(format!("this USING ({column})"))
        .why("it cannot be told which of several tables has the column")
        .hint("write ON a.column = b.column, or give subqueries an alias")
}

/// The side of a join whose columns come out.
pub(super) enum RowsFrom {
    Left,
    Right,
    Both,
}

pub(super) fn rows_from(operator: &JoinOperator) -> RowsFrom {
    match operator {
        JoinOperator::Semi(_)
        | JoinOperator::LeftSemi(_)
        | JoinOperator::Anti(_)
        | JoinOperator::LeftAnti(_) => RowsFrom::Left,
        JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => RowsFrom::Right,
        _ => RowsFrom::Both,
    }
}

/// Does an item of a select list show a merged column of this name?
pub(super) fn shows(item: &SelectItem, name: &Ident) -> bool {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => name_of(alias) == name_of(name),
        SelectItem::UnnamedExpr(Expr::Identifier(column)) => name_of(column) == name_of(name),
        SelectItem::Wildcard(_) => true,
        _ => false,
    }
}

/// Replaces names by expressions, except in subqueries.
pub(super) fn replace_names(node: &mut impl VisitMut, with: &dyn Fn(&Ident) -> Option<Expr>) {
    replace_outer_names(node, with, &|_| None);
}

/// Replaces names by expressions; in subqueries only what can be no name of theirs. `seen_in` gives these, if they are
/// known.
pub(super) fn replace_outer_names(
    node: &mut impl VisitMut,
    with: &dyn Fn(&Ident) -> Option<Expr>,
    seen_in: &dyn Fn(&Query) -> ColumnNames,
) {
    let _ = visit_mut(node, &mut Replace { with, seen_in, around: Vec::new() });
}

struct Replace<'a> {
    with: &'a dyn Fn(&Ident) -> Option<Expr>,
    seen_in: &'a dyn Fn(&Query) -> ColumnNames,
    /// What is seen in the queries around the position.
    around: Vec<ColumnNames>,
}

impl VisitorMut for Replace<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.around.push((self.seen_in)(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let is_not_in = |seen: &ColumnNames, name: &Ident| {
            seen.as_ref().is_some_and(|seen| !seen.contains(&name_of(name)))
        };
        if let Expr::Identifier(name) = expr
            && self.around.iter().all(|seen| is_not_in(seen, name))
            && let Some(replacement) = (self.with)(name)
        {
            *expr = replacement;
        }
        ControlFlow::Continue(())
    }
}

/// What a join USING makes of a column of both sides; `None` if it shows only one side.
pub(super) fn merged_by(operator: &JoinOperator, left: Expr, right: Expr) -> Option<Expr> {
    match operator {
        JoinOperator::Join(_)
        | JoinOperator::Inner(_)
        | JoinOperator::Left(_)
        | JoinOperator::LeftOuter(_) => Some(left),
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Some(right),
        JoinOperator::FullOuter(_) => Some(call("coalesce", [left, right])),
        _ => None,
    }
}
