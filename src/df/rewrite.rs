//! Rewrites of single expressions, in a plan or in a query's syntax tree.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::optimizer::analyzer::AnalyzerRule;
use sqlparser::ast::{self, Query, UnaryOperator, VisitorMut};

use super::errors::to_df;
use crate::df::functions::json_building::BETWEEN;
use crate::df::functions::{DATE_OF_PATTERN, TIME_OF_PATTERN};
use crate::df::tree::{RewritePlan, RewriteTree};
use crate::error::{Error, Result, sqlstate};
use crate::sql::visit::{visit_expressions, visit_mut};
use crate::sql::{name_of, span_of};
use crate::value::json_dollar_path;

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
fn hears_of_types(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Join(_) => plan.recompute_schema().map(Transformed::yes),
        plan => Ok(Transformed::no(plan)),
    }
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
    let named = if let Expr::Alias(alias) = expr { &alias.expr } else { expr };
    matches!(named, Expr::Column(_))
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

/// Aggregates whose result depends on the order of the rows.
const IN_ORDER: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

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

/// Rewrites an expression over the output of a projection or an alias as one over its input; `None` if it names
/// anything else, or for any other node.
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

/// Errors: a call of a scalar function (`is_scalar`) with a clause that only aggregates or windows take.
pub fn check_calls(query: &Query, is_scalar: &dyn Fn(&str) -> bool) -> Result<()> {
    let call = visit_expressions(query, |expr| match expr {
        ast::Expr::Function(call) => {
            let name = call.name.0.last().and_then(|part| part.as_ident());
            match idle_clause(call) {
                Some(clause) if name.is_some_and(|name| is_scalar(&name_of(name))) => {
                    ControlFlow::Break((call.clone(), clause))
                }
                _ => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    match call {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((call, clause)) => {
            Err(Error::invalid(format!("{} does not take {clause}", call.name))
                .why("it is computed from one row; only aggregates and window functions see others")
                .hint(format!("leave out {clause}"))
                .state(sqlstate::WRONG_OBJECT)
                .at(span_of(&call)))
        }
    }
}

fn idle_clause(call: &ast::Function) -> Option<&'static str> {
    let list = match &call.args {
        ast::FunctionArguments::List(list) => Some(list),
        _ => None,
    };
    let clauses = [
        (call.filter.is_some(), "FILTER"),
        (call.over.is_some(), "OVER"),
        (!call.within_group.is_empty(), "WITHIN GROUP"),
        (call.null_treatment.is_some(), "IGNORE or RESPECT NULLS"),
        (list.is_some_and(|list| list.duplicate_treatment.is_some()), "DISTINCT or ALL"),
        (list.is_some_and(|list| !list.clauses.is_empty()), "ORDER BY or the like"),
    ];
    clauses.into_iter().find(|(there, _)| *there).map(|(_, clause)| clause)
}

/// Rewrites numbers and calls for DataFusion: a number with an exponent is a double, one beyond BIGINT a decimal; a
/// plus sign is dropped; `mod(a, b)` is `a % b`; NULL in `sum` and `avg` is a number; a cast to UUID or JSON, which are
/// texts to DataFusion, becomes a call of a parsing function; VALUES have one type of times in a column.
///
/// PostgreSQL's names without parentheses, such as `current_user`, are calls, too, unless a table has such a column
/// (`is_column`).
pub fn plain_calls(query: &mut Query, is_column: &dyn Fn(&str) -> bool) {
    let _ = visit_mut(query, &mut PlainCalls { is_column });
}

struct PlainCalls<'a> {
    is_column: &'a dyn Fn(&str) -> bool,
}

impl VisitorMut for PlainCalls<'_> {
    type Break = ();

    /// An output that is a call without parentheses keeps its name.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        crate::sql::texts_as_times(query);
        if let ast::SetExpr::Select(select) = &mut *query.body {
            for item in &mut select.projection {
                if let ast::SelectItem::UnnamedExpr(expr) = item
                    && let (Some(name), Some(call)) = (bare_name(expr).cloned(), fact(expr, self.is_column))
                {
                    *item = ast::SelectItem::ExprWithAlias { expr: call, alias: name };
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && let Some(digits) = digits_of(inner)
            // The smallest BIGINT has no positive counterpart, so it takes its sign along.
            && without_gaps(digits).parse() == Ok(i64::MIN.unsigned_abs())
        {
            *digits = i64::MIN.to_string();
            *expr = take(inner);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => *expr = take(inner),
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. })
                if digits.contains(['e', 'E']) =>
            {
                let text = ast::Expr::value(ast::Value::SingleQuotedString(digits.clone()));
                *expr = cast_as(text, ast::DataType::DoublePrecision);
            }
            // DataFusion has UInt64 for these, but few sums and casts for it.
            ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. })
                if without_gaps(digits).parse().is_ok_and(|number: u64| number > i64::MAX.unsigned_abs()) =>
            {
                digits.push('.');
            }
            ast::Expr::Cast { expr: of, data_type, kind, .. } => {
                let tries = matches!(kind, ast::CastKind::TryCast | ast::CastKind::SafeCast);
                if let Some(reader) = reader_of(data_type, tries) {
                    *expr = crate::sql::call(reader, [take(of)]);
                }
            }
            ast::Expr::Identifier(_) => {
                if let Some(call) = fact(expr, self.is_column) {
                    *expr = call;
                }
            }
            ast::Expr::Like { any: true, .. } | ast::Expr::ILike { any: true, .. } => {
                if let Some(alternatives) = like_each(expr) {
                    *expr = alternatives;
                }
            }
            ast::Expr::TypedString(typed) => {
                if let Some(reader) = reader_of(&typed.data_type, false) {
                    *expr = crate::sql::call(reader, [ast::Expr::Value(typed.value.clone())]);
                }
            }
            ast::Expr::Function(ast::Function { args: ast::FunctionArguments::None, .. }) => {
                if let Some(call) = fact(expr, self.is_column) {
                    *expr = call;
                }
            }
            ast::Expr::Function(call) => {
                let name = call.name.to_string().to_lowercase();
                if let Some(json) = json_aggregate(&name, call) {
                    *expr = json;
                    return ControlFlow::Continue(());
                }
                let is_plain = call.filter.is_none() && call.over.is_none();
                match (name.as_str(), &mut arguments(call)[..]) {
                    ("mod", [left, right]) if is_plain => {
                        let [left, right] = [take(left), take(right)].map(Box::new);
                        *expr = ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Modulo, right };
                    }
                    ("sum" | "avg", [arg]) if is_null(arg) => {
                        **arg = cast_as(take(arg), ast::DataType::BigInt(None));
                    }
                    // SQLite's `total`: a DOUBLE, and zero for no rows.
                    ("total", [arg]) => {
                        **arg = cast_as(take(arg), ast::DataType::DoublePrecision);
                        call.name = vec![ast::Ident::new("sum")].into();
                        let zero = ast::Expr::value(ast::Value::Number("0".to_owned(), false));
                        let args = [take(expr), cast_as(zero, ast::DataType::DoublePrecision)];
                        *expr = crate::sql::call("coalesce", args);
                    }
                    // A pattern of strftime's has a %.
                    ("to_timestamp" | "to_date", [_, pattern])
                        if is_plain && text_of(pattern).is_some_and(|pattern| !pattern.contains('%')) =>
                    {
                        let reader = if name == "to_date" { DATE_OF_PATTERN } else { TIME_OF_PATTERN };
                        call.name = vec![ast::Ident::new(reader)].into();
                    }
                    // SQLite's, as text.
                    ("json_extract" | "jsonb_extract", [_, path]) if is_plain => {
                        if let Some(steps) = text_of(path).and_then(json_dollar_path) {
                            let steps =
                                steps.into_iter().map(|step| ast::Value::SingleQuotedString(step).into());
                            let steps = steps.map(ast::Expr::Value);
                            let of = take(arguments(call)[0]);
                            *expr = called("json_extract_path_text", [of].into_iter().chain(steps));
                        }
                    }
                    // DataFusion's `base64` has no padding.
                    ("encode", [_, format]) if is_text(format, "base64") => {
                        **format = ast::Expr::value(ast::Value::SingleQuotedString("base64pad".to_owned()));
                    }
                    ("age", [from]) if is_plain => {
                        *expr = crate::sql::call("age", [crate::sql::call("current_date", []), take(from)]);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Calls that are written without parentheses.
const FACTS: [&str; 5] =
    ["current_user", "session_user", "current_catalog", "current_schema", "localtimestamp"];

/// Such a call; the column, where a table has one of that name.
fn fact(expr: &ast::Expr, is_column: &dyn Fn(&str) -> bool) -> Option<ast::Expr> {
    let name = bare_name(expr)?;
    let fact = FACTS.into_iter().find(|fact| fact.eq_ignore_ascii_case(&name.value))?;
    if is_column(fact) {
        return Some(ast::Expr::Identifier(name.clone()));
    }
    Some(match fact {
        "localtimestamp" => {
            let ty = ast::DataType::Timestamp(None, ast::TimezoneInfo::None);
            cast_as(crate::sql::call("now", []), ty)
        }
        fact => crate::sql::call(fact, []),
    })
}

/// The name of a column, or of a call without parentheses.
fn bare_name(expr: &ast::Expr) -> Option<&ast::Ident> {
    let name = match expr {
        ast::Expr::Identifier(name) => name,
        ast::Expr::Function(ast::Function { name, args: ast::FunctionArguments::None, .. }) => {
            match &name.0[..] {
                [name] => name.as_ident()?,
                _ => return None,
            }
        }
        _ => return None,
    };
    name.quote_style.is_none().then_some(name)
}

/// Longest `x LIKE ANY (..)` that is rewritten, in characters of `x` times patterns.
const LIKE_ANY_MAX: usize = 1 << 20;

/// `x LIKE ANY (a, b)` as `x LIKE a OR x LIKE b`; `None` unless the patterns are written out.
fn like_each(like: &mut ast::Expr) -> Option<ast::Expr> {
    let (ast::Expr::Like { any, expr, pattern, .. } | ast::Expr::ILike { any, expr, pattern, .. }) = like
    else {
        return None;
    };
    let patterns = match &mut **pattern {
        ast::Expr::Tuple(patterns) => patterns,
        ast::Expr::Array(array) => &mut array.elem,
        ast::Expr::Nested(pattern) => &mut vec![take(pattern)],
        _ => return None,
    };
    if expr.to_string().len().saturating_mul(patterns.len()) > LIKE_ANY_MAX {
        return None;
    }
    let patterns = std::mem::take(patterns);
    *any = false;
    let each = patterns.into_iter().map(|one| {
        let mut like = like.clone();
        if let ast::Expr::Like { pattern, .. } | ast::Expr::ILike { pattern, .. } = &mut like {
            **pattern = one;
        }
        like
    });
    any_of(each.collect()).map(|any| ast::Expr::Nested(Box::new(any)))
}

/// One condition or another, as a tree that is not deep; `None` for no conditions.
fn any_of(mut conditions: Vec<ast::Expr>) -> Option<ast::Expr> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let rest = conditions.split_off(conditions.len() / 2);
    let (left, right) = (Box::new(any_of(conditions)?), Box::new(any_of(rest)?));
    Some(ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Or, right })
}

/// `json_agg(x ORDER BY y)` as `json_of_elements(string_agg(json_element(x), ', ' ORDER BY y))`; `json_object_agg` and
/// SQLite's names alike. `None` for any other call.
fn json_aggregate(name: &str, call: &mut ast::Function) -> Option<ast::Expr> {
    let (whole, part) =
        match (JSON_AGGREGATES.iter().find(|(names, ..)| names.contains(&name)), arguments(call)) {
            (Some((_, whole, part @ "json_element")), args) if args.len() == 1 => (whole, part),
            (Some((_, whole, part @ "json_member")), args) if args.len() == 2 => (whole, part),
            _ => return None,
        };
    let part = called(part, arguments(call).into_iter().map(take));
    let between = ast::Expr::value(ast::Value::SingleQuotedString(BETWEEN.to_owned()));
    if let ast::FunctionArguments::List(list) = &mut call.args {
        list.args = [part, between].map(unnamed).into();
    }
    call.name = vec![ast::Ident::new("string_agg")].into();
    Some(crate::sql::call(whole, [ast::Expr::Function(call.clone())]))
}

/// Aggregates of JSON: their names, the function that makes JSON of the joined parts, and that of a part.
pub const JSON_AGGREGATES: [(&[&str], &str, &str); 2] = [
    (&["json_agg", "jsonb_agg", "json_group_array", "jsonb_group_array"], "json_of_elements", "json_element"),
    (
        &["json_object_agg", "jsonb_object_agg", "json_group_object", "jsonb_group_object"],
        "json_of_members",
        "json_member",
    ),
];

/// The function that parses a value of a type that is a text in Arrow; `tries`: it gives NULL where parsing fails.
fn reader_of(ty: &ast::DataType, tries: bool) -> Option<&'static str> {
    match (ty, tries) {
        (ast::DataType::Uuid, false) => Some("as_uuid"),
        (ast::DataType::Uuid, true) => Some("try_as_uuid"),
        (ast::DataType::JSON, false) => Some("as_json"),
        (ast::DataType::JSON, true) => Some("try_as_json"),
        _ => None,
    }
}

fn is_text(expr: &ast::Expr, text: &str) -> bool {
    text_of(expr).is_some_and(|value| value.eq_ignore_ascii_case(text))
}

/// A text literal.
fn text_of(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(text), .. }) => {
            Some(text)
        }
        _ => None,
    }
}

fn called(name: &str, args: impl IntoIterator<Item = ast::Expr>) -> ast::Expr {
    let mut call = crate::sql::call(name, []);
    if let ast::Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) = &mut call {
        list.args = args.into_iter().map(unnamed).collect();
    }
    call
}

fn unnamed(expr: ast::Expr) -> ast::FunctionArg {
    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr))
}

/// The digits of a number literal.
fn digits_of(expr: &mut ast::Expr) -> Option<&mut String> {
    match expr {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) => Some(digits),
        _ => None,
    }
}

/// Digits without their separators.
fn without_gaps(digits: &str) -> String {
    digits.replace('_', "")
}

/// Arguments of a call; empty unless all are expressions.
fn arguments(call: &mut ast::Function) -> Vec<&mut ast::Expr> {
    let ast::FunctionArguments::List(list) = &mut call.args else { return Vec::new() };
    let exprs = list.args.iter_mut().map(|arg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    exprs.collect::<Option<_>>().unwrap_or_default()
}

fn is_null(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Null, .. }))
}

fn take(expr: &mut ast::Expr) -> ast::Expr {
    std::mem::replace(expr, ast::Expr::value(ast::Value::Null))
}

fn cast_as(expr: ast::Expr, data_type: ast::DataType) -> ast::Expr {
    ast::Expr::Cast { kind: ast::CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
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
