//! Keeps sorts where they matter: `SELECT * FROM (SELECT ... LIMIT 3) ORDER BY x` sorts three rows.
//!
//! DataFusion 55.2 takes the rows of a LIMIT without an order to be any rows. It pushes the sort below the limit, which
//! then outputs other rows, fewer with an OFFSET, and none ever if the limit stopped an endless input. While DataFusion
//! moves sorts, a [`FixedExec`] above each limit blocks them. It drops the sort below an OFFSET if the sorted column
//! goes no further, unless the sort has a limit: it gets one, of [`ALL`] rows.
//!
//! DataFusion also drops sort keys behind a unique column. A projection reports unique columns by their positions above
//! it instead of below it: for `SELECT count(*) AS n FROM t GROUP BY a` that is `n`, not `a`. Below such a projection,
//! a [`FixedExec`] hides unique columns.
//!
//! And it takes columns for constant, equal or sorted that are not: `n` in `WHERE n / 2 = 2` (it inverts a division, or
//! a cast that rounds, as if it were exact), a value that is 3 in one input of a UNION ALL and 2 in the other, columns
//! that an outer join null-extends, and columns that ROLLUP makes NULL. Above those, a [`FixedExec`] hides such facts.
//! It does so above `WHERE lower(k) = k`, too: from there on, DataFusion calls `k` by the expression, and loses a LIMIT
//! with the sort by `k` that it drops. If any other limit is missing in the end, the rule starts again with limits as
//! separate operators.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Constraints, JoinType, Statistics};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::equivalence::OrderingEquivalenceClass;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, split_conjunction};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, ReplaceChildrenOptions,
};

use crate::df::operators::{operator, over_changed};
use crate::df::rewrite::PlanInner;
use crate::df::tree::{RewriteTree, changed};

/// Around the rule that moves sorts, so that it moves none below a limit and drops none for a false key.
pub fn fixed_rows(plan: Arc<dyn ExecutionPlan>, rule: &PlanInner<'_>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let moved = moved(Arc::clone(&plan), rule)?;
    let (mut before, mut after) = Default::default();
    limits(&plan, &mut before);
    limits(&moved, &mut after);
    if before.iter().all(|(limit, count)| after.get(limit) >= Some(count)) {
        return Ok(moved);
    }
    // A limit was lost with its sort, perhaps for a stricter one: make limits separate operators.
    let pinned = plan.rewrite_up(|node| {
        let fetch = node.downcast_ref::<SortExec>().and_then(|sort| sort.fetch());
        Ok(match fetch {
            Some(_) => Transformed::yes(Arc::new(GlobalLimitExec::new(node, 0, fetch))),
            None => Transformed::no(node),
        })
    });
    self::moved(pinned.data()?, rule)
}

/// A limit of rows that is none.
const ALL: usize = isize::MAX as usize;

/// The plan, whose rows come in the order of a sort without a limit, which gets one of [`ALL`]; `None`: they do not.
fn with_limit(plan: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(sort.fetch().is_none().then(|| Arc::new(sort.with_fetch(Some(ALL))) as _));
    }
    match plan.children()[..] {
        [input] if plan.maintains_input_order() == [true] => over_changed(plan, vec![with_limit(input)?]),
        _ => Ok(None),
    }
}

/// What takes the place of an operator with a limit of [`ALL`].
fn without_limit(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(limit) = node.downcast_ref::<GlobalLimitExec>() {
        return (limit.fetch() == Some(ALL)).then(|| Arc::clone(limit.input()));
    }
    if let Some(limit) = node.downcast_ref::<LocalLimitExec>() {
        return (limit.fetch() == ALL).then(|| Arc::clone(limit.input()));
    }
    let has_all = node.fetch() == Some(ALL) && !node.is::<ProjectionExec>() && !node.is::<CooperativeExec>();
    has_all.then(|| node.with_fetch(None)).flatten()
}

/// Applies the rule with the plan's limits and false facts protected.
fn moved(plan: Arc<dyn ExecutionPlan>, rule: &PlanInner<'_>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let sorts = plan.exists(|node| Ok(is_sorted(&**node)))?;
    let fixed = plan.rewrite_up(|node| {
        let skips = node.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.fetch().is_none());
        let node = if skips { with_limit(&node)?.unwrap_or(node) } else { node };
        if let Some(what) = misled_by(&node) {
            return Ok(Transformed::yes(FixedExec::of(node, what)));
        }
        let projection = node.downcast_ref::<ProjectionExec>();
        let Some(projection) = projection.filter(|projection| sorts && misplaces_keys(projection)) else {
            return Ok(Transformed::no(node));
        };
        let input = FixedExec::of(Arc::clone(projection.input()), Fixed::Keys);
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(vec![input], recompute).map(Transformed::yes)
    })?;
    // Executing operators check once more whether their input is sorted: what hides keys must stay.
    rule(fixed.data)?
        .rewrite_up(|node| {
            let fixed = node.downcast_ref::<FixedExec>().filter(|fixed| fixed.what == Fixed::Rows);
            let instead = fixed.map(|fixed| Arc::clone(&fixed.input)).or_else(|| without_limit(&node));
            Ok(changed(instead, node))
        })
        .data()
}

/// Counts the operators of a plan by the number of rows they stop at.
fn limits(plan: &Arc<dyn ExecutionPlan>, found: &mut BTreeMap<usize, usize>) {
    let fetch = if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        limit.fetch()
    } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        Some(limit.fetch())
    } else if plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>() {
        // These report the limit of their input.
        None
    } else {
        plan.fetch()
    };
    if let Some(fetch) = fetch {
        *found.entry(fetch).or_default() += 1;
    }
    plan.children().into_iter().for_each(|child| limits(child, found));
}

fn is_sorted(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<SortExec>() || plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>()
}

/// The protection that an operator needs above it.
fn misled_by(node: &Arc<dyn ExecutionPlan>) -> Option<Fixed> {
    if node.is::<GlobalLimitExec>() {
        return Some(Fixed::Rows);
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let misleads = loses(filter.predicate(), &filter.input().schema()) || equates(filter.predicate());
        return misleads.then_some(Fixed::Values);
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return aggregate.group_expr().has_grouping_set().then_some(Fixed::Orders);
    }
    // No one sorts by the mark column of a decorrelated subquery.
    let is_mark = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Column>().is_some_and(|column| column.name() == "__always_true")
    };
    let has_constants = |input: &&Arc<dyn ExecutionPlan>| {
        input.equivalence_properties().constants().iter().any(|constant| !is_mark(&constant.expr))
    };
    let may_differ = node.is::<UnionExec>() || may_add_nulls(&**node);
    (may_differ && node.children().iter().any(has_constants)).then_some(Fixed::Values)
}

/// The node is a join that null-extends one side.
fn may_add_nulls(node: &dyn ExecutionPlan) -> bool {
    let ty = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let ty = ty.or_else(|| node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()));
    let ty = ty.or_else(|| node.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type()));
    matches!(ty, Some(JoinType::Left | JoinType::Right | JoinType::Full))
}

/// The expression maps several values to one, which DataFusion inverts as if it were exact.
fn loses(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let is_lossy = if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        match (cast.expr().data_type(schema), cast.cast_type()) {
            (Ok(DataType::Decimal128(_, from)), DataType::Decimal128(_, to)) => *to < from,
            (Ok(from), to) if from.is_integer() => !(to.is_integer() || to.is_decimal()),
            (Ok(from), to) => from != *to,
            (Err(_), _) => true,
        }
    } else {
        expr.downcast_ref::<BinaryExpr>().is_some_and(|binary| *binary.op() == Operator::Divide)
    };
    is_lossy || expr.children().into_iter().any(|child| loses(child, schema))
}

/// The filter equates an expression with a column or another expression.
fn equates(filter: &Arc<dyn PhysicalExpr>) -> bool {
    split_conjunction(filter).into_iter().any(|term| {
        let equal = term.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == Operator::Eq);
        equal.is_some_and(|equal| {
            let sides = [equal.left(), equal.right()];
            let is_constant = sides.iter().any(|side| collect_columns(side).is_empty());
            !is_constant && !sides.iter().all(|side| side.is::<Column>())
        })
    })
}

/// Unique columns of the input are at other positions in the output.
fn misplaces_keys(projection: &ProjectionExec) -> bool {
    let is_same = |(at, output): (usize, &ProjectionExpr)| {
        output.expr.downcast_ref::<Column>().is_some_and(|column| column.index() == at)
    };
    let known = projection.input().equivalence_properties().constraints();
    !known.is_empty() && !projection.expr().iter().enumerate().all(is_same)
}

/// What a [`FixedExec`] hides or blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fixed {
    /// Blocks sorts, as the rows are those of a limit.
    Rows,
    /// Hides which columns are unique.
    Keys,
    /// Also hides which are constant, or equal to others.
    Values,
    /// Also hides which are sorted.
    Orders,
}

/// Passes its rows on, and hides facts about them from the optimizer.
#[derive(Debug)]
pub struct FixedExec {
    input: Arc<dyn ExecutionPlan>,
    what: Fixed,
    properties: Arc<PlanProperties>,
}

impl FixedExec {
    fn of(input: Arc<dyn ExecutionPlan>, what: Fixed) -> Arc<dyn ExecutionPlan> {
        let mut properties = input.properties().as_ref().clone();
        let known = properties.equivalence_properties().clone();
        let told = match what {
            Fixed::Rows => known,
            Fixed::Keys => known.with_constraints(Constraints::default()),
            Fixed::Values => {
                EquivalenceProperties::new_with_orderings(input.schema(), orders_of(&input).iter().cloned())
            }
            Fixed::Orders => EquivalenceProperties::new(input.schema()),
        };
        properties.set_eq_properties(told);
        Arc::new(FixedExec { input, what, properties: Arc::new(properties) })
    }
}

/// The orders of a plan's rows that do not follow from assumed values. A filter keeps the orders of its input.
fn orders_of(plan: &Arc<dyn ExecutionPlan>) -> OrderingEquivalenceClass {
    match plan.downcast_ref::<FilterExec>() {
        Some(filter) if filter.projection().is_some() => OrderingEquivalenceClass::default(),
        Some(filter) => filter.input().equivalence_properties().oeq_class().clone(),
        None => plan.equivalence_properties().oeq_class().clone(),
    }
}

impl DisplayAs for FixedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedExec")
    }
}

impl ExecutionPlan for FixedExec {
    operator!(FixedExec(input), this => FixedExec::of(input, this.what));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// Claiming an order would let sorts be pushed further down.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.what != Fixed::Rows
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> DfResult<Arc<Statistics>> {
        let input = inputs.first().map(Arc::clone);
        Ok(input.unwrap_or_else(|| Arc::new(Statistics::new_unknown(&self.schema()))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;

    /// Drops every sort, with its limit.
    fn careless(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.rewrite_up(|node| {
            let input = node.downcast_ref::<SortExec>().map(|sort| Arc::clone(sort.input()));
            Ok(changed(input, node))
        })
        .data()
    }

    #[test]
    fn a_limit_does_not_go_with_its_sort() -> DfResult<()> {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]));
        let by = PhysicalSortExpr::new_default(Arc::new(Column::new("k", 0)));
        let order = LexOrdering::new([by]).expect("an order has a column");
        let sort = |fetch| -> Arc<dyn ExecutionPlan> {
            let rows = Arc::new(EmptyExec::new(Arc::clone(&schema)));
            Arc::new(SortExec::new(order.clone(), rows).with_fetch(fetch))
        };
        let limited = fixed_rows(sort(Some(2)), &careless)?;
        assert_eq!(limited.downcast_ref::<GlobalLimitExec>().and_then(GlobalLimitExec::fetch), Some(2));
        assert!(fixed_rows(sort(None), &careless)?.is::<EmptyExec>());
        Ok(())
    }
}
