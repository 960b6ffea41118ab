//! `AT TIME ZONE`: the local time in a zone, or the moment of a local time.
//!
//! DataFusion makes a moment with another zone of both, parts of which then appear in the zone's time and others in
//! UTC. In SQL a moment becomes the zone's TIMESTAMP, and a TIMESTAMP the moment (SQL:2016, 6.35). A local time that a
//! clock change skips or repeats is a single moment, too, the same as PostgreSQL's. `now()` is a moment, although its
//! type here is TIMESTAMP: that of UTC.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::functions::datetime::expr_fn::to_local_time;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};

use crate::df::errors::to_df;
use crate::df::rewrite::settled_type;
use crate::error::{Error, Result, sqlstate};
use crate::row::arrow_type;
use crate::value::{ColumnType, ValueRef, moment_at};

/// The one zone that is often written in small letters.
const UTC: &str = "UTC";

/// Rewrites AT TIME ZONE for both types. Runs before type coercion.
pub fn at_time_zone(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Some((what, zone)) = at_zone(&expr) else { return Ok(Transformed::no(expr)) };
    let zone = if zone.eq_ignore_ascii_case(UTC) { UTC } else { zone };
    let there = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    Ok(Transformed::yes(match settled_type(what, schema) {
        Some(DataType::Timestamp(_, Some(_))) => to_local_time(vec![cast(what.clone(), there)]),
        _ if is_of_clock(what, schema) => {
            let moment = cast(what.clone(), arrow_type(ColumnType::TimestampTz));
            to_local_time(vec![cast(moment, there)])
        }
        _ => {
            let shown = cast(what.clone(), arrow_type(ColumnType::Timestamp));
            let moment =
                MomentOf { zone: zone.to_owned(), signature: Signature::any(1, Volatility::Immutable) };
            ScalarUDF::new_from_impl(moment).call(vec![shown])
        }
    }))
}

/// Has yet to be rewritten.
pub fn is_at_time_zone(expr: &Expr) -> bool {
    at_zone(expr).is_some()
}

/// The time is that of a clock, or a number of seconds since 1970, or computed of one.
fn is_of_clock(time: &Expr, schema: &DFSchema) -> bool {
    match time {
        Expr::Alias(alias) => is_of_clock(&alias.expr, schema),
        Expr::Cast(cast) => is_of_clock(&cast.expr, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            is_of_clock(left, schema) || is_of_clock(right, schema)
        }
        Expr::ScalarFunction(call) => match (call.name(), &call.args[..]) {
            ("now", _) => true,
            ("date_trunc", [_, time]) => is_of_clock(time, schema),
            (name, [number, ..]) if name.starts_with("to_timestamp") => {
                settled_type(number, schema).is_some_and(|ty| ty.is_numeric())
            }
            _ => false,
        },
        _ => false,
    }
}

/// The operands.
fn at_zone(expr: &Expr) -> Option<(&Expr, &str)> {
    let Expr::Cast(Cast { expr, field }) = expr else { return None };
    Some((expr, zone_of(field.data_type())?))
}

/// The type is that of an AT TIME ZONE that has yet to be rewritten.
pub fn is_yet_to_be_told(ty: &DataType) -> bool {
    zone_of(ty).is_some()
}

/// Only AT TIME ZONE casts to nanoseconds in a zone.
fn zone_of(ty: &DataType) -> Option<&str> {
    match ty {
        DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) => Some(zone),
        _ => None,
    }
}

/// Computes the moment at which a zone has this local time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MomentOf {
    zone: String,
    signature: Signature,
}

impl MomentOf {
    fn moment(&self, shown: i64, zone: &Tz) -> Result<i64> {
        moment_at(shown, zone).ok_or_else(|| {
            let what = format!("{} AT TIME ZONE '{}'", ValueRef::Timestamp(shown), self.zone);
            Error::invalid(format!("{what} is out of range")).state(sqlstate::OUT_OF_RANGE)
        })
    }
}

impl ScalarUDFImpl for MomentOf {
    fn name(&self) -> &str {
        "moment_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(arrow_type(ColumnType::TimestampTz))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [shown] = &args.args[..] else { return exec_err!("one time is shown") };
        let zone: Tz = self.zone.parse()?;
        let shown = shown.to_array(args.number_rows)?;
        let moments = shown
            .as_primitive::<TimestampMicrosecondType>()
            .iter()
            .map(|us| us.map(|us| self.moment(us, &zone)).transpose());
        let moments = moments.collect::<Result<TimestampMicrosecondArray>>().map_err(to_df)?;
        Ok(ColumnarValue::Array(Arc::new(moments.with_data_type(arrow_type(ColumnType::TimestampTz)))))
    }
}
