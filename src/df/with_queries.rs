//! Computes a query of WITH once where it is read more than once.
//!
//! DataFusion puts the plan of such a query wherever its name stands. There each copy is narrowed by what is around it,
//! which is best as long as that leads to the keys of a table. But `SELECT .. FROM totals WHERE total > (SELECT
//! avg(total) FROM totals)` would add everything up twice; and of a query that draws random numbers, or has a LIMIT,
//! every copy would have rows of its own, where SQL has one result.
//!
//! So each place that reads such a query is marked by a [`WithQuery`], which lets filters pass, but keeps all columns.
//! Once the plan is optimised, those whose inputs are still the same share one result ([`WithQueryExec`]), if one of
//! them reads all of it anyway. The other marks are taken away, and the plan is optimised anew.
//!
//! The same is done with [rows that must not change](shared_rows) where a subquery that is made a join reads them again.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::error::Result as DfResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, Join, LogicalPlan, SubqueryAlias, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::errors::to_df;
use super::expressions::step_types::MaybeNull;
use super::operators::with_query::WithQueryExec;
use super::subqueries::correlated::outer_columns;
use super::tree::{RewritePlan, changed};
use crate::error::Error;
use crate::sql::NamedQuery;

/// A place where a query of WITH is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd)]
struct WithQuery {
    /// What EXPLAIN calls it.
    name: String,
    /// The same for all places that read the query; then, for those that share one result.
    key: String,
    /// All places must see the same rows, which another evaluation would not give.
    is_one: bool,
    /// The input is planned on its own.
    is_apart: bool,
    input: LogicalPlan,
}

impl WithQuery {
    fn of(plan: &LogicalPlan) -> Option<&WithQuery> {
        match plan {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        }
    }

    fn over(&self, input: LogicalPlan) -> WithQuery {
        WithQuery { input, ..self.clone() }
    }

    fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }
}

impl UserDefinedLogicalNodeCore for WithQuery {
    fn name(&self) -> &str {
        "WithQuery"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        if self.is_apart { Vec::new() } else { vec![&self.input] }
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let columns = self.input.schema().columns().into_iter();
        let stays = |column: &Column| self.is_one || !comes_from_rows(&self.input, column);
        columns.filter(stays).map(|column| column.name).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WithQuery: {}", self.name)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<WithQuery> {
        let mut inputs = inputs.into_iter();
        match (inputs.next(), inputs.next()) {
            (None, None) if self.is_apart => Ok(self.over(self.input.clone())),
            (Some(input), None) if !self.is_apart => Ok(self.over(input)),
            _ => Err(to_df(Error::internal("a query of WITH is made from other inputs"))),
        }
    }
}

/// The plan with marks where it reads a query of WITH that other places read, too.
pub fn marked(plan: LogicalPlan, named: &[NamedQuery]) -> DfResult<LogicalPlan> {
    if named.is_empty() {
        return Ok(plan);
    }
    let mut kinds = kinds(&plan, named)?;
    kinds.retain(|_, (reads, kind)| *reads > 1 && kind.is_some());
    let marked = plan.rewrite_down_with_subqueries(|node| {
        if matches!(node, LogicalPlan::RecursiveQuery(_)) {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let (LogicalPlan::SubqueryAlias(place), Some(query)) = (&node, named_of(&node, named)) else {
            return Ok(Transformed::no(node));
        };
        let Some((_, Some(kind))) = kinds.get(&*query.own) else { return Ok(Transformed::no(node)) };
        let (is_one, input) = (*kind == Kind::One, LogicalPlan::clone(&place.input));
        let (name, key) = (query.name.clone(), query.own.clone());
        let query = WithQuery { name, key, is_one, is_apart: false, input };
        let place = SubqueryAlias::try_new(Arc::new(query.into_plan()), place.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(place)))
    });
    marked.data()
}

/// The plan reads a query of WITH that other places read, too.
pub fn reads_shared(plan: &LogicalPlan) -> bool {
    has_mark(plan, |_| true).unwrap_or(true)
}

/// The query of WITH that this node stands for.
fn named_of<'n>(node: &LogicalPlan, named: &'n [NamedQuery]) -> Option<&'n NamedQuery> {
    let LogicalPlan::SubqueryAlias(place) = node else { return None };
    named.iter().find(|query| query.own == place.alias.table())
}

/// The queries of a plan by their names: how often (count) each is read, and what reading it again would mean.
fn kinds<'n>(
    plan: &LogicalPlan,
    named: &'n [NamedQuery],
) -> DfResult<BTreeMap<&'n str, (usize, Option<Kind>)>> {
    let mut kinds = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        // The steps of a recursion are planned for few rows, whatever they read.
        if matches!(node, LogicalPlan::RecursiveQuery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        let Some(query) = named_of(node, named) else { return Ok(TreeNodeRecursion::Continue) };
        match kinds.entry(&*query.own) {
            Entry::Occupied(mut read) => {
                let (reads, _): &mut (usize, _) = read.get_mut();
                *reads += 1;
                // What it reads itself has been counted.
                Ok(TreeNodeRecursion::Jump)
            }
            Entry::Vacant(read) => {
                read.insert((1, Kind::of(node)?));
                Ok(TreeNodeRecursion::Continue)
            }
        }
    })?;
    Ok(kinds)
}

/// What evaluating a query again would mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Other rows.
    One,
    /// The same rows, by the same work.
    Worth,
}

impl Kind {
    /// `None`: it may be evaluated wherever it is read.
    fn of(query: &LogicalPlan) -> DfResult<Option<Kind>> {
        let (mut is_one, mut is_work) = Default::default();
        query.apply_with_subqueries(|node| {
            is_one |= matches!(node, LogicalPlan::Limit(_)) || is_volatile(node);
            is_work |=
                matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(match (is_one, is_work) {
            (false, false) => None,
            _ if !outer_columns(query).is_empty() => None,
            (true, _) => Some(Kind::One),
            (false, true) => Some(Kind::Worth),
        })
    }
}

/// A condition on this column of a plan may become one on the rows of a table. One on a total, or on the value of a
/// window, stays above it anyway.
#[recursive::recursive]
fn comes_from_rows(plan: &LogicalPlan, column: &Column) -> bool {
    if let Some(query) = WithQuery::of(plan) {
        return comes_from_rows(&query.input, column);
    }
    let at = || plan.schema().maybe_index_of_column(column);
    let all_of = |expr: &Expr| {
        expr.column_refs().into_iter().all(|column| {
            plan.inputs()
                .iter()
                .any(|input| input.schema().has_column(column) && comes_from_rows(input, column))
        })
    };
    match plan {
        LogicalPlan::Projection(projection) => at().is_none_or(|at| all_of(&projection.expr[at])),
        LogicalPlan::SubqueryAlias(alias) => at().is_none_or(|at| {
            let (of, field) = alias.input.schema().qualified_field(at);
            comes_from_rows(&alias.input, &Column::new(of.cloned(), field.name()))
        }),
        LogicalPlan::Aggregate(aggregate) => at().is_none_or(|at| at < aggregate.group_expr.len()),
        LogicalPlan::Window(window) => {
            window.input.schema().has_column(column) && comes_from_rows(&window.input, column)
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Join(_) => all_of(&Expr::Column(column.clone())),
        _ => true,
    }
}

/// The rows of a plan, to be read in several places that have the same `key`.
pub fn shared_rows(plan: LogicalPlan, key: String) -> LogicalPlan {
    WithQuery { name: "rows".to_owned(), key, is_one: true, is_apart: false, input: plan }.into_plan()
}

/// The plan has rows that must not change.
pub fn is_fixed(plan: &LogicalPlan) -> bool {
    WithQuery::of(plan).is_some_and(|query| query.is_one)
}

/// The plan has a part that may give other rows when it runs again; `is_it`: which nodes do, besides those that draw
/// numbers.
pub fn varies(plan: &LogicalPlan, is_it: impl Fn(&LogicalPlan) -> DfResult<bool>) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= is_volatile(node) || is_it(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A part of the plan draws numbers.
pub fn draws(plan: &LogicalPlan) -> bool {
    varies(plan, |_| Ok(false)).unwrap_or(true)
}

fn is_volatile(node: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = node.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(expr.is_volatile_node() && !MaybeNull::is(expr)))?;
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Optimises a plan with marks, and decides which places share a result.
pub fn optimised(
    plan: &LogicalPlan,
    optimise: impl Fn(&LogicalPlan) -> DfResult<LogicalPlan>,
) -> DfResult<LogicalPlan> {
    let mut best = optimise(plan)?;
    let mut places = Places::of(&best)?;
    let shared: BTreeSet<&str> = places.shared().map(|place| &*place.query.key).collect();
    let is_idle = |query: &WithQuery| !shared.contains(&*query.key);
    if has_mark(plan, is_idle)? {
        // Marks that nothing comes of were in the way of the optimizer.
        let freed = plan.clone().rewrite_up_with_subqueries(|node| {
            let input = WithQuery::of(&node).filter(|query| is_idle(query)).map(|query| query.input.clone());
            Ok(changed(input, node))
        });
        best = optimise(&freed.data()?)?;
        places = Places::of(&best)?;
    }
    if places.0.is_empty() { Ok(best) } else { places.shared_in(best) }
}

/// The plan has such a mark.
fn has_mark(plan: &LogicalPlan, is_it: impl Fn(&WithQuery) -> bool) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= WithQuery::of(node).is_some_and(&is_it);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A place of an optimised plan.
struct Place {
    query: WithQuery,
    /// It reads all rows, whatever is beside it.
    is_whole: bool,
}

/// The places of an optimised plan that read queries of WITH.
#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    fn of(plan: &LogicalPlan) -> DfResult<Places> {
        let mut places = Places::default();
        places.visit(plan, true)?;
        Ok(places)
    }

    #[recursive::recursive]
    fn visit(&mut self, plan: &LogicalPlan, is_whole: bool) -> DfResult<()> {
        if let Some(query) = WithQuery::of(plan) {
            self.0.push(Place { query: query.clone(), is_whole });
            return self.visit(&query.input, true);
        }
        plan.apply_subqueries(|query| {
            self.visit(query, true)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        match plan {
            // What the other side has may narrow it.
            LogicalPlan::Join(Join { left, right, .. }) => {
                self.visit(left, is_whole && reads_nothing_else(right))?;
                self.visit(right, is_whole && reads_nothing_else(left))
            }
            _ => {
                let is_whole = is_whole && needs_all(plan);
                plan.inputs().into_iter().try_for_each(|input| self.visit(input, is_whole))
            }
        }
    }

    /// The places that share a result with others.
    fn shared(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().filter(|place| self.shares(&place.query))
    }

    fn shares(&self, query: &WithQuery) -> bool {
        let same = || self.0.iter().filter(|place| is_same(&place.query, query));
        // A filter that draws numbers, moved into each place, does so for each of them.
        same().count() > 1 && (query.is_one || same().any(|place| place.is_whole) && !draws(&query.input))
    }

    /// The plan with one number for all places that share a result, and without the other marks.
    fn shared_in(&self, plan: LogicalPlan) -> DfResult<LogicalPlan> {
        let shared = plan.rewrite_down_with_subqueries(|node| {
            let mut query = WithQuery::of(&node);
            while let Some(idle) = query.filter(|query| !self.shares(query)) {
                query = WithQuery::of(&idle.input);
                if query.is_none() {
                    return Ok(Transformed::yes(idle.input.clone()));
                }
            }
            let Some(query) = query else { return Ok(Transformed::no(node)) };
            let at = self.0.iter().position(|place| is_same(&place.query, query));
            let at = at.ok_or_else(|| to_df(Error::internal("a query of WITH went missing")))?;
            let Place { query, .. } = &self.0[at];
            Ok(Transformed::yes(WithQuery { key: at.to_string(), ..query.clone() }.into_plan()))
        });
        shared.data()
    }
}

/// Both places may share a result. No filter passes a query whose rows must not change.
fn is_same(a: &WithQuery, b: &WithQuery) -> bool {
    a.key == b.key && (a.is_one || a == b)
}

/// The operator asks its inputs for all of their rows, if it is asked for all of its own.
fn needs_all(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Union(_) => true,
        _ => false,
    }
}

/// The plan reads queries of WITH that are marked, and nothing else.
fn reads_nothing_else(plan: &LogicalPlan) -> bool {
    let inputs = plan.inputs();
    WithQuery::of(plan).is_some() || !inputs.is_empty() && inputs.into_iter().all(reads_nothing_else)
}

/// Plans queries; each query of WITH that is marked as if it were alone, so that it can run before what is around it.
#[derive(Debug)]
pub struct PlannedApart;

#[async_trait]
impl QueryPlanner for PlannedApart {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(PlannedApart)]);
        if !has_mark(plan, |_| true)? {
            return planner.create_physical_plan(plan, session).await;
        }
        let set_apart = plan.clone().rewrite_up_with_subqueries(|node| {
            let query = WithQuery::of(&node).cloned();
            Ok(match query {
                Some(query) => Transformed::yes(WithQuery { is_apart: true, ..query }.into_plan()),
                None => Transformed::no(node),
            })
        });
        WithQueryExec::opened(planner.create_physical_plan(&set_apart.data()?, session).await?)
    }
}

#[async_trait]
impl ExtensionPlanner for PlannedApart {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        _: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(query) = node.as_any().downcast_ref::<WithQuery>() else { return Ok(None) };
        let input = planner.create_physical_plan(&query.input, session).await?;
        Ok(Some(Arc::new(WithQueryExec::new(&query.name, &query.key, input))))
    }
}
