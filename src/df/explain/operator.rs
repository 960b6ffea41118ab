//! The line of an operator in SQL's words: columns by their names alone, literals as SQL writes them, types by our names.
//!
//! DataFusion's own text of an operator is kept but for its expressions and names. Where the operator gives these, they
//! are replaced whole, so that no text of the user's is taken for DataFusion's.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
    NotExpr,
};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use datafusion::physical_expr_common::sort_expr::PhysicalSortExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use crate::df::below::windows;
use crate::df::computed::shown;
use crate::df::expr::value_of;
use crate::df::expressions::checked::operator_of;
use crate::df::literals::{interval, words};
use crate::df::rules::join_keys;
use crate::df::tree::RewriteTree;
use crate::value::{self, Interval};

/// The frame that need not be written.
const FRAME: &str = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";

/// The order of NULLs that need not be written.
const ASCENDING: &str = " ASC NULLS FIRST";

/// The operator's line.
pub(super) fn line(plan: &dyn ExecutionPlan) -> String {
    let told = displayable(plan).one_line().to_string();
    let told = told.trim();
    if let Some(windows) = windows(plan) {
        let windows: Vec<String> = windows.iter().map(|expr| window(&**expr)).collect();
        let (name, mode) = (plan.name(), told.rsplit_once(", mode=").map(|(_, mode)| mode));
        let mode = mode.map_or_else(String::new, |mode| format!(", mode={mode}"));
        return format!("{name}: wdw=[{}]{mode}", windows.join(", "));
    }
    let mut texts = texts(plan);
    texts.retain(|(from, _)| !from.is_empty());
    texts.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    let line = replaced(told, &texts);
    match first_of(plan) {
        Some(order) => format!("{line}, first_by=[{order}]"),
        None => line,
    }
}

/// An expression as SQL.
pub(in crate::df) fn sql(expr: &Arc<dyn PhysicalExpr>) -> String {
    let named = Arc::clone(expr).rewrite_up(|expr| {
        let name = if let Some(column) = expr.downcast_ref::<Column>() {
            name(column.name())
        } else if let Some(literal) = expr.downcast_ref::<Literal>() {
            sql_literal(literal.value())
        } else {
            let operation = operation(&*expr);
            return in_brackets(operation.unwrap_or(expr));
        };
        Ok(Transformed::yes(verbatim(&name)))
    });
    match named {
        Ok(named) => words(&fmt_sql(&*named.data).to_string()),
        Err(_) => without_places(&expr.to_string()),
    }
}

/// An expression that is shown as this text.
fn verbatim(text: &str) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(text, 0))
}

/// A checked `a + b` as an operator.
fn operation(expr: &dyn PhysicalExpr) -> Option<Arc<dyn PhysicalExpr>> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [left, right] = call.args() else { return None };
    Some(Arc::new(BinaryExpr::new(Arc::clone(left), operator_of(call.fun())?, Arc::clone(right))))
}

/// Puts operands into parentheses where they would be read as others: DataFusion's text has them only for an operator
/// that binds less than the operator around it.
fn in_brackets(expr: Arc<dyn PhysicalExpr>) -> DfResult<Transformed<Arc<dyn PhysicalExpr>>> {
    let mut changed = false;
    let operands: Vec<_> = expr
        .children()
        .into_iter()
        .enumerate()
        .map(|(at, operand)| {
            if !is_torn(&*expr, at, &**operand) {
                return Arc::clone(operand);
            }
            changed = true;
            verbatim(&format!("({})", fmt_sql(&**operand)))
        })
        .collect();
    match changed {
        true => expr.with_new_children(operands).map(Transformed::yes),
        false => Ok(Transformed::no(expr)),
    }
}

/// Without parentheses, only a part of this operand would belong to the expression.
fn is_torn(expr: &dyn PhysicalExpr, at: usize, operand: &dyn PhysicalExpr) -> bool {
    let op = operand.downcast_ref::<BinaryExpr>().map(BinaryExpr::op);
    if let Some(around) = expr.downcast_ref::<BinaryExpr>().map(BinaryExpr::op) {
        let is_second = at == 1 && op.is_some_and(|op| op.precedence() == around.precedence());
        let is_chain = op == Some(around) && is_associative(*around);
        return is_second && !is_chain || is_test(operand) && !around.is_logic_operator();
    }
    if expr.is::<NotExpr>() {
        return op.is_some_and(Operator::is_logic_operator);
    }
    at == 0 && is_test(expr) && (is_test(operand) || op.is_some_and(|op| !op.is_numerical_operators()))
}

fn is_associative(op: Operator) -> bool {
    matches!(op, Operator::And | Operator::Or | Operator::Plus | Operator::Multiply | Operator::StringConcat)
}

/// The operator is written in words, beside its operand: NOT, IS NULL, IN, LIKE.
fn is_test(expr: &dyn PhysicalExpr) -> bool {
    expr.is::<NotExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<LikeExpr>()
}

/// What the operator shows of itself, and how it reads in SQL.
fn texts(plan: &dyn ExecutionPlan) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let _ = plan.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| -> DfResult<TreeNodeRecursion> {
        let dynamic = expr.downcast_ref::<DynamicFilterPhysicalExpr>();
        let expr = dynamic.map_or_else(|| Ok(Arc::clone(expr)), |dynamic| dynamic.current())?;
        texts.push((expr.to_string(), sql(&expr)));
        Ok(TreeNodeRecursion::Continue)
    });
    let mut named = |expr: &Arc<dyn PhysicalExpr>, alias: &str| {
        let (from, expr, to) = (format!("{expr} as {alias}"), sql(expr), name(alias));
        texts.push((from, if expr == to { to } else { format!("{expr} as {to}") }));
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        projection.expr().iter().for_each(|output| named(&output.expr, &output.alias));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let by = aggregate.group_expr();
        by.expr().iter().chain(by.null_expr()).for_each(|(expr, alias)| named(expr, alias));
        texts.extend(aggregate.aggr_expr().iter().map(|expr| (expr.name().to_owned(), name(expr.name()))));
        // Of a subquery that became a join, it has the table's name there, too.
        let renamed = aggregate.aggr_expr().iter().filter_map(|expr| {
            let (told, alias) = (expr.human_display()?, expr.human_display_alias()?);
            let is_same = told.contains("(__found_") || name(told) == name(alias);
            is_same.then(|| (format!("{told} as {alias}"), name(alias)))
        });
        texts.extend(renamed);
    }
    for input in plan.children() {
        let fields = input.schema();
        let columns = fields.fields().iter().enumerate();
        texts.extend(columns.map(|(at, field)| (format!("{}@{at}", field.name()), name(field.name()))));
    }
    texts
}

/// Replaces these texts, longest first, where they stand alone, and rewords what is between them.
fn replaced(text: &str, texts: &[(String, String)]) -> String {
    replaced_between((None, None), text, texts)
}

/// [`replaced`] in the part of a text that stands between these two characters.
fn replaced_between(
    (first, last): (Option<char>, Option<char>),
    text: &str,
    texts: &[(String, String)],
) -> String {
    for (at, (from, to)) in texts.iter().enumerate() {
        let alone = text.match_indices(from.as_str()).find(|(start, _)| {
            let before = text[..*start].chars().next_back().or(first);
            let after = text[start + from.len()..].chars().next().or(last);
            before.is_none_or(|c| " [(=".contains(c)) && after.is_none_or(|c| " ,)]".contains(c))
        });
        if let Some((start, _)) = alone {
            let (before, after) = (&text[..start], &text[start + from.len()..]);
            let before = replaced_between((first, from.chars().next()), before, &texts[at..]);
            let after = replaced_between((from.chars().next_back(), last), after, &texts[at..]);
            return format!("{before}{to}{after}");
        }
    }
    without_places(&shown(text))
}

/// The order by which a DISTINCT ON takes its rows.
fn first_of(plan: &dyn ExecutionPlan) -> Option<String> {
    let taken = plan.downcast_ref::<AggregateExec>()?.aggr_expr().iter();
    let by = taken.filter(|expr| is_of_order(expr.fun().name())).map(|expr| order(expr.order_bys()));
    by.into_iter().find(|by| !by.is_empty())
}

fn is_of_order(function: &str) -> bool {
    ["first_value", "last_value"].contains(&function)
}

fn order(by: &[PhysicalSortExpr]) -> String {
    let by = by.iter().map(|by| match (by.options.descending, by.options.nulls_first) {
        (false, true) => sql(&by.expr),
        (false, false) => format!("{} ASC NULLS LAST", sql(&by.expr)),
        (true, true) => format!("{} DESC NULLS FIRST", sql(&by.expr)),
        (true, false) => format!("{} DESC NULLS LAST", sql(&by.expr)),
    });
    by.collect::<Vec<_>>().join(", ")
}

/// `rank() OVER (PARTITION BY sensor ORDER BY ts)`
fn window(expr: &dyn WindowExpr) -> String {
    let function = name(expr.name());
    if function.contains(" OVER (") {
        return function;
    }
    let mut over = Vec::new();
    if !expr.partition_by().is_empty() {
        let by: Vec<String> = expr.partition_by().iter().map(sql).collect();
        over.push(format!("PARTITION BY {}", by.join(", ")));
    }
    if !expr.order_by().is_empty() {
        over.push(format!("ORDER BY {}", order(expr.order_by())));
    }
    // What has such a name numbers rows for us.
    match function.starts_with("__") {
        true => format!("row_number() OVER ({}) as {function}", over.join(" ")),
        false => {
            let frame = expr.get_window_frame().to_string();
            over.extend((frame != FRAME).then_some(frame));
            format!("{function} OVER ({})", over.join(" "))
        }
    }
}

/// A column's name as SQL writes it: those of expressions are DataFusion's text of them.
pub(in crate::df) fn name(name: &str) -> String {
    let name = words(join_keys::shown(&shown(name)));
    let starts = [" PARTITION BY [", " ORDER BY [", " RANGE BETWEEN ", " ROWS BETWEEN ", " GROUPS BETWEEN "];
    let Some(at) = starts.iter().filter_map(|start| name.find(start)).min() else { return name };
    let (function, rest) = name.split_at(at);
    let is_window = starts[2..].iter().any(|frame| rest.contains(frame));
    let rest = rest.trim_end_matches(FRAME).trim().replace(['[', ']'], "").replace(ASCENDING, "");
    let called = function.split('(').next().unwrap_or_default();
    match function.strip_suffix(')') {
        _ if is_window => format!("{function} OVER ({rest})"),
        _ if is_of_order(called) => function.to_owned(),
        Some(open) => format!("{open} {rest})"),
        None => name,
    }
}

/// A literal as SQL writes it.
fn sql_literal(scalar: &ScalarValue) -> String {
    match scalar {
        scalar if scalar.is_null() => "NULL".into(),
        ScalarValue::IntervalMonthDayNano(Some(parts)) => {
            interval(parts.months, parts.days, parts.nanoseconds)
        }
        ScalarValue::DurationMicrosecond(Some(us)) => {
            format!("INTERVAL '{}'", Interval::of_length(i128::from(*us) * 1_000))
        }
        scalar => value_of(scalar)
            .map_or_else(|_| scalar.to_string(), |value| value::Literal(value.as_ref()).to_string()),
    }
}

/// Text of DataFusion's without the positions of columns, as in `id@0`.
fn without_places(text: &str) -> String {
    let mut pieces = text.split('@');
    let first = pieces.next().unwrap_or_default().to_owned();
    let place = |piece: &str| piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
    words(&pieces.fold(first, |all, piece| match place(piece) {
        0 => format!("{all}@{piece}"),
        digits => all + &piece[digits..],
    }))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::col;

    use super::*;

    #[test]
    fn operands_are_in_parentheses_where_they_would_be_read_as_others() {
        let schema =
            Schema::new(["p", "q", "r"].map(|name| Field::new(name, DataType::Boolean, true)).to_vec());
        let column = |name: &str| col(name, &schema).unwrap();
        let binary = |left, op, right| Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>;
        let (p, q, r) = (column("p"), column("q"), column("r"));
        let either = || binary(Arc::clone(&p), Operator::Or, Arc::clone(&q));
        let equal = || binary(Arc::clone(&p), Operator::Eq, Arc::clone(&q));
        let less = |left, right| binary(left, Operator::Minus, right);
        let negated = |expr| Arc::new(NotExpr::new(expr)) as Arc<dyn PhysicalExpr>;
        let is_null = |expr| Arc::new(IsNullExpr::new(expr)) as Arc<dyn PhysicalExpr>;
        let cases = [
            (negated(either()), "NOT (p OR q)"),
            (negated(equal()), "NOT p = q"),
            (negated(is_null(either())), "NOT (p OR q) IS NULL"),
            (is_null(either()), "(p OR q) IS NULL"),
            (is_null(negated(column("p"))), "(NOT p) IS NULL"),
            (is_null(less(column("p"), column("q"))), "p - q IS NULL"),
            (binary(negated(column("p")), Operator::Eq, is_null(column("q"))), "(NOT p) = (q IS NULL)"),
            (binary(negated(column("p")), Operator::And, is_null(column("q"))), "NOT p AND q IS NULL"),
            (binary(either(), Operator::And, either()), "(p OR q) AND (p OR q)"),
            (less(column("p"), less(column("q"), r)), "p - (q - r)"),
            (less(less(column("p"), column("q")), column("r")), "p - q - r"),
        ];
        for (expr, shown) in cases {
            assert_eq!(sql(&expr), shown);
        }
    }

    #[test]
    fn windows_and_orders_are_sql() {
        let cases = [
            (
                "rank() PARTITION BY [r.a] ORDER BY [r.b ASC NULLS FIRST, r.c DESC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                "rank() OVER (PARTITION BY r.a ORDER BY r.b, r.c DESC NULLS LAST)",
            ),
            (
                "sum(r.v) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                "sum(r.v) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            ),
            ("first_value(r.a) ORDER BY [r.b ASC NULLS FIRST]", "first_value(r.a)"),
            (
                "string_agg(r.a,Utf8(\",\")) ORDER BY [r.b DESC NULLS LAST]",
                "string_agg(r.a,',' ORDER BY r.b DESC NULLS LAST)",
            ),
        ];
        for (from, to) in cases {
            assert_eq!(name(from), to);
        }
    }

    #[test]
    fn what_a_user_wrote_stays() {
        let texts = [("a@0 = x@1".to_owned(), "a = 'x@1'".to_owned()), ("1".to_owned(), "one".to_owned())];
        assert_eq!(
            replaced("FilterExec: a@0 = x@1, fetch=1, projection=[b@1]", &texts),
            "FilterExec: a = 'x@1', fetch=one, projection=[b]"
        );
    }
}
