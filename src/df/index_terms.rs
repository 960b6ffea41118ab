//! The WHERE and the formulas of an index, found in the plan of a query over its table.

use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use sqlparser::ast::Query;

use super::errors::df_error;
use super::formula::{formula, formulas_in};
use super::query::{NameScope, Planner};
use super::rewrite::below;
use super::table::TableSource;
use crate::error::{Error, Result};
use crate::plan::{Formula, Predicate};

impl Planner {
    /// The condition of a query over one table, for the WHERE of an index.
    pub fn condition(&self, query: Query, scope: &NameScope<'_>) -> Result<Condition> {
        let plan = self.optimised(query, scope)?;
        let (mut found, mut formulas) = (Vec::new(), Vec::new());
        let source = source_of(&plan)?;
        conditions(&plan, source.as_ref(), &mut |predicate, expr| {
            found.push(predicate);
            if let (Some(source), Some(expr)) = (&source, expr) {
                formulas.extend(formulas_in(expr, source.names()));
            }
        });
        Ok(Condition { predicate: Predicate::and(found), formulas })
    }

    /// The formula or column that is the one output of a query over one table; `None` if it is neither.
    pub fn formula(&self, query: Query, scope: &NameScope<'_>) -> Result<Option<Formula>> {
        let plan = self.optimised(query, scope)?;
        let LogicalPlan::Projection(projection) = &plan else { return Ok(None) };
        let (Some(source), [expr]) = (source_of(&plan)?, &projection.expr[..]) else { return Ok(None) };
        let expr = at_scan(expr.clone(), &projection.input);
        let found = expr.and_then(|expr| formula(&expr, source.names())).map(|(formula, _)| formula);
        Ok(found.filter(|formula| !matches!(formula, Formula::Literal(_))))
    }
}

/// The WHERE of an index.
pub struct Condition {
    /// The condition in our algebra.
    pub predicate: Predicate,
    /// Formulas that occur in it.
    pub formulas: Vec<Formula>,
}

/// The source of the first table that a plan reads.
fn source_of(plan: &LogicalPlan) -> Result<Option<TableSource>> {
    if let LogicalPlan::TableScan(scan) = plan {
        return TableSource::of(scan).map_err(df_error);
    }
    plan.inputs().first().map_or(Ok(None), |input| source_of(input))
}

/// An expression over `input` as one over the scan: common subexpressions were moved into projections.
fn at_scan(expr: Expr, input: &LogicalPlan) -> Option<Expr> {
    match input {
        LogicalPlan::Projection(projection) => at_scan(below(&expr, input)?, &projection.input),
        _ => Some(expr),
    }
}

/// Visits the conditions on the plan's one table, in our algebra and as DataFusion's expression.
fn conditions(
    plan: &LogicalPlan,
    source: Option<&TableSource>,
    see: &mut dyn FnMut(Predicate, Option<&Expr>),
) {
    match (plan, source) {
        (LogicalPlan::TableScan(scan), Some(source)) => {
            for filter in &scan.filters {
                // Another key may come, which does not compute this.
                let found = source.predicate(filter);
                let opaque = || Predicate::Opaque(filter.to_string());
                see(if found.has_part() { opaque() } else { found }, Some(filter));
            }
        }
        (LogicalPlan::TableScan(scan), None) => see(Predicate::Opaque(scan.table_name.to_string()), None),
        (LogicalPlan::EmptyRelation(_), _) => see(Predicate::False, None),
        (LogicalPlan::Filter(Filter { predicate, input, .. }), _) => {
            see(Predicate::Opaque(predicate.to_string()), at_scan(predicate.clone(), input).as_ref());
        }
        (LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_), _) => {}
        // Here the condition depends on other rows.
        (other, _) => return see(Predicate::Opaque(other.display().to_string()), None),
    }
    plan.inputs().into_iter().for_each(|input| conditions(input, source, see));
}

/// The error for an index condition that our algebra cannot express.
pub fn too_much_for_an_index() -> Error {
    Error::unsupported("this WHERE is too much for an index")
        .why("an entry must be decided from one row's columns and literals alone")
        .hint("use =, <, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on columns, formulas and literals")
}
