//! What a plan is made of, if it is joins of rows that look others up.

use std::sync::{Arc, OnceLock};

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

use super::Join;
use super::totals::TotalsOf;
use crate::df::kept::above::Above;
use crate::df::operators::lookup::{Equal, Kind, LookupJoinExec, scan_of};
use crate::df::operators::scan::ScanExec;
use crate::exec::joined::ColumnOf;
use crate::plan::Field;

/// A plan, taken apart.
pub struct Parts {
    pub first: ScanExec,
    pub joins: Vec<Join>,
    /// The rows are sorted by these.
    pub order: Vec<(ColumnOf, SortOptions)>,
    /// Rows (count) that come out at the most.
    pub limit: Option<usize>,
    /// What comes out of that, and its names.
    pub output: Vec<ColumnOf>,
    pub schema: SchemaRef,
    /// What is computed of it.
    pub above: Above,
}

impl Parts {
    /// What a plan is made of; `None` if it is something else, too.
    pub fn of(mut plan: &Arc<dyn ExecutionPlan>) -> Option<Parts> {
        let (mut projections, mut limit) = (Vec::new(), None);
        loop {
            plan = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                projections.push(projection);
                projection.input()
            } else if let Some(limited) = plan.downcast_ref::<GlobalLimitExec>().filter(|l| l.skip() == 0) {
                limit = limit.into_iter().chain(limited.fetch()).min();
                limited.input()
            } else if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
                cooperative.input()
            } else {
                break;
            };
        }
        let mut parts = Parts::below(plan)?;
        parts.limit = parts.limit.into_iter().chain(limit).min();
        for projection in projections.into_iter().rev() {
            match picked(projection, &parts.output).filter(|_| parts.above.is_empty()) {
                Some(output) => (parts.output, parts.schema) = (output, projection.schema()),
                None => parts.above.push(projection)?,
            }
        }
        Some(parts)
    }

    /// A plan without anything above its joins, but that they are sorted.
    fn below(plan: &Arc<dyn ExecutionPlan>) -> Option<Parts> {
        if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
            return Parts::below(cooperative.input());
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let below = Parts::below(projection.input())?;
            return Some(Parts {
                output: picked(projection, &below.output)?,
                schema: plan.schema(),
                ..below
            });
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            let below = Parts::below(sort.input()).filter(Parts::is_open)?;
            let by = |by: &PhysicalSortExpr| Some((*below.output.get(place(&by.expr)?)?, by.options));
            let order = sort.expr().iter().map(by).collect::<Option<_>>()?;
            return Some(Parts { order, limit: sort.fetch(), ..below });
        }
        if let Some(join) = plan.downcast_ref::<LookupJoinExec>() {
            return Parts::below(&join.rows).filter(Parts::is_open)?.looking_up(join);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return Parts::below(join.left()).filter(Parts::is_open)?.adding_up(join);
        }
        let scan = plan.downcast_ref::<ScanExec>().filter(|scan| scan.is_whole())?;
        Some(Parts {
            first: scan.unbound(),
            joins: Vec::new(),
            order: Vec::new(),
            limit: None,
            output: columns(0, scan.request.schema.fields().len()).collect(),
            schema: plan.schema(),
            above: Above::default(),
        })
    }

    /// More can be joined to its rows, or they can be put in order.
    fn is_open(&self) -> bool {
        self.order.is_empty() && self.limit.is_none()
    }

    /// With the rows of a table that these look for.
    fn looking_up(self, join: &LookupJoinExec) -> Option<Parts> {
        // What others have found as well is to come out once.
        if join.kind == Kind::Found || join.in_order {
            return None;
        }
        let table = scan_of(&join.table)?;
        let shown = if join.kind.shows_found() { table.request.schema.fields().len() } else { 0 };
        let joined = self.joined(join.kind, table, &join.on, None)?;
        joined.with_output(&join.output, shown, join.schema())
    }

    /// With totals of the rows of a table that these look for.
    fn adding_up(self, join: &HashJoinExec) -> Option<Parts> {
        let kind = Kind::of(*join.join_type()).filter(|kind| matches!(kind, Kind::Inner | Kind::Left))?;
        let (totals, table, on) = TotalsOf::of(join)?;
        let shown = join.right().schema().fields().len();
        let joined = Parts { limit: join.fetch(), ..self.joined(kind, &table, &on, Some(totals))? };
        let all: Vec<usize> = (0..join.left().schema().fields().len() + shown).collect();
        let output = join.projection.as_ref().map_or(&all[..], |output| output);
        joined.with_output(output, shown, join.schema())
    }

    fn joined(
        mut self,
        kind: Kind,
        table: &ScanExec,
        on: &[Equal],
        totals: Option<TotalsOf>,
    ) -> Option<Parts> {
        let is_plain = table.is_whole() && table.fetch().is_none() && !table.passes_over();
        let of_row = on.iter().map(|equal| self.output.get(equal.of_row.index()).copied());
        let of_row = of_row.collect::<Option<_>>().filter(|_| is_plain)?;
        let on: Vec<_> = on.iter().map(|equal| (Field::Column(equal.key), equal.ty)).collect();
        let (asked, found) = (table.request.asked_of(&on), OnceLock::new());
        self.joins.push(Join { kind, table: table.unbound(), of_row, on, asked, totals, found });
        Some(self)
    }

    /// With these columns of the rows before and of what the last table shows: so many.
    fn with_output(self, output: &[usize], shown: usize, schema: SchemaRef) -> Option<Parts> {
        let all: Vec<ColumnOf> = self.output.into_iter().chain(columns(self.joins.len(), shown)).collect();
        let output = output.iter().map(|at| all.get(*at).copied()).collect::<Option<_>>()?;
        Some(Parts { output, schema, ..self })
    }
}

fn columns(table: usize, count: usize) -> impl Iterator<Item = ColumnOf> {
    (0..count).map(move |column| ColumnOf { table, column })
}

/// The place of the column that an expression is.
fn place(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// What comes out of a projection of these columns, if it picks some of them.
fn picked(projection: &ProjectionExec, below: &[ColumnOf]) -> Option<Vec<ColumnOf>> {
    let column = |output: &ProjectionExpr| below.get(place(&output.expr)?).copied();
    projection.expr().iter().map(column).collect()
}
