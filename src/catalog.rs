//! The catalog: every table, index and view, stored as JSON in its own keyspace.
//!
//! A [`Catalog`] is immutable; DDL makes the next one and the batch that stores it. Every write of rows
//! [relies on](Catalog::rely_on) the stored definitions of the tables it touches, and every change of a table's
//! definition rewrites it. So no row can be written under an outdated schema: an index created meanwhile is never missed.
//!
//! | key in keyspace 0 | value |
//! |---|---|
//! | `meta` | JSON: catalog version, next ids |
//! | `table/<name>`, `view/<name>` | JSON of the definition |
//! | `statistics/<table id>` | JSON of ANALYZE's results; not a definition, so it does not change the version |
//! | `build/<index id>` | JSON: progress of building an index, or of filling a re-keyed table |
//! | `identity/<table id>/<column id>` | JSON number: the next value to give out |

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, sqlstate};
use crate::key::{ColumnId, KeyRange};
use crate::schema::{
    IndexDef, IndexId, IndexState, Reference, Rekey, TableDef, TableId, TableStatistics, ViewDef,
};
use crate::store::{Direction, KeyspaceId, Reader, Reads, WriteBatch, damaged_entry};
use crate::suggest::with_suggestion;

/// The keyspace of the catalog itself.
pub const CATALOG_KEYSPACE: KeyspaceId = KeyspaceId(0);
const META: &[u8] = b"meta";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CatalogMeta {
    version: u64,
    next_object: u32,
    next_keyspace: u32,
    /// Keyspaces of dropped tables and indexes: empty, and reused first.
    free_keyspaces: Vec<KeyspaceId>,
}

impl CatalogMeta {
    fn new() -> CatalogMeta {
        CatalogMeta { version: 0, next_object: 1, next_keyspace: 1, free_keyspaces: Vec::new() }
    }
}

/// Every definition at one version.
#[derive(Clone, Debug)]
pub struct Catalog {
    meta: CatalogMeta,
    /// Number of a draft, unique among all; `None`: these definitions are in force.
    draft: Option<u64>,
    tables: BTreeMap<String, Arc<TableDef>>,
    views: BTreeMap<String, Arc<ViewDef>>,
    statistics: BTreeMap<TableId, Arc<TableStatistics>>,
    /// The table of each keyspace, computed on first use.
    owners: OnceLock<Arc<HashMap<KeyspaceId, Arc<TableDef>>>>,
    /// The result of [`Catalog::tells_times`], computed on first use.
    tells_times: OnceLock<bool>,
    /// The foreign keys, by the table they refer to, computed on first use.
    referrers: OnceLock<Arc<HashMap<TableId, Vec<Referrer>>>>,
}

/// A foreign key, with the table that has it.
#[derive(Clone, Debug)]
pub struct Referrer {
    /// The table whose rows refer to others.
    pub child: Arc<TableDef>,
    /// Position among its references.
    at: usize,
}

impl Referrer {
    /// The foreign key.
    pub fn reference(&self) -> &Reference {
        &self.child.references[self.at]
    }
}

/// The object that a name refers to.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<TableDef>),
    /// An index table, with the table it belongs to.
    Index(Arc<TableDef>, IndexId),
    /// A view.
    View(Arc<ViewDef>),
}

/// The definition of an index that [`Relation::Index`] names.
pub fn index_of(table: &TableDef, id: IndexId) -> Result<&IndexDef> {
    table.index_by_id(id).ok_or_else(|| Error::internal("an index without its definition"))
}

impl Catalog {
    /// Reads the whole catalog. Errors: `Corrupt`, naming the definition that cannot be read.
    pub fn load(reader: &dyn Reader) -> Result<Catalog> {
        let mut catalog = Catalog::empty();
        if let Some(bytes) = reader.get(CATALOG_KEYSPACE, META)? {
            catalog.meta = from_json("meta", bytes)?;
        }
        // A cursor cannot pass a damaged entry, so read from both ends. Only statistics can lie between two damaged
        // statistics.
        for direction in [Direction::Forward, Direction::Reverse] {
            match catalog.load_all(reader, direction) {
                Err(error) if damaged_statistics(&error).is_some() => {}
                loaded => return loaded.map(|()| catalog),
            }
        }
        Ok(catalog)
    }

    /// Reads up to the first damaged entry.
    fn load_all(&mut self, reader: &dyn Reader, direction: Direction) -> Result<()> {
        let mut cursor = reader.cursor(CATALOG_KEYSPACE, &KeyRange::all(), direction)?;
        while let Some((key, value)) = cursor.next()? {
            let name = String::from_utf8_lossy(key);
            if let Some(table) = name.strip_prefix("table/") {
                let def: TableDef = from_json(&name, value)?;
                let flaw =
                    if def.name == table { def.flaw() } else { Some(format!("it is called {}", def.name)) };
                if let Some(flaw) = flaw {
                    return Err(unreadable(&name, flaw));
                }
                self.tables.insert(table.to_owned(), Arc::new(def));
            } else if let Some(view) = name.strip_prefix("view/") {
                self.views.insert(view.to_owned(), Arc::new(from_json(&name, value)?));
            } else if let Some(id) = statistics_of(&name)
                // Unreadable statistics are ignored: ANALYZE writes them anew.
                && let Ok(statistics) = serde_json::from_slice(value)
            {
                self.statistics.insert(id, Arc::new(statistics));
            }
        }
        Ok(())
    }

    /// The version stored in a store. Errors: `Corrupt` if it cannot be read.
    pub fn stored_version(reader: &dyn Reader) -> Result<u64> {
        let meta = reader.get(CATALOG_KEYSPACE, META)?;
        meta.map_or(Ok(0), |bytes| Ok(from_json::<CatalogMeta>("meta", bytes)?.version))
    }

    /// No definitions at all.
    pub fn empty() -> Catalog {
        Catalog {
            meta: CatalogMeta::new(),
            draft: None,
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            statistics: BTreeMap::new(),
            owners: OnceLock::new(),
            tells_times: OnceLock::new(),
            referrers: OnceLock::new(),
        }
    }

    /// Grows with every change of any definition.
    pub fn version(&self) -> u64 {
        self.meta.version
    }

    /// Identifies these definitions among all that were visible, as a version or a draft, since the database was
    /// opened.
    pub fn identity(&self) -> u64 {
        self.draft.unwrap_or(self.meta.version)
    }

    /// These definitions as a draft, private to an open transaction.
    pub fn draft(self) -> Catalog {
        // Counts down from the maximum, which versions never reach.
        static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
        Catalog { draft: Some(LAST.fetch_sub(1, Ordering::Relaxed)), ..self }
    }

    /// The draft as it is put into force in place of `current`, from which it was made. Statistics of tables that it
    /// did not change may be newer in `current`.
    pub fn settled(&self, current: &Catalog) -> Catalog {
        let mut settled = Catalog { draft: None, ..self.clone() };
        for (name, table) in &current.tables {
            if settled.tables.get(name).is_some_and(|now| Arc::ptr_eq(now, table)) {
                match current.statistics.get(&table.id) {
                    Some(newest) => settled.statistics.insert(table.id, Arc::clone(newest)),
                    None => settled.statistics.remove(&table.id),
                };
            }
        }
        settled
    }

    /// Tables by name, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableDef>> {
        self.tables.values()
    }

    /// Some table records when its rows were written, so statements depend on the current time.
    pub fn tells_times(&self) -> bool {
        *self.tells_times.get_or_init(|| self.tables().any(|table| table.written_at.is_some()))
    }

    /// The table with this identity.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableDef>> {
        self.tables().find(|table| table.id == id)
    }

    /// The foreign keys that refer to rows of a table, its own included.
    pub fn references_to(&self, table: TableId) -> &[Referrer] {
        self.referrers().get(&table).map_or(&[], Vec::as_slice)
    }

    /// Some table has a foreign key.
    pub fn has_references(&self) -> bool {
        !self.referrers().is_empty()
    }

    fn referrers(&self) -> &HashMap<TableId, Vec<Referrer>> {
        self.referrers.get_or_init(|| {
            let mut all: HashMap<TableId, Vec<Referrer>> = HashMap::new();
            for child in self.tables() {
                for (at, reference) in child.references.iter().enumerate() {
                    let referrer = Referrer { child: Arc::clone(child), at };
                    all.entry(reference.parent).or_default().push(referrer);
                }
            }
            Arc::new(all)
        })
    }

    /// Views by name, in order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewDef>> {
        self.views.values()
    }

    /// The object that `name` refers to.
    pub fn find(&self, name: &str) -> Option<Relation> {
        if let Some(table) = self.tables.get(name) {
            return Some(Relation::Table(Arc::clone(table)));
        }
        if let Some(view) = self.views.get(name) {
            return Some(Relation::View(Arc::clone(view)));
        }
        self.tables.values().find_map(|t| t.index(name).map(|index| Relation::Index(Arc::clone(t), index.id)))
    }

    /// Every name: tables, views, index tables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let indexes = self.tables.values().flat_map(|t| t.indexes.iter().map(|i| i.name.as_str()));
        self.tables.keys().chain(self.views.keys()).map(String::as_str).chain(indexes)
    }

    /// The table called `name`. Errors: it is something else, or does not exist (with the nearest name as a hint).
    pub fn table(&self, name: &str) -> Result<Arc<TableDef>> {
        match self.find(name) {
            Some(Relation::Table(table)) => Ok(table),
            Some(Relation::View(_)) => Err(Error::invalid(format!("\"{name}\" is a view, not a table"))
                .hint("a view is read only: change the tables that it reads; DROP VIEW drops it")
                .state(sqlstate::WRONG_OBJECT)),
            Some(Relation::Index(table, _)) => {
                Err(Error::invalid(format!("\"{name}\" is an index table of \"{}\"", table.name))
                    .why("index tables are kept by the engine and cannot be changed by hand")
                    .hint(format!(
                        "change \"{}\"; CHECK INDEX and DROP INDEX take the index table",
                        table.name
                    ))
                    .state(sqlstate::WRONG_OBJECT))
            }
            None => Err(self.unknown(name)),
        }
    }

    /// The REKEYs in progress, or interrupted when the database was closed.
    pub fn rekeyed(&self) -> impl Iterator<Item = IndexId> {
        self.tables.values().filter_map(|table| Some(table.rekey.as_ref()?.keys.id))
    }

    /// The indexes being built, or interrupted when the database was closed.
    pub fn building(&self) -> impl Iterator<Item = IndexId> {
        let indexes = self.tables.values().flat_map(|table| &table.indexes);
        indexes.filter(|index| index.state == IndexState::Building).map(|index| index.id)
    }

    /// The index with this identity, with its table.
    pub fn index_by_id(&self, id: IndexId) -> Option<(&Arc<TableDef>, &IndexDef)> {
        self.tables.values().find_map(|table| Some((table, table.index_by_id(id)?)))
    }

    /// The index table called `name`, with its table.
    pub fn index(&self, name: &str) -> Result<(Arc<TableDef>, IndexDef)> {
        for table in self.tables.values() {
            if let Some(index) = table.index(name) {
                return Ok((Arc::clone(table), index.clone()));
            }
        }
        let names = self.tables.values().flat_map(|t| t.indexes.iter().map(|i| i.name.as_str()));
        Err(with_suggestion(
            Error::invalid(format!("there is no index \"{name}\"")).state(sqlstate::UNDEFINED_TABLE),
            name,
            names,
            "SHOW INDEXES lists them",
        ))
    }

    /// The error for an unknown name.
    pub fn unknown(&self, name: &str) -> Error {
        let error = Error::invalid(format!("there is no table \"{name}\"")).state(sqlstate::UNDEFINED_TABLE);
        with_suggestion(error, name, self.names(), "SHOW TABLES lists them")
    }

    /// Refuses a name that is taken.
    pub fn check_free(&self, name: &str) -> Result<()> {
        let what = match self.find(name) {
            None => return Ok(()),
            Some(Relation::Table(_)) => "a table",
            Some(Relation::Index(..)) => "an index table",
            Some(Relation::View(_)) => "a view",
        };
        Err(Error::invalid(format!("{what} \"{name}\" exists already"))
            .hint("choose another name, or drop the old one first")
            .state(sqlstate::DUPLICATE_TABLE))
    }

    /// The statistics of a table.
    pub fn statistics(&self, table: TableId) -> Option<&Arc<TableStatistics>> {
        self.statistics.get(&table)
    }

    /// The table whose statistics `error` reports as damaged, if it does.
    pub fn damaged_statistics(&self, error: &Error) -> Option<&str> {
        let id = damaged_statistics(error)?;
        self.tables().find(|table| table.id == id).map(|table| table.name.as_str())
    }

    /// The catalog with new statistics of a table, as it was when they were collected, and the batch that stores
    /// them; `None` if the table is gone. Statistics of columns and keys that have changed since are left out. No
    /// definition changes, so the version stays, and no transaction fails because of it.
    pub fn with_statistics(
        &self,
        of: &TableDef,
        mut statistics: TableStatistics,
    ) -> Result<Option<(Catalog, WriteBatch)>> {
        let Some(now) = self.tables().find(|table| table.id == of.id) else { return Ok(None) };
        let column = |table: &TableDef, id: ColumnId| table.columns.get(usize::from(id.0)).cloned();
        statistics.columns.retain(|(id, _)| column(now, *id).is_some_and(|c| Some(c) == column(of, *id)));
        let keys = |table: &TableDef| -> Vec<(KeyspaceId, Option<IndexId>)> {
            let indexes = table.indexes.iter().map(|index| (index.keyspace, Some(index.id)));
            std::iter::once((table.rows(), None)).chain(indexes).collect()
        };
        let (keys_now, keys_then) = (keys(now), keys(of));
        let is_same = |keyspace| keys_now.iter().any(|key| key.0 == keyspace && keys_then.contains(key));
        statistics.prefixes.retain(|(keyspace, _)| is_same(*keyspace));
        let mut edit = CatalogEdit { next: self.clone(), batch: WriteBatch::default() };
        edit.put_statistics(of.id, statistics)?;
        Ok(Some((edit.next, edit.batch)))
    }

    /// Makes a write with these `reads` fail with `Conflict` if a definition changes before it is committed: of a
    /// table to which one of the keyspaces `touched` belongs, or of any view.
    pub fn rely_on(&self, reads: &mut Reads, touched: &BTreeSet<KeyspaceId>) {
        let names: BTreeSet<&str> =
            touched.iter().filter_map(|keyspace| Some(self.owners().get(keyspace)?.name.as_str())).collect();
        for name in names {
            reads.add(CATALOG_KEYSPACE, KeyRange::point(table_key(name)));
        }
        reads.add(CATALOG_KEYSPACE, KeyRange::prefix(view_key("")));
    }

    fn owners(&self) -> &HashMap<KeyspaceId, Arc<TableDef>> {
        let of = |table: &Arc<TableDef>| {
            let table = Arc::clone(table);
            let keyspaces: Vec<KeyspaceId> = table.keyspaces().collect();
            keyspaces.into_iter().map(move |keyspace| (keyspace, Arc::clone(&table)))
        };
        self.owners.get_or_init(|| Arc::new(self.tables().flat_map(of).collect()))
    }

    /// Begins the next version.
    pub fn edit(&self) -> CatalogEdit {
        let (owners, tells_times, referrers) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let mut next = Catalog { draft: None, owners, tells_times, referrers, ..self.clone() };
        next.meta.version += 1;
        CatalogEdit { next, batch: WriteBatch::default() }
    }
}

/// The next catalog and the batch that stores it.
pub struct CatalogEdit {
    next: Catalog,
    /// Committed together with the statement's other writes.
    pub batch: WriteBatch,
}

impl CatalogEdit {
    /// A new table identity.
    pub fn new_table_id(&mut self) -> TableId {
        TableId(self.next_object())
    }

    /// A new index identity.
    pub fn new_index_id(&mut self) -> IndexId {
        IndexId(self.next_object())
    }

    fn next_object(&mut self) -> u32 {
        let id = self.next.meta.next_object;
        self.next.meta.next_object += 1;
        id
    }

    /// An empty keyspace for a new family or index.
    pub fn new_keyspace(&mut self) -> KeyspaceId {
        if let Some(free) = self.next.meta.free_keyspaces.pop() {
            return free;
        }
        let id = self.next.meta.next_keyspace;
        self.next.meta.next_keyspace += 1;
        KeyspaceId(id)
    }

    /// Empties a keyspace that is no longer used.
    pub fn free_keyspace(&mut self, keyspace: KeyspaceId) {
        self.batch.clear(keyspace);
        self.next.meta.free_keyspaces.push(keyspace);
    }

    /// Stores a table, new or changed. Errors: an expression of an index is nested too deeply.
    pub fn put_table(&mut self, table: TableDef) -> Result<()> {
        let json = to_json(&table)?;
        // What cannot be read again would keep the whole database from being opened.
        from_json::<TableDef>(&table.name, &json).map_err(|e| too_deep(&table.name).caused_by(e))?;
        self.batch.put(CATALOG_KEYSPACE, table_key(&table.name), json);
        self.next.tables.insert(table.name.clone(), Arc::new(table));
        Ok(())
    }

    /// Frees a table's name, before [`CatalogEdit::put_table`] stores it under another one.
    pub fn rename_table(&mut self, old: &str) {
        self.batch.delete(CATALOG_KEYSPACE, table_key(old));
        self.next.tables.remove(old);
    }

    /// Removes an index from its table, and its statistics, because its keyspace and formula columns may be reused.
    pub fn drop_index(&mut self, table: &TableDef, index: &IndexDef) -> Result<()> {
        self.free_keyspace(index.keyspace);
        self.batch.delete(CATALOG_KEYSPACE, build_key(index.id));
        let mut table = table.clone();
        table.indexes.retain(|other| other.id != index.id);
        table.drop_formulas();
        if let Some(statistics) = self.next.statistics.get(&table.id) {
            let mut statistics = (**statistics).clone();
            statistics.prefixes.retain(|(keyspace, _)| *keyspace != index.keyspace);
            statistics.columns.retain(|(id, _)| !table.column(*id).dropped);
            self.put_statistics(table.id, statistics)?;
        }
        self.put_table(table)
    }

    /// Sets an index's state. Its build progress is discarded.
    pub fn set_state(&mut self, table: &TableDef, index: IndexId, state: IndexState) -> Result<()> {
        self.batch.delete(CATALOG_KEYSPACE, build_key(index));
        let mut table = table.clone();
        let kept = table.indexes.iter_mut().chain(table.rekey.as_deref_mut().map(|rekey| &mut rekey.keys));
        kept.filter(|other| other.id == index).for_each(|index| index.state = state);
        self.put_table(table)
    }

    /// Abandons a table's REKEY.
    pub fn drop_rekey(&mut self, table: &TableDef, rekey: &Rekey) -> Result<()> {
        rekey.next.keyspaces().chain([rekey.keys.keyspace]).for_each(|keyspace| self.free_keyspace(keyspace));
        self.batch.delete(CATALOG_KEYSPACE, build_key(rekey.keys.id));
        self.put_table(TableDef { rekey: None, ..table.clone() })
    }

    /// Completes a REKEY: the next table replaces the table. Statistics of its old keys are discarded.
    pub fn switch(&mut self, table: &TableDef, rekey: &Rekey) -> Result<()> {
        let next: Vec<KeyspaceId> = rekey.next.keyspaces().collect();
        table.keyspaces().filter(|keyspace| !next.contains(keyspace)).for_each(|old| self.free_keyspace(old));
        self.batch.delete(CATALOG_KEYSPACE, build_key(rekey.keys.id));
        self.forget_statistics(table.id);
        self.put_table(rekey.next.clone())
    }

    fn put_statistics(&mut self, table: TableId, statistics: TableStatistics) -> Result<()> {
        self.batch.put(CATALOG_KEYSPACE, statistics_key(table), to_json(&statistics)?);
        self.next.statistics.insert(table, Arc::new(statistics));
        Ok(())
    }

    /// Discards the statistics of a table.
    pub fn forget_statistics(&mut self, table: TableId) {
        if self.next.statistics.remove(&table).is_some() {
            self.batch.delete(CATALOG_KEYSPACE, statistics_key(table));
        }
    }

    /// Discards how far the builds of a table's indexes, and its REKEY, have come.
    pub fn forget_builds(&mut self, table: &TableDef) {
        let built = table.indexes.iter().filter(|index| index.state == IndexState::Building);
        let ids = built.map(|index| index.id).chain(table.rekey.as_ref().map(|rekey| rekey.keys.id));
        ids.for_each(|id| self.batch.delete(CATALOG_KEYSPACE, build_key(id)));
    }

    /// Removes a table with everything in it.
    pub fn drop_table(&mut self, name: &str) {
        self.batch.delete(CATALOG_KEYSPACE, table_key(name));
        if let Some(table) = self.next.tables.remove(name) {
            table.keyspaces().for_each(|keyspace| self.free_keyspace(keyspace));
            self.forget_builds(&table);
            // Columns that were dropped before left theirs.
            for (at, _) in table.columns.iter().enumerate().filter(|(_, column)| column.identity.is_some()) {
                self.batch.delete(CATALOG_KEYSPACE, identity_key(table.id, ColumnId(at as u16)));
            }
            self.forget_statistics(table.id);
        }
    }

    /// Stores a view.
    pub fn put_view(&mut self, view: ViewDef) -> Result<()> {
        self.batch.put(CATALOG_KEYSPACE, view_key(&view.name), to_json(&view)?);
        self.next.views.insert(view.name.clone(), Arc::new(view));
        Ok(())
    }

    /// Removes a view.
    pub fn drop_view(&mut self, name: &str) {
        self.batch.delete(CATALOG_KEYSPACE, view_key(name));
        self.next.views.remove(name);
    }

    /// The finished catalog, and the batch to commit.
    pub fn finish(mut self) -> Result<(Catalog, WriteBatch)> {
        let meta = to_json(&self.next.meta)?;
        self.batch.put(CATALOG_KEYSPACE, META, meta);
        Ok((self.next, self.batch))
    }
}

fn table_key(name: &str) -> Vec<u8> {
    format!("table/{name}").into_bytes()
}

fn view_key(name: &str) -> Vec<u8> {
    format!("view/{name}").into_bytes()
}

fn statistics_key(table: TableId) -> Vec<u8> {
    format!("statistics/{}", table.0).into_bytes()
}

fn statistics_of(key: &str) -> Option<TableId> {
    key.strip_prefix("statistics/")?.parse().ok().map(TableId)
}

/// The table whose statistics an error of the store reports as damaged.
fn damaged_statistics(error: &Error) -> Option<TableId> {
    let entry = damaged_entry(error)?;
    statistics_of(std::str::from_utf8(&entry.key).ok()?).filter(|_| entry.keyspace == CATALOG_KEYSPACE)
}

/// Key under which the progress of building an index is kept.
pub fn build_key(index: IndexId) -> Vec<u8> {
    format!("build/{}", index.0).into_bytes()
}

/// Key under which the next value of an identity column is kept.
pub fn identity_key(table: TableId, column: ColumnId) -> Vec<u8> {
    format!("identity/{}/{}", table.0, column.0).into_bytes()
}

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value)
        .map_err(|e| Error::internal("a definition cannot be written as JSON").caused_by(e))
}

fn from_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| unreadable(name, e.to_string()))
}

fn too_deep(table: &str) -> Error {
    Error::invalid(format!("an expression of an index on \"{table}\" is nested too deeply"))
        .why(
            "definitions are kept as JSON of 127 levels: some forty calls or operators, one inside the other",
        )
        .hint("compute it into a column and index that")
        .state(sqlstate::LIMIT)
}

fn unreadable(name: &str, why: String) -> Error {
    Error::corrupt(format!("catalog entry \"{name}\" cannot be read"))
        .why(why)
        .hint("restore the database from a backup")
}
