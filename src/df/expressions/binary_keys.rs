//! Refuses comparisons of binary rowkeys with plain texts: queries print such keys as hex digits, which are not their
//! bytes.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};

use super::like::parted;
use crate::df::errors::to_df;
use crate::df::table::TableSource;
use crate::error::{Error, sqlstate};
use crate::value::is_hex;

/// Refuses a text beside a rowkey without text parts: it would match nothing, or everything. Runs before the rule that
/// turns such texts into bytes.
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
    let peers: Vec<&Expr> = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(between) => vec![&between.expr, &between.low, &between.high],
        Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
        Expr::Like(like) => vec![&like.expr, &like.pattern],
        Expr::ScalarFunction(call) if parted(call).is_some() => call.args.iter().collect(),
        _ => return Ok(()),
    };
    let pattern = |peer: &Expr| match (expr, peer) {
        (Expr::Like(_), Expr::Placeholder(param)) => Some(param.id.clone()),
        _ => None,
    };
    let text = peers.iter().find_map(|peer| text(peer).map(str::to_owned).or_else(|| pattern(peer)));
    let Some(text) = text else { return Ok(()) };
    let rowkey = peers.iter().find_map(|peer| match peer {
        Expr::Column(column) => Some(column),
        _ => None,
    });
    let Some(rowkey) = rowkey else { return Ok(()) };
    let is_pattern = matches!(expr, Expr::Like(_) | Expr::ScalarFunction(_));
    let named =
        inputs.iter().find_map(|input| binary_keys(rowkey, input, is_pattern).transpose()).transpose()?;
    match named {
        Some((name, part)) => Err(to_df(refused(&name, &part, &text, is_pattern))),
        None => Ok(()),
    }
}

/// A text literal, other than `'\x80'` and `'0x80'`, which stand for bytes.
fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if !is_hex(text) => Some(text),
        _ => None,
    }
}

/// The table or index whose rowkey this column is, and its first binary part, if a text beside it would find nothing.
fn binary_keys(column: &Column, plan: &LogicalPlan, is_pattern: bool) -> DfResult<Option<(String, String)>> {
    if !plan.schema().has_column(column) {
        return Ok(None);
    }
    if let LogicalPlan::Join(join) = plan {
        return match binary_keys(column, &join.left, is_pattern)? {
            None => binary_keys(column, &join.right, is_pattern),
            found => Ok(found),
        };
    }
    let source = TableSource::behind(column, plan)?;
    Ok(source.and_then(|(source, name)| source.binary_keys(&name, is_pattern)))
}

fn refused(of: &str, part: &str, text: &str, is_pattern: bool) -> Error {
    let digits = if is_pattern { text.trim_end_matches('%') } else { text };
    let is_hex = !digits.is_empty() && digits.len() % 2 == 0 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let shown = if is_hex { digits } else { "8000" };
    let hint = match is_pattern {
        true => format!("write a range of bytes: rowkey >= x'{shown}' AND rowkey < ..."),
        false if is_hex => format!("write x'{digits}', or '\\x{digits}' as the value of a parameter"),
        false => format!("write bytes, as in x'{shown}', or compare the columns of the key"),
    };
    Error::invalid(format!("the keys of \"{of}\" are binary, and '{text}' is a text"))
        .why(format!("their part {part} is binary, so they print as the hex digits of their bytes"))
        .hint(hint)
        .state(sqlstate::DATATYPE_MISMATCH)
        .about(text)
}
