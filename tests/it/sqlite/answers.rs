//! Rows of both engines in one form, compared as sqllogictest compares them: numbers by their value,
//! whatever their type, text as it is.

use rowkeydb::row::any_value_at;
use rowkeydb::{Outcome, Result, Value};
use rusqlite::types::ValueRef;

/// One value of a row.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Number(f64),
    Text(String),
}

/// Rows in the order in which they came.
pub type Rows = Vec<Vec<Cell>>;

impl PartialEq for Cell {
    /// Sums of doubles depend on the order of their rows, so the last digits do not count.
    fn eq(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Null, Cell::Null) => true,
            (Cell::Number(a), Cell::Number(b)) => {
                a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
            }
            (Cell::Text(a), Cell::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Cell {
    fn rank(&self) -> u8 {
        match self {
            Cell::Null => 0,
            Cell::Number(_) => 1,
            Cell::Text(_) => 2,
        }
    }

    fn order(&self, other: &Cell) -> std::cmp::Ordering {
        match (self, other) {
            _ if self == other => std::cmp::Ordering::Equal,
            (Cell::Number(a), Cell::Number(b)) => a.total_cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// What this engine answered.
pub fn ours(outcome: Outcome) -> Result<Rows> {
    let mut rows = Vec::new();
    for batch in outcome.rows {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|array| Ok(cell(any_value_at(array, row)?)));
            rows.push(cells.collect::<Result<_>>()?);
        }
    }
    Ok(rows)
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Boolean(b) => Cell::Number(b.into()),
        Value::Int(i) => Cell::Number(i as f64),
        Value::Double(d) => Cell::Number(d),
        Value::Decimal(..) => Cell::Number(value.to_string().parse().expect("a decimal reads as a double")),
        other => Cell::Text(other.to_string()),
    }
}

/// What SQLite answered.
pub fn sqlite(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cell = |i| {
            Ok(match row.get_ref(i)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(i) => Cell::Number(i as f64),
                ValueRef::Real(d) => Cell::Number(d),
                ValueRef::Text(t) | ValueRef::Blob(t) => Cell::Text(String::from_utf8_lossy(t).into_owned()),
            })
        };
        rows.push((0..columns).map(cell).collect::<rusqlite::Result<_>>()?);
    }
    Ok(rows)
}

/// The difference between an answer and the expected one, in words. The columns in `ordered` must come in
/// the expected order; whole rows may come in any.
pub fn difference(answer: &Rows, expected: &Rows, ordered: &[usize]) -> Option<String> {
    let keys = |rows: &Rows| -> Rows {
        rows.iter().map(|row| ordered.iter().map(|c| row[*c].clone()).collect()).collect()
    };
    let sorted = |rows: &Rows| {
        let mut rows = rows.clone();
        rows.sort_by(|a, b| {
            let cells = a.iter().zip(b).map(|(a, b)| a.order(b));
            cells.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        rows
    };
    let shown = |rows: &Rows| format!("{} rows {:?}", rows.len(), &rows[..rows.len().min(8)]);
    let (a, b) = (sorted(answer), sorted(expected));
    if a != b {
        let extra: Rows = a.iter().filter(|row| !b.contains(row)).cloned().collect();
        let missing: Rows = b.iter().filter(|row| !a.contains(row)).cloned().collect();
        return Some(format!(
            "{} rows instead of {}; extra {}; missing {}",
            a.len(),
            b.len(),
            shown(&extra),
            shown(&missing)
        ));
    }
    (keys(answer) != keys(expected))
        .then(|| format!("order {} instead of {}", shown(&keys(answer)), shown(&keys(expected))))
}
