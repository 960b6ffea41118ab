//! Carries the columns of a [`Domain`] up through each kind of node.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, JoinType, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, ExprSchemable, FetchType, Filter, Join, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, SkipType, SortExpr, Union, Window, binary_expr, col, lit,
    when,
};

use super::{Domain, Told, Values, refused, same};
use crate::df::subqueries::correlated::{takes, takes_outer};
use crate::df::tree::RewriteTree;

impl Domain<'_> {
    /// The plan's columns for each combination of outer values, followed by these values. Errors: a plan that cannot be
    /// computed so.
    pub(super) fn inside(&self, plan: &LogicalPlan) -> DfResult<LogicalPlan> {
        if matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row) {
            return self.plan().cloned();
        }
        if !self.reaches(plan) {
            return LogicalPlanBuilder::from(plan.clone()).cross_join(self.plan()?.clone())?.build();
        }
        match plan {
            LogicalPlan::Filter(filter)
                if let Values::Found(found) = &self.values
                    && takes(plan) =>
            {
                self.found(filter, found)
            }
            LogicalPlan::Projection(projection) => {
                let input = self.inside(&projection.input)?;
                let exprs = projection.expr.iter().zip(plan.schema().columns()).map(|(expr, column)| {
                    Ok(self.replaced(expr)?.unalias().alias_qualified(column.relation, column.name))
                });
                let exprs: Vec<Expr> =
                    exprs.chain(self.own().into_iter().map(Ok)).collect::<DfResult<_>>()?;
                self.settled(LogicalPlanBuilder::from(input).project(exprs)?)
            }
            LogicalPlan::Filter(filter) => {
                let input = self.inside(&filter.input)?;
                self.settled(LogicalPlanBuilder::from(input).filter(self.replaced(&filter.predicate)?)?)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.inside(&alias.input)?;
                let from = alias.input.schema().columns();
                self.renamed(input, from.into_iter().map(Expr::Column), plan.schema())
            }
            LogicalPlan::Subquery(subquery) => self.inside(&subquery.subquery),
            LogicalPlan::Sort(sort) => match sort.fetch {
                None => self.inside(&sort.input),
                Some(fetch) => self.limited(&sort.input, &sort.expr, 0, Some(fetch)),
            },
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                LogicalPlanBuilder::from(self.inside(input)?).distinct()?.build()
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.first_of_each(distinct, None),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Unnest(unnest) => {
                let (columns, options) = (unnest.exec_columns.clone(), unnest.options.clone());
                let input = LogicalPlanBuilder::from(self.inside(&unnest.input)?);
                input.unnest_columns_with_options(columns, options)?.build()
            }
            _ => Err(refused("what connects it to the query around it lies where no join can reach it")),
        }
    }

    /// The rows of the correlated filter, with the columns that equal outer ones once more.
    fn found(&self, filter: &Filter, found: &[Told]) -> DfResult<LogicalPlan> {
        let others = |term: &&Expr| !takes_outer(term, &filter.input);
        let terms = split_conjunction(&filter.predicate).into_iter().filter(others);
        let mut rows = LogicalPlanBuilder::from(Arc::clone(&filter.input));
        if let Some(others) = conjunction(terms.cloned()) {
            rows = rows.filter(others)?;
        }
        let own = found.iter().zip(&self.columns).map(|(told, (_, own))| {
            told.column.clone().alias_qualified(own.relation.clone(), own.name.clone())
        });
        let columns = filter.input.schema().columns().into_iter().map(Expr::Column);
        rows.project(columns.chain(own))?.build()
    }

    fn union(&self, union: &Union) -> DfResult<LogicalPlan> {
        let inputs = union.inputs.iter().map(|input| self.inside(input).map(Arc::new));
        let all = LogicalPlan::Union(Union::try_new_with_loose_types(inputs.collect::<DfResult<_>>()?)?);
        let mut columns = all.schema().columns().into_iter().map(Expr::Column);
        let ours: Vec<Expr> = columns.by_ref().take(union.schema.fields().len()).collect();
        let own = columns
            .zip(&self.columns)
            .map(|(from, (_, own))| from.alias_qualified(own.relation.clone(), own.name.clone()));
        let exprs = ours.into_iter().zip(union.schema.columns());
        let exprs: Vec<Expr> =
            exprs.map(|(expr, c)| expr.alias_qualified(c.relation, c.name)).chain(own).collect();
        LogicalPlanBuilder::from(all).project(exprs)?.build()
    }

    fn limit(&self, limit: &Limit) -> DfResult<LogicalPlan> {
        let (skip, fetch) = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (skip, fetch),
            _ => return Err(refused("its LIMIT is not a number")),
        };
        match &*limit.input {
            // Look for the order below the projection.
            LogicalPlan::Projection(projection) => {
                let limit = Limit { input: Arc::clone(&projection.input), ..limit.clone() };
                let below = LogicalPlanBuilder::from(LogicalPlan::Limit(limit));
                self.inside(&below.project(projection.expr.clone())?.build()?)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.limited(&sort.input, &sort.expr, skip, fetch)
            }
            // Its groups come in its own order.
            LogicalPlan::Distinct(Distinct::On(distinct)) => {
                self.first_of_each(distinct, Some((skip, fetch)))
            }
            input => self.limited(input, &[], skip, fetch),
        }
    }

    /// Applies OFFSET and LIMIT to the rows of each combination.
    fn limited(
        &self,
        input: &LogicalPlan,
        order: &[SortExpr],
        skip: usize,
        fetch: Option<usize>,
    ) -> DfResult<LogicalPlan> {
        let inside = self.inside(input)?;
        let columns = inside.schema().columns().into_iter().map(Expr::Column);
        self.numbered(inside, self.own(), order, skip, fetch)?.project(columns)?.build()
    }

    /// DISTINCT ON: the first row of each group of each combination; of these groups, `skip` and `fetch` of them in their
    /// order.
    fn first_of_each(
        &self,
        distinct: &DistinctOn,
        limit: Option<(usize, Option<usize>)>,
    ) -> DfResult<LogicalPlan> {
        let groups = distinct.on_expr.iter().map(|expr| self.replaced(expr));
        let groups: Vec<Expr> = groups.chain(self.own().into_iter().map(Ok)).collect::<DfResult<_>>()?;
        let order = distinct.sort_expr.as_deref().unwrap_or_default();
        let mut rows = self.numbered(self.inside(&distinct.input)?, groups, order, 0, Some(1))?.build()?;
        if let Some((skip, fetch)) = limit {
            rows = self.numbered(rows, self.own(), order, skip, fetch)?.build()?;
        }
        let exprs = distinct.select_expr.iter().map(|expr| Ok(self.replaced(expr)?.unalias()));
        let exprs: Vec<Expr> = exprs.collect::<DfResult<_>>()?;
        self.renamed(rows, exprs.into_iter(), &distinct.schema)
    }

    /// Rows of each group, `skip` and `fetch` of them in their order, with a column for their number.
    fn numbered(
        &self,
        rows: LogicalPlan,
        groups: Vec<Expr>,
        order: &[SortExpr],
        skip: usize,
        fetch: Option<usize>,
    ) -> DfResult<LogicalPlanBuilder> {
        let order =
            order.iter().map(|sort| Ok(SortExpr { expr: self.replaced(&sort.expr)?, ..sort.clone() }));
        let order: Vec<SortExpr> = order.collect::<DfResult<_>>()?;
        let name = self.names.next("row");
        let number = row_number().partition_by(groups).order_by(order).build()?.alias(&name);
        let number_is = |op, n: usize| binary_expr(col(&name), op, lit(n as u64));
        let mut kept = number_is(Operator::Gt, skip);
        if let Some(fetch) = fetch {
            kept = kept.and(number_is(Operator::LtEq, skip.saturating_add(fetch)));
        }
        LogicalPlanBuilder::from(rows).window([number])?.filter(kept)
    }

    /// Totals of each combination; without GROUP BY, also for combinations without rows.
    fn aggregate(&self, aggregate: &Aggregate) -> DfResult<LogicalPlan> {
        if aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return Err(refused("it groups in several ways at once"));
        }
        let input = self.inside(&aggregate.input)?;
        // GROUP BY may name a column twice, which is one of the schema.
        let mut given: Vec<&Expr> = Vec::new();
        for group in &aggregate.group_expr {
            if !given.contains(&group) {
                given.push(group);
            }
        }
        // An outer column by which it groups is one of the domain's.
        let mut keys = self.own();
        let mut places = Vec::with_capacity(given.len());
        for group in &given {
            let group = self.replaced(group)?;
            places.push(keys.iter().position(|key| *key == group).unwrap_or(keys.len()));
            if places.last() == Some(&keys.len()) {
                // What is cast has the name of the column inside, which may be one of the domain's.
                keys.push(match group {
                    Expr::Column(_) => group,
                    group => group.alias(self.names.next("group")),
                });
            }
        }
        let count = keys.len();
        let totals = aggregate.aggr_expr.iter().map(|expr| self.replaced(expr));
        let totals: Vec<Expr> = totals.collect::<DfResult<_>>()?;
        let grouped = LogicalPlanBuilder::from(input).aggregate(keys, totals)?.build()?;
        let columns = grouped.schema().columns();
        let (keys, totals) = columns.split_at(count);
        let ours = places.iter().map(|at| &keys[*at]).chain(totals).cloned().map(Expr::Column);
        if !given.is_empty() {
            return self.renamed(grouped, ours, &aggregate.schema);
        }
        let other = self.again()?;
        let name = self.names.next("row");
        let found = std::iter::once(lit(true).alias(&name)).chain(columns.iter().cloned().map(Expr::Column));
        let found = LogicalPlanBuilder::from(grouped).project(found)?.build()?;
        let pairs =
            other.columns.iter().zip(&self.columns).map(|((_, all), (_, some))| (all.clone(), some.clone()));
        let on = same(pairs, other.plan()?.schema())?;
        let joined = LogicalPlanBuilder::from(other.plan()?.clone()).join_on(found, JoinType::Left, on)?;
        let values = totals.iter().zip(&aggregate.aggr_expr).map(|(column, total)| {
            let column = Expr::Column(column.clone());
            match of_no_rows(total, aggregate.input.schema())? {
                value if value.is_null() => Ok(column),
                value => when(col(&name).is_null(), lit(value)).otherwise(column),
            }
        });
        let values: Vec<Expr> = values.collect::<DfResult<_>>()?;
        let values = values.into_iter().zip(aggregate.schema.columns());
        let values = values.map(|(value, column)| value.alias_qualified(column.relation, column.name));
        let own = other.columns.iter().zip(&self.columns).map(|((_, all), (_, own))| {
            Expr::Column(all.clone()).alias_qualified(own.relation.clone(), own.name.clone())
        });
        joined.project(values.chain(own).collect::<Vec<_>>())?.build()
    }

    fn window(&self, window: &Window) -> DfResult<LogicalPlan> {
        let input = self.inside(&window.input)?;
        let before = input.schema().fields().len();
        let exprs = window.window_expr.iter().map(|expr| {
            let expr = self.replaced(expr)?.rewrite_up(|expr| match expr {
                Expr::WindowFunction(function) => {
                    let mut function: WindowFunction = *function;
                    function.params.partition_by.extend(self.own());
                    Ok(Transformed::yes(Expr::WindowFunction(Box::new(function))))
                }
                expr => Ok(Transformed::no(expr)),
            });
            expr.data()
        });
        let plan = LogicalPlanBuilder::from(input).window(exprs.collect::<DfResult<Vec<_>>>()?)?.build()?;
        let columns = plan.schema().columns();
        let read = columns[..before - self.columns.len()].iter();
        let exprs = read.chain(&columns[before..]).cloned().map(Expr::Column).collect::<Vec<_>>();
        self.renamed(plan, exprs.into_iter(), &window.schema)
    }

    /// Joins for each combination. The side that is kept carries the domain's columns; the other one only if it uses
    /// outer values.
    fn join(&self, join: &Join) -> DfResult<LogicalPlan> {
        let (near_left, near_right) = (self.reaches(&join.left), self.reaches(&join.right));
        let from_left = match join.join_type {
            JoinType::Inner => near_left || !near_right,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => true,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => false,
            JoinType::Full => return Err(refused("a FULL JOIN in it knows of the query around it")),
        };
        let other = self.again()?;
        let side = |plan: &Arc<LogicalPlan>, keeps: bool, reaches: bool| match (keeps, reaches) {
            (true, _) => self.inside(plan).map(Arc::new),
            (false, true) => other.inside(plan).map(Arc::new),
            (false, false) => Ok(Arc::clone(plan)),
        };
        let left = side(&join.left, from_left, near_left)?;
        let right = side(&join.right, !from_left, near_right)?;
        let on = join.on.iter().map(|(a, b)| Ok((self.replaced(a)?, self.replaced(b)?)));
        let on = on.collect::<DfResult<_>>()?;
        let mut terms: Vec<Expr> = Vec::new();
        if let Some(filter) = &join.filter {
            terms.push(self.replaced(filter)?);
        }
        let meets = if from_left { near_right } else { near_left };
        if meets {
            let pairs = self.columns.iter().zip(&other.columns);
            let pairs = pairs.map(|((_, own), (_, others))| (own.clone(), others.clone()));
            terms.extend(same(pairs, self.plan()?.schema())?);
        }
        let whole = Join::try_new(
            left,
            right,
            on,
            conjunction(terms),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        let columns = join.schema.columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::from(LogicalPlan::Join(whole)).project(columns.chain(self.own()))?.build()
    }
}

/// The value of an aggregate over no rows.
fn of_no_rows(total: &Expr, schema: &DFSchema) -> DfResult<ScalarValue> {
    match total {
        Expr::Alias(alias) => of_no_rows(&alias.expr, schema),
        Expr::AggregateFunction(call) => call.func.default_value(&total.get_type(schema)?),
        total => ScalarValue::try_from(&total.get_type(schema)?),
    }
}
