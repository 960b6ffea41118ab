//! Tables that are being re-keyed: their definitions cannot change meanwhile.

use crate::error::{Error, Kind, Result, sqlstate};
use crate::schema::{Rekey, TableDef};
use crate::sql::name_sql;

/// Errors: the table is being re-keyed, so its definition cannot change.
pub fn refuse(table: &TableDef) -> Result<()> {
    table.rekey.as_ref().map_or(Ok(()), |rekey| Err(being_rekeyed(table, rekey)))
}

/// The error of a change while the table is being re-keyed.
pub fn being_rekeyed(table: &TableDef, rekey: &Rekey) -> Error {
    Error::new(Kind::Unavailable, format!("\"{}\" is being re-keyed", table.name))
        .why(format!("its next layout is ({}); until then its definition stays", rekey.next.key.sql()))
        .hint(format!("wait for that to end, or ALTER TABLE {} REKEY CANCEL", name_sql(&table.name)))
        .state(sqlstate::OBJECT_STATE)
}
