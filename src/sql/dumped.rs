//! Conditions as PostgreSQL's dumps have them: `x = ANY (ARRAY['a'::text, 'b'::text])` for `x IN ('a', 'b')`, and `x ~~
//! 'a%'` for `x LIKE 'a%'`.

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ValueWithSpan,
};

use super::rewrite::take;

/// Turns the condition back into what was written.
pub(super) fn as_written(expr: &mut Expr) {
    match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => in_list(left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => in_list(left, right, true),
        Expr::BinaryOp { left, op, right } => like(left, op, right),
        Expr::Function(call) => {
            part_of_date(call);
            None
        }
        Expr::Cast { data_type, .. } if is_padded(data_type) => {
            *data_type = DataType::Varchar(None);
            None
        }
        _ => None,
    }
    .into_iter()
    .for_each(|written| *expr = written);
}

fn in_list(left: &mut Expr, right: &mut Expr, negated: bool) -> Option<Expr> {
    let list = match elements(right) {
        Some(list) if !list.is_empty() => std::mem::take(list),
        _ => return None,
    };
    Some(Expr::InList { expr: Box::new(take(left)), list, negated })
}

/// What an ARRAY lists, in parentheses and casts.
fn elements(expr: &mut Expr) -> Option<&mut Vec<Expr>> {
    match expr {
        Expr::Array(array) => Some(&mut array.elem),
        Expr::Nested(inner) => elements(inner),
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => elements(expr),
        _ => None,
    }
}

fn like(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) -> Option<Expr> {
    let (negated, any_case) = match op {
        BinaryOperator::PGLikeMatch => (false, false),
        BinaryOperator::PGNotLikeMatch => (true, false),
        BinaryOperator::PGILikeMatch => (false, true),
        BinaryOperator::PGNotILikeMatch => (true, true),
        _ => return None,
    };
    let (expr, pattern) = (Box::new(take(left)), Box::new(take(right)));
    let (any, escape_char): (bool, Option<ValueWithSpan>) = (false, None);
    Some(match any_case {
        false => Expr::Like { negated, any, expr, pattern, escape_char },
        true => Expr::ILike { negated, any, expr, pattern, escape_char },
    })
}

/// Leaves out the cast in `date_part('year'::text, at)`.
fn part_of_date(call: &mut Function) {
    let name = call.name.0.last().and_then(|part| part.as_ident());
    if let (Some(name), FunctionArguments::List(list)) = (name, &mut call.args)
        && name.value.eq_ignore_ascii_case("date_part")
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(part))) = list.args.first_mut()
        && let Expr::Cast { expr: literal, data_type: DataType::Text, .. } = part
    {
        *part = take(literal);
    }
}

/// `bpchar`, what PostgreSQL calls CHAR(n).
fn is_padded(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("bpchar"))
}
