//! Replaces expressions that an index has computed by hidden columns of the scan.
//!
//! Where a query selects, groups, orders or joins by `upper(name)` and an index stores that value, the expression
//! becomes a hidden column. So the index can cover the query, give its order and groups, and serve join lookups. A
//! condition that the scan takes over is left as written: [`super::expr`] reads it.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Projection, Sort, SubqueryAlias, TableScan,
};
use std::sync::Arc;

use super::rewrite::{below, rename_kept};
use super::table::TableSource;
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::plan::Formula;

/// Separates the formula from the number of its source in a hidden column's name; no other name can contain it.
const MARK: &str = "\0=";

/// Largest expression (nodes) that is compared with formulas: the comparisons take quadratic time in the depth.
const NODES_MAX: usize = 200;

/// The optimizer rule. It runs after filter pushdown, as a scan's conditions may imply the WHERE of an index, and
/// before the rule that removes unused columns.
pub fn computed_columns(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let mut sources = Vec::new();
    plan.rewrite_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => widened(scan, &mut sources),
        node if sources.is_empty() => Ok(Transformed::no(node)),
        node => replaced(node, &sources),
    })
}

/// Name of a formula's hidden column in the source with this number.
pub fn hidden_name(formula: &str, source: usize) -> String {
    format!("{formula}{MARK}{source}")
}

/// Name of the hidden column that gives a column of integers out as wider ones, of so many bytes.
pub fn wide_name(column: &str, bytes: usize) -> String {
    format!("{column}{MARK}={bytes}")
}

/// Rewrites a plan's line for display: hidden columns appear as their formulas, output columns under the query's names.
pub fn shown(line: &str) -> String {
    let mut pieces = line.split('\0');
    let first = pieces.next().unwrap_or_default().to_owned();
    let unmarked =
        |piece: &str| piece.trim_start_matches(|c: char| c == '=' || c.is_ascii_digit()).to_owned();
    pieces.fold(first, |all, piece| all + &unmarked(piece))
}

/// Adds the hidden columns of its table to a scan, and its source to `sources`.
fn widened(scan: TableScan, sources: &mut Vec<TableSource>) -> DfResult<Transformed<LogicalPlan>> {
    let source = TableSource::of(&scan)?.filter(|_| scan.projection.is_none());
    let Some(source) = source.and_then(|source| source.with_computed(&scan.filters, sources.len())) else {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    };
    sources.push(source.clone());
    let scan = TableScanBuilder::new(scan.table_name, provider_as_source(Arc::new(source)))
        .with_filters(scan.filters)
        .with_fetch(scan.fetch);
    Ok(Transformed::yes(LogicalPlan::TableScan(scan.build()?)))
}

/// Rewrites a node whose inputs may have gained hidden columns.
fn replaced(node: LogicalPlan, sources: &[TableSource]) -> DfResult<Transformed<LogicalPlan>> {
    if let LogicalPlan::Sort(sort) = &node
        && let LogicalPlan::Projection(projection) = &*sort.input
        && let Some(sorted) = sorted(sort, projection, sources)?
    {
        return Ok(Transformed::yes(sorted));
    }
    let node = match node {
        LogicalPlan::SubqueryAlias(alias) => LogicalPlan::SubqueryAlias(let_through(alias, sources)?),
        node => node,
    };
    let Some(hidden) = Hidden::of(&node, sources) else { return Ok(Transformed::no(node)) };
    let names = NamePreserver::new(&node);
    // A filter over a single table is offered to its scan again and must stay as written.
    let is_offered = matches!(node, LogicalPlan::Filter(_)) && hidden.is_alone;
    let node = match is_offered {
        true => node,
        false => {
            node.rewrite_own_expressions(|expr| rename_kept(expr, &names, &mut |expr| hidden.replace(expr)))?
                .data
        }
    };
    node.recompute_schema().map(Transformed::yes)
}

/// Sorts by hidden columns where sort keys are formulas over the projection's input; the projection carries them up.
fn sorted(sort: &Sort, projection: &Projection, sources: &[TableSource]) -> DfResult<Option<LogicalPlan>> {
    let plan = LogicalPlan::Projection(projection.clone());
    let Some(hidden) = Hidden::of(&plan, sources) else { return Ok(None) };
    let (mut by, mut columns) = (sort.expr.clone(), projection.expr.clone());
    for key in by.iter_mut().filter(|key| !matches!(key.expr, Expr::Column(_))) {
        let Some(column) = below(&key.expr, &plan).and_then(|expr| hidden.column(&expr)) else {
            continue;
        };
        if !columns.contains(&column) {
            columns.push(column.clone());
        }
        key.expr = column;
    }
    if columns.len() == projection.expr.len() {
        return Ok(None);
    }
    let wide = Projection::try_new(columns, Arc::clone(&projection.input))?;
    let sort = Sort { expr: by, input: Arc::new(LogicalPlan::Projection(wide)), fetch: sort.fetch };
    let columns = projection.schema.columns().into_iter().map(Expr::Column).collect();
    Projection::try_new(columns, Arc::new(LogicalPlan::Sort(sort))).map(LogicalPlan::Projection).map(Some)
}

/// Lets hidden columns through a view or alias that only picks columns of one table.
fn let_through(alias: SubqueryAlias, sources: &[TableSource]) -> DfResult<SubqueryAlias> {
    let LogicalPlan::Projection(projection) = &*alias.input else { return Ok(alias) };
    let picks = projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
    let hidden = Hidden::of(&alias.input, sources).filter(|hidden| hidden.is_alone && picks);
    let Some(hidden) = hidden else { return Ok(alias) };
    let is_hidden = |column: &Column| column.name.contains(MARK);
    let columns = hidden.schema.columns().into_iter().filter(is_hidden).map(Expr::Column);
    let columns = projection.expr.iter().cloned().chain(columns).collect();
    let wide = Projection::try_new(columns, Arc::clone(&projection.input))?;
    SubqueryAlias::try_new(Arc::new(LogicalPlan::Projection(wide)), alias.alias)
}

/// The hidden columns in a node's inputs.
struct Hidden<'a> {
    schema: DFSchema,
    /// Each table that has hidden columns, as the node calls it, and its source.
    sources: Vec<(TableReference, &'a TableSource)>,
    /// The inputs have no columns of other tables.
    is_alone: bool,
}

impl<'a> Hidden<'a> {
    /// `None` if there are none.
    fn of(node: &LogicalPlan, sources: &'a [TableSource]) -> Option<Hidden<'a>> {
        let schema = merge_schema(&node.inputs());
        let mut found: Vec<(TableReference, &TableSource)> = Vec::new();
        for (name, field) in schema.iter() {
            let Some((name, (_, number))) = name.zip(field.name().split_once(MARK)) else { continue };
            let Some(source) = number.parse::<usize>().ok().and_then(|number| sources.get(number)) else {
                continue;
            };
            if found.last().is_none_or(|(last, _)| last != name) {
                found.push((name.clone(), source));
            }
        }
        let is_alone = schema.iter().all(|(name, _)| name == found.first().map(|(table, _)| table));
        (!found.is_empty()).then_some(Hidden { schema, sources: found, is_alone })
    }

    fn replace(&self, expr: Expr) -> DfResult<Transformed<Expr>> {
        expr.rewrite_down(|expr| {
            Ok(match self.column(&expr) {
                Some(column) => Transformed::new(column, true, TreeNodeRecursion::Jump),
                None => Transformed::no(expr),
            })
        })
    }

    /// The hidden column that holds an expression's value, cast to the expression's type.
    fn column(&self, expr: &Expr) -> Option<Expr> {
        if is_large(expr) {
            return None;
        }
        let columns = expr.column_refs();
        let table = columns.iter().next()?.relation.as_ref()?;
        if columns.iter().any(|column| column.relation.as_ref() != Some(table)) {
            return None;
        }
        let mut sources = self.sources.iter().filter(|(name, _)| name == table);
        // A null-extended row holds NULL here; that is the formula's value only if the formula is strict.
        let fits = |formula: &Formula| self.is_alone || formula.is_strict();
        let name = sources.find_map(|(_, source)| source.computed_name(expr, &fits))?;
        let column = Column::new(Some(table.clone()), name);
        self.schema.has_column(&column).then_some(())?;
        Expr::Column(column).cast_to(&expr.get_type(&self.schema).ok()?, &self.schema).ok()
    }
}

fn is_large(expr: &Expr) -> bool {
    let mut nodes = 0;
    let _ = expr.apply(|_| {
        nodes += 1;
        Ok(if nodes > NODES_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    nodes > NODES_MAX
}
