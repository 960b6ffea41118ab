//! Refuses comparisons of binary rowkeys with plain texts: queries print such keys as hex digits, which are not their
//! bytes.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use super::like::parted;
use crate::df::errors::to_df;
use crate::df::table::{AsksFor, TableSource};
use crate::error::{Error, sqlstate};
use crate::key::KeyPart;
use crate::value::{from_hex, is_hex};

/// Refuses a text beside a rowkey that it is no bytes of: it would match nothing, or everything. Runs before the rule
/// that turns such texts into bytes.
pub fn texts_as_binary_keys(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let inputs = plan.inputs();
    let has_bytes = |input: &&LogicalPlan| {
        input.schema().fields().iter().any(|field| field.data_type() == &DataType::Binary)
    };
    if inputs.iter().any(has_bytes) {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                check(expr, &inputs)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
    }
    Ok(Transformed::no(plan))
}

fn check(expr: &Expr, inputs: &[&LogicalPlan]) -> DfResult<()> {
    let (asks, peers): (AsksFor, Vec<&Expr>) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            use Operator::{Eq, IsDistinctFrom, IsNotDistinctFrom, NotEq};
            let is_key = matches!(op, Eq | NotEq | IsDistinctFrom | IsNotDistinctFrom);
            (if is_key { AsksFor::Key } else { AsksFor::Bound }, vec![left, right])
        }
        Expr::Between(between) => (AsksFor::Bound, vec![&between.expr, &between.low, &between.high]),
        Expr::InList(list) => (AsksFor::Key, std::iter::once(&*list.expr).chain(&list.list).collect()),
        Expr::Like(like) => (AsksFor::Pattern, vec![&like.expr, &like.pattern]),
        Expr::ScalarFunction(call) if parted(call).is_some() => {
            (AsksFor::Pattern, call.args.iter().collect())
        }
        _ => return Ok(()),
    };
    let rowkey = peers.iter().find_map(|peer| match peer {
        Expr::Column(column) => Some(column),
        _ => None,
    });
    let Some(rowkey) = rowkey else { return Ok(()) };
    let pattern = |peer: &'_ Expr| match (expr, peer) {
        (Expr::Like(_), Expr::Placeholder(param)) => Some(param.id.clone()),
        _ => None,
    };
    for text in peers.iter().filter_map(|peer| text(peer).map(str::to_owned).or_else(|| pattern(peer))) {
        for input in inputs {
            if let Some((name, part)) = misread(rowkey, input, &text, asks)? {
                return Err(to_df(refused(&name, &part, &text, asks)));
            }
        }
    }
    Ok(())
}

/// A text literal, other than `'\x80'` and `'0x80'`, which stand for bytes.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if !is_hex(text) => Some(text),
        _ => None,
    }
}

/// [`TableSource::misread`] of the table or index whose rowkey this column is.
fn misread(
    column: &Column,
    plan: &LogicalPlan,
    text: &str,
    asks: AsksFor,
) -> DfResult<Option<(String, KeyPart)>> {
    if !plan.schema().has_column(column) {
        return Ok(None);
    }
    if let LogicalPlan::Join(join) = plan {
        return match misread(column, &join.left, text, asks)? {
            None => misread(column, &join.right, text, asks),
            found => Ok(found),
        };
    }
    let source = TableSource::behind(column, plan)?;
    Ok(source.and_then(|(source, name)| source.misread(&name, text, asks)))
}

fn refused(of: &str, part: &KeyPart, text: &str, asks: AsksFor) -> Error {
    let is_pattern = asks == AsksFor::Pattern;
    let digits = if is_pattern { text.trim_end_matches('%') } else { text };
    let is_hex = !digits.is_empty() && from_hex(digits).is_some();
    let shown = if is_hex { digits } else { "8000" };
    let hint = match is_pattern {
        true => format!("write a range of bytes: rowkey >= x'{shown}' AND rowkey < ..."),
        false if is_hex => format!("write x'{digits}', or '\\x{digits}' as the value of a parameter"),
        false => format!("write bytes, as in x'{shown}', or compare the columns of the key"),
    };
    let is = if part.is_binary() { "is binary" } else { "is not stored as plain text" };
    Error::invalid(format!("the keys of \"{of}\" are binary, and '{text}' is a text"))
        .why(format!("their part {} {is}, so they print as the hex digits of their bytes", part.sql()))
        .hint(hint)
        .state(sqlstate::DATATYPE_MISMATCH)
        .about(text)
}
