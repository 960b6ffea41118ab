//! Scalar functions computed row by row.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::df::errors::to_df;
use crate::error::Result;
use crate::row::{ColumnBuilder, arrow_type, as_values, field, ref_at};
use crate::value::{ColumnType, TimePattern, ValueRef};

/// A scalar function computed row by row.
pub fn row_function(name: &'static str, body: Plain, output: ColumnType) -> ScalarUDF {
    ScalarUDF::new_from_impl(RowFunction::new(name, body, output))
}

/// Computes a function from the arguments of one row; the result may be in the buffers.
pub type Plain = for<'a> fn(&[ValueRef<'a>], &'a mut FunctionBuffers) -> Result<ValueRef<'a>>;

/// Buffers for a function's result, cleared for each row except for its cache.
#[derive(Default)]
pub struct FunctionBuffers {
    /// Text of the result.
    pub text: String,
    /// Text of an argument.
    pub inner: String,
    /// Types of the arguments.
    pub fields: Vec<FieldRef>,
    /// The last format, parsed: nearly always the one of all rows.
    pub format: Option<(String, TimePattern)>,
}

/// The body of a row function.
pub trait RowBody: Send + Sync {
    /// The result for the arguments of one row.
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>>;
}

impl RowBody for Plain {
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
        self(args, buffers)
    }
}

struct Body(Arc<dyn RowBody>);

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// A scalar function computed row by row, without an allocation for each row.
#[derive(Debug)]
pub struct RowFunction {
    name: &'static str,
    body: Body,
    output: ColumnType,
    signature: Signature,
}

impl RowFunction {
    /// A function of any arguments, whose results depend on nothing else.
    pub fn new(name: &'static str, body: impl RowBody + 'static, output: ColumnType) -> RowFunction {
        let signature = Signature::variadic_any(Volatility::Immutable);
        RowFunction { name, body: Body(Arc::new(body)), output, signature }
    }

    /// The same with another signature.
    pub fn taking(self, signature: Signature) -> RowFunction {
        RowFunction { signature, ..self }
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(arrow_type(self.output))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DfResult<FieldRef> {
        Ok(Arc::new(field(self.name, self.output, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        // Constant arguments are read once.
        let varies = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Array(_));
        let is_column = args.args.iter().any(varies);
        let rows = if is_column { args.number_rows } else { 1 };
        let mut arrays = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            arrays.push((as_values(&arg.to_array(1)?).map_err(to_df)?, varies(arg)));
        }
        let mut out = ColumnBuilder::new(self.output, rows);
        let mut buffers = FunctionBuffers { fields: args.arg_fields.clone(), ..Default::default() };
        let mut row = vec![ValueRef::Null; arrays.len()];
        for i in 0..rows {
            for (value, (array, varies)) in row.iter_mut().zip(&arrays) {
                if *varies || i == 0 {
                    *value = ref_at(array, i).map_err(to_df)?;
                }
            }
            buffers.text.clear();
            buffers.inner.clear();
            self.body.0.of(&row, &mut buffers).and_then(|value| out.append(value)).map_err(to_df)?;
        }
        let values = out.finish().map_err(to_df)?;
        Ok(match is_column {
            true => ColumnarValue::Array(values),
            false => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
        })
    }
}
