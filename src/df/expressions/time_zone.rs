//! `AT TIME ZONE`: what the clocks of a zone show, or the moment at which they show it.
//!
//! DataFusion makes a moment with another zone of both, which parts of it then show as the zone's time and others as
//! UTC. In SQL a moment becomes the TIMESTAMP there, and a TIMESTAMP the moment (SQL:2016, 6.35).

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::functions::datetime::expr_fn::to_local_time;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, cast};

use crate::df::rewrite::settled_type;
use crate::row::arrow_type;
use crate::value::ColumnType;

/// Gives the moment and the TIMESTAMP their types; it belongs before type coercion.
pub fn at_time_zone(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Some((what, zone)) = at_zone(&expr) else { return Ok(Transformed::no(expr)) };
    let there = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    Ok(Transformed::yes(match settled_type(what, schema) {
        Some(DataType::Timestamp(_, Some(_))) => to_local_time(vec![cast(what.clone(), there)]),
        _ => {
            let shown = cast(what.clone(), arrow_type(ColumnType::Timestamp));
            cast(cast(shown, there), arrow_type(ColumnType::TimestampTz))
        }
    }))
}

/// The operands. Nothing else than AT TIME ZONE asks for nanoseconds in a zone.
fn at_zone(expr: &Expr) -> Option<(&Expr, &str)> {
    let Expr::Cast(Cast { expr, field }) = expr else { return None };
    match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) => Some((expr, zone)),
        _ => None,
    }
}
