//! Columns that a join compares as wider integers than they are.
//!
//! `b.id = a.id + 1` compares an INTEGER with a BIGINT, so DataFusion joins by `CAST(b.id AS BIGINT)`, and that is no
//! column by which rows could be looked up. Here the other side is made narrower instead: what is no INTEGER becomes
//! NULL, which equals nothing, as it did before.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};

use crate::df::table::TableSource;
use crate::df::tree::RewritePlan;

/// Stands in names behind what is made narrower.
const NARROWED: &str = " narrowed to ";

/// The same plan, its joins comparing columns that lead a key as what they are.
pub fn of_columns(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let narrowed = plan.rewrite_up_with_subqueries(|node| {
        let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
        if join.null_equality == NullEquality::NullEqualsNull || join.null_aware {
            return Ok(Transformed::no(node));
        }
        let mut changed = false;
        let mut pair = |(at, (left, right)): (usize, &(Expr, Expr))| {
            let pair = match narrowed((left, &join.left), (right, &join.right), at)? {
                Some((left, right)) => (left, right),
                None => match narrowed((right, &join.right), (left, &join.left), at)? {
                    Some((right, left)) => (left, right),
                    None => return Ok((left.clone(), right.clone())),
                },
            };
            changed = true;
            Ok(pair)
        };
        let on = join.on.iter().enumerate().map(&mut pair).collect::<DfResult<Vec<_>>>()?;
        Ok(match changed {
            true => Transformed::yes(LogicalPlan::Join(Join { on, ..join.clone() })),
            false => Transformed::no(node),
        })
    });
    narrowed.data()
}

/// `wide` as narrow as the column that `cast` makes wider, and that column; each expression comes with the side it is
/// of. `at`: which of the join's pairs they are. `None` if it is no such cast, or if rows are rather looked up by `wide`.
fn narrowed(
    (wide, of_wide): (&Expr, &LogicalPlan),
    (cast, of_cast): (&Expr, &LogicalPlan),
    at: usize,
) -> DfResult<Option<(Expr, Expr)>> {
    let Expr::Cast(Cast { expr, field }) = cast else { return Ok(None) };
    let Expr::Column(column) = &**expr else { return Ok(None) };
    let narrow = expr.get_type(of_cast.schema())?;
    let widens =
        bytes_of_integer(&narrow).is_some_and(|bytes| Some(bytes) < bytes_of_integer(field.data_type()));
    if !widens || !leads(column, of_cast)? {
        return Ok(None);
    }
    if let Expr::Column(other) = wide
        && leads(other, of_wide)?
    {
        return Ok(None);
    }
    // What differs in its casts only has one name.
    let other = if at > 0 { format!(" ({at})") } else { String::new() };
    let name = format!("{}{NARROWED}{narrow}{other}", written(&wide.schema_name().to_string()));
    let wide = Expr::TryCast(TryCast::new(Box::new(wide.clone()), narrow));
    Ok(Some((wide.alias(name), Expr::Column(column.clone()))))
}

/// What a column that was made narrower is computed from, as it is written.
pub fn shown(name: &str) -> &str {
    name.split_once(NARROWED).map_or(name, |(wide, _)| wide)
}

/// `a.id + Int64(1)` as it is written.
fn written(name: &str) -> String {
    let mut parts = name.split("Int64(");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &part.replacen(')', "", 1))
}

fn bytes_of_integer(ty: &DataType) -> Option<usize> {
    ty.is_signed_integer().then(|| ty.primitive_width()).flatten()
}

/// The column is one of a table, and some key of it begins with it.
fn leads(column: &Column, plan: &LogicalPlan) -> DfResult<bool> {
    Ok(TableSource::behind(column, plan)?.is_some_and(|(source, name)| source.leads(&name)))
}
