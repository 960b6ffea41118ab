//! Calls as SQLite and MySQL write them, in the form that is planned: `iif(c, a, b)` is a CASE, and
//! `group_concat(x)` has its comma.

use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use super::name_of;
use super::rewrite::{case_when, take};

/// The name of the function, unless there is a schema in front of it.
pub(super) fn called(call: &Function) -> Option<String> {
    match &call.name.0[..] {
        [part] => part.as_ident().map(name_of),
        _ => None,
    }
}

/// Rewrites a call of `iif` or `if` with two or three arguments, and of `group_concat` with one; leaves all others
/// alone, so that their errors speak of what was written.
pub(super) fn planned(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let Some(name) = called(function) else { return };
    let Function { args: FunctionArguments::List(list), over, filter, .. } = function else { return };
    let values = || list.args.iter().all(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_))));
    match (name.as_str(), list.args.len()) {
        ("group_concat", 1) if values() => {
            let comma = Expr::value(Value::SingleQuotedString(",".to_owned()));
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(comma)));
        }
        ("iif" | "if", 2 | 3) if values() && over.is_none() && filter.is_none() => {
            let mut args = list.args.iter_mut().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Some(take(arg)),
                _ => None,
            });
            let (Some(condition), Some(result)) = (args.next(), args.next()) else { return };
            let otherwise = args.next();
            drop(args);
            *expr = case_when(condition, result, otherwise);
        }
        _ => {}
    }
}
