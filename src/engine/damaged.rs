//! Whose pages are damaged, in words of whoever defined it.

use crate::catalog::Catalog;
use crate::error::Error;
use crate::sql::name_sql;
use crate::store::DamagedKeyspace;

/// An error of the store, about the table or index table whose pages it says are damaged; any other as it is.
pub fn of_whom(catalog: &Catalog, error: Error) -> Error {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    let Some(DamagedKeyspace(keyspace)) = source else { return error };
    let found = catalog.tables().find_map(|table| {
        if table.families.iter().any(|family| family.keyspace == *keyspace) {
            let hint = "restore the database from a backup, or DROP the table when what can be read of it is elsewhere";
            return Some((format!("table \"{}\" is damaged", table.name), hint.to_owned()));
        }
        let index = table.indexes.iter().find(|index| index.keyspace == *keyspace)?;
        let hint = format!("REPAIR INDEX {} builds it anew", name_sql(&index.name));
        Some((format!("index table \"{}\" is damaged", index.name), hint))
    });
    let Some((what, hint)) = found else { return error };
    let why = [Some(error.what()), error.reason()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Error::corrupt(what).why(why).hint(hint + "; check the disk").caused_by(error)
}
