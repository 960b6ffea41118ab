//! `coalesce(due, '2020-01-01')`: a text beside other types is a value of their type, as in comparisons. DataFusion
//! 55.2 accepts a text beside numbers only.
//!
//! It makes a CASE of the function, unless a value is drawn: `coalesce(nullif(floor(random() * 2), 0), 5)`.

use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result as DfResult;
use datafusion::functions::core::coalesce::CoalesceFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};

use crate::df::errors::to_df;
use crate::error::Error;

/// The first value is that of a subquery, of which there would be two, and no other can fail: it is a CASE once the
/// subquery is a column of a join.
fn is_of_subquery(args: &[Expr]) -> DfResult<bool> {
    let Some((first, others)) = args.split_first() else { return Ok(false) };
    let are_at_hand =
        others.iter().all(|arg| matches!(arg, Expr::Literal(..) | Expr::Column(_) | Expr::Placeholder(_)));
    Ok(are_at_hand && first.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))?)
}

/// DataFusion's function for more types.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Coalesce(CoalesceFunc);

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        self.0.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        // A CASE of it evaluates each value twice, and what is drawn would be another one.
        if args.iter().any(Expr::is_volatile) || is_of_subquery(&args)? {
            return Ok(ExprSimplifyResult::Original(args));
        }
        self.0.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let mut values = ColumnarValue::values_to_arrays(&args.args)?.into_iter();
        let mut found = values.next().ok_or_else(|| to_df(Error::internal("coalesce of nothing")))?;
        for next in values {
            found = zip(&is_not_null(&found)?, &found, &next)?;
        }
        Ok(ColumnarValue::Array(found))
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.0.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.0.short_circuits()
    }

    fn coerce_types(&self, given: &[DataType]) -> DfResult<Vec<DataType>> {
        self.0.coerce_types(given).or_else(|error| {
            let others: Vec<DataType> = given.iter().filter(|ty| !ty.is_string()).cloned().collect();
            let agreed = self.0.coerce_types(&others).map_err(|_| error)?;
            Ok(vec![agreed[0].clone(); given.len()])
        })
    }
}
