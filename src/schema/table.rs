//! A table: its columns, families and key layout.

use serde::{Deserialize, Serialize};

use super::history::History;
use super::index::{IndexDef, IndexId};
use super::reference::Reference;
use super::rekey::Rekey;
use super::traffic::{Traffic, TrafficKind};
use crate::key::{ColumnId, ColumnInfo, KeyLayout, Rowkey, Tail};
use crate::plan::{CmpOp, Field, Formula, Predicate};
pub use crate::row::Compression;
use crate::store::KeyspaceId;
use crate::value::{ColumnType, Value};

/// Identity of a table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId(pub u32);

/// Position of a family in its table. 0 is the default family: every row has an entry there, so it
/// also says which rows exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FamilyId(pub u8);

impl FamilyId {
    /// The family of columns declared without one.
    pub const DEFAULT: FamilyId = FamilyId(0);
}

/// Most column families of a table (MapR-DB's limit), beside the default one.
pub const FAMILIES_MAX: usize = 64;

/// Columns stored together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Name, `default` for the default family.
    pub name: String,
    /// The keyspace of its packed values.
    pub keyspace: KeyspaceId,
    /// How they are compressed.
    pub compression: Compression,
}

/// `GENERATED ... AS IDENTITY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `ALWAYS`: a given value is refused. Otherwise `BY DEFAULT`.
    pub always: bool,
    /// First value.
    pub start: i64,
    /// Step.
    pub increment: i64,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name as queries see it.
    pub name: String,
    /// Type.
    pub ty: ColumnType,
    /// May be NULL.
    pub nullable: bool,
    /// Most characters of a `VARCHAR(n)`.
    pub max_len: Option<u32>,
    /// SQL text of the default.
    pub default: Option<String>,
    /// It is an identity column.
    pub identity: Option<Identity>,
    /// Family it is stored in.
    pub family: FamilyId,
    /// Dropped: its id stays taken, and nothing else of it is visible.
    pub dropped: bool,
    /// Hidden and not stored: a formula that an index computes from the row. When it is dropped, its id can be
    /// reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
    /// Hidden from statements: when the row was written ([`TableDef::written_at`]), when a version of it ended
    /// ([`History`]), or its number ([`TableDef::row_number`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl Column {
    /// A column of the default family that may be NULL, with nothing else to it.
    pub fn new(name: String, ty: ColumnType) -> Column {
        Column {
            name,
            ty,
            nullable: true,
            max_len: None,
            default: None,
            identity: None,
            family: FamilyId::DEFAULT,
            dropped: false,
            formula: None,
            hidden: false,
        }
    }

    /// The hidden column that numbers rows as they come.
    pub fn row_number() -> Column {
        let counts = Identity { always: true, start: 1, increment: 1 };
        let column = Column::new(ROW_NUMBER.to_owned(), ColumnType::BigInt);
        Column { nullable: false, identity: Some(counts), hidden: true, ..column }
    }

    /// What a key layout needs to know of it.
    pub fn info(&self) -> ColumnInfo<'_> {
        ColumnInfo {
            name: &self.name,
            ty: self.ty,
            nullable: self.nullable,
            identity: self.identity.is_some(),
        }
    }
}

/// Names of the hidden columns with the time when a row was written, and when a version of it ended.
pub const WRITTEN_AT: &str = "written_at";
/// See [`WRITTEN_AT`].
pub const ENDED_AT: &str = "ended_at";

/// Name of the hidden column of [`TableDef::row_number`].
const ROW_NUMBER: &str = "row number";

/// How long rows live: `WITH (ttl = '30 days')`.
///
/// A statement does not see rows that are older than that when it begins: every access has a comparison with the time
/// of writing among its conditions. Every index includes that time, so a covering index stays covering with the
/// comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// [`TableDef::written_at`].
    pub written_at: ColumnId,
    /// Microseconds.
    pub us: i64,
}

impl Ttl {
    /// Rows written at this time or before have expired at `now_us`; both in microseconds since 1970.
    fn cutoff(self, now_us: i64) -> Value {
        Value::TimestampTz(now_us.saturating_sub(self.us))
    }

    /// The row has not expired at `now_us`.
    pub fn is_alive(self, row: &[Value], now_us: i64) -> bool {
        row[usize::from(self.written_at.0)] > self.cutoff(now_us)
    }

    /// The condition that holds for rows which have not expired at `now_us`.
    pub fn alive(self, now_us: i64) -> Predicate {
        Predicate::compare(Field::Column(self.written_at), CmpOp::Gt, self.cutoff(now_us))
    }
}

/// `CHECK (expr)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckConstraint {
    /// Constraint name.
    pub name: String,
    /// SQL text of the condition.
    pub sql: String,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDef {
    /// Identity.
    pub id: TableId,
    /// Name.
    pub name: String,
    /// Columns by [`ColumnId`].
    pub columns: Vec<Column>,
    /// Families by [`FamilyId`]; at least the default one.
    pub families: Vec<Family>,
    /// The layout of the rowkey.
    pub key: KeyLayout,
    /// CHECK constraints.
    pub checks: Vec<CheckConstraint>,
    /// FOREIGN KEY constraints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// Index tables.
    pub indexes: Vec<IndexDef>,
    /// Hidden column with the time when a row was written: TIMESTAMPTZ NOT NULL in the default family, included in
    /// every index. Present if rows expire, or versions of them are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<ColumnId>,
    /// How long rows live, in microseconds; `None`: forever. If set, `written_at` is set too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_us: Option<i64>,
    /// How versions of rows are kept. If set, `written_at` is set too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Keys at which a region of the table ends and the next one begins, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<Rowkey>,
    /// The REKEY in progress, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey: Option<Box<Rekey>>,
    /// It is the history of another table, and cannot be altered itself.
    #[serde(skip)]
    pub is_past: bool,
    /// Counts of reads and writes by region.
    #[serde(skip)]
    pub traffic: Traffic,
}

impl TableDef {
    /// How long rows live; `None`: forever.
    pub fn ttl(&self) -> Option<Ttl> {
        Some(Ttl { written_at: self.written_at?, us: self.ttl_us? })
    }

    /// The row has not expired at `now_us`, in microseconds since 1970.
    pub fn is_alive(&self, row: &[Value], now_us: i64) -> bool {
        self.ttl().is_none_or(|ttl| ttl.is_alive(row, now_us))
    }

    /// Its rows may refer to each other.
    pub fn refers_to_itself(&self) -> bool {
        self.references.iter().any(|reference| reference.parent == self.id)
    }

    /// A column by id.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[usize::from(id.0)]
    }

    /// A column's id by name; dropped columns are not found.
    pub fn column_id(&self, name: &str) -> Option<ColumnId> {
        self.live_columns().find(|(_, c)| c.name == name).map(|(id, _)| id)
    }

    /// The visible columns that are not dropped, in order.
    pub fn live_columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        self.stored_columns().filter(|(_, c)| !c.hidden)
    }

    /// The same, including hidden ones.
    pub fn stored_columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        self.all_columns().filter(|(_, c)| !c.dropped && c.formula.is_none())
    }

    /// The columns of which a new row needs values that its statement need not give: the visible ones, and its number.
    pub fn filled_columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        self.stored_columns().filter(|(_, c)| !c.hidden || c.identity.is_some())
    }

    /// The hidden column that is the rowkey of a table without a PRIMARY KEY: it numbers the rows as they come.
    pub fn row_number(&self) -> Option<ColumnId> {
        match self.key.columns()[..] {
            [id] if self.column(id).hidden => Some(id),
            _ => None,
        }
    }

    /// The name of a hidden column that VERSIONS OF shows.
    pub fn is_shown_in_versions(&self, name: &str) -> bool {
        self.history.is_some() && [WRITTEN_AT, ENDED_AT].contains(&name)
    }

    /// Adds the hidden column with the time when a row was written.
    pub fn keep_write_times(&mut self) -> ColumnId {
        let id = self.hidden_time(WRITTEN_AT, false);
        self.written_at = Some(id);
        id
    }

    /// Adds the hidden column with the time when a version of a row ended.
    pub fn keep_ends(&mut self) -> ColumnId {
        self.hidden_time(ENDED_AT, true)
    }

    fn hidden_time(&mut self, name: &str, nullable: bool) -> ColumnId {
        // If it was dropped before, it is NULL in all rows.
        if let Some(at) = self.columns.iter().position(|c| c.hidden && c.dropped && c.name == name) {
            self.columns[at].dropped = false;
            return ColumnId(at as u16);
        }
        let column = Column::new(name.to_owned(), ColumnType::TimestampTz);
        self.columns.push(Column { nullable, hidden: true, ..column });
        ColumnId(self.columns.len() as u16 - 1)
    }

    /// Columns that an index includes by its definition.
    pub fn declared(&self, index: &IndexDef) -> Vec<ColumnId> {
        index.declared().into_iter().filter(|id| !self.column(*id).hidden).collect()
    }

    /// Those of them that its entries store.
    pub fn included<'t>(&'t self, index: &'t IndexDef) -> impl Iterator<Item = ColumnId> + 't {
        index.include.iter().copied().filter(|id| !self.column(*id).hidden)
    }

    /// The hidden formula columns of its indexes.
    pub fn formulas(&self) -> impl Iterator<Item = (ColumnId, &Formula)> {
        let live = self.all_columns().filter(|(_, c)| !c.dropped);
        live.filter_map(|(id, c)| Some((id, c.formula.as_ref()?)))
    }

    fn all_columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        self.columns.iter().enumerate().map(|(i, c)| (ColumnId(i as u16), c))
    }

    /// The column for `formula`, which is canonical, of type `ty` and shown as `sql`; a new one if no index has it yet.
    pub fn formula_column(&mut self, formula: Formula, ty: ColumnType, sql: String) -> ColumnId {
        if let Some((id, _)) = self.formulas().find(|(_, known)| (*known).clone().canonical() == formula) {
            return id;
        }
        let column = Column { formula: Some(formula), ..Column::new(sql, ty) };
        let free = self.all_columns().find(|(_, c)| c.dropped && c.formula.is_some()).map(|(id, _)| id);
        match free {
            Some(id) => {
                self.columns[usize::from(id.0)] = column;
                id
            }
            None => {
                self.columns.push(column);
                ColumnId(self.columns.len() as u16 - 1)
            }
        }
    }

    /// Drops the formulas that no index uses any more.
    pub fn drop_formulas(&mut self) {
        let used: Vec<ColumnId> = self.indexes.iter().flat_map(IndexDef::inputs).collect();
        for (at, column) in self.columns.iter_mut().enumerate().filter(|(_, c)| c.formula.is_some()) {
            column.dropped = !used.contains(&ColumnId(at as u16));
        }
    }

    /// Name of a column.
    pub fn column_name(&self, id: ColumnId) -> &str {
        &self.column(id).name
    }

    /// The stored columns behind a column: itself, or the inputs of its formula.
    pub fn sources(&self, id: ColumnId) -> Vec<ColumnId> {
        match &self.column(id).formula {
            Some(formula) => formula.columns().into_iter().collect(),
            None => vec![id],
        }
    }

    /// What a key layout needs to know of a column.
    pub fn column_info(&self, id: ColumnId) -> ColumnInfo<'_> {
        self.column(id).info()
    }

    /// Cuts the table into regions at these keys, in order.
    pub fn split_at(&mut self, splits: Vec<Rowkey>) {
        (self.splits, self.traffic) = (splits, Traffic::default());
    }

    /// Counts a row that was read or written, if there is more than one region.
    pub fn touched(&self, access: TrafficKind, rowkey: &[u8]) {
        if !self.splits.is_empty() {
            self.traffic.count(access, &self.splits, rowkey);
        }
    }

    /// A family by id.
    pub fn family(&self, id: FamilyId) -> &Family {
        &self.families[usize::from(id.0)]
    }

    /// Ids of all families.
    pub fn family_ids(&self) -> impl Iterator<Item = FamilyId> + use<> {
        (0..self.families.len() as u8).map(FamilyId)
    }

    /// Keyspace of the default family: one entry for each row.
    pub fn rows(&self) -> KeyspaceId {
        self.family(FamilyId::DEFAULT).keyspace
    }

    /// The column is an input of the key, in whatever form.
    pub fn is_key_column(&self, id: ColumnId) -> bool {
        self.key.columns().contains(&id)
    }

    /// The column is read from the packed value of its family, not from the rowkey.
    pub fn is_stored(&self, id: ColumnId) -> bool {
        !self.column(id).dropped && !self.key.decodable().contains(&id)
    }

    /// The table has a column of its own named `rowkey`, so there is no pseudo-column.
    pub fn names_rowkey(&self) -> bool {
        self.column_id("rowkey").is_some()
    }

    /// An index by name.
    pub fn index(&self, name: &str) -> Option<&IndexDef> {
        self.indexes.iter().find(|i| i.name == name)
    }

    /// An index by id, including that of a REKEY.
    pub fn index_by_id(&self, id: IndexId) -> Option<&IndexDef> {
        self.maintained_indexes().find(|index| index.id == id)
    }

    /// The indexes that every write maintains: those of the table, and that of a REKEY.
    pub fn maintained_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().chain(self.rekey.as_deref().map(|rekey| &rekey.keys))
    }

    /// The index belongs to a REKEY: it has the rowkeys under the next layout.
    pub fn is_next_key(&self, index: &IndexDef) -> bool {
        self.rekey.as_ref().is_some_and(|rekey| rekey.keys.id == index.id)
    }

    /// The next table of a REKEY, if writes must go there too.
    pub fn followed(&self) -> Option<&TableDef> {
        self.rekey.as_deref()?.followed()
    }

    /// An inconsistency that no statement can create, and that would mislead users of the definition.
    pub fn flaw(&self) -> Option<String> {
        let ty = |id: ColumnId| self.columns.get(usize::from(id.0)).map(|column| column.ty);
        let mut names: Vec<&str> = self.live_columns().map(|(_, column)| column.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("it has two columns \"{}\"", pair[0]));
        }
        if !(1..=FAMILIES_MAX + 1).contains(&self.families.len()) {
            return Some(format!("it has {} families", self.families.len()));
        }
        if let Some(column) = self.columns.iter().find(|c| usize::from(c.family.0) >= self.families.len()) {
            return Some(format!(
                "column \"{}\" is in family {}, which it has not",
                column.name, column.family.0
            ));
        }
        let is_stored =
            |id: &ColumnId| self.columns.get(usize::from(id.0)).is_some_and(|c| c.formula.is_none());
        let computes =
            |column: &&Column| column.formula.as_ref().is_some_and(|f| !f.columns().iter().all(is_stored));
        if let Some(column) = self.columns.iter().find(computes) {
            return Some(format!("{} is computed from columns that it has not", column.name));
        }
        let is_time = |id| ty(id) == Some(ColumnType::TimestampTz);
        if !self.written_at.map_or(self.ttl_us.is_none(), is_time) {
            return Some("it does not say when its rows were written".to_owned());
        }
        if !self.key.is_sound(&ty, Tail::Nothing) {
            return Some("its key layout makes no sense".to_owned());
        }
        let is_sound = |index: &IndexDef| {
            let mut columns = index.declared().into_iter().chain(index.filter_inputs());
            columns.all(|id| ty(id).is_some())
                && index.include.is_sorted_by(|a, b| a < b)
                && [Tail::Pointer, Tail::Nothing].iter().any(|tail| index.layout.is_sound(&ty, *tail))
        };
        let holds_primary = |index: &IndexDef| index.layout.contains_columns(&self.key);
        let misled = self.indexes.iter().find(|index| index.holds_primary != holds_primary(index));
        if let Some(index) = self.maintained_indexes().find(|index| !is_sound(index)).or(misled) {
            return Some(format!("its index \"{}\" makes no sense", index.name));
        }
        let is_sound = |reference: &Reference| {
            let columns = &reference.columns;
            columns.len() == reference.parent_columns.len() && columns.iter().all(|id| ty(*id).is_some())
        };
        if let Some(reference) = self.references.iter().find(|reference| !is_sound(reference)) {
            return Some(format!("its foreign key \"{}\" makes no sense", reference.name));
        }
        if let Some(flaw) = self.flaw_of_history() {
            return Some(flaw);
        }
        let rekey = self.rekey.as_deref()?;
        if rekey.next.columns.len() != self.columns.len() || rekey.next.rekey.is_some() {
            return Some("it is to become another table".to_owned());
        }
        rekey.next.flaw()
    }

    /// Every keyspace of the table: families, then indexes, then those of a REKEY.
    pub fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let next = self.rekey.as_deref().map(|rekey| &rekey.next);
        let families = self.families.iter().chain(next.into_iter().flat_map(|next| &next.families));
        let indexes = self.maintained_indexes().chain(next.into_iter().flat_map(|next| &next.indexes));
        let history = self.history.iter().flat_map(|history| history.keyspaces.iter().copied());
        families.map(|f| f.keyspace).chain(indexes.map(|i| i.keyspace)).chain(history)
    }
}

/// A named query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDef {
    /// Name.
    pub name: String,
    /// Output column names, if given.
    pub columns: Vec<String>,
    /// Text of the query.
    pub sql: String,
}
