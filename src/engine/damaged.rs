//! Errors about damaged pages, with the name of the table or index that they belong to.

use crate::catalog::Catalog;
use crate::error::Error;
use crate::sql::name_sql;
use crate::store::{DamagedKeyspace, KeyspaceId};

/// Rewrites the store's error about damaged pages to name the table or index; other errors stay as they are.
pub fn of_whom(catalog: &Catalog, error: Error) -> Error {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    let Some(DamagedKeyspace(keyspace)) = source else { return error };
    let found = catalog.tables().find_map(|table| {
        if table.families.iter().any(|family| family.keyspace == *keyspace) {
            let hint = "restore the database from a backup, or DROP the table when what can be read of it is elsewhere";
            return Some((format!("table \"{}\" is damaged", table.name), hint.to_owned()));
        }
        let is_it = |of: KeyspaceId| of == *keyspace;
        if let Some(past) = table.past()
            && past.keyspaces().any(is_it)
        {
            let hint = format!("ALTER TABLE {} SET (versions = 1) gives them up", name_sql(&table.name));
            return Some((format!("the history of table \"{}\" is damaged", table.name), hint));
        }
        if let Some(rekey) = &table.rekey
            && rekey.next.keyspaces().chain([rekey.keys.keyspace]).any(is_it)
        {
            let hint = format!("ALTER TABLE {} REKEY CANCEL, then REKEY it again", name_sql(&table.name));
            return Some((format!("the new copy of table \"{}\" that REKEY builds is damaged", table.name), hint));
        }
        let index = table.indexes.iter().find(|index| index.keyspace == *keyspace)?;
        let hint = format!("REPAIR INDEX {} builds it anew", name_sql(&index.name));
        Some((format!("index table \"{}\" is damaged", index.name), hint))
    });
    let Some((what, hint)) = found else { return error };
    let why = [Some(error.what()), error.reason()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Error::corrupt(what).why(why).hint(hint + "; check the disk").caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Database;

    #[test]
    fn keyspaces_are_called_by_what_they_hold() {
        let db = Database::in_memory().unwrap();
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT) WITH (versions = 3)").unwrap();
        db.execute("CREATE INDEX by_n ON t (n)").unwrap();
        let catalog = db.catalog();
        let table = catalog.table("t").unwrap();
        let called = |keyspace| {
            let error = Error::corrupt("a page").caused_by(DamagedKeyspace(keyspace));
            // Both sides of a join get a copy.
            let (copy, named) = (error.copied(), of_whom(&catalog, error));
            assert_eq!(of_whom(&catalog, copy).what(), named.what());
            named.what().to_owned()
        };
        assert_eq!(called(table.rows()), "table \"t\" is damaged");
        assert_eq!(called(table.indexes[0].keyspace), "index table \"by_n\" is damaged");
        assert_eq!(called(table.past().unwrap().rows()), "the history of table \"t\" is damaged");
        assert_eq!(called(KeyspaceId(77)), "a page");
    }
}
