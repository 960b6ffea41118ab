//! Pushes a top-k sort by columns of the left side below a left join.
//!
//! Each row of the left side comes out at least once, so the first rows of the join come from the first rows of that
//! side: `SELECT name, (SELECT count(*) FROM b WHERE b.a = a.id) FROM a ORDER BY name LIMIT 10` then counts for ten
//! rows only. DataFusion does this for a limit, but not for a sort.
//!
//! The same goes for groups, if the rows of each are those of one left row: `SELECT a.name, count(b.id) FROM a LEFT JOIN
//! b ON b.a = a.id GROUP BY a.id ORDER BY a.name LIMIT 10`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{
    Aggregate, Expr, Join, JoinType, LogicalPlan, Projection, Sort, SubqueryAlias,
};

use crate::df::rewrite::below;
use crate::df::tree::RewritePlan;
use crate::df::unique::are_unique;

/// The same plan, with top-k sorts below its left joins.
pub fn of_left_side(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let sorted_first = plan.rewrite_down_with_subqueries(|node| {
        let LogicalPlan::Sort(sort) = &node else { return Ok(Transformed::no(node)) };
        let Some(rows) = sort.fetch else { return Ok(Transformed::no(node)) };
        match first_left(&sort.input, &Wanted { order: sort.expr.clone(), rows, groups: None })? {
            Some(input) => {
                Ok(Transformed::yes(LogicalPlan::Sort(Sort { input: Arc::new(input), ..sort.clone() })))
            }
            None => Ok(Transformed::no(node)),
        }
    });
    sorted_first.data()
}

/// The first rows of a plan that are wanted.
struct Wanted {
    order: Vec<SortExpr>,
    /// How many (count).
    rows: usize,
    /// What the rows above are grouped by, if they are.
    groups: Option<Vec<Expr>>,
}

impl Wanted {
    /// The same of the input of a projection, an alias or groups.
    fn below(&self, plan: &LogicalPlan) -> Option<Wanted> {
        let order = self.order.iter().map(|by| Some(SortExpr { expr: below(&by.expr, plan)?, ..by.clone() }));
        let groups = match (&self.groups, plan) {
            (Some(groups), _) => Some(groups.iter().filter_map(|expr| below(expr, plan)).collect()),
            (None, LogicalPlan::Aggregate(aggregate)) => Some(aggregate.group_expr.clone()),
            (None, _) => None,
        };
        Some(Wanted { order: order.collect::<Option<_>>()?, groups, rows: self.rows })
    }
}

/// Sorts the left side of a left join, if the plan is one below projections and groups.
fn first_left(plan: &LogicalPlan, wanted: &Wanted) -> DfResult<Option<LogicalPlan>> {
    let input = match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Aggregate(Aggregate { input, .. }) => match wanted.below(plan) {
            Some(wanted) => first_left(input, &wanted)?,
            None => None,
        },
        LogicalPlan::Join(join) if join.join_type == JoinType::Left => {
            let left = match &wanted.groups {
                // Of a left row that has found several, the groups are those of a join further down.
                Some(groups) => match first_left(&join.left, wanted)? {
                    None if are_unique(groups.clone(), &join.left)? => first(&join.left, wanted),
                    deeper => deeper,
                },
                None => first(&join.left, wanted),
            };
            return Ok(left.map(|left| LogicalPlan::Join(Join { left: Arc::new(left), ..join.clone() })));
        }
        _ => None,
    };
    input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}

/// The first rows of the left side of a join; `None` if they are chosen already, or if it does not have the order.
fn first(left: &Arc<LogicalPlan>, wanted: &Wanted) -> Option<LogicalPlan> {
    let is_left = |by: &SortExpr| {
        !by.expr.is_volatile()
            && by.expr.column_refs().into_iter().all(|column| left.schema().has_column(column))
    };
    let is_first = matches!(&**left, LogicalPlan::Sort(_) | LogicalPlan::Limit(_));
    let Wanted { order, rows, .. } = wanted;
    let sort = Sort { expr: order.clone(), input: Arc::clone(left), fetch: Some(*rows) };
    // What has no columns, as the value of a subquery, orders nothing.
    let orders = order.iter().any(|by| !by.expr.column_refs().is_empty());
    (!is_first && orders && order.iter().all(is_left)).then_some(LogicalPlan::Sort(sort))
}
