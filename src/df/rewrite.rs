//! Rules made of functions, and rewrites of single expressions in a plan.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, cast};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use super::errors::to_df;
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::error::{Error, sqlstate};

/// How a rule rewrites one expression.
type Rewrite = fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>;

/// An analyzer rule that applies rewrites to every expression, one after the other, in one walk over the plan.
#[derive(Debug)]
pub struct ExpressionRules(pub &'static str, pub &'static [Rewrite]);

impl AnalyzerRule for ExpressionRules {
    fn name(&self) -> &str {
        self.0
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        rewrite_expressions(plan, self.1)
    }
}

/// An analyzer rule that rewrites every node of a plan, subqueries included, innermost first.
#[derive(Debug)]
pub struct NodeRule(pub &'static str, pub fn(LogicalPlan) -> DfResult<Transformed<LogicalPlan>>);

impl AnalyzerRule for NodeRule {
    fn name(&self) -> &str {
        self.0
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        plan.rewrite_up_with_subqueries(self.1).data()
    }
}

/// A physical optimizer rule that is one function.
#[derive(Debug)]
pub struct PlanRule(pub &'static str, pub fn(Plan) -> DfResult<Plan>);

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for PlanRule {
    fn name(&self) -> &str {
        self.0
    }

    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> DfResult<Plan> {
        self.1(plan)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A physical optimizer rule of DataFusion, and the function that applies it.
#[derive(Debug)]
pub struct PlanAround(
    pub Arc<dyn PhysicalOptimizerRule + Send + Sync>,
    pub fn(Plan, &PlanInner<'_>) -> DfResult<Plan>,
);

/// The rule inside.
pub type PlanInner<'r> = dyn Fn(Plan) -> DfResult<Plan> + 'r;

impl PhysicalOptimizerRule for PlanAround {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn optimize(&self, plan: Plan, options: &ConfigOptions) -> DfResult<Plan> {
        self.1(plan, &|plan| self.0.optimize(plan, options))
    }

    fn optimize_with_context(&self, plan: Plan, context: &dyn PhysicalOptimizerContext) -> DfResult<Plan> {
        self.1(plan, &|plan| self.0.optimize_with_context(plan, context))
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// An optimizer rule that is one function: of each node in this order, or of a whole plan.
#[derive(Debug)]
pub struct LogicalRule(
    pub &'static str,
    pub Option<ApplyOrder>,
    pub fn(LogicalPlan) -> DfResult<Transformed<LogicalPlan>>,
);

impl OptimizerRule for LogicalRule {
    fn name(&self) -> &str {
        self.0
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.1
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        self.2(plan)
    }
}

/// An optimizer rule of DataFusion, and the function that applies it.
#[derive(Debug)]
pub struct LogicalAround(
    pub Arc<dyn OptimizerRule + Send + Sync>,
    pub fn(LogicalPlan, &LogicalInner<'_>) -> DfResult<Transformed<LogicalPlan>>,
);

/// The rule inside.
pub type LogicalInner<'r> = dyn Fn(LogicalPlan) -> DfResult<Transformed<LogicalPlan>> + 'r;

impl OptimizerRule for LogicalAround {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        self.1(plan, &|plan| self.0.rewrite(plan, config))
    }
}

/// Rewrites every expression of a plan, subqueries included, innermost first, by all rules in turn. Output columns keep
/// their names. Bare columns are left alone. Runs after DataFusion's own `TypeCoercion`.
pub fn rewrite_expressions(
    plan: LogicalPlan,
    rules: &[impl Fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>],
) -> DfResult<LogicalPlan> {
    // The type of some column has changed.
    let has_changed = Cell::new(false);
    plan.rewrite_up_with_subqueries(|plan| {
        let plan = if has_changed.get() { hears_of_types(plan)? } else { Transformed::no(plan) };
        if !computes(&plan.data) {
            return Ok(plan);
        }
        let Transformed { data: plan, transformed: has_heard, .. } = plan;
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema
                .merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&plan);
        let rewritten = plan.rewrite_own_expressions(|expr| {
            if is_column(&expr) {
                return Ok(Transformed::no(expr));
            }
            rename_kept(expr, &names, &mut |expr| {
                rules.iter().try_fold(Transformed::no(expr), |expr, rule| {
                    expr.transform_data(|expr| expr.rewrite_up(|expr| rule(expr, &schema)))
                })
            })
        })?;
        if !rewritten.transformed {
            return Ok(Transformed::new_transformed(rewritten.data, has_heard));
        }
        let before = Arc::clone(rewritten.data.schema());
        let plan = rewritten.data.recompute_schema()?;
        has_changed.set(has_changed.get() || !types(&before).eq(types(plan.schema())));
        Ok(Transformed::yes(plan))
    })
    .data()
}

/// With the metadata that tell JSON from other text.
fn types(schema: &DFSchema) -> impl Iterator<Item = (&DataType, &HashMap<String, String>)> {
    schema.fields().iter().map(|field| (field.data_type(), field.metadata()))
}

/// Recomputes the schema of a node after its inputs' types have changed. Another rule settles the types of a UNION.
pub(super) fn hears_of_types(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Join(_) => plan.recompute_schema().map(Transformed::yes),
        plan => Ok(Transformed::no(plan)),
    }
}

/// The columns of an input of a UNION, named as the union's, whose `schema` they get: without a table in front.
pub fn named_as(input: Arc<LogicalPlan>, schema: &DFSchemaRef) -> DfResult<Arc<LogicalPlan>> {
    let columns = input.schema().iter().zip(schema.fields()).map(|((qualifier, field), named)| {
        let is_named = qualifier.is_none() && field.name() == named.name();
        let column = Expr::Column(Column::from((qualifier, field)));
        if is_named { column } else { column.alias(named.name()) }
    });
    let columns = columns.collect();
    let named = Projection::try_new_with_schema(columns, input, Arc::clone(schema))?;
    Ok(Arc::new(LogicalPlan::Projection(named)))
}

/// The node has an expression other than a column. Otherwise it is skipped: merging the schemas of its inputs costs
/// more than most rules.
fn computes(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply_expressions(|expr| {
        found |= !is_column(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// The expression is a column, possibly aliased.
fn is_column(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Column(_))
}

/// An expression without its aliases.
pub fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        expr => expr,
    }
}

/// Rewrites an expression of a node under its old output name. For grouping sets, the expressions inside are rewritten.
pub fn rename_kept(
    expr: Expr,
    names: &NamePreserver,
    rewrite: &mut dyn FnMut(Expr) -> DfResult<Transformed<Expr>>,
) -> DfResult<Transformed<Expr>> {
    if matches!(expr, Expr::GroupingSet(_)) {
        return expr.map_children(|inner| rename_kept(inner, names, rewrite));
    }
    let name = names.save(&expr);
    Ok(rewrite(expr)?.update_data(|expr| name.restore(expr)))
}

/// The type of an expression before type coercion, if coercion will not change it: DataFusion gives an uncoerced CASE
/// the type of its first branch.
pub fn settled_type(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let differ = |values: Vec<&Expr>| {
        let types = values.into_iter().map(|value| value.get_type(schema).ok());
        let mut types = types.filter(|ty| *ty != Some(DataType::Null));
        let first = types.next();
        first.is_some_and(|first| types.any(|ty| ty != first))
    };
    let unsettled = expr.exists(|expr| Ok(differ(branches(expr))));
    if unsettled.unwrap_or(true) { None } else { expr.get_type(schema).ok() }
}

/// The candidate results of an expression that chooses one of them.
pub fn branches(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| &**then);
            branches.chain(case.else_expr.as_deref()).collect()
        }
        Expr::ScalarFunction(call)
            if matches!(call.name(), "coalesce" | "nullif" | "nvl" | "nvl2" | "greatest" | "least") =>
        {
            call.args.iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Expands the functions that DataFusion implements only as a CASE. Its simplifier would do it, but
/// [`ThreeValued`](super::expressions::three_valued::ThreeValued) keeps arguments with an AND or OR from it.
pub fn lazy_functions(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), "coalesce" | "nvl" | "nvl2") =>
        {
            // The CASE repeats each argument but the last.
            let nodes: usize = args.iter().map(size).sum();
            if nodes > LAZY_NODES_MAX {
                let error = Error::invalid(format!("calls of {} are nested too deeply", func.name()));
                return Err(to_df(error.hint("give one call all the values").state(sqlstate::LIMIT)));
            }
            Ok(match func.simplify(args, &SimplifyContext::builder().build())? {
                ExprSimplifyResult::Simplified(expr) => Transformed::yes(expr),
                ExprSimplifyResult::Original(args) => {
                    Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))
                }
            })
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// Removes the ORDER BY of aggregates that give the same in every order: most of DataFusion's treat the sort keys as a
/// second argument.
pub fn idle_orders(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if !IN_ORDER.contains(&func.name()) && !func.supports_within_group_clause() =>
        {
            let orders = std::mem::take(&mut params.order_by);
            Ok(Transformed::new(expr, !orders.is_empty(), TreeNodeRecursion::Continue))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Sorts the distinct values of an aggregate that depends on their order and has none, as PostgreSQL does: DataFusion
/// takes them as they come out of a hash table.
pub fn distinct_orders(mut expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if params.distinct && params.order_by.is_empty() && IN_ORDER.contains(&func.name()) =>
        {
            params.order_by.extend(params.args.first().map(|value| value.clone().sort(true, true)));
            Ok(Transformed::yes(expr))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Aggregates whose result depends on the order of the rows.
pub const IN_ORDER: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Largest arguments (nodes) of a function that is expanded.
const LAZY_NODES_MAX: usize = 20_000;

fn size(expr: &Expr) -> usize {
    let mut nodes = 0;
    let _ = expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    nodes
}

/// Both are types of integers, and the second one is wider.
pub fn widens(from: &DataType, to: &DataType) -> bool {
    let bytes = |ty: &DataType| ty.is_signed_integer().then(|| ty.primitive_width()).flatten();
    bytes(from).zip(bytes(to)).is_some_and(|(from, to)| from < to)
}

/// Rewrites an expression over the output of a projection, an alias or groups as one over its input; `None` if it names
/// anything else, such as a total, or for any other node.
pub fn below(expr: &Expr, plan: &LogicalPlan) -> Option<Expr> {
    let schema = plan.schema();
    let source = |column: &Column| {
        let is_called_so = |field: &&FieldRef| *field.name() == column.name;
        if column.relation.is_none() && schema.fields().iter().filter(is_called_so).count() > 1 {
            return None;
        }
        let at = schema.maybe_index_of_column(column)?;
        match plan {
            LogicalPlan::Projection(projection) => projection.expr.get(at).cloned().map(Expr::unalias),
            LogicalPlan::SubqueryAlias(alias) => {
                Some(Expr::Column(Column::from(alias.input.schema().qualified_field(at))))
            }
            LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => match group_expr.get(at) {
                Some(Expr::GroupingSet(_)) | None => None,
                Some(group) => Some(group.clone().unalias()),
            },
            _ => None,
        }
    };
    let mut all = true;
    let replaced = expr.clone().rewrite_up(|e| {
        let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
        let source = source(column);
        all &= source.is_some();
        let Some(source) = source else { return Ok(Transformed::no(e)) };
        Ok(Transformed::new(source, true, TreeNodeRecursion::Jump))
    });
    replaced.ok().filter(|_| all).map(|replaced| replaced.data)
}

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

/// The expression is a literal that `ty` holds without loss.
pub fn is_exactly(expr: &Expr, ty: &DataType) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    let there = value.cast_to(ty);
    let back = there.and_then(|there| there.cast_to(&value.data_type()));
    value.is_null() || back.is_ok_and(|back| back == *value)
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

/// An integer literal, possibly negated or cast.
pub fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => Some(*n),
        Expr::Negative(expr) => integer(expr)?.checked_neg(),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => integer(&cast.expr),
        _ => None,
    }
}

/// Routes casts of decimals that lose digits through a longer type: in a comparison, DataFusion would compare the
/// uncast value. Runs after type coercion.
pub fn lossy_casts(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field }) = &mut expr
        && let Ok(DataType::Decimal128(_, scale @ 1..)) = of.get_type(schema)
        && match field.data_type() {
            DataType::Decimal128(_, to) => *to < scale,
            to => to.is_integer(),
        }
    {
        **of = cast(std::mem::take(&mut **of), DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale));
        return Ok(Transformed::yes(expr));
    }
    Ok(Transformed::no(expr))
}
