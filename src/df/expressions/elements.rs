//! Elements of an IN list that depend on the row.
//!
//! DataFusion 55.2 treats an element as constant if it evaluates to a scalar over zero rows, as a CASE between literals
//! does: all rows would be compared with that value. [`of_row`] wraps such elements in a function that gives a value
//! for each row.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Wraps the computed elements. Runs after their types are settled.
pub fn of_row(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::InList(list) = &mut expr else { return Ok(Transformed::no(expr)) };
    let mut found = false;
    for element in &mut list.list {
        let is_marked = matches!(element, Expr::ScalarFunction(call) if call.name() == NAME);
        if !matches!(element, Expr::Column(_)) && !is_marked && element.any_column_refs() {
            let computed = std::mem::take(element);
            *element = ScalarUDF::new_from_impl(OfRow::default()).call(vec![computed]);
            found = true;
        }
    }
    Ok(Transformed::new_transformed(expr, found))
}

const NAME: &str = "of_row";

/// Returns its argument, row by row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfRow(Signature);

impl Default for OfRow {
    fn default() -> OfRow {
        OfRow(Signature::any(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for OfRow {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        let [ty] = types else { return exec_err!("of_row takes one value") };
        Ok(ty.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let [field] = args.arg_fields else { return exec_err!("of_row takes one value") };
        Ok(Arc::clone(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [value] = &args.args[..] else { return exec_err!("of_row takes one value") };
        Ok(ColumnarValue::Array(value.to_array(args.number_rows)?))
    }
}
