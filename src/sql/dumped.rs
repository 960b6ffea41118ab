//! Expressions as PostgreSQL's dumps have them: `x = ANY (ARRAY['a'::text, 'b'::text])` for `x IN ('a', 'b')`, `x ~~
//! 'a%'` for `x LIKE 'a%'`, `date_part('year'::text, t)`, and `bpchar` for CHAR.

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use super::rewrite::take;

/// Turns the expression back into what was written.
pub(super) fn as_written(expr: &mut Expr) {
    let written = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => in_list(left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => in_list(left, right, true),
        Expr::BinaryOp { left, op, right } => like(left, op, right),
        Expr::Function(call) => return part_of_date(call),
        Expr::Cast { data_type, .. } if is_padded(data_type) => {
            *data_type = DataType::Varchar(None);
            return;
        }
        _ => return,
    };
    if let Some(written) = written {
        *expr = written;
    }
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
    Some(match any_case {
        false => Expr::Like { negated, any: false, expr, pattern, escape_char: None },
        true => Expr::ILike { negated, any: false, expr, pattern, escape_char: None },
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
