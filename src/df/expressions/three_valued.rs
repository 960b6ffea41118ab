//! Simplifies AND, OR and NOT in three-valued logic: true, false and unknown.
//!
//! DataFusion's `SimplifyExpressions` merges two IN lists as if there were no NULL: `v IN (1, 2) AND v IN (3, 4)`
//! becomes FALSE, so that its negation keeps rows without `v`; `v NOT IN (1, 2) OR v NOT IN (3, 4)` becomes TRUE.
//! [`ThreeValued`] replaces that rule: it simplifies the connectives by laws that hold for unknown, too, and passes
//! only their operands to DataFusion.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{
    conjunction, merge_schema, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyExpressions};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::df::rewrite::rename_kept;
use crate::df::tree::{RewritePlan, RewriteTree};

/// Most conditions on either side of an OR that are searched for common factors.
const FACTORS: usize = 16;

/// The rule, under the name of the rule it replaces.
#[derive(Debug, Default)]
pub struct ThreeValued(SimplifyExpressions);

impl OptimizerRule for ThreeValued {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        let mut connected = false;
        plan.apply_expressions(|expr| {
            connected |= connects(expr);
            Ok(if connected { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !connected {
            return self.0.rewrite(plan, config);
        }
        let schema = match &plan {
            LogicalPlan::TableScan(scan) => {
                DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
            }
            _ => merge_schema(&plan.inputs()),
        };
        // Do not swap the sides of a join's equality.
        let reorders = !matches!(plan, LogicalPlan::Join(_));
        let simplifier = Simplifier::new(Arc::new(schema), config, reorders);
        let names = NamePreserver::new(&plan);
        plan.rewrite_own_expressions(|expr| {
            rename_kept(expr, &names, &mut |before| {
                let after = simplifier.simplify(before.clone())?;
                let changed = before != after;
                Ok(Transformed::new_transformed(after, changed))
            })
        })
    }
}

/// The expression contains an AND or OR.
fn connects(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_connective(expr))).unwrap_or(true)
}

fn is_connective(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }))
}

/// Simplifies expressions over one schema.
struct Simplifier<'c> {
    schema: DFSchemaRef,
    config: &'c dyn OptimizerConfig,
    reorders: bool,
    /// DataFusion's simplifier, for expressions without connectives.
    connected: ExprSimplifier,
}

impl<'c> Simplifier<'c> {
    fn new(schema: DFSchemaRef, config: &'c dyn OptimizerConfig, reorders: bool) -> Self {
        let connected = over(Arc::clone(&schema), config, reorders);
        Simplifier { schema, config, reorders, connected }
    }

    /// DataFusion's conjunctions nest one level per term.
    #[recursive::recursive]
    fn simplify(&self, expr: Expr) -> DfResult<Expr> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.simplify(*left)?, self.simplify(*right)?);
                Ok(if op == Operator::And { and(left, right) } else { or(left, right) })
            }
            Expr::Not(inner) if connects(&inner) => match *inner {
                Expr::Not(inner) => self.simplify(*inner),
                Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                    let op = if op == Operator::And { Operator::Or } else { Operator::And };
                    let [left, right] = [left, right].map(|side| Box::new(Expr::Not(side)));
                    self.simplify(Expr::BinaryExpr(BinaryExpr { left, op, right }))
                }
                other => self.around(Expr::Not(Box::new(other))),
            },
            expr if connects(&expr) => self.around(expr),
            expr => self.connected.simplify(expr),
        }
    }

    /// An expression with connectives inside: DataFusion sees a column in place of each.
    fn around(&self, expr: Expr) -> DfResult<Expr> {
        let expr = expr.map_children(|child| self.simplify(child).map(Transformed::yes))?.data;
        let mut held: Vec<Expr> = Vec::new();
        let shell = expr.rewrite_down(|expr| {
            if !is_connective(&expr) {
                return Ok(Transformed::no(expr));
            }
            held.push(expr);
            let column = Expr::Column(Column::new_unqualified(held_name(held.len() - 1)));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        let fields = (0..held.len()).map(|n| Field::new(held_name(n), DataType::Boolean, true));
        let held_schema = DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?;
        let schema = Arc::new(self.schema.join(&held_schema)?);
        let shell = over(schema, self.config, self.reorders).simplify(shell.data)?;
        let whole = shell.rewrite_up(|expr| {
            let place = match &expr {
                Expr::Column(column) if column.relation.is_none() => {
                    (0..held.len()).find(|n| column.name == held_name(*n))
                }
                _ => None,
            };
            Ok(place.map_or(Transformed::no(expr), |n| Transformed::yes(held[n].clone())))
        });
        whole.map(|whole| whole.data)
    }
}

/// DataFusion's simplifier over a schema.
fn over(schema: DFSchemaRef, config: &dyn OptimizerConfig, reorders: bool) -> ExprSimplifier {
    let context = SimplifyContext::builder()
        .with_schema(schema)
        .with_config_options(config.options())
        .with_query_execution_start_time(config.query_execution_start_time())
        .build();
    ExprSimplifier::new(context).with_canonicalize(reorders)
}

/// Name of the placeholder column for a connective; no other column has such a name by accident.
fn held_name(n: usize) -> String {
    format!("__connected_{n}")
}

/// The value of a constant condition: `Some(None)` is unknown.
fn constant(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Literal(ScalarValue::Boolean(value), _) => Some(*value),
        Expr::Literal(ScalarValue::Null, _) => Some(None),
        _ => None,
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    match (constant(&left), constant(&right)) {
        (Some(Some(true)), _) | (Some(None), Some(None)) => right,
        (_, Some(Some(true))) => left,
        (Some(Some(false)), _) | (_, Some(Some(false))) => lit(false),
        _ if left == right && !left.is_volatile() => left,
        _ => left.and(right),
    }
}

fn or(left: Expr, right: Expr) -> Expr {
    match (constant(&left), constant(&right)) {
        (Some(Some(false)), _) | (Some(None), Some(None)) => right,
        (_, Some(Some(false))) => left,
        (Some(Some(true)), _) | (_, Some(Some(true))) => lit(true),
        _ if left == right && !left.is_volatile() => left,
        _ => factored(left, right),
    }
}

/// `(a AND b) OR (a AND c)` as `a AND (b OR c)`: outside of the OR, `a` can be a join condition or bound a key.
fn factored(left: Expr, right: Expr) -> Expr {
    let (ours, theirs) = (split_conjunction(&left), split_conjunction(&right));
    let common: Vec<Expr> = match ours.len() <= FACTORS && theirs.len() <= FACTORS {
        true => ours.iter().filter(|e| theirs.contains(e) && !e.is_volatile()).map(|&e| e.clone()).collect(),
        false => Vec::new(),
    };
    if common.is_empty() {
        return left.or(right);
    }
    let rest = |side: Expr| {
        let rest = split_conjunction_owned(side).into_iter().filter(|e| !common.contains(e));
        conjunction(rest).unwrap_or_else(|| lit(true))
    };
    let rest = or(rest(left), rest(right));
    common.into_iter().rev().fold(rest, |rest, e| and(e, rest))
}
