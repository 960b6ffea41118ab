//! What an outer row asks a table with: its values, and what is computed of them.
//!
//! In `b.at < a.at + INTERVAL '1 day'`, the table `b` is compared with a sum, which is computed for each row of `a`. A
//! condition that no key serves, as in `b.price <> a.price`, is computed for each match.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::collect_columns;

use super::search::Level;
use crate::df::below::{place, with_columns};
use crate::df::cached::{parameters, subquery_values};
use crate::df::expr::comparison;
use crate::error::Result;
use crate::exec::next_rows::{ColumnOf, JoinedRows, NextRows};
use crate::plan::CmpOp;
use crate::row::{column_type_of, is_same_type, value_at};
use crate::value::{ColumnType, Value};

/// A value of the outer row, or of an outer row and its match.
#[derive(Debug)]
pub enum Asked {
    Column(ColumnOf),
    /// Whether the comparison of two columns holds, whose values compare like their bytes.
    Compared(ColumnOf, CmpOp, ColumnOf),
    Computed {
        /// An expression over the `columns`, which have this schema.
        value: Arc<dyn PhysicalExpr>,
        columns: Arc<[ColumnOf]>,
        schema: SchemaRef,
        ty: ColumnType,
        /// It has open parameters.
        is_open: bool,
    },
}

impl Asked {
    /// An expression of this type over `rows` with these columns; `None` if an operator above would provide a part.
    pub fn of(
        value: &Arc<dyn PhysicalExpr>,
        ty: ColumnType,
        rows: &Schema,
        columns: &[ColumnOf],
    ) -> Option<Asked> {
        if let Some(at) = place(value) {
            return columns.get(at).copied().map(Asked::Column);
        }
        if let Some(compared) = Asked::compared(value, rows, columns) {
            return Some(compared);
        }
        if subquery_values::reads_any(value) || is_volatile_but_for_parameters(value) {
            return None;
        }
        let mut read: Vec<usize> = collect_columns(value).iter().map(Column::index).collect();
        read.sort_unstable();
        let moved = with_columns(value, &|at| {
            let column = Column::new(rows.fields().get(at)?.name(), read.binary_search(&at).ok()?);
            Some(Arc::new(column))
        });
        Some(Asked::Computed {
            value: moved?,
            columns: read.iter().map(|at| columns.get(*at).copied()).collect::<Option<_>>()?,
            schema: Arc::new(rows.project(&read).ok()?),
            ty,
            is_open: parameters::is_open(value),
        })
    }

    fn compared(value: &Arc<dyn PhysicalExpr>, rows: &Schema, columns: &[ColumnOf]) -> Option<Asked> {
        let compared = value.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (place(compared.left())?, place(compared.right())?);
        let [ty, other] = [left, right].map(|at| rows.fields().get(at));
        let is_plain = is_same_type(ty?, other?) && column_type_of(ty?)?.compares_as_bytes();
        let op = comparison(*compared.op()).filter(|_| is_plain)?;
        Some(Asked::Compared(*columns.get(left)?, op, *columns.get(right)?))
    }

    /// The value for the current rows of these levels; `None` if it cannot be computed.
    pub(super) fn value(&self, levels: &[Level<'_>], params: &[Value]) -> Result<Option<Value>> {
        let of = |column: &ColumnOf| levels[column.table].value(column.column);
        Ok(Some(match self {
            Asked::Column(column) => of(column)?,
            Asked::Compared(left, op, right) => match (of(left)?, of(right)?) {
                (Value::Null, _) | (_, Value::Null) => Value::Null,
                (left, right) => Value::Boolean(op.holds(left.cmp(&right))),
            },
            Asked::Computed { value, columns, schema, ty, is_open } => {
                let mut row = JoinedRows::new(levels.len(), Arc::clone(columns));
                row.push(levels.iter().map(Level::row));
                let row = NextRows::Joined(row).batch_from(0, schema)?;
                let value =
                    if *is_open { parameters::filled(value, params) } else { Some(Arc::clone(value)) };
                let value = value.map(|value| value.evaluate(&row).and_then(|value| value.into_array(1)));
                match value {
                    Some(Ok(value)) if value.is_null(0) => Value::Null,
                    Some(Ok(value)) => value_at(&value, 0, *ty)?,
                    Some(Err(_)) | None => return Ok(None),
                }
            }
        }))
    }
}

/// Each run computes another value, whatever the parameters.
fn is_volatile_but_for_parameters(value: &Arc<dyn PhysicalExpr>) -> bool {
    let is_volatile = |expr: &Arc<dyn PhysicalExpr>| {
        expr.is_volatile_node() && !(expr.children().is_empty() && parameters::is_open(expr))
    };
    value.exists(|expr| Ok(is_volatile(expr))).unwrap_or(true)
}
