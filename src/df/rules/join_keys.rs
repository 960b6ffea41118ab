//! Keeps join columns bare where a join compares dates as timestamps.
//!
//! `b.day = a.at` compares a DATE with a TIMESTAMP, so DataFusion joins by `CAST(b.day AS TIMESTAMP)`, which is no column
//! for lookups. Here the other side is narrowed instead: a timestamp that is not midnight becomes NULL, which equals
//! nothing, as it did before. Integers have a better way ([`super::wide_columns`]).

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, cast, when};

use crate::df::table::TableSource;
use crate::df::tree::RewritePlan;

/// Marks the names of narrowed expressions.
const NARROWED: &str = " narrowed to ";

/// The same plan, with joins on columns that lead a key comparing in the type of the column.
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

/// `wide`, narrowed to the date of the column inside `cast`, and that column. Each expression comes with its side of
/// the join; `at`: index of the pair. `None` if `cast` is no widening cast, or if `wide` serves lookups better.
fn narrowed(
    (wide, of_wide): (&Expr, &LogicalPlan),
    (cast, of_cast): (&Expr, &LogicalPlan),
    at: usize,
) -> DfResult<Option<(Expr, Expr)>> {
    let Expr::Cast(Cast { expr, field }) = cast else { return Ok(None) };
    let Expr::Column(column) = &**expr else { return Ok(None) };
    let is_date = expr.get_type(of_cast.schema())? == DataType::Date32
        && matches!(field.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _));
    if !is_date || !leads(column, of_cast)? {
        return Ok(None);
    }
    if let Expr::Column(other) = wide
        && leads(other, of_wide)?
    {
        return Ok(None);
    }
    // Expressions that differ in casts only have the same name.
    let other = if at > 0 { format!(" ({at})") } else { String::new() };
    let name = format!("{}{NARROWED}date{other}", wide.schema_name());
    let narrowed = day_of_midnight(wide, field.data_type())?;
    Ok(Some((narrowed.alias(name), Expr::Column(column.clone()))))
}

/// The date of a timestamp of this type if it is midnight, otherwise NULL.
fn day_of_midnight(time: &Expr, ty: &DataType) -> DfResult<Expr> {
    let day = cast(time.clone(), DataType::Date32);
    when(cast(day.clone(), ty.clone()).eq(time.clone()), day).end()
}

/// The source expression of a narrowed column, as written.
pub fn shown(name: &str) -> &str {
    name.split_once(NARROWED).map_or(name, |(wide, _)| wide)
}

/// The column is one of a table and leads some key.
pub fn leads(column: &Column, plan: &LogicalPlan) -> DfResult<bool> {
    Ok(TableSource::behind(column, plan)?.is_some_and(|(source, name)| source.leads(&name)))
}
