//! Rules made of functions, and rewrites of single expressions in a plan.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use crate::df::tree::{RewritePlan, RewriteTree};

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

/// The expression is a literal that `ty` holds without loss.
pub fn is_exactly(expr: &Expr, ty: &DataType) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    let there = value.cast_to(ty);
    let back = there.and_then(|there| there.cast_to(&value.data_type()));
    value.is_null() || back.is_ok_and(|back| back == *value)
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
