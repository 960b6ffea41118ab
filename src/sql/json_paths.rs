//! SQLite's paths behind `->` and `->>`: `doc ->> '$.a'` is `doc ->> 'a'`, `doc -> '$.a[0]'` is `doc #> '{a,0}'`.

use sqlparser::ast::{BinaryOperator, Expr, Value};

use super::span_of;
use crate::error::{Error, Result, sqlstate};
use crate::value::json_dollar_path;

/// Rewrites such an operation. Errors: the text begins as a path does, and is none.
pub(super) fn written_out(expr: &mut Expr) -> Result<()> {
    let Expr::BinaryOp { op: op @ (BinaryOperator::Arrow | BinaryOperator::LongArrow), right, .. } = expr
    else {
        return Ok(());
    };
    let Expr::Value(literal) = &mut **right else { return Ok(()) };
    let Value::SingleQuotedString(path) = &literal.value else { return Ok(()) };
    let begins = path.strip_prefix('$').is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    if !begins {
        return Ok(());
    }
    let steps = json_dollar_path(path).ok_or_else(|| {
        Error::invalid(format!("'{path}' is no path"))
            .hint("write it as '$.address.city', '$.tags[0]' or '$.\"a b\"'")
            .state(sqlstate::SYNTAX)
            .at(span_of(&*literal))
    })?;
    let written = match &steps[..] {
        // As it is mostly written, for an index on it.
        [name] if path.starts_with("$.") => name.clone(),
        steps => {
            *op = match op {
                BinaryOperator::Arrow => BinaryOperator::HashArrow,
                _ => BinaryOperator::HashLongArrow,
            };
            let quoted = |step: &String| format!("\"{}\"", step.replace('\\', "\\\\").replace('"', "\\\""));
            format!("{{{}}}", steps.iter().map(quoted).collect::<Vec<_>>().join(","))
        }
    };
    literal.value = Value::SingleQuotedString(written);
    Ok(())
}
