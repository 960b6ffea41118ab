//! Window functions that count rows: LAG, LEAD, NTH_VALUE.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

use crate::df::errors::to_df;
use crate::df::rewrite::{integer, is_exactly};
use crate::error::{Error, sqlstate};

/// Casts the argument and the default of LAG and LEAD to their common type, if the argument's type cannot hold the
/// default: DataFusion would truncate it. Runs before type coercion.
pub fn lag_defaults(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::WindowFunction(window) = &mut expr
        && matches!(window.fun.name(), "lag" | "lead")
        && let [of, _, default] = &mut window.params.args[..]
        && let (Ok(own), Ok(other)) = (of.get_type(schema), default.get_type(schema))
        && (own.is_numeric() && other.is_numeric() || own.is_temporal() && other.is_temporal())
        && own != other
        && !is_exactly(default, &own)
        && let Some(common) = comparison_coercion(&own, &other).filter(|common| *common != own)
    {
        for arg in [of, default] {
            *arg = cast(std::mem::take(arg), common.clone());
        }
        return Ok(Transformed::yes(expr));
    }
    Ok(Transformed::no(expr))
}

/// Makes LAG and LEAD by NULL rows give NULL, for which DataFusion takes 0 rows. Errors: NTH_VALUE of a row before the
/// first one, for which DataFusion counts from the last one. Runs before type coercion.
pub fn row_offsets(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (name, args) = match &mut expr {
        Expr::WindowFunction(window) => (window.fun.name(), &mut window.params.args),
        Expr::AggregateFunction(call) => (call.func.name(), &mut call.params.args),
        _ => return Ok(Transformed::no(expr)),
    };
    match (name, args) {
        ("first_value" | "last_value", args) if args.is_empty() => Err(to_df(
            Error::invalid(format!("{name} takes a value"))
                .hint(format!("write {name}(x) OVER (ORDER BY y)"))
                .state(sqlstate::UNDEFINED_FUNCTION),
        )),
        ("nth_value", args) => match args.get(1).and_then(integer) {
            Some(n @ ..1) => Err(to_df(
                Error::invalid(format!("nth_value takes a positive number, not {n}"))
                    .why("rows are counted from 1")
                    .hint(
                        "write nth_value(x, 2); nth_value(x, 1) in the other order counts from the last row",
                    )
                    .state(sqlstate::NTH_VALUE),
            )),
            _ => Ok(Transformed::no(expr)),
        },
        ("lag" | "lead", args) if args.get(1).is_some_and(is_null_literal) => {
            let nothing = ScalarValue::try_from(&args[0].get_type(schema)?)?;
            let by_one = Expr::Literal(ScalarValue::Int64(Some(1)), None);
            *args = vec![Expr::Literal(nothing, None), by_one];
            Ok(Transformed::yes(expr))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn is_null_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null_literal(&cast.expr),
        _ => false,
    }
}
