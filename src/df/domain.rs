//! What a correlated subquery gives for each row around it, by a join.
//!
//! After Neumann and Kemper, "Unnesting Arbitrary Queries" (2015): the values that the subquery takes from the rows
//! around it are its [`Domain`], each combination once. Joined to what the subquery reads, they are columns like any
//! other, which [`Domain::inside`] carries up through every node: totals are grouped by them, a LIMIT counts anew for
//! each. What comes out has a value for each combination, and the outer rows are joined to that.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, ExprSchemable, FetchType, Join, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, SkipType, SortExpr, Union, Window, binary_expr, col, lit,
    when,
};

use super::correlated::{Names, outer_columns, settled, subquery_in, subquery_of};
use super::errors::to_df;
use super::one_row::one_row;
use crate::error::Error;

/// The values that a subquery takes from around it.
pub struct Domain<'n> {
    /// They, each combination once.
    plan: LogicalPlan,
    /// A column around the subquery, and the one here.
    columns: Vec<(Column, Column)>,
    names: &'n Names,
}

impl<'n> Domain<'n> {
    /// What a subquery beside the rows of `input` takes from them.
    pub fn new(
        input: &LogicalPlan,
        taken: Vec<(FieldRef, Column)>,
        names: &'n Names,
    ) -> DfResult<Domain<'n>> {
        let rows = unlimited(input)?;
        if is_random(&rows) {
            return Err(refused("the rows around it are not the same each time they are read"));
        }
        let name = names.next("outer");
        let columns: Vec<(Column, Column)> = taken
            .into_iter()
            .enumerate()
            .map(|(n, (_, column))| (column, Column::new(Some(name.clone()), format!("{name}_{n}"))))
            .collect();
        let exprs = columns.iter().map(|(outer, own)| Expr::Column(outer.clone()).alias(&own.name));
        let plan = LogicalPlanBuilder::from(rows).project(exprs)?.distinct()?.alias(name)?.build()?;
        Ok(Domain { plan, columns, names })
    }

    /// The same values under other names.
    fn again(&self) -> DfResult<Domain<'n>> {
        let name = self.names.next("outer");
        let columns: Vec<(Column, Column)> = self
            .columns
            .iter()
            .enumerate()
            .map(|(n, (outer, _))| (outer.clone(), Column::new(Some(name.clone()), format!("{name}_{n}"))))
            .collect();
        let exprs = self
            .columns
            .iter()
            .zip(&columns)
            .map(|((_, from), (_, to))| Expr::Column(from.clone()).alias(&to.name));
        let plan = LogicalPlanBuilder::from(self.plan.clone()).project(exprs)?.alias(name)?.build()?;
        Ok(Domain { plan, columns, names: self.names })
    }

    /// The `outer` rows and the value that a subquery has beside each; it is an error if that is more than one.
    pub fn value_of(&self, subquery: &LogicalPlan, outer: LogicalPlan) -> DfResult<(LogicalPlan, Expr)> {
        let rows = LogicalPlanBuilder::from(self.inside(subquery)?);
        let name = self.names.next("value");
        let column = |what: &str| Expr::Column(Column::new(Some(name.clone()), what));
        let value = Expr::Column(Column::from(subquery.schema().qualified_field(0)));
        let (rows, found) = if is_one_row(subquery)? {
            let exprs = std::iter::once(value.alias("value")).chain(self.own());
            (rows.project(exprs)?, column("value"))
        } else {
            let all = [first_value(value, Vec::new()).alias("value"), count(lit(1)).alias("rows")];
            (rows.aggregate(self.own(), all)?, one_row(column("value"), column("rows")))
        };
        let rows = rows.alias(name.clone())?.build()?;
        let inner = |own: &Column| Column::new(Some(name.clone()), own.name.clone());
        let pairs = self.columns.iter().map(|(outer, own)| (outer.clone(), inner(own)));
        let on = same(pairs, outer.schema())?;
        let joined = LogicalPlanBuilder::from(outer).join_on(rows, JoinType::Left, on)?.build()?;
        Ok((joined, found))
    }

    /// A join with a LATERAL, whose values these are.
    pub fn beside(&self, join: &Join) -> DfResult<LogicalPlan> {
        let pairs = self.columns.iter().cloned();
        let terms = join.on.iter().map(|(a, b)| a.clone().eq(b.clone()));
        let terms = terms.chain(join.filter.clone()).chain(same(pairs, join.left.schema())?);
        let joined = LogicalPlanBuilder::from(Arc::clone(&join.left));
        let joined = joined.join_on(self.inside(&join.right)?, join.join_type, terms.collect::<Vec<_>>())?;
        joined.project(join.schema.columns().into_iter().map(Expr::Column))?.build()
    }

    fn own(&self) -> Vec<Expr> {
        self.columns.iter().map(|(_, own)| Expr::Column(own.clone())).collect()
    }

    fn reaches(&self, plan: &LogicalPlan) -> bool {
        outer_columns(plan).iter().any(|(_, column)| self.columns.iter().any(|(outer, _)| outer == column))
    }

    /// The plan's columns for each of these values, and then the values. Errors: a plan that cannot be computed so.
    fn inside(&self, plan: &LogicalPlan) -> DfResult<LogicalPlan> {
        if !self.reaches(plan) {
            return LogicalPlanBuilder::from(plan.clone()).cross_join(self.plan.clone())?.build();
        }
        match plan {
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
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| self.inside(input).map(Arc::new));
                let all =
                    LogicalPlan::Union(Union::try_new_with_loose_types(inputs.collect::<DfResult<_>>()?)?);
                let mut columns = all.schema().columns().into_iter().map(Expr::Column);
                let ours: Vec<Expr> = columns.by_ref().take(plan.schema().fields().len()).collect();
                let own = columns
                    .zip(&self.columns)
                    .map(|(from, (_, own))| from.alias_qualified(own.relation.clone(), own.name.clone()));
                let exprs = ours.into_iter().zip(plan.schema().columns());
                let exprs = exprs.map(|(expr, c)| expr.alias_qualified(c.relation, c.name)).chain(own);
                LogicalPlanBuilder::from(all.clone()).project(exprs)?.build()
            }
            _ => Err(refused("what connects it to the query around it lies where no join can reach it")),
        }
    }

    /// A node whose own subqueries may be correlated by these values now.
    fn settled(&self, plan: LogicalPlanBuilder) -> DfResult<LogicalPlan> {
        settled(plan.build()?, self.names).data()
    }

    /// These expressions under the names of a schema, and the values.
    fn renamed(
        &self,
        input: LogicalPlan,
        exprs: impl Iterator<Item = Expr>,
        schema: &DFSchema,
    ) -> DfResult<LogicalPlan> {
        let exprs = exprs.zip(schema.columns()).map(|(expr, column)| match &expr {
            Expr::Column(same) if *same == column => expr,
            _ => expr.alias_qualified(column.relation, column.name),
        });
        LogicalPlanBuilder::from(input).project(exprs.chain(self.own()))?.build()
    }

    /// An expression, with the values for what it takes from around the subquery.
    fn replaced(&self, expr: &Expr) -> DfResult<Expr> {
        let own = |column: &Column| {
            self.columns.iter().find(|(outer, _)| outer == column).map(|(_, own)| own.clone())
        };
        let here = |expr: Expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => match own(column) {
                Some(own) => Transformed::yes(Expr::Column(own)),
                None => Transformed::no(expr),
            },
            _ => Transformed::no(expr),
        };
        let further = |expr: Expr| match &expr {
            Expr::OuterReferenceColumn(field, column) => match own(column) {
                Some(own) => Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), own)),
                None => Transformed::no(expr),
            },
            _ => Transformed::no(expr),
        };
        let replaced = expr.clone().transform_up(|expr| {
            let Some(subquery) = subquery_in(&expr).filter(|subquery| self.reaches(&subquery.subquery))
            else {
                return Ok(here(expr));
            };
            let plan = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
            let plan = plan.transform_down_with_subqueries(|plan| {
                plan.map_expressions(|expr| expr.transform_up(|expr| Ok(further(expr))))
            });
            let subquery = subquery_of(plan.data()?);
            Ok(Transformed::yes(match expr {
                Expr::ScalarSubquery(_) => Expr::ScalarSubquery(subquery),
                Expr::Exists(mut exists) => {
                    exists.subquery = subquery;
                    Expr::Exists(exists)
                }
                Expr::InSubquery(mut list) => {
                    list.subquery = subquery;
                    Expr::InSubquery(list)
                }
                expr => expr,
            }))
        });
        replaced.data()
    }

    fn limit(&self, limit: &Limit) -> DfResult<LogicalPlan> {
        let (skip, fetch) = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (skip, fetch),
            _ => return Err(refused("its LIMIT is no number")),
        };
        match &*limit.input {
            // The order lies below.
            LogicalPlan::Projection(projection) => {
                let limit = Limit { input: Arc::clone(&projection.input), ..limit.clone() };
                let below = LogicalPlanBuilder::from(LogicalPlan::Limit(limit));
                self.inside(&below.project(projection.expr.clone())?.build()?)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.limited(&sort.input, &sort.expr, skip, fetch)
            }
            input => self.limited(input, &[], skip, fetch),
        }
    }

    /// Of the rows of each of these values, those behind the first `skip`, `fetch` of them.
    fn limited(
        &self,
        input: &LogicalPlan,
        order: &[SortExpr],
        skip: usize,
        fetch: Option<usize>,
    ) -> DfResult<LogicalPlan> {
        let inside = self.inside(input)?;
        let order =
            order.iter().map(|sort| Ok(SortExpr { expr: self.replaced(&sort.expr)?, ..sort.clone() }));
        let order: Vec<SortExpr> = order.collect::<DfResult<_>>()?;
        let name = self.names.next("row");
        let number = row_number().partition_by(self.own()).order_by(order).build()?.alias(&name);
        let number_is = |op, n: usize| binary_expr(col(&name), op, lit(n as u64));
        let mut kept = number_is(Operator::Gt, skip);
        if let Some(fetch) = fetch {
            kept = kept.and(number_is(Operator::LtEq, skip.saturating_add(fetch)));
        }
        let columns = inside.schema().columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::from(inside).window([number])?.filter(kept)?.project(columns)?.build()
    }

    /// Totals of each of these values; those of no rows are there, too, unless the query groups.
    fn aggregate(&self, aggregate: &Aggregate) -> DfResult<LogicalPlan> {
        if aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
            return Err(refused("it groups in several ways at once"));
        }
        let input = self.inside(&aggregate.input)?;
        let groups = aggregate.group_expr.iter().map(|expr| self.replaced(expr));
        let groups: Vec<Expr> = groups.chain(self.own().into_iter().map(Ok)).collect::<DfResult<_>>()?;
        let totals = aggregate.aggr_expr.iter().map(|expr| self.replaced(expr));
        let totals: Vec<Expr> = totals.collect::<DfResult<_>>()?;
        let grouped = LogicalPlanBuilder::from(input).aggregate(groups, totals)?.build()?;
        let columns = grouped.schema().columns();
        let (keys, totals) = columns.split_at(aggregate.group_expr.len() + self.columns.len());
        let ours = keys[..aggregate.group_expr.len()].iter().chain(totals).cloned().map(Expr::Column);
        if !aggregate.group_expr.is_empty() {
            return self.renamed(grouped, ours, &aggregate.schema);
        }
        let other = self.again()?;
        let name = self.names.next("row");
        let found = std::iter::once(lit(true).alias(&name)).chain(columns.iter().cloned().map(Expr::Column));
        let found = LogicalPlanBuilder::from(grouped).project(found)?.build()?;
        let pairs =
            other.columns.iter().zip(&self.columns).map(|((_, all), (_, some))| (all.clone(), some.clone()));
        let on = same(pairs, other.plan.schema())?;
        let joined = LogicalPlanBuilder::from(other.plan.clone()).join_on(found, JoinType::Left, on)?;
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
            let expr = self.replaced(expr)?.transform_up(|expr| match expr {
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

    /// A join, of each of these values; the side whose rows all come through has them, and the other one if it must.
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
            terms.extend(same(pairs, self.plan.schema())?);
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

/// Each pair is the same, two NULLs too.
fn same(pairs: impl Iterator<Item = (Column, Column)>, left: &DFSchema) -> DfResult<Vec<Expr>> {
    pairs
        .map(|(a, b)| {
            let op = match left.field_from_column(&a)?.is_nullable() {
                true => Operator::IsNotDistinctFrom,
                false => Operator::Eq,
            };
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(Expr::Column(a)), op, Box::new(Expr::Column(b)))))
        })
        .collect()
}

/// What an aggregate gives for no rows.
fn of_no_rows(total: &Expr, schema: &DFSchema) -> DfResult<ScalarValue> {
    match total {
        Expr::Alias(alias) => of_no_rows(&alias.expr, schema),
        Expr::AggregateFunction(call) => call.func.default_value(&total.get_type(schema)?),
        total => ScalarValue::try_from(&total.get_type(schema)?),
    }
}

/// A plan that has one row at the most.
fn is_one_row(plan: &LogicalPlan) -> DfResult<bool> {
    Ok(match plan {
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => {
            is_one_row(plan.inputs()[0])?
        }
        LogicalPlan::Distinct(_) => is_one_row(plan.inputs()[0])?,
        LogicalPlan::Sort(sort) => sort.fetch.is_some_and(|fetch| fetch <= 1) || is_one_row(&sort.input)?,
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type()?, FetchType::Literal(Some(..=1))) || is_one_row(&limit.input)?
        }
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    })
}

/// At least the rows of a plan: a LIMIT is left out, which without an order may choose others when it is asked again.
fn unlimited(plan: &LogicalPlan) -> DfResult<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(limit) => unlimited(&limit.input),
        LogicalPlan::Sort(sort) => unlimited(&sort.input),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.with_new_exprs(plan.expressions(), vec![unlimited(plan.inputs()[0])?])
        }
        plan => Ok(plan.clone()),
    }
}

fn is_random(plan: &LogicalPlan) -> bool {
    // What is asked of every node never fails.
    plan.exists(|node| Ok(node.expressions().iter().any(Expr::is_volatile))).unwrap_or(true)
}

fn refused(why: &str) -> datafusion::error::DataFusionError {
    to_df(
        Error::unsupported("this subquery cannot be made a join")
            .why(why)
            .hint("join with a query in FROM instead that has what connects them in its ON"),
    )
}
