//! `now()` in microseconds, as columns have times.
//!
//! DataFusion's own counts nanoseconds, which end in the year 2262; what stands beside it would be cast to them.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::row::{arrow_type, field};
use crate::value::ColumnType;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Now(Signature);

impl Default for Now {
    fn default() -> Self {
        Now(Signature::nullary(Volatility::Stable))
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: LazyLock<[String; 1]> = LazyLock::new(|| ["current_timestamp".to_owned()]);
        &*ALIASES
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(arrow_type(ColumnType::Timestamp))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(field(self.name(), ColumnType::Timestamp, false)))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        let Some(now) = context.query_execution_start_time() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let now = ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), None);
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(now, None)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        exec_err!("the time of a statement is known before it runs")
    }
}
