//! The first matches of each outer row: `(SELECT body FROM message m WHERE m.room = r.id ORDER BY m.at DESC LIMIT 1)`.
//!
//! A plan has such a subquery as a join with a table whose rows are numbered for each value of the join columns. For few
//! outer rows, each one reads its first matches instead, from a key that has them in that order.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;

use crate::df::below::{passed_on, picked, picked_of, place};
use crate::df::operators::lookup::JoinColumn;
use crate::df::operators::lookup::instead::{equal_columns, is_plain};
use crate::df::operators::scan::ScanExec;
use crate::df::wanted::FirstFound;
use crate::key::ColumnId;

/// A join in which each outer row finds its first matches only.
pub struct FirstMatches<'j> {
    pub table: &'j ScanExec,
    pub on: Vec<JoinColumn>,
    pub first: FirstFound,
    /// Column of the table (position) behind each column of the join's right side.
    pub columns: Vec<usize>,
}

impl<'j> FirstMatches<'j> {
    /// Takes a join apart; `None` if its right side is anything else.
    pub fn of(join: &'j HashJoinExec) -> Option<FirstMatches<'j>> {
        let Numbered { table, columns, limit, parts } = Numbered::of(join.right())?;
        let columns: Vec<usize> = columns.into_iter().collect::<Option<_>>().filter(|_| is_plain(join))?;
        let on = equal_columns(join.on(), &join.left().schema(), table, &columns)?;
        // Each outer row finds all rows of one part, and no others.
        let is_part = |equal: &JoinColumn| parts.contains(&equal.of_table.index());
        let is_equal = |part: &usize| on.iter().any(|equal| equal.of_table.index() == *part);
        let groups: Vec<ColumnId> = on.iter().map(|equal| equal.key).collect();
        let first = table.request.first_of_each(&groups).filter(|first| Some(first.rows) == limit)?;
        let are_parts = on.iter().all(is_part) && parts.iter().all(is_equal);
        are_parts.then_some(FirstMatches { table, on, first, columns })
    }
}

/// Rows of a table, numbered in each part of them, of which those with the lowest numbers stay.
struct Numbered<'p> {
    table: &'p ScanExec,
    /// Column of the table (position) behind each output column; `None`: the number.
    columns: Vec<Option<usize>>,
    /// The highest number that stays.
    limit: Option<u64>,
    /// The columns of the table (positions) with equal values in a part.
    parts: Vec<usize>,
}

impl Numbered<'_> {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Numbered<'_>> {
        if let Some(input) = passed_on(&**plan) {
            return Numbered::of(input);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let below = Numbered::of(projection.input())?;
            return Some(Numbered { columns: picked_of(projection, &below.columns)?, ..below });
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none()) {
            let below = Numbered::of(filter.input()).filter(|below| below.limit.is_none())?;
            let number = below.columns.iter().position(Option::is_none)?;
            let limit = Some(highest(filter.predicate(), number)?);
            let columns = match filter.projection() {
                Some(picked) => {
                    picked.iter().map(|at| below.columns.get(*at).copied()).collect::<Option<_>>()?
                }
                None => below.columns,
            };
            return Some(Numbered { columns, limit, ..below });
        }
        let windows = plan.downcast_ref::<BoundedWindowAggExec>()?;
        let [window] = windows.window_expr() else { return None };
        let (table, columns) = sorted(windows.input())?;
        let part = |by: &Arc<dyn PhysicalExpr>| columns.get(place(by)?).copied();
        let parts = window.partition_by().iter().map(part).collect::<Option<_>>()?;
        let columns = columns.iter().copied().map(Some).chain([None]).collect();
        Some(Numbered { table, columns, limit: None, parts })
    }
}

/// The table whose rows a plan sorts, and the columns of the table (positions) that come out; `None` if it does more.
fn sorted(plan: &Arc<dyn ExecutionPlan>) -> Option<(&ScanExec, Vec<usize>)> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return sorted(sort.input()).filter(|_| sort.fetch().is_none());
    }
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return picked(plan) };
    let (table, columns) = sorted(projection.input())?;
    Some((table, picked_of(projection, &columns)?))
}

/// The highest number that a condition on a row's number, at the position `number`, lets pass; `None` if it is not all
/// numbers up to that one.
fn highest(condition: &Arc<dyn PhysicalExpr>, number: usize) -> Option<u64> {
    let mut highest = None;
    for term in split_conjunction(condition) {
        let term = term.downcast_ref::<BinaryExpr>().filter(|term| place(term.left()) == Some(number))?;
        let bound = match term.right().downcast_ref::<Literal>()?.value() {
            ScalarValue::UInt64(Some(bound)) => *bound,
            _ => return None,
        };
        match (term.op(), bound) {
            (Operator::Gt, 0) | (Operator::GtEq, 0 | 1) => continue,
            (Operator::LtEq, _) | (Operator::Eq, 1) if highest.is_none() => highest = Some(bound),
            (Operator::Lt, 1..) if highest.is_none() => highest = Some(bound - 1),
            _ => return None,
        }
    }
    highest
}
