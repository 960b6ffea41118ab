//! The numbers of identity columns, as the dumps of other databases tell them.

/// How far an identity column has counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Whose counter it is.
    pub of: CounterName,
    /// A number.
    pub last: i64,
    /// The number has been given to a row, so that the next one follows it.
    pub is_taken: bool,
}

/// What a dump calls a counter.
#[derive(Clone, Debug, PartialEq)]
pub enum CounterName {
    /// By the table: SQLite's `sqlite_sequence`.
    Table(String),
    /// By the sequence, `table_column_seq`: PostgreSQL's `setval`.
    Sequence(String),
}

impl CounterName {
    /// The sequence that PostgreSQL makes for a SERIAL column.
    pub fn own_sequence(table: &str, column: &str) -> String {
        format!("{table}_{column}_seq")
    }
}
