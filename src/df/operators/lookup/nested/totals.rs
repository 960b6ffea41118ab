//! Aggregates of each outer row's matches: `(SELECT count(*) FROM orders o WHERE o.buyer = b.buyer)`.
//!
//! A plan has such a subquery as a join with a grouped table. For few outer rows, each one aggregates its matches
//! instead.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::df::below::{passed_on, picked, place};
use crate::df::cached::aggregates::ScanAggregate;
use crate::df::errors::df_error;
use crate::df::expr::value_of;
use crate::df::operators::lookup::JoinColumn;
use crate::df::operators::lookup::instead::{equal_columns, is_plain};
use crate::df::operators::scan::ScanExec;
use crate::df::wanted::FirstFound;
use crate::error::Result;
use crate::exec::next_rows::ColumnOf;
use crate::exec::scan::ScanSpec;
use crate::exec::sums::{AggregateKind, AggregateTerm, Sums, Total};
use crate::key::ColumnId;
use crate::plan::Field;
use crate::row::arrow_type;
use crate::value::Value;

/// Counts the matches.
const ROWS: AggregateTerm = AggregateTerm { function: AggregateKind::Count, column: None };

/// The output of a grouped table for an outer row that finds a group.
#[derive(Debug)]
pub struct TotalsOf {
    functions: Vec<ScanAggregate>,
    output: Vec<Output>,
    /// An outer row without matches has totals, too.
    of_none: bool,
}

/// An output column.
#[derive(Clone, Debug)]
enum Output {
    /// A grouping column: this one of the join columns. Its integers may come out as those of this type.
    Equal(usize, Option<DataType>),
    Total(usize),
    Constant(Value),
}

impl TotalsOf {
    /// Takes the right side of a join apart: the aggregates, the table below, and the join columns. `None` if it is
    /// anything else, or if an outer row may find several groups.
    pub fn of(join: &HashJoinExec) -> Option<(TotalsOf, ScanExec, Vec<JoinColumn>)> {
        let (aggregate, output) = outputs(join.right())?;
        let is_simple = is_plain(join)
            && *aggregate.mode() == AggregateMode::Single
            && aggregate.group_expr().is_single()
            && !aggregate.group_expr().is_empty()
            && aggregate.limit_options().is_none();
        let is_whole = |scan: &ScanExec| scan.request.keyed().is_some();
        let (scan, columns) = picked(aggregate.input()).filter(|(scan, _)| is_simple && is_whole(scan))?;
        let functions = ScanAggregate::all_of(aggregate)?;
        let groups = aggregate.group_expr().expr();
        // The aggregate's input column behind each join column.
        let group = |at: usize| match output.get(at)? {
            Output::Equal(group, None) => Some(Arc::clone(&groups.get(*group)?.0)),
            _ => None,
        };
        let on: Vec<_> = join
            .on()
            .iter()
            .map(|(of_row, of_table)| Some((Arc::clone(of_row), group(place(of_table)?)?)))
            .collect::<Option<_>>()?;
        let scan = scan.pick(&columns, &aggregate.input_schema());
        let all: Vec<usize> = (0..columns.len()).collect();
        let equal = equal_columns(&on, &join.left().schema(), &scan, &all)?;
        // Without a key led by a join column, reading the whole table once is better.
        equal.iter().any(|equal| scan.request.leads(Field::Column(equal.key))).then_some(())?;
        let asked = |group: usize| {
            let place = place(&groups.get(group)?.0)?;
            equal.iter().position(|equal| equal.of_table.index() == place)
        };
        // All grouping columns are join columns, so an outer row finds one group at most.
        (0..groups.len()).map(asked).collect::<Option<Vec<_>>>()?;
        // What the table has fits into the type of its column.
        let fits = |at: usize, ty: &DataType| *ty == arrow_type(equal[at].ty);
        let output = output.into_iter().map(|output| match output {
            Output::Equal(group, ty) => {
                let at = asked(group).filter(|at| ty.as_ref().is_none_or(|ty| fits(*at, ty)));
                at.map(|at| Output::Equal(at, ty))
            }
            output => Some(output),
        });
        let output = output.collect::<Option<_>>()?;
        Some((TotalsOf { functions, output, of_none: false }, scan, equal))
    }

    /// The totals of rows that are grouped by outer rows, and joined with what these find: the `output` columns of the
    /// table `found`. `None` if they are of anything else.
    pub fn found(aggregate: &AggregateExec, found: usize, output: &[ColumnOf]) -> Option<TotalsOf> {
        let is_simple = *aggregate.mode() == AggregateMode::Single
            && aggregate.group_expr().is_single()
            && aggregate.limit_options().is_none();
        // An outer row without matches is a row that counts, but has no values.
        let is_of_found = |function: &ScanAggregate| {
            function.term.column.is_some_and(|at| output.get(at).is_some_and(|of| of.table == found))
        };
        let functions = ScanAggregate::all_of(aggregate).filter(|_| is_simple)?;
        let columns: Vec<usize> = output.iter().map(|of| of.column).collect();
        let functions: Vec<ScanAggregate> = functions
            .into_iter()
            .map(|function| Some(function).filter(is_of_found)?.of_columns(&columns))
            .collect::<Option<_>>()?;
        let output = (0..functions.len()).map(Output::Total).collect();
        Some(TotalsOf { functions, output, of_none: true })
    }

    /// The matches that are enough; `None`: all of them.
    pub fn first(&self, table: &ScanExec, on: &[JoinColumn]) -> Option<FirstFound> {
        if !self.output.iter().any(|output| matches!(output, Output::Total(_))) {
            return Some(FirstFound::any_one());
        }
        let groups: Vec<ColumnId> = on.iter().map(|equal| equal.key).collect();
        table.request.first_of_each(&groups)
    }

    /// The initial state of the aggregates.
    pub fn begin(&self, spec: &ScanSpec) -> Sums {
        let terms = std::iter::once(ROWS).chain(self.functions.iter().map(|known| known.term));
        Sums::of_group(terms, spec)
    }

    /// The output for an outer row with these join values, if it has matches. Errors: a sum that does not fit.
    pub fn row(&self, sums: &Sums, equal: &[Value]) -> Result<Option<Vec<Value>>> {
        let totals: Vec<Total> = sums.totals().collect();
        match totals.split_first() {
            Some((Total { values: 1.., .. }, totals)) => self.output_of(totals, equal).map(Some),
            _ => self.of_nothing(),
        }
    }

    /// The output for an outer row without matches, if it has any.
    pub fn of_nothing(&self) -> Result<Option<Vec<Value>>> {
        let none = vec![Total::default(); self.functions.len()];
        self.of_none.then(|| self.output_of(&none, &[])).transpose()
    }

    fn output_of(&self, totals: &[Total], equal: &[Value]) -> Result<Vec<Value>> {
        let value = |output: &Output| match output {
            Output::Equal(at, _) => Ok(equal[*at].clone()),
            Output::Constant(value) => Ok(value.clone()),
            Output::Total(at) => value_of(&self.functions[*at].result(&totals[*at]).map_err(df_error)?),
        };
        self.output.iter().map(value).collect()
    }
}

/// The aggregate of a plan, and the aggregate columns that the plan outputs; [`Output::Equal`] is a grouping column
/// here.
fn outputs(plan: &Arc<dyn ExecutionPlan>) -> Option<(&AggregateExec, Vec<Output>)> {
    if let Some(input) = passed_on(&**plan) {
        return outputs(input);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let (aggregate, below) = outputs(projection.input())?;
        let output = |expr: &Arc<dyn PhysicalExpr>| {
            if let Some(literal) = expr.downcast_ref::<Literal>() {
                return value_of(literal.value()).ok().map(Output::Constant);
            }
            if let Some(cast) = expr.downcast_ref::<CastExpr>() {
                let Output::Equal(group, None) = below.get(place(cast.expr())?)? else { return None };
                let ty = cast.cast_type();
                return ty.is_signed_integer().then(|| Output::Equal(*group, Some(ty.clone())));
            }
            below.get(place(expr)?).cloned()
        };
        let output = projection.expr().iter().map(|of| output(&of.expr)).collect::<Option<_>>()?;
        return Some((aggregate, output));
    }
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let groups = (0..aggregate.group_expr().expr().len()).map(|group| Output::Equal(group, None));
    let totals = (0..aggregate.aggr_expr().len()).map(Output::Total);
    Some((aggregate, groups.chain(totals).collect()))
}
