//! Expressions of a plan, or of a query's text, rewritten one by one.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::optimizer::analyzer::AnalyzerRule;
use sqlparser::ast::{self, Query, UnaryOperator, VisitMut, VisitorMut};

use super::errors::to_df;
use crate::error::{Error, sqlstate};

/// How a rule rewrites one expression.
type Rewrite = fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>;

/// A rule of the analyzer that rewrites every expression by itself.
#[derive(Debug)]
pub struct ExpressionRule(pub &'static str, pub Rewrite);

impl AnalyzerRule for ExpressionRule {
    fn name(&self) -> &str {
        self.0
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        rewrite_expressions(plan, &self.1)
    }
}

/// Rewrites every expression of a plan, subqueries included, innermost first. Output columns keep their
/// names. After DataFusion's own `TypeCoercion`.
pub fn rewrite_expressions(
    plan: LogicalPlan,
    rule: &dyn Fn(Expr, &DFSchema) -> DfResult<Transformed<Expr>>,
) -> DfResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema
                .merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&plan);
        let rewritten = plan.map_expressions(|expr| {
            rename_kept(expr, &names, &mut |expr| expr.transform_up(|expr| rule(expr, &schema)))
        })?;
        if rewritten.transformed { rewritten.map_data(LogicalPlan::recompute_schema) } else { Ok(rewritten) }
    })
    .data()
}

/// Rewrites an expression of a node; whoever names it finds it under the name it had. Of grouping sets, those are
/// the expressions inside.
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

/// The type of an expression before type coercion, if that will not change it: DataFusion gives a CASE that is
/// not coerced yet the type of its first branch.
pub fn settled_type(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let differ = |values: &mut dyn Iterator<Item = &Expr>| {
        let mut types =
            values.map(|value| value.get_type(schema).ok()).filter(|ty| *ty != Some(DataType::Null));
        let first = types.next();
        first.is_some_and(|first| types.any(|ty| ty != first))
    };
    let unsettled = expr.exists(|expr| {
        Ok(match expr {
            Expr::Case(case) => {
                let branches = case.when_then_expr.iter().map(|(_, then)| &**then);
                differ(&mut branches.chain(case.else_expr.as_deref()))
            }
            Expr::ScalarFunction(call) => {
                matches!(call.name(), "coalesce" | "nullif" | "nvl" | "nvl2" | "greatest" | "least")
                    && differ(&mut call.args.iter())
            }
            _ => false,
        })
    });
    if unsettled.unwrap_or(true) { None } else { expr.get_type(schema).ok() }
}

/// Writes out the functions that DataFusion has only as a CASE: its simplifier would do it, were it not for
/// arguments with an AND or OR, which [`ThreeValued`](super::three_valued::ThreeValued) keeps from it.
pub fn lazy_functions(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), "coalesce" | "nvl" | "nvl2") =>
        {
            // Each argument but the last comes to stand there twice.
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

/// Largest arguments of a function that is written out, in nodes.
const LAZY_NODES_MAX: usize = 20_000;

fn size(expr: &Expr) -> usize {
    let mut nodes = 0;
    let _ = expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    nodes
}

/// An expression over what a projection gives, as one over what it reads; `None` if it names anything else.
pub fn below(expr: &Expr, projection: &Projection) -> Option<Expr> {
    let named = |e: &&Expr, name: &str| match e {
        Expr::Column(column) => column.name == name,
        Expr::Alias(alias) => alias.name == name,
        e => e.schema_name().to_string() == name,
    };
    let mut all = true;
    let replaced = expr.clone().transform(|e| {
        let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
        let source = projection.expr.iter().find(|e| named(e, &column.name));
        all &= source.is_some();
        let Some(source) = source else { return Ok(Transformed::no(e)) };
        Ok(Transformed::new(source.clone().unalias(), true, TreeNodeRecursion::Jump))
    });
    replaced.ok().filter(|_| all).map(|replaced| replaced.data)
}

/// Numbers as SQL reads them: one with an exponent is a double, and a plus sign changes nothing.
pub fn plain_numbers(query: &mut Query) {
    let _ = query.visit(&mut PlainNumbers);
}

struct PlainNumbers;

impl VisitorMut for PlainNumbers {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => {
                let inner = std::mem::replace(&mut **inner, ast::Expr::value(ast::Value::Null));
                *expr = inner;
            }
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. })
                if digits.contains(['e', 'E']) =>
            {
                *expr = ast::Expr::Cast {
                    kind: ast::CastKind::Cast,
                    expr: Box::new(ast::Expr::value(ast::Value::SingleQuotedString(digits.clone()))),
                    data_type: ast::DataType::DoublePrecision,
                    array: false,
                    format: None,
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
