//! `one_row(value, rows)`: the value of a scalar subquery with this number of rows; more than one is an error.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::df::errors::{to_df, too_many_rows};

pub fn one_row(value: Expr, rows: Expr) -> Expr {
    ScalarUDF::new_from_impl(OneRow(Signature::any(2, Volatility::Immutable))).call(vec![value, rows])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRow(Signature);

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        "one_row"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [value, rows] = &args.args[..] else { return exec_err!("one_row takes a value and a number") };
        let rows = rows.to_array(args.number_rows)?;
        if rows.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            return Err(to_df(too_many_rows()));
        }
        Ok(value.clone())
    }
}
