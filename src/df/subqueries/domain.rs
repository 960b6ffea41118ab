//! Decorrelates subqueries by joining them with the distinct outer values that they use.
//!
//! After Neumann and Kemper, "Unnesting Arbitrary Queries" (2015): the [`Domain`] of a subquery has each combination of
//! outer values that it uses, once. Joined to the input of the subquery, these are columns like any other, which
//! [`Domain::inside`] carries up through every node: totals are grouped by them, a LIMIT counts anew for each. The
//! result has a value for each combination, and the outer rows are joined to it.
//!
//! Most subqueries only compare columns with outer ones, as in `WHERE m.room = r.id ORDER BY m.at DESC LIMIT 1`. Their
//! rows tell the outer values themselves, so nothing has to be joined to the input ([`Domain::told`]).

mod nodes;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, NullHandling};
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Distinct, Expr, ExprSchemable, FetchType, Join, LogicalPlan, LogicalPlanBuilder,
    Operator, cast, lit,
};

use super::correlated::{
    UniqueNames, outer_columns, settled, subquery_in, subquery_mut, subquery_of, takes, takes_outer,
};
use super::one_row::one_row;
use crate::df::errors::to_df;
use crate::df::parallel::OF_A_SET;
use crate::df::rewrite::{bare, widens};
use crate::df::rules::join_keys::leads;
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::df::unique::are_unique;
use crate::df::with_queries::{shared_rows, varies};
use crate::error::Error;

/// The outer values that a subquery uses.
pub struct Domain<'n> {
    values: Values,
    /// Each outer column, and its counterpart inside.
    columns: Vec<(Column, Column)>,
    names: &'n UniqueNames,
}

/// Where the outer values come from.
enum Values {
    /// This plan has their distinct combinations.
    Distinct(LogicalPlan),
    /// A row of the subquery tells them, in the order of the domain's columns.
    Found(Vec<Told>),
}

/// An outer value that a row of the subquery tells, as a column equals it.
struct Told {
    outer: Column,
    /// The integers are compared as wider ones, of this type.
    outer_as: Option<DataType>,
    /// The column; it may be widened, too.
    column: Expr,
}

impl<'n> Domain<'n> {
    /// The domain of a subquery that uses the `taken` columns of `input`.
    pub fn of(
        subquery: &LogicalPlan,
        input: &LogicalPlan,
        taken: Vec<(FieldRef, Column)>,
        names: &'n UniqueNames,
    ) -> DfResult<Domain<'n>> {
        match Domain::told(subquery, &taken, names) {
            Some(domain) => Ok(domain),
            None => Domain::distinct(input, taken, names),
        }
    }

    /// The domain of a subquery whose rows tell the values of the `taken` outer columns; `None` if it uses one of these
    /// other than in `column = outer`.
    pub fn told(
        subquery: &LogicalPlan,
        taken: &[(FieldRef, Column)],
        names: &'n UniqueNames,
    ) -> Option<Domain<'n>> {
        let equal = columns_equal_to_outer(subquery)?;
        let is_taken = |outer: &Column| taken.iter().any(|(_, column)| column == outer);
        let is_told = |outer: &Column| equal.iter().any(|told| told.outer == *outer);
        if !equal.iter().all(|told| is_taken(&told.outer)) || !taken.iter().all(|(_, outer)| is_told(outer)) {
            return None;
        }
        let name = names.next("outer");
        let own = |n| Column::new(Some(name.clone()), format!("{name}_{n}"));
        let columns = equal.iter().enumerate().map(|(n, told)| (told.outer.clone(), own(n))).collect();
        Some(Domain { values: Values::Found(equal), columns, names })
    }

    /// The distinct values of these columns of `input`.
    pub fn distinct(
        input: &LogicalPlan,
        taken: Vec<(FieldRef, Column)>,
        names: &'n UniqueNames,
    ) -> DfResult<Domain<'n>> {
        let outer = taken.into_iter().map(|(_, column)| (column.clone(), column));
        let columns = LogicalPlanBuilder::from(input.clone());
        Domain::named(outer, names, |own| columns.project(own)?.distinct())
    }

    /// The same values under new names.
    fn again(&self) -> DfResult<Domain<'n>> {
        let columns = LogicalPlanBuilder::from(self.plan()?.clone());
        Domain::named(self.columns.iter().cloned(), self.names, |own| columns.project(own))
    }

    /// A domain under new names. `columns`: each outer column, and the column of the plan's input that it comes from.
    fn named(
        columns: impl Iterator<Item = (Column, Column)>,
        names: &'n UniqueNames,
        plan: impl FnOnce(Vec<Expr>) -> DfResult<LogicalPlanBuilder>,
    ) -> DfResult<Domain<'n>> {
        let name = names.next("outer");
        let (columns, exprs) = columns
            .enumerate()
            .map(|(n, (outer, from))| {
                let own = Column::new(Some(name.clone()), format!("{name}_{n}"));
                let expr = Expr::Column(from).alias(&own.name);
                ((outer, own), expr)
            })
            .unzip();
        let plan = plan(exprs)?.alias(name)?.build()?;
        Ok(Domain { values: Values::Distinct(plan), columns, names })
    }

    /// The plan of the distinct combinations.
    fn plan(&self) -> DfResult<&LogicalPlan> {
        match &self.values {
            Values::Distinct(plan) => Ok(plan),
            Values::Found(_) => Err(to_df(Error::internal("a subquery needs values that no row tells"))),
        }
    }

    /// Conditions that join outer rows to those inside.
    fn on(&self, pairs: impl Iterator<Item = (Column, Column)>, outer: &DFSchema) -> DfResult<Vec<Expr>> {
        let Values::Found(found) = &self.values else { return same(pairs, outer) };
        // NULL is equal to nothing.
        let equal = pairs.zip(found).map(|((outer, own), told)| {
            let outer = Expr::Column(outer);
            let outer = told.outer_as.iter().fold(outer, |outer, wide| cast(outer, wide.clone()));
            outer.eq(Expr::Column(own))
        });
        Ok(equal.collect())
    }

    /// Joins `outer` rows to a subquery's value for each; more than one value for a row is an error at run time.
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
        let on = self.on(pairs, outer.schema())?;
        let joined = LogicalPlanBuilder::from(outer).join_on(rows, JoinType::Left, on)?.build()?;
        Ok((joined, found))
    }

    /// Rewrites a join with a LATERAL that makes rows of each row beside it, by itself; `None` for others.
    pub fn of_each_row(join: &Join, names: &'n UniqueNames) -> DfResult<Option<LogicalPlan>> {
        let terms = join.on.iter().map(|(a, b)| a.clone().eq(b.clone())).chain(join.filter.clone());
        let on = conjunction(terms.filter(|term| *term != lit(true)));
        let keeps_all = join.join_type == JoinType::Left;
        if !makes_rows(&join.right, !keeps_all) || keeps_all && on.is_some() {
            return Ok(None);
        }
        let right = match keeps_all {
            true => LogicalPlan::clone(&join.right).rewrite_up(|plan| Ok(at_least_one_row(plan)))?.data,
            false => LogicalPlan::clone(&join.right),
        };
        let left = LogicalPlanBuilder::from(Arc::clone(&join.left));
        let columns = join.left.schema().columns();
        let outer = columns.iter().map(|column| (column.clone(), column.clone()));
        let domain = Domain::named(outer, names, |own| left.project(own))?;
        let of_left = domain.columns.iter().map(|(outer, own)| {
            Expr::Column(own.clone()).alias_qualified(outer.relation.clone(), outer.name.clone())
        });
        let of_right = right.schema().columns().into_iter().map(Expr::Column);
        let exprs: Vec<Expr> = of_left.chain(of_right).collect();
        let made = LogicalPlanBuilder::from(domain.inside(&right)?).project(exprs)?;
        match on {
            Some(on) => made.filter(on)?.build().map(Some),
            None => made.build().map(Some),
        }
    }

    /// Rewrites a join with a LATERAL that has this domain.
    pub fn beside(&self, join: &Join) -> DfResult<LogicalPlan> {
        let pairs = self.columns.iter().cloned();
        let terms = join.on.iter().map(|(a, b)| a.clone().eq(b.clone()));
        let terms = terms.chain(join.filter.clone()).chain(self.on(pairs, join.left.schema())?);
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

    /// Builds a node and rewrites its own subqueries, which may use the domain's columns now.
    fn settled(&self, plan: LogicalPlanBuilder) -> DfResult<LogicalPlan> {
        settled(plan.build()?, self.names).data()
    }

    /// Projects expressions under the names of a schema, followed by the domain's columns.
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

    /// An expression with the domain's columns in place of outer ones.
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
        let replaced = expr.clone().rewrite_up(|expr| {
            let Some(subquery) = subquery_in(&expr).filter(|subquery| self.reaches(&subquery.subquery))
            else {
                return Ok(here(expr));
            };
            let plan = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
            let plan = plan.rewrite_down_with_subqueries(|plan| {
                plan.rewrite_own_expressions(|expr| expr.rewrite_up(|expr| Ok(further(expr))))
            });
            let mut expr = expr;
            if let Some(subquery) = subquery_mut(&mut expr) {
                *subquery = subquery_of(plan.data()?);
            }
            Ok(Transformed::yes(expr))
        });
        replaced.data()
    }
}

/// What the columns of a subquery's one correlated filter tell, as they equal outer ones. `None` if outer columns are used
/// anywhere else, or if more than columns is computed: that could fail for rows that no outer row finds.
fn columns_equal_to_outer(plan: &LogicalPlan) -> Option<Vec<Told>> {
    let is_column = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(_) | Expr::Literal(..));
    let passes = match plan {
        LogicalPlan::Filter(filter) if takes(plan) => {
            let terms = split_conjunction(&filter.predicate).into_iter();
            let equal = terms.filter(|term| takes_outer(term, &filter.input));
            let equal = equal.map(|term| equal_to_outer(term, filter.input.schema()));
            let equal = equal.collect::<Option<Vec<_>>>()?;
            // Without a key, all rows would be sorted, not only those that outer rows find.
            let is_found = |told: &Told| match not_widened(&told.column, filter.input.schema()) {
                Expr::Column(column) => leads(column, &filter.input).unwrap_or(false),
                _ => false,
            };
            let are_found = outer_columns(&filter.input).is_empty() && equal.iter().any(is_found);
            return are_found.then_some(equal);
        }
        LogicalPlan::Projection(projection) => projection.expr.iter().all(is_column),
        LogicalPlan::Sort(sort) => sort.expr.iter().all(|by| is_column(&by.expr)),
        LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => !takes(plan),
        _ => false,
    };
    if passes { columns_equal_to_outer(plan.inputs()[0]) } else { None }
}

/// What a row tells by `column = outer`. Either side may be widened, as in `CAST(column AS BIGINT) = outer`.
fn equal_to_outer(term: &Expr, schema: &DFSchema) -> Option<Told> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = term else { return None };
    let told = |column: &Expr, outer: &Expr| match (not_widened(column, schema), not_widened(outer, schema)) {
        (Expr::Column(_), bare @ Expr::OuterReferenceColumn(_, name)) => Some(Told {
            outer: name.clone(),
            outer_as: if bare == outer { None } else { Some(outer.get_type(schema).ok()?) },
            column: column.clone(),
        }),
        _ => None,
    };
    told(left, right).or_else(|| told(right, left))
}

/// The integers inside a cast to wider ones.
pub(super) fn not_widened<'e>(expr: &'e Expr, schema: &DFSchema) -> &'e Expr {
    match expr {
        Expr::Cast(Cast { expr: inner, field })
            if inner.get_type(schema).is_ok_and(|ty| widens(&ty, field.data_type())) =>
        {
            inner
        }
        expr => expr,
    }
}

/// The plan makes rows of one empty row, and of nothing else. `may_drop`: a filter may leave some out.
fn makes_rows(plan: &LogicalPlan, may_drop: bool) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Filter(_) if !may_drop => false,
        LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Unnest(_) => makes_rows(plan.inputs()[0], may_drop),
        _ => false,
    }
}

/// A list without rows gives one of NULLs.
fn at_least_one_row(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    match plan {
        LogicalPlan::Unnest(mut unnest) if !unnest.list_type_columns.is_empty() => {
            unnest.options = unnest.options.with_null_handling(NullHandling::PreserveAndExpandEmpty);
            Transformed::yes(LogicalPlan::Unnest(unnest))
        }
        plan => Transformed::no(plan),
    }
}

/// Conditions that each pair is equal, or both NULL. All in one way: a hash join has one for all of its keys, and would
/// take those of the other for a filter.
fn same(pairs: impl Iterator<Item = (Column, Column)>, left: &DFSchema) -> DfResult<Vec<Expr>> {
    let pairs: Vec<(Column, Column)> = pairs.collect();
    let mut op = Operator::Eq;
    for (a, _) in &pairs {
        if left.field_from_column(a)?.is_nullable() {
            op = Operator::IsNotDistinctFrom;
        }
    }
    let compared = |(a, b)| BinaryExpr::new(Box::new(Expr::Column(a)), op, Box::new(Expr::Column(b)));
    Ok(pairs.into_iter().map(|pair| Expr::BinaryExpr(compared(pair))).collect())
}

/// The plan has one row at most.
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

/// The rows that a domain is made of, and joined to. If they could be others when they are read again, they are
/// computed once.
pub fn fixed(rows: LogicalPlan, names: &UniqueNames) -> DfResult<LogicalPlan> {
    let varies = varies(&rows, |node| {
        Ok(match node {
            LogicalPlan::Limit(limit) => !chooses_the_same(&limit.input)?,
            LogicalPlan::Distinct(distinct) => matches!(distinct, Distinct::On(_)),
            LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().any(depends_on_order),
            _ => false,
        })
    });
    // Rows of a query around this one are others for each row of that.
    let is_closed = outer_columns(&rows).is_empty();
    Ok(if is_closed && varies? { shared_rows(rows, names.next("rows")) } else { rows })
}

/// The aggregate may give another value for the same rows in another order.
fn depends_on_order(expr: &Expr) -> bool {
    let Expr::AggregateFunction(call) = bare(expr) else { return true };
    !OF_A_SET.contains(&call.func.name()) && call.params.order_by.is_empty()
}

/// The plan is sorted without ties, so that a LIMIT always chooses the same rows.
fn chooses_the_same(plan: &LogicalPlan) -> DfResult<bool> {
    let LogicalPlan::Sort(sort) = plan else { return Ok(false) };
    are_unique(sort.expr.iter().map(|by| by.expr.clone()).collect(), &sort.input)
}

fn refused(why: &str) -> datafusion::error::DataFusionError {
    to_df(
        Error::unsupported("this subquery cannot be made a join")
            .why(why)
            .hint("join with a query in FROM instead that has what connects them in its ON"),
    )
}
