//! Parameters above the scans of a cached plan: `HAVING count(*) > $1`.
//!
//! A scan keeps its filters as templates. In other operators, a parameter is a call of [`OpenParameter`] from planning
//! on, until [`fill`] replaces it by its value for a run. That works in filters, projections and the arguments of
//! common aggregates, in the filters of joins and in VALUES: a plan with a parameter anywhere else is not kept.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Between, Case, Placeholder,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Join, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Values, Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::open_values::{self, OpenValuesExec};
use crate::df::errors::{df_error, to_df};
use crate::df::parallel::OF_A_SET;
use crate::df::rewrite::{bare, below, hears_of_types, rename_kept};
use crate::df::table::template::{has_params, number, params_in, place, value_of};
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::error::{Error, Result};
use crate::sql::PARAMETER_DIGITS;
use crate::value::{ColumnType, Value};

/// Selects expressions.
pub type Test<'a> = &'a dyn Fn(&Arc<dyn PhysicalExpr>) -> bool;

/// Rewrites an expression.
pub type ExprRewrite<'a> = &'a dyn Fn(&Arc<dyn PhysicalExpr>) -> DfResult<Arc<dyn PhysicalExpr>>;

/// Stands for the parameter at this position, as a value of this type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OpenParameter {
    at: usize,
    ty: ColumnType,
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for OpenParameter {
    fn name(&self) -> &str {
        "parameter"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(to_df(Error::internal("a parameter was left open")))
    }
}

/// Turns parameters into calls of `OpenParameter`, where [`fill`] can replace them. It runs after optimisation, which
/// would not recognise them.
pub fn open(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let opened = plan.rewrite_up_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            let filter = join.filter.map(|filter| filter.rewrite_up(|e| Ok(opened(e))).data()).transpose()?;
            return Ok(Transformed::yes(LogicalPlan::Join(Join { filter, ..join })));
        }
        if let LogicalPlan::Values(Values { schema, mut values }) = node {
            // What is drawn is another value in each run, too.
            let is_open = values.iter().flatten().any(|value| has_params(value) || value.is_volatile());
            for value in values.iter_mut().flatten().filter(|_| is_open) {
                *value = std::mem::take(value).rewrite_up(|e| Ok(opened(e)))?.data;
            }
            let values = Values { schema, values };
            return Ok(match is_open {
                true => Transformed::yes(open_values::scan_of(values)),
                false => Transformed::no(LogicalPlan::Values(values)),
            });
        }
        let is_aggregate = matches!(node, LogicalPlan::Aggregate(_));
        if !is_aggregate && !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Projection(_)) {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        node.rewrite_own_expressions(|expr| {
            if is_aggregate && !is_plain_aggregate(&expr) {
                return Ok(Transformed::no(expr));
            }
            rename_kept(expr, &names, &mut |expr| expr.rewrite_up(|e| Ok(opened(e))))
        })
    });
    opened.map(|opened| opened.data)
}

/// The aggregate takes row expressions only: the constant arguments of others shape them.
fn is_plain_aggregate(expr: &Expr) -> bool {
    let expr = if let Expr::Alias(alias) = expr { &alias.expr } else { expr };
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return false };
    let AggregateFunctionParams { args, filter, order_by, .. } = params;
    OF_A_SET.contains(&func.name())
        && matches!(&args[..], [arg] if arg.any_column_refs())
        && filter.is_none()
        && order_by.is_empty()
}

/// The plan with some parameters replaced by their values; `which`: their positions.
pub fn settled(plan: LogicalPlan, params: &[Value], which: &[usize]) -> DfResult<LogicalPlan> {
    if which.is_empty() {
        return Ok(plan);
    }
    let value = |expr: Expr| {
        let Expr::Placeholder(param) = &expr else { return Transformed::no(expr) };
        let value = number(param).filter(|at| which.contains(at)).and_then(|at| params.get(at));
        match value.and_then(|value| crate::df::expr::scalar_of(value).ok()) {
            Some(scalar) => Transformed::yes(Expr::Literal(scalar, None)),
            None => Transformed::no(expr),
        }
    };
    each_expr(plan, &value)
}

/// Positions of parameters outside of filters, projections and VALUES; with `of_joins`, also of those in joins, which
/// the optimizer may move into filters. Includes those that are [`forming`].
pub fn shaping(plan: &LogicalPlan, of_joins: bool) -> DfResult<Vec<usize>> {
    let mut shaping = params_of(plan, &|node| match node {
        LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::Values(_) => false,
        LogicalPlan::Join(_) => of_joins,
        _ => true,
    })?;
    shaping.extend(forming(plan)?);
    shaping.sort_unstable();
    shaping.dedup();
    Ok(shaping)
}

/// Positions of parameters that decide a result type, as the digits of ROUND do, or how many rows are read: the greatest
/// of row_number().
pub fn forming(plan: &LogicalPlan) -> DfResult<Vec<usize>> {
    let mut found = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            found.extend(
                split_conjunction(&filter.predicate).into_iter().filter_map(|e| numbering(e, &filter.input)),
            );
        }
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                if let Expr::ScalarFunction(call) = e
                    && matches!(call.name(), "round" | "trunc")
                    && let Some(Expr::Placeholder(digits)) = call.args.get(1)
                {
                    found.extend(number(digits));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found.into_iter().collect())
}

/// Position of the parameter that bounds row_number(), if nothing else is computed of the same rows.
fn numbering(condition: &Expr, of: &LogicalPlan) -> Option<usize> {
    let (number_of, param) = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, op, &**right) {
            (of, Operator::Lt | Operator::LtEq | Operator::Eq, Expr::Placeholder(param))
            | (Expr::Placeholder(param), Operator::Gt | Operator::GtEq | Operator::Eq, of) => (of, param),
            _ => return None,
        },
        Expr::Between(Between { expr, high, .. }) => match &**high {
            Expr::Placeholder(param) => (&**expr, param),
            _ => return None,
        },
        _ => return None,
    };
    let (mut number_of, mut plan) = (number_of.clone(), of);
    loop {
        match plan {
            LogicalPlan::Window(window) => {
                let [expr] = &window.window_expr[..] else { return None };
                let Expr::WindowFunction(call) = bare(expr) else { return None };
                let is_it = number_of == Expr::Column(Column::from_name(expr.schema_name().to_string()));
                return number(param).filter(|_| is_it && call.fun.name() == "row_number");
            }
            LogicalPlan::Filter(filter) => plan = &filter.input,
            _ => {
                number_of = bare(&below(&number_of, plan)?).clone();
                plan = plan.inputs().first()?;
            }
        }
    }
}

/// Positions of the parameters in some nodes of a plan.
pub fn params_of(plan: &LogicalPlan, counts: &dyn Fn(&LogicalPlan) -> bool) -> DfResult<Vec<usize>> {
    let mut found = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if counts(node) {
            node.apply_expressions(|expr| {
                found.extend(params_in(expr));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found.into_iter().collect())
}

/// Gives parameters the type of their value if the context does not tell their type, or if they are operands of
/// arithmetic.
pub fn typed(plan: LogicalPlan, params: &[Value]) -> DfResult<LogicalPlan> {
    each_expr(plan, &|expr| typed_by(expr, params))
}

/// Rewrites `agg(x) FILTER (WHERE c)` to `agg(CASE WHEN c THEN x END)` where `c` has a parameter: a run can fill in
/// arguments only.
pub fn filters_as_cases(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    each_expr(plan, &|mut expr| {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = &mut expr else {
            return Transformed::no(expr);
        };
        let is_chosen = params.filter.as_deref().is_some_and(has_params);
        // These aggregates ignore NULL.
        if !is_chosen || !OF_A_SET.contains(&func.name()) {
            return Transformed::no(expr);
        }
        if let [arg] = &mut params.args[..]
            && let Some(filter) = params.filter.take()
        {
            let then = Box::new(std::mem::take(arg));
            *arg = Expr::Case(Case { expr: None, when_then_expr: vec![(filter, then)], else_expr: None });
        }
        Transformed::yes(expr)
    })
}

/// Rewrites all expressions of a plan and keeps its output names. Rules rely on types, and on what may be NULL.
fn each_expr(plan: LogicalPlan, rewrite: &dyn Fn(Expr) -> Transformed<Expr>) -> DfResult<LogicalPlan> {
    let has_changed = Cell::new(false);
    let rewritten = plan.rewrite_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.rewrite_own_expressions(|expr| {
            rename_kept(expr, &names, &mut |expr| expr.rewrite_up(|e| Ok(rewrite(e))))
        })?;
        has_changed.set(has_changed.get() || node.transformed);
        if has_changed.get() { node.transform_data(hears_of_types) } else { Ok(node) }
    });
    rewritten.data()
}

fn typed_by(mut expr: Expr, params: &[Value]) -> Transformed<Expr> {
    let changed = match &mut expr {
        Expr::Placeholder(param) if param.field.as_ref().is_none_or(|field| field.data_type().is_null()) => {
            type_by_value(param, params, &|_| true)
        }
        // DataFusion gives it the type of the other operand: the `$1` of `$1 * 1.5` would have two digits.
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.is_numerical_operators() => {
            [left, right].into_iter().fold(false, |changed, side| match &mut **side {
                Expr::Placeholder(param)
                    if param.field.as_ref().is_some_and(|field| field.data_type().is_numeric()) =>
                {
                    // A text is refused beside a number, in any run.
                    type_by_value(param, params, &|ty| ty.is_numeric() || ty.is_string()) || changed
                }
                _ => changed,
            })
        }
        _ => false,
    };
    Transformed::new_transformed(expr, changed)
}

/// Gives a parameter the type of its value, if that suits; true if it does.
fn type_by_value(param: &mut Placeholder, params: &[Value], suits: &dyn Fn(&DataType) -> bool) -> bool {
    let value = number(param).and_then(|at| params.get(at)).filter(|value| !value.is_null());
    let ty = value.and_then(|value| crate::df::expr::scalar_of(value).ok()).map(|scalar| scalar.data_type());
    let ty = ty.filter(suits).map(|ty| match ty {
        DataType::Decimal128(digits, scale) => DataType::Decimal128(digits.max(PARAMETER_DIGITS), scale),
        ty => ty,
    });
    let Some(ty) = ty else { return false };
    param.field = Some(Arc::new(Field::new(param.id.clone(), ty, true)));
    true
}

fn opened(expr: Expr) -> Transformed<Expr> {
    let Expr::Placeholder(placeholder) = &expr else { return Transformed::no(expr) };
    let Some(((at, ty), field)) = place(placeholder).zip(placeholder.field.as_ref()) else {
        return Transformed::no(expr);
    };
    // Declared volatile, so that it is not evaluated at planning.
    let signature = Signature::exact(Vec::new(), Volatility::Volatile);
    let open = OpenParameter { at, ty, to: field.data_type().clone(), signature };
    Transformed::yes(ScalarUDF::new_from_impl(open).call(Vec::new()))
}

/// The expression contains an open parameter.
pub fn is_open(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.exists(|e| Ok(as_open(e).is_some())).unwrap_or(true)
}

fn as_open(expr: &Arc<dyn PhysicalExpr>) -> Option<&OpenParameter> {
    expr.downcast_ref::<ScalarFunctionExpr>()?.fun().inner().downcast_ref()
}

/// Every open parameter of a plan is where [`fill`] finds it.
pub fn can_be_filled(plan: &Arc<dyn ExecutionPlan>) -> bool {
    stand_in(plan, &is_open, &|plan| {
        plan.downcast_ref().is_some_and(only_in_arguments)
            || only_in_filter(plan)
            || plan.is::<OpenValuesExec>()
    })
}

/// Open parameters of an aggregate are in its functions' arguments only.
fn only_in_arguments(aggregate: &AggregateExec) -> bool {
    let groups = aggregate.group_expr().input_exprs();
    let filters = aggregate.filter_expr().iter().flatten();
    let orders = aggregate.aggr_expr().iter().flat_map(|function| function.all_expressions().order_by_exprs);
    !groups.iter().chain(filters).any(is_open) && !orders.into_iter().any(|order| is_open(&order))
}

/// Open parameters of a join are in its filter only.
fn only_in_filter(plan: &dyn ExecutionPlan) -> bool {
    let hash = plan.downcast_ref::<HashJoinExec>();
    let in_keys = |join: &HashJoinExec| join.on().iter().any(|(left, right)| is_open(left) || is_open(right));
    plan.is::<NestedLoopJoinExec>() || hash.is_some_and(|join| !in_keys(join))
}

/// Every expression of this kind is where [`with_exprs`] finds it.
pub fn stands_in_operators(plan: &Arc<dyn ExecutionPlan>, is_it: Test<'_>) -> bool {
    stand_in(plan, is_it, &|_| false)
}

/// The same, allowing it in `others` as well.
fn stand_in(
    plan: &Arc<dyn ExecutionPlan>,
    is_it: Test<'_>,
    others: &dyn Fn(&dyn ExecutionPlan) -> bool,
) -> bool {
    let can =
        plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || others(&**plan) || !has(&**plan, is_it);
    can && plan.children().into_iter().all(|child| stand_in(child, is_it, others))
}

fn has(node: &dyn ExecutionPlan, is_it: Test<'_>) -> bool {
    let mut found = false;
    let looked = node.apply_expressions(&mut |expr| {
        found |= is_it(expr);
        Ok(TreeNodeRecursion::Continue)
    });
    found || looked.is_err()
}

/// The operator with its open parameters filled in. `None` if a value does not suit: then the query has to be planned
/// with the value in it.
pub fn fill(node: Arc<dyn ExecutionPlan>, params: &[Value]) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let suits = Cell::new(true);
    let change = |expr: &Arc<dyn PhysicalExpr>| {
        let filled = filled(expr, params);
        suits.set(suits.get() && filled.is_some());
        Ok(filled.unwrap_or_else(|| Arc::clone(expr)))
    };
    let node = with_exprs(node, &is_open, &change);
    // The rows of VALUES are computed at once, which fails without all of the parameters.
    if suits.get() { node.map(Some).map_err(df_error) } else { Ok(None) }
}

/// Changes the expressions for which `is_it` holds in a filter, a projection, an aggregate's arguments, the filter of a
/// join or VALUES.
pub fn with_exprs(
    node: Arc<dyn ExecutionPlan>,
    is_it: Test<'_>,
    change: ExprRewrite<'_>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    if let Some(values) = node.downcast_ref::<OpenValuesExec>() {
        return values.in_memory(is_it, change);
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>().filter(|filter| is_it(filter.predicate())) {
        let predicate = change(filter.predicate())?;
        return Ok(Arc::new(FilterExecBuilder::from(filter).with_predicate(predicate).build()?));
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>()
        && projection.expr().iter().any(|output| is_it(&output.expr))
    {
        let outputs = projection
            .expr()
            .iter()
            .map(|output| Ok(ProjectionExpr { expr: change(&output.expr)?, alias: output.alias.clone() }));
        let outputs = outputs.collect::<DfResult<Vec<_>>>()?;
        return Ok(Arc::new(ProjectionExec::try_new(outputs, Arc::clone(projection.input()))?));
    }
    let changed = |filter: &JoinFilter| {
        let expr = change(filter.expression())?;
        Ok::<_, DataFusionError>(JoinFilter::new(
            expr,
            filter.column_indices().to_vec(),
            Arc::clone(filter.schema()),
        ))
    };
    let is_filtered = |filter: &&JoinFilter| is_it(filter.expression());
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter().filter(is_filtered)
    {
        return Ok(Arc::new(join.builder().with_filter(Some(changed(filter)?)).build()?));
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter().filter(is_filtered)
    {
        let filter = Some(changed(filter)?);
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
        && aggregate.aggr_expr().iter().any(|function| function.expressions().iter().any(is_it))
    {
        let functions = aggregate.aggr_expr().iter().map(|function| {
            let args = function.expressions().iter().map(change).collect::<DfResult<Vec<_>>>()?;
            let orders = function.all_expressions().order_by_exprs;
            let changed = function.with_new_expressions(args, orders).map(Arc::new);
            changed.ok_or_else(|| to_df(Error::internal("an aggregate does not take other arguments")))
        });
        let functions = functions.collect::<DfResult<Vec<_>>>()?;
        return Ok(Arc::new(aggregate.with_new_aggr_exprs(functions)));
    }
    Ok(node)
}

/// The expression with its open parameters filled in; `None` if a value does not suit.
pub fn filled(expr: &Arc<dyn PhysicalExpr>, params: &[Value]) -> Option<Arc<dyn PhysicalExpr>> {
    if params.is_empty() || !is_open(expr) {
        return Some(Arc::clone(expr));
    }
    let mut suits = true;
    let replaced = Arc::clone(expr).rewrite_up(|e| {
        let Some(open) = as_open(&e) else { return Ok(Transformed::no(e)) };
        let value: Option<ScalarValue> = value_of(open.at, open.ty, &open.to, params);
        suits &= value.is_some();
        Ok(match value {
            Some(value) => Transformed::yes(Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(e),
        })
    });
    replaced.ok().filter(|_| suits).map(|e| e.data)
}
