//! VALUES: as a subquery, as in `x IN (VALUES (1), (2))`, they become a SELECT; texts beside times are times, too.

use sqlparser::ast::{
    CastKind, DataType, Expr, Parens, Query, SetExpr, TableFactor, TypedString, Value, ValueWithSpan,
};

use super::parser::{column_type, parse_query};
use crate::error::Result;
use crate::value::ColumnType;

/// Wraps the VALUES in a SELECT: DataFusion only takes a subquery whose columns have names.
pub(super) fn as_select(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::InSubquery { subquery, .. } | Expr::Subquery(subquery) | Expr::Exists { subquery, .. } => {
            selected(subquery)
        }
        _ => Ok(()),
    }
}

fn selected(query: &mut Query) -> Result<()> {
    if !matches!(*query.body, SetExpr::Values(_)) {
        return Ok(());
    }
    let mut around = parse_query("SELECT * FROM (VALUES (1)) AS listed")?;
    if let SetExpr::Select(select) = &mut *around.body
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|f| &mut f.relation)
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
        query.body = around.body;
    }
    Ok(())
}

/// Casts the texts in the rows of VALUES to the type of the times in the same column, which DataFusion refuses or takes
/// in nanoseconds.
pub fn texts_as_times(query: &mut Query) {
    let mut bodies = vec![&mut *query.body];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => bodies.extend([&mut **left, &mut **right]),
            SetExpr::Values(values) if values.rows.len() > 1 => as_times(&mut values.rows),
            _ => {}
        }
    }
}

fn as_times(rows: &mut [Parens<Vec<Expr>>]) {
    for at in 0..rows.first().map_or(0, |row| row.len()) {
        let times = rows.iter().filter_map(|row| time_type(row.get(at)?));
        let Some((rank, ty)) = times.max_by_key(|(rank, _)| *rank) else { continue };
        let ty = ty.clone();
        for expr in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            let is_other = match time_type(expr) {
                Some((other, _)) => other != rank,
                None => is_text(expr),
            };
            if is_other {
                let text = std::mem::replace(expr, Expr::value(Value::Null));
                *expr = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(text),
                    data_type: ty.clone(),
                    array: false,
                    format: None,
                };
            }
        }
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
}

/// The type of a time that is written with it; the type with the greatest number can hold the others.
fn time_type(expr: &Expr) -> Option<(u8, &DataType)> {
    let (Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. }) = expr else {
        return None;
    };
    let rank = match column_type(data_type) {
        Ok(ColumnType::Date) => 0,
        Ok(ColumnType::Timestamp) => 1,
        Ok(ColumnType::TimestampTz) => 2,
        _ => return None,
    };
    Some((rank, data_type))
}
