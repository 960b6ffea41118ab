//! The syntax tree of a statement.
//!
//! The statement nodes are ours, because sqlparser has no words for families, key layouts or index tables;
//! the queries and expressions inside them are sqlparser's, ready for DataFusion. Names keep their case and
//! quotes as written: [`name_of`](crate::sql::name_of) folds them.

use sqlparser::ast::{Expr, Ident, OptimizerHint, OrderByExpr, Query, SelectItem, TableWithJoins};

pub use super::counters::*;
pub use super::design::*;
use crate::error::Span;
use crate::value::{ColumnType, Value};

/// One SQL statement.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Statement {
    /// `CREATE TABLE t (...)`
    CreateTable(Box<CreateTable>),
    /// `DROP TABLE t, u [CASCADE]`: with foreign keys of other tables that refer to them
    DropTable { if_exists: bool, names: Vec<Ident>, cascade: bool },
    /// `TRUNCATE TABLE t [CASCADE]`: with the tables whose rows refer to its own
    Truncate { name: Ident, cascade: bool },
    /// `ALTER TABLE t ...`
    AlterTable(Box<AlterTable>),
    /// `ALTER TABLE t ..., ...`: changes of one table, all of them or none
    AlterTogether(Vec<AlterTable>),
    /// `CREATE INDEX i ON t (...)`
    CreateIndex(Box<CreateIndex>),
    /// `ALTER INDEX i RENAME TO j`
    RenameIndex { if_exists: bool, name: Ident, to: Ident },
    /// `DROP INDEX i`
    DropIndex { if_exists: bool, name: Ident },
    /// `CREATE VIEW v AS SELECT ...`
    CreateView(Box<CreateView>),
    /// `DROP VIEW v`
    DropView { if_exists: bool, name: Ident },
    /// `CREATE SNAPSHOT s`
    CreateSnapshot { name: Ident },
    /// SQLite's `PRAGMA foreign_keys = OFF`
    ForeignKeys { setting: ForeignKeySetting, is_on: bool },
    /// A statement of another database's dump that has nothing to do here, as it was written
    Nothing { kind: &'static str, sql: String },
    /// How far a dump's columns have counted, as it was written
    Counters { kind: &'static str, counters: Vec<Counter>, sql: String },
    /// `DROP SNAPSHOT s`
    DropSnapshot { if_exists: bool, name: Ident },
    /// `INSERT INTO t ...`, `UPSERT INTO t ...`
    Insert(Box<Insert>),
    /// `UPDATE t SET ...`
    Update(Box<Update>),
    /// `DELETE FROM t ...`
    Delete(Box<Delete>),
    /// `SELECT`, `WITH`, `VALUES`
    Query(Box<Query>),
    /// `EXPLAIN ...`
    Explain(Box<Explain>),
    /// `ANALYZE t`, or of all tables
    Analyze { table: Option<Ident> },
    /// `PURGE t`, or all tables whose rows expire
    Purge { table: Option<Ident> },
    /// `BEGIN`
    Begin { read_only: bool },
    /// `COMMIT`
    Commit,
    /// `ROLLBACK`, or `ROLLBACK TO s`
    Rollback { to: Option<Ident> },
    /// `SAVEPOINT s`
    Savepoint { name: Ident },
    /// `RELEASE s`
    Release { name: Ident },
    /// `PREPARE p AS ...`
    Prepare(Box<Prepare>),
    /// `EXECUTE p (...)`
    Execute { name: Ident, args: Vec<Expr> },
    /// `DEALLOCATE p`; all, without a name
    Deallocate { name: Option<Ident> },
    /// `COPY t FROM 'file'`, `COPY t TO 'file'`
    Copy(Box<Copy>),
    /// `SHOW ...`
    Show(Show),
    /// `DESCRIBE t`: columns and layout
    Describe { name: Ident },
    /// `LINT`, `SIMULATE WRITES` and the like
    Design(Box<Design>),
    /// `CHECK TABLE t`
    Check(Check),
    /// `BACKUP TO 'directory'`
    Backup { path: String },
    /// `REPAIR INDEX i [DRY RUN]`
    RepairIndex { index: Ident, dry_run: bool },
    /// `REPAIR TABLE t [DRY RUN]`
    RepairTable { table: Ident, dry_run: bool },
    /// `SET [LOCAL] name = value`; NULL for DEFAULT
    Set { local: bool, name: String, value: Value },
}

/// `CREATE TABLE`. Constraints written beside a column are in the table's lists, as if written below it.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Name of the table.
    pub name: Ident,
    /// In declared order.
    pub columns: Vec<ColumnDef>,
    /// Key layout, in order; `None` if the statement has no PRIMARY KEY.
    pub primary_key: Option<Vec<KeyExpr>>,
    /// UNIQUE constraints.
    pub uniques: Vec<UniqueDef>,
    /// CHECK constraints.
    pub checks: Vec<CheckDef>,
    /// FOREIGN KEY constraints, REFERENCES of single columns included.
    pub references: Vec<ReferenceDef>,
    /// Column families; columns in none of them are in the default family.
    pub families: Vec<FamilyDef>,
    /// `WITH (versions = 3, ttl = '30 days')` after the closing parenthesis.
    pub options: Vec<OptionDef>,
    /// `SPLIT ...`: regions to begin with.
    pub split: Option<Split>,
    /// `AS query`: the other columns, and the rows to begin with.
    pub query: Option<Box<Query>>,
}

/// A column of CREATE TABLE or ADD COLUMN.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Name of the column.
    pub name: Ident,
    /// Type of its values.
    pub data_type: ColumnType,
    /// `VARCHAR(n)`, in characters; `VARBINARY(n)`, in bytes.
    pub max_len: Option<u32>,
    /// `NUMERIC` without precision and scale, which are then our defaults.
    pub without_digits: bool,
    /// `NOT NULL`. Not set by PRIMARY KEY.
    pub not_null: bool,
    /// `DEFAULT expr`
    pub default: Option<Expr>,
    /// `GENERATED ... AS IDENTITY`
    pub identity: Option<Identity>,
    /// The definition.
    pub span: Span,
}

/// `GENERATED ALWAYS | BY DEFAULT AS IDENTITY (START WITH start INCREMENT BY increment)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A value in INSERT is refused, unless it says OVERRIDING SYSTEM VALUE.
    pub always: bool,
    /// First value.
    pub start: i64,
    /// From one value to the next; not 0.
    pub increment: i64,
}

/// One part of a key layout, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyExpr {
    /// Without ASC or DESC.
    pub expr: Expr,
    /// `DESC`
    pub descending: bool,
    /// Text of `expr`, as written.
    pub sql: String,
    /// Place of `expr`.
    pub span: Span,
}

/// `[CONSTRAINT name] UNIQUE (keys)`
#[derive(Clone, Debug, PartialEq)]
pub struct UniqueDef {
    /// Name of the constraint and of its index.
    pub name: Option<Ident>,
    /// Layout of the index.
    pub keys: Vec<KeyExpr>,
}

/// `[CONSTRAINT name] CHECK (expr)`
#[derive(Clone, Debug, PartialEq)]
pub struct CheckDef {
    /// Name of the constraint.
    pub name: Option<Ident>,
    /// The condition, which must not be false for any row.
    pub expr: Expr,
    /// Text of `expr`, as written.
    pub sql: String,
    /// Place of `expr`.
    pub span: Span,
}

/// `[CONSTRAINT name] FOREIGN KEY (columns) REFERENCES parent [(parent_columns)] [ON DELETE ...]`
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceDef {
    /// Name of the constraint.
    pub name: Option<Ident>,
    /// The columns that refer to the other table.
    pub columns: Vec<Ident>,
    /// The other table.
    pub parent: Ident,
    /// Its columns; none: those of its primary key.
    pub parent_columns: Vec<Ident>,
    /// `ON DELETE`
    pub on_delete: OnDelete,
    /// Place of an `ON UPDATE` that would change rows: only a key that cannot change has it.
    pub on_update: Option<Span>,
    /// `DEFERRABLE INITIALLY DEFERRED`
    pub deferred: bool,
    /// The definition.
    pub span: Span,
}

/// What becomes of the rows that refer to a row which is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDelete {
    /// `NO ACTION`, `RESTRICT`: the statement is refused if there are some when it ends.
    #[default]
    Refuse,
    /// `CASCADE`: they are deleted.
    Cascade,
    /// `SET NULL`
    SetNull,
    /// `SET DEFAULT`
    SetDefault,
}

impl OnDelete {
    /// The words behind a definition: ` ON DELETE CASCADE`, or nothing.
    pub fn clause(self) -> &'static str {
        match self {
            OnDelete::Refuse => "",
            OnDelete::Cascade => " ON DELETE CASCADE",
            OnDelete::SetNull => " ON DELETE SET NULL",
            OnDelete::SetDefault => " ON DELETE SET DEFAULT",
        }
    }
}

/// SQLite's settings of foreign keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ForeignKeySetting {
    /// `foreign_keys`: are they looked at?
    Checked,
    /// `defer_foreign_keys`: are they looked at by COMMIT only?
    Deferred,
}

/// `FAMILY name (columns) [WITH (options)]`
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyDef {
    /// Name of the family.
    pub name: Ident,
    /// Columns stored in it.
    pub columns: Vec<Ident>,
    /// Such as `compression = 'lz4'`.
    pub options: Vec<OptionDef>,
}

/// `name = value` in a WITH list.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionDef {
    /// In lower case.
    pub name: String,
    /// Words are text; TRUE, FALSE, ON and OFF are booleans.
    pub value: Value,
    /// Place of the option.
    pub span: Span,
}

/// `ALTER TABLE name op`
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Name of the table.
    pub name: Ident,
    /// What changes.
    pub op: AlterTableOp,
}

/// One change of a table.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum AlterTableOp {
    /// `ADD [COLUMN] [IF NOT EXISTS] column [FAMILY family]`
    AddColumn(Box<AddColumn>),
    /// `DROP [COLUMN] [IF EXISTS] name`
    DropColumn { if_exists: bool, name: Ident },
    /// `ADD [CONSTRAINT name] CHECK (expr)`
    AddCheck(Box<CheckDef>),
    /// `ADD [CONSTRAINT name] FOREIGN KEY (columns) REFERENCES ...`
    AddReference(Box<ReferenceDef>),
    /// `DROP CONSTRAINT [IF EXISTS] name`
    DropConstraint { if_exists: bool, name: Ident },
    /// `ALTER [COLUMN] name change`
    AlterColumn { name: Ident, change: ColumnChange },
    /// `RENAME [COLUMN] from TO to`
    RenameColumn { from: Ident, to: Ident },
    /// `RENAME TO to`
    RenameTable { to: Ident },
    /// `SPLIT ON (points)`, `SPLIT INTO n`
    Split(Split),
    /// `REKEY (layout)`
    Rekey { keys: Vec<KeyExpr> },
    /// `ADD [CONSTRAINT name] PRIMARY KEY (layout)`
    AddKey { keys: Vec<KeyExpr> },
    /// `REKEY CANCEL`
    CancelRekey,
    /// `SET (options)`
    SetOptions(Vec<OptionDef>),
}

/// A column to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct AddColumn {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The column.
    pub column: ColumnDef,
    /// `FAMILY`
    pub family: Option<Ident>,
}

/// The change of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    /// `SET DEFAULT expr`
    SetDefault(Box<Expr>),
    /// `DROP DEFAULT`
    DropDefault,
    /// `SET NOT NULL`
    SetNotNull,
    /// `DROP NOT NULL`
    DropNotNull,
    /// `[SET DATA] TYPE type [USING expr]`
    SetType(Box<NewType>),
    /// `ADD GENERATED ... AS IDENTITY`
    AddIdentity(Identity),
    /// `RESTART [WITH n]`
    Restart(Option<i64>),
}

/// A column's new type.
#[derive(Clone, Debug, PartialEq)]
pub struct NewType {
    /// Type of its values.
    pub data_type: ColumnType,
    /// `VARCHAR(n)`, in characters; `VARBINARY(n)`, in bytes.
    pub max_len: Option<u32>,
    /// `USING`: the new value, made of the row; otherwise the old one is cast.
    pub using: Option<Expr>,
}

/// `CREATE [UNIQUE] INDEX [name] ON table (keys) [INCLUDE (columns)] [WHERE filter]`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// `UNIQUE`
    pub unique: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Name of the index; the engine makes one up if there is none.
    pub name: Option<Ident>,
    /// The indexed table.
    pub table: Ident,
    /// Layout of the entries' keys.
    pub keys: Vec<KeyExpr>,
    /// Columns kept in the entries.
    pub include: Vec<Ident>,
    /// Which rows have entries.
    pub filter: Option<Expr>,
    /// Text of `filter`, as written.
    pub filter_sql: Option<String>,
}

/// `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Name of the view.
    pub name: Ident,
    /// Names of its columns; the query's, if empty.
    pub columns: Vec<Ident>,
    /// Its rows.
    pub query: Box<Query>,
    /// Text of `query`, as written.
    pub sql: String,
}

/// `INSERT INTO table [AS alias] [(columns)] source [ON CONFLICT ...] [RETURNING ...]`
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table written to.
    pub table: Ident,
    /// Its name inside ON CONFLICT and RETURNING.
    pub alias: Option<Ident>,
    /// Columns given; all, in declared order, if empty.
    pub columns: Vec<Ident>,
    /// The rows.
    pub source: InsertSource,
    /// What happens to an existing key.
    pub mode: InsertMode,
    /// It is written as SQLite's REPLACE, which an UPSERT of whole rows is.
    pub replaces: bool,
    /// Columns of the result.
    pub returning: Option<Vec<SelectItem>>,
    /// `OVERRIDING SYSTEM VALUE` or `OVERRIDING USER VALUE`
    pub overriding: Option<Overriding>,
}

/// Rows of an INSERT.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (...), (...)`; a bare DEFAULT is an identifier, see [`is_default`].
    Values(Vec<Vec<Expr>>),
    /// `SELECT ...`
    Query(Box<Query>),
    /// `DEFAULT VALUES`: one row of defaults.
    DefaultValues,
}

/// What an INSERT does about an existing key.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum InsertMode {
    /// `INSERT`: an error.
    Insert,
    /// `UPSERT`: writes the given columns over it.
    Upsert,
    /// `ON CONFLICT [(target)] DO NOTHING`
    OnConflictDoNothing { target: Vec<Ident> },
    /// `ON CONFLICT (target) DO UPDATE SET assignments [WHERE filter]`
    OnConflictUpdate { target: Vec<Ident>, assignments: Vec<Assignment>, filter: Option<Box<Expr>> },
}

impl InsertMode {
    /// Every row of the statement is written, or none.
    pub fn writes_each(&self) -> bool {
        matches!(self, InsertMode::Insert | InsertMode::Upsert)
    }

    /// Rows that are there may get other values.
    pub fn changes_rows(&self) -> bool {
        matches!(self, InsertMode::Upsert | InsertMode::OnConflictUpdate { .. })
    }
}

/// Which values win over an identity column's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// The given ones, even if GENERATED ALWAYS.
    System,
    /// The generated ones.
    User,
}

/// `column = value`; the value may be a bare DEFAULT, see [`is_default`].
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The column written.
    pub column: Ident,
    /// Its new value.
    pub value: Expr,
}

/// `UPDATE table [AS alias] SET assignments [FROM from] [WHERE filter] [RETURNING ...]`
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// The table written to.
    pub table: Ident,
    /// Its name inside the statement.
    pub alias: Option<Ident>,
    /// In written order.
    pub assignments: Vec<Assignment>,
    /// Other tables.
    pub from: Vec<TableWithJoins>,
    /// The condition; without one, all rows are updated.
    pub filter: Option<Expr>,
    /// Columns of the result.
    pub returning: Option<Vec<SelectItem>>,
}

/// `DELETE FROM table [AS alias] [USING using] [WHERE filter] [ORDER BY ...] [LIMIT n] [RETURNING ...]`
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Optimizer hints.
    pub hints: Vec<OptimizerHint>,
    /// The table written to.
    pub table: Ident,
    /// Its name inside the statement.
    pub alias: Option<Ident>,
    /// Other tables.
    pub using: Vec<TableWithJoins>,
    /// The condition; without one, all rows are deleted.
    pub filter: Option<Expr>,
    /// The order in which `limit` takes rows.
    pub order_by: Vec<OrderByExpr>,
    /// Rows to delete, at most.
    pub limit: Option<Expr>,
    /// Columns of the result.
    pub returning: Option<Vec<SelectItem>>,
}

/// `EXPLAIN [ANALYZE] [VERBOSE] [FORMAT JSON] statement`, or the options in parentheses
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// Key ranges also as bytes.
    pub verbose: bool,
    /// Runs the statement and counts.
    pub analyze: bool,
    /// `FORMAT JSON`
    pub json: bool,
    /// A query, INSERT, UPDATE, DELETE or EXECUTE.
    pub statement: Box<Statement>,
}

/// `PREPARE name [(types)] AS statement`
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Name of the prepared statement.
    pub name: Ident,
    /// Types of the parameters, from `$1` on; those not given are inferred.
    pub types: Vec<ColumnType>,
    /// A query, INSERT, UPDATE or DELETE.
    pub statement: Box<Statement>,
    /// Text of `statement`, as written.
    pub sql: String,
}

/// `COPY source FROM | TO 'path' [WITH (options)]`
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The table written to, or the source read from.
    pub source: CopySource,
    /// Whether it is COPY TO.
    pub to: bool,
    /// The file.
    pub file: CopyFile,
}

/// A file of rows and its format: `'path' [WITH (options)]`
#[derive(Clone, Debug, PartialEq)]
pub struct CopyFile {
    /// Path of the file; `None`: STDIN or STDOUT.
    pub path: Option<String>,
    /// From FORMAT, or from the file's extension.
    pub format: CopyFormat,
    /// The first line of a csv file names the columns.
    pub header: bool,
    /// Between the fields of a csv line.
    pub delimiter: char,
    /// How NULL is written in csv.
    pub null: String,
    /// `ON_ERROR skip`: rows that do not fit are left out and counted.
    pub skip_errors: bool,
}

/// Rows of a COPY.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum CopySource {
    /// Columns of a table; all, if empty.
    Table { name: Ident, columns: Vec<Ident> },
    /// Rows of a query; only TO.
    Query(Box<Query>),
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    /// Comma-separated values, RFC 4180.
    Csv,
    /// PostgreSQL's lines, with tabs and backslashes.
    Text,
    /// One JSON object a line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
}

/// `SHOW ...`
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Show {
    /// `SHOW TABLES [LIKE 'pattern']`
    Tables { like: Option<String> },
    /// `SHOW INDEXES [FROM table]`
    Indexes { table: Option<Ident> },
    /// `SHOW VIEWS`
    Views,
    /// `SHOW SNAPSHOTS`
    Snapshots,
    /// `SHOW FUNCTIONS [LIKE 'pattern']`
    Functions { like: Option<String> },
    /// `SHOW CREATE TABLE name`, or INDEX, or VIEW; a table comes with its indexes
    CreateTable { name: Ident },
    /// `SHOW REGIONS [FROM] name`
    Regions { name: Ident },
    /// `SHOW TRAFFIC FROM name`
    Traffic { name: Ident },
    /// `SHOW COLUMNS FROM name`
    Columns { name: Ident },
    /// `SHOW STATISTICS FROM name`
    Statistics { name: Ident },
    /// `SHOW SETTINGS`, `SHOW ALL`
    Settings,
    /// `SHOW name`, in lower case
    Setting { name: String },
}

/// `CHECK target [FAST | FULL] [LIMIT n]`
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is checked.
    pub target: CheckTarget,
    /// Counts and checksums only, rather than every entry.
    pub fast: bool,
    /// Findings to report, at most.
    pub limit: Option<u64>,
}

/// What a CHECK walks.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckTarget {
    /// A table and its indexes.
    Table(Ident),
    /// One index, both directions.
    Index(Ident),
    /// Everything.
    Database,
}

/// Is the value of an INSERT or UPDATE the bare word DEFAULT?
pub fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}

impl Statement {
    /// The table that an INSERT, UPDATE or DELETE writes to.
    pub fn written_table(&self) -> Option<&Ident> {
        match self {
            Statement::Insert(insert) => Some(&insert.table),
            Statement::Update(update) => Some(&update.table),
            Statement::Delete(delete) => Some(&delete.table),
            _ => None,
        }
    }

    /// The statement's name, as a command tag and in messages: `CREATE TABLE`, `SELECT`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Statement::CreateTable(create) if create.query.is_some() => "CREATE TABLE AS",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::DropTable { .. } => "DROP TABLE",
            Statement::Truncate { .. } => "TRUNCATE TABLE",
            Statement::AlterTable(_) | Statement::AlterTogether(_) => "ALTER TABLE",
            Statement::CreateIndex(_) => "CREATE INDEX",
            Statement::RenameIndex { .. } => "ALTER INDEX",
            Statement::DropIndex { .. } => "DROP INDEX",
            Statement::CreateView(_) => "CREATE VIEW",
            Statement::DropView { .. } => "DROP VIEW",
            Statement::CreateSnapshot { .. } => "CREATE SNAPSHOT",
            Statement::DropSnapshot { .. } => "DROP SNAPSHOT",
            Statement::Insert(insert) if insert.replaces => "REPLACE",
            Statement::Insert(insert) if insert.mode == InsertMode::Upsert => "UPSERT",
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Query(_) => "SELECT",
            Statement::Explain(_) => "EXPLAIN",
            Statement::Analyze { .. } => "ANALYZE",
            Statement::Purge { .. } => "PURGE",
            Statement::Begin { .. } => "BEGIN",
            Statement::Commit => "COMMIT",
            Statement::Rollback { .. } => "ROLLBACK",
            Statement::Savepoint { .. } => "SAVEPOINT",
            Statement::Release { .. } => "RELEASE",
            Statement::Prepare(_) => "PREPARE",
            Statement::Execute { .. } => "EXECUTE",
            Statement::Deallocate { .. } => "DEALLOCATE",
            Statement::Copy(_) => "COPY",
            Statement::Show(_) => "SHOW",
            Statement::Describe { .. } => "DESCRIBE",
            Statement::Design(design) => design.kind_name(),
            Statement::Check(_) => "CHECK",
            Statement::Backup { .. } => "BACKUP",
            Statement::RepairIndex { .. } | Statement::RepairTable { .. } => "REPAIR",
            Statement::Set { .. } => "SET",
            Statement::ForeignKeys { .. } => "PRAGMA",
            Statement::Nothing { kind, .. } | Statement::Counters { kind, .. } => kind,
        }
    }
}
