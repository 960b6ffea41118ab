//! The first matches of each outer row: `(SELECT body FROM message m WHERE m.room = r.id ORDER BY m.at DESC LIMIT 1)`.
//!
//! A plan has such a subquery as a join with a table whose rows are numbered for each value of the join columns. For few
//! outer rows, each one reads its first matches instead, from a key that has them in that order. If the subquery also
//! compares, as in `m.at <= r.seen`, the numbers are those of each outer row, above the join
//! ([`FirstRowsFound`](crate::df::subqueries::first_found::FirstRowsFound)).

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
use crate::plan::Field;

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
        let Numbered { input, columns, limit, parts } = Numbered::of(join.right())?;
        let (table, of_table) = picked(input)?;
        let columns = columns.into_iter().map(|at| of_table.get(at?).copied());
        let columns: Vec<usize> = columns.collect::<Option<_>>().filter(|_| is_plain(join))?;
        let field = |at: &usize| table.request.output_field(*of_table.get(*at)?);
        let parts: Vec<Field> = parts.iter().map(field).collect::<Option<_>>()?;
        let on = equal_columns(join.on(), &join.left().schema(), table, &columns)?;
        // Each outer row finds all rows of one part, and no others.
        let is_part = |equal: &JoinColumn| parts.contains(&Field::Column(equal.key));
        let is_equal = |part: &Field| on.iter().any(|equal| Field::Column(equal.key) == *part);
        let groups: Vec<ColumnId> = on.iter().map(|equal| equal.key).collect();
        let first = table.request.first_of_each(&groups).filter(|first| Some(first.rows) == limit)?;
        let are_parts = on.iter().all(is_part) && parts.iter().all(is_equal);
        are_parts.then_some(FirstMatches { table, on, first, columns })
    }
}

/// Rows that are numbered in each part of them, of which those with the lowest numbers stay.
pub(super) struct Numbered<'p> {
    /// The rows, before they are sorted.
    pub input: &'p Arc<dyn ExecutionPlan>,
    /// Column of the input (position) behind each output column; `None`: the number.
    pub columns: Vec<Option<usize>>,
    /// The highest number that stays.
    pub limit: Option<u64>,
    /// The columns of the input (positions) with equal values in a part.
    pub parts: Vec<usize>,
}

impl Numbered<'_> {
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Numbered<'_>> {
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
        let (input, columns) = sorted(windows.input());
        let part = |by: &Arc<dyn PhysicalExpr>| columns.get(place(by)?).copied();
        let parts = window.partition_by().iter().map(part).collect::<Option<_>>()?;
        let columns = columns.iter().copied().map(Some).chain([None]).collect();
        Some(Numbered { input, columns, limit: None, parts })
    }
}

/// The rows that a plan sorts, and their columns (positions) that come out.
fn sorted(plan: &Arc<dyn ExecutionPlan>) -> (&Arc<dyn ExecutionPlan>, Vec<usize>) {
    if let Some(input) = passed_on(&**plan) {
        return sorted(input);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) {
        return sorted(sort.input());
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let (input, columns) = sorted(projection.input());
        if let Some(picked) = picked_of(projection, &columns) {
            return (input, picked);
        }
    }
    (plan, (0..plan.schema().fields().len()).collect())
}

/// The highest number that a condition on a row's number, at the position `number`, lets pass; `None` if it is not all
/// numbers up to that one.
fn highest(condition: &Arc<dyn PhysicalExpr>, number: usize) -> Option<u64> {
    let mut highest = None;
    for term in split_conjunction(condition) {
        let term = term.downcast_ref::<BinaryExpr>().filter(|term| place(term.left()) == Some(number))?;
        let bound = match term.right().downcast_ref::<Literal>()?.value() {
            ScalarValue::UInt64(Some(bound)) => *bound,
            ScalarValue::Int64(Some(bound)) => u64::try_from(*bound).ok()?,
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
