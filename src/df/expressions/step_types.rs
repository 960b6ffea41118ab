//! Types of recursive queries: steps must fit the types of the initial rows.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

use super::time_zone::is_yet_to_be_told;
use crate::df::errors::to_df;
use crate::df::subqueries::correlated::subquery_in;
use crate::error::{Error, sqlstate};
use crate::row::column_type_of;
use crate::sql;

/// Errors: the result of a step loses digits, or the time of day, in the type of the initial rows; the error would grow
/// with each step.
pub fn nothing_is_lost(plan: &LogicalPlan) -> DfResult<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(query) = node
            && let LogicalPlan::Projection(step) = &*query.recursive_term
        {
            for (output, column) in step.expr.iter().zip(query.static_term.schema().fields()) {
                let Expr::Cast(Cast { expr, .. }) = output.clone().unalias() else { continue };
                let made = expr.get_type(step.input.schema())?;
                if loses(&made, column.data_type()) {
                    return Err(to_df(lost(column, made)));
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn loses(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Timestamp};
    match (from, to) {
        (Decimal128(_, from), Decimal128(_, to)) => from > to,
        (Decimal128(_, scale), to) => *scale > 0 && to.is_integer(),
        (from, to) if from.is_floating() => to.is_integer() || matches!(to, Decimal128(..)),
        (Timestamp(..), Date32) => true,
        _ => false,
    }
}

fn lost(column: &Field, made: DataType) -> Error {
    let first = column_type_of(column).map(|ty| ty.to_string()).unwrap_or_default();
    let made = column_type_of(&Field::new("", made, true)).map(|ty| ty.to_string()).unwrap_or_default();
    let name = sql::output_name(column.name());
    let hint = match &made[..] {
        "TIMESTAMP" => "write CAST(... AS TIMESTAMP) in the first rows".to_owned(),
        _ => format!(
            "write CAST(... AS DOUBLE) in the first rows; or CAST(... AS {first}) in the steps, which rounds"
        ),
    };
    Error::invalid(format!(
        "column \"{name}\" of a recursive query is {first} in its first rows, {made} in its steps"
    ))
    .why("each step would lose something")
    .hint(hint)
    .state(sqlstate::DATATYPE_MISMATCH)
}

/// Casts the rows of a step to the types of the initial rows. DataFusion does so before the types of parameters are
/// known, and before our rules change a date plus hours to a timestamp. This rule also makes columns nullable that
/// neither side declares so, but that may be NULL once a subquery has become a join.
pub fn steps_as_first(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::RecursiveQuery(query) = &plan else { return Ok(Transformed::no(plan)) };
    let (first, step) = (&query.static_term, &query.recursive_term);
    let fields = || first.schema().fields().iter().zip(step.schema().fields());
    if let Some((column, made)) = fields().find(|(first, step)| loses(step.data_type(), first.data_type())) {
        return Err(to_df(lost(column, made.data_type().clone())));
    }
    let differ = fields().any(|(first, step)| first.data_type() != step.data_type());
    let computed = |at: usize| match &**step {
        LogicalPlan::Projection(step) => step.expr.get(at).is_none_or(may_be_otherwise),
        _ => true,
    };
    // Columns that are not declared nullable but may be.
    let unsure: Vec<bool> = fields()
        .enumerate()
        .map(|(at, (first, step))| !first.is_nullable() && !step.is_nullable() && computed(at))
        .collect();
    let is_unsure = unsure.contains(&true);
    if !differ && !is_unsure {
        return Ok(Transformed::no(plan));
    }
    let step = match differ {
        true => Arc::new(coerce_plan_expr_for_schema(step.as_ref().clone(), first.schema())?),
        false => Arc::clone(step),
    };
    let outputs = first.schema().iter().zip(&unsure).map(|((table, field), unsure)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        match unsure {
            false => column,
            true => MaybeNull::of(column).alias_qualified(table.cloned(), field.name()),
        }
    });
    let outputs: Vec<Expr> = outputs.collect();
    let first = match is_unsure {
        true => Arc::new(LogicalPlanBuilder::from(Arc::clone(first)).project(outputs)?.build()?),
        false => Arc::clone(first),
    };
    let query = RecursiveQuery::try_new(query.name.clone(), first, step, query.is_distinct)?;
    Ok(Transformed::yes(LogicalPlan::RecursiveQuery(query)))
}

/// Casts the initial rows of a recursive query to the types that its steps were planned with. A value that does not fit
/// fails at run time. Errors: the cast would lose something.
pub fn as_planned(first: LogicalPlan, planned: &DFSchema) -> DfResult<LogicalPlan> {
    let pairs = || {
        let pairs = planned.fields().iter().zip(first.schema().fields());
        pairs.filter(|(planned, _)| !is_yet_to_be_told(planned.data_type()))
    };
    if pairs().all(|(planned, now)| planned.data_type() == now.data_type()) {
        return Ok(first);
    }
    if let Some((planned, now)) = pairs().find(|(planned, now)| loses(now.data_type(), planned.data_type())) {
        return Err(to_df(lost(planned, now.data_type().clone())));
    }
    let columns = first.schema().iter().zip(planned.fields()).map(|((table, field), planned)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if is_yet_to_be_told(planned.data_type()) {
            return column;
        }
        cast(column, planned.data_type().clone()).alias_qualified(table.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(first).project(columns)?.build()
}

/// The output's nullability may change during planning: a subquery becomes a join, a function a CASE.
fn may_be_otherwise(output: &Expr) -> bool {
    let is_open = |expr: &Expr| match expr {
        // One argument: the function that marks computed outputs.
        Expr::ScalarFunction(call) => call.args.len() != 1,
        Expr::Case(_) => true,
        expr => subquery_in(expr).is_some(),
    };
    output.exists(|expr| Ok(is_open(expr))).unwrap_or(true)
}

/// The identity function, declared nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MaybeNull(Signature);

impl MaybeNull {
    /// The value, declared nullable.
    pub fn of(value: Expr) -> Expr {
        // Declared volatile, so that the optimizer does not look inside.
        ScalarUDF::new_from_impl(MaybeNull(Signature::any(1, Volatility::Volatile))).call(vec![value])
    }

    /// Whether the expression is a call of it, which draws no number.
    pub fn is(expr: &Expr) -> bool {
        MaybeNull::value_in(expr).is_some()
    }

    /// The value that a call of it was given; `None` for other expressions.
    pub fn value_in(expr: &Expr) -> Option<&Expr> {
        match expr {
            Expr::ScalarFunction(call) if call.func.inner().downcast_ref::<MaybeNull>().is_some() => {
                call.args.first()
            }
            _ => None,
        }
    }
}

impl ScalarUDFImpl for MaybeNull {
    fn name(&self) -> &str {
        "maybe_null"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
