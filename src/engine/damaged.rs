//! Errors about damaged entries and pages, with the name of the table or index that they belong to.

use crate::catalog::Catalog;
use crate::error::Error;
use crate::schema::TableDef;
use crate::sql::name_sql;
use crate::store::{DamagedEntry, DamagedKeyspace, KeyspaceId, damaged_entry};

/// Rewrites the store's error about a damaged entry, or damaged pages, to name the table or index; other errors stay
/// as they are.
pub fn of_whom(catalog: &Catalog, error: Error) -> Error {
    let Some(damage) = Damage::of(&error) else { return error };
    let Some((what, hint)) = catalog.tables().find_map(|table| damage.within(table)) else { return error };
    let why = [Some(error.what()), error.reason()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Error::corrupt(what).why(why).hint(hint + "; check the disk").caused_by(error)
}

/// What an error says is damaged.
struct Damage<'e> {
    keyspace: KeyspaceId,
    /// The key of the one entry that is; `None`: pages are.
    key: Option<&'e [u8]>,
}

impl Damage<'_> {
    fn of(error: &Error) -> Option<Damage<'_>> {
        if let Some(DamagedEntry { keyspace, key }) = damaged_entry(error) {
            return Some(Damage { keyspace: *keyspace, key: Some(key) });
        }
        let DamagedKeyspace(keyspace) = std::error::Error::source(error)?.downcast_ref()?;
        Some(Damage { keyspace: *keyspace, key: None })
    }

    /// What is damaged of this table, and what to do; `None` if nothing is.
    fn within(&self, table: &TableDef) -> Option<(String, String)> {
        let is_it = |of: KeyspaceId| of == self.keyspace;
        if table.families.iter().any(|family| is_it(family.keyspace)) {
            return Some(self.of_rows(table));
        }
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
            return Some((
                format!("the new copy of table \"{}\" that REKEY builds is damaged", table.name),
                hint,
            ));
        }
        let index = table.indexes.iter().find(|index| is_it(index.keyspace))?;
        let hint = format!("REPAIR INDEX {} builds it anew", name_sql(&index.name));
        Some((format!("index table \"{}\" is damaged", index.name), hint))
    }

    fn of_rows(&self, table: &TableDef) -> (String, String) {
        let (name, sql) = (&table.name, name_sql(&table.name));
        match self.key {
            Some(key) => (
                format!("row {} of table \"{name}\" is damaged", table.key.show(key)),
                format!("restore it from a backup, or give it up: REPAIR TABLE {sql} DRY RUN lists such rows, REPAIR TABLE {sql} removes them"),
            ),
            None => (
                format!("table \"{name}\" is damaged"),
                "restore the database from a backup, or DROP the table when what can be read of it is elsewhere"
                    .to_owned(),
            ),
        }
    }
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
        let by_n = table.indexes[0].keyspace;
        let hint_of = |error: Error| of_whom(&catalog, error).fix().unwrap().to_owned();
        let entry = Error::corrupt("an entry").caused_by(DamagedEntry { keyspace: by_n, key: vec![1] });
        let page = Error::corrupt("a page").caused_by(DamagedKeyspace(by_n));
        assert_eq!(hint_of(entry), hint_of(page));
    }
}
