//! Joins by more than equal columns: each outer row gives a range of keys, and what it finds has to pass a filter.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::JoinSide;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};

use super::asks::Asked;
use super::parts::{Matches, NestedParts, columns, nameless};
use crate::df::below::{picked, place, with_columns};
use crate::df::join_sides::output_of;
use crate::df::operators::lookup::JoinKind;
use crate::df::operators::lookup::instead::{compares_plainly, equal_columns};
use crate::df::operators::scan::ScanExec;
use crate::df::operators::seek::{SeekJoinExec, SeekLookup};
use crate::df::table::OfRow;
use crate::exec::next_rows::ColumnOf;
use crate::key::ColumnId;
use crate::plan::Field;
use crate::value::ColumnType;

impl NestedParts {
    /// The parts of a join in which each outer row gives a range of keys. What it compares may be computed right below
    /// the join.
    pub(super) fn seeking(join: &SeekJoinExec) -> Option<NestedParts> {
        let SeekLookup { rows, table, terms, filter, first, output } = join.as_lookup()?;
        let (parts, computed) = NestedParts::of_computed(rows)?;
        let below = |at: usize| computed.of(at);
        let term = |(value, ty, term): (&Arc<dyn PhysicalExpr>, ColumnType, OfRow)| {
            let value = with_columns(value, &below)?;
            Some((Asked::of(&value, ty, &parts.schema, &parts.output)?, term))
        };
        let on = terms.into_iter().map(term).collect::<Option<Vec<_>>>()?;
        let found = parts.joins.len() + 1;
        let shown = |(is_found, at): (bool, usize)| match is_found {
            true => Some(ColumnOf { table: found, column: at }),
            false => parts.output.get(place(&below(at)?)?).copied(),
        };
        let output = output.into_iter().map(shown).collect::<Option<_>>()?;
        let residual = match filter {
            Some((filter, rows_are)) => parts.residual(filter, table, &|at| match at.side == rows_are {
                true => below(at.index),
                false => Some(nameless(parts.output.len() + at.index)),
            })?,
            None => Vec::new(),
        };
        let matches = Matches { residual, first, totals: None };
        let joined = NestedParts { by_ranges: true, ..parts }.joined(join.kind(), table, on, matches)?;
        Some(NestedParts { output, schema: join.schema(), ..joined })
    }

    /// Adds a join by equal columns with a residual filter.
    pub(super) fn filtered(self, join: &HashJoinExec) -> Option<NestedParts> {
        let kind = JoinKind::of(*join.join_type()).filter(|kind| *kind != JoinKind::Found)?;
        let (table, picked) = picked(join.right())?;
        let equal = equal_columns(join.on(), &join.left().schema(), table, &picked)?;
        let is_served = equal.iter().any(|equal| table.request.leads(Field::Column(equal.key)));
        if !compares_plainly(join) || !is_served || table.request.keyed().is_none() {
            return None;
        }
        let (of_rows, shown) = (self.output.len(), table.request.schema.fields().len());
        let of_table = |at: usize| picked.get(at).map(|column| of_rows + column);
        let residual = self.residual(join.filter()?, table, &|at| match at.side {
            JoinSide::Left => Some(nameless(at.index)),
            _ => of_table(at.index).map(nameless),
        })?;
        let output = (0..join.schema().fields().len()).map(|at| match output_of(join, at)? {
            (0, of_row) => Some(of_row),
            (_, found) => of_table(found),
        });
        let output: Vec<usize> = output.collect::<Option<_>>()?;
        let is_asked = |id: ColumnId| equal.iter().any(|equal| equal.key == id);
        let by_ranges = self.by_ranges || !table.request.is_rowkey(&is_asked);
        let matches = Matches { residual, ..Matches::default() };
        let on = self.equal(&equal)?;
        let joined = NestedParts { by_ranges, ..self }.joined(kind, table, on, matches)?;
        joined.with_output(&output, shown, join.schema())
    }

    /// The terms of a join's filter. `of` gives a column as an expression over pairs: the columns of these parts, then
    /// those of the table.
    fn residual(
        &self,
        filter: &JoinFilter,
        table: &ScanExec,
        of: &dyn Fn(&ColumnIndex) -> Option<Arc<dyn PhysicalExpr>>,
    ) -> Option<Vec<Asked>> {
        let (own, found) = (self.schema.fields(), table.request.schema.fields());
        let pairs = Schema::new(own.iter().chain(found).cloned().collect::<Vec<_>>());
        let of_found = columns(self.joins.len() + 1, found.len());
        let all: Vec<ColumnOf> = self.output.iter().copied().chain(of_found).collect();
        let term = |term: &Arc<dyn PhysicalExpr>| {
            let term = with_columns(term, &|at| of(filter.column_indices().get(at)?))?;
            Asked::of(&term, ColumnType::Boolean, &pairs, &all)
        };
        split_conjunction(filter.expression()).into_iter().map(term).collect()
    }
}
