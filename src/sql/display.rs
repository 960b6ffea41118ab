//! Prints statements as SQL, on one line, so that [`parse`](super::parse) reads the same statement back.

use std::fmt::{self, Display, Formatter};

use sqlparser::ast::{Ident, OptimizerHint, SelectItem};

use super::ast::*;
use crate::value::{Literal, Value, ValueRef, name_sql};

/// Items between commas.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (n, item) in self.0.iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(f, "{comma}{item}")?;
        }
        Ok(())
    }
}

/// A clause with its leading words, if there is anything in it.
struct Clause<T>(&'static str, Option<T>);

impl<T: Display> Display for Clause<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.1 {
            Some(value) => write!(f, " {} {value}", self.0),
            None => Ok(()),
        }
    }
}

/// A clause of several items.
fn clause<'a, T>(words: &'static str, items: &'a [T]) -> Clause<List<'a, T>> {
    Clause(words, (!items.is_empty()).then_some(List(items)))
}

/// ` (a, b)`, or nothing.
struct Columns<'a>(&'a [Ident]);

impl Display for Columns<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", List(self.0)) }
    }
}

fn when(it_is: bool, words: &'static str) -> &'static str {
    if it_is { words } else { "" }
}

/// Hints, each followed by a blank.
fn hints(hints: &[OptimizerHint]) -> String {
    hints.iter().map(|hint| format!("{hint} ")).collect()
}

fn returning(items: &Option<Vec<SelectItem>>) -> Clause<List<'_, SelectItem>> {
    Clause("RETURNING", items.as_deref().map(List))
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::CreateTable(table) => table.fmt(f),
            Statement::DropTable { if_exists, names, cascade } => {
                let (exists, cascade) = (when(*if_exists, "IF EXISTS "), when(*cascade, " CASCADE"));
                write!(f, "DROP TABLE {exists}{}{cascade}", List(names))
            }
            Statement::Truncate { name, cascade } => {
                write!(f, "TRUNCATE TABLE {name}{}", when(*cascade, " CASCADE"))
            }
            Statement::AlterTable(alter) => alter.fmt(f),
            Statement::AlterTogether(changes) => {
                for (at, alter) in changes.iter().enumerate() {
                    match at {
                        0 => alter.fmt(f)?,
                        _ => write!(f, ", {}", alter.op)?,
                    }
                }
                Ok(())
            }
            Statement::RenameIndex { if_exists, name, to } => {
                write!(f, "ALTER INDEX {}{name} RENAME TO {to}", when(*if_exists, "IF EXISTS "))
            }
            Statement::CreateIndex(index) => index.fmt(f),
            Statement::DropIndex { if_exists, name } => {
                write!(f, "DROP INDEX {}{name}", when(*if_exists, "IF EXISTS "))
            }
            Statement::CreateView(view) => {
                let replace = when(view.or_replace, "OR REPLACE ");
                let exists = when(view.if_not_exists, "IF NOT EXISTS ");
                let columns = Columns(&view.columns);
                write!(f, "CREATE {replace}VIEW {exists}{}{columns} AS {}", view.name, view.query)
            }
            Statement::DropView { if_exists, name } => {
                write!(f, "DROP VIEW {}{name}", when(*if_exists, "IF EXISTS "))
            }
            Statement::CreateSnapshot { name } => write!(f, "CREATE SNAPSHOT {name}"),
            Statement::DropSnapshot { if_exists, name } => {
                write!(f, "DROP SNAPSHOT {}{name}", when(*if_exists, "IF EXISTS "))
            }
            Statement::Insert(insert) => insert.fmt(f),
            Statement::Update(update) => update.fmt(f),
            Statement::Delete(delete) => delete.fmt(f),
            Statement::Query(query) => query.fmt(f),
            Statement::Explain(explain) => {
                let analyze = when(explain.analyze, "ANALYZE ");
                let verbose = when(explain.verbose, "VERBOSE ");
                let json = when(explain.json, "FORMAT JSON ");
                write!(f, "EXPLAIN {analyze}{verbose}{json}{}", explain.statement)
            }
            Statement::Analyze { table: Some(table) } | Statement::Purge { table: Some(table) } => {
                write!(f, "{} {table}", self.kind_name())
            }
            Statement::Begin { read_only } => write!(f, "BEGIN{}", when(*read_only, " READ ONLY")),
            Statement::Rollback { to } => write!(f, "ROLLBACK{}", Clause("TO", to.as_ref())),
            Statement::ForeignKeys { setting, is_on } => {
                let name = match setting {
                    ForeignKeySetting::Checked => "foreign_keys",
                    ForeignKeySetting::Deferred => "defer_foreign_keys",
                };
                write!(f, "PRAGMA {name} = {}", if *is_on { "ON" } else { "OFF" })
            }
            Statement::Nothing { sql, .. } | Statement::Counters { sql, .. } => f.write_str(sql),
            Statement::Savepoint { name } => write!(f, "SAVEPOINT {name}"),
            Statement::Release { name } => write!(f, "RELEASE {name}"),
            Statement::Prepare(prepare) => {
                let types = List(&prepare.types);
                let types = if prepare.types.is_empty() { String::new() } else { format!(" ({types})") };
                write!(f, "PREPARE {}{types} AS {}", prepare.name, prepare.statement)
            }
            Statement::Execute { name, args } if args.is_empty() => write!(f, "EXECUTE {name}"),
            Statement::Execute { name, args } => write!(f, "EXECUTE {name} ({})", List(args)),
            Statement::Deallocate { name: Some(name) } => write!(f, "DEALLOCATE {name}"),
            Statement::Deallocate { name: None } => f.write_str("DEALLOCATE ALL"),
            Statement::Copy(copy) => copy.fmt(f),
            Statement::Show(show) => show.fmt(f),
            Statement::Describe { name } => write!(f, "DESCRIBE {name}"),
            Statement::Design(design) => design.fmt(f),
            Statement::Check(check) => check.fmt(f),
            Statement::Backup { path } => write!(f, "BACKUP TO {}", Literal(ValueRef::Text(path))),
            Statement::RepairIndex { index, dry_run } => {
                write!(f, "REPAIR INDEX {index}{}", when(*dry_run, " DRY RUN"))
            }
            Statement::RepairTable { table, dry_run } => {
                write!(f, "REPAIR TABLE {table}{}", when(*dry_run, " DRY RUN"))
            }
            Statement::Set { local, name, value } => {
                write!(f, "SET {}{} = {}", when(*local, "LOCAL "), setting(name), Literal(value.as_ref()))
            }
            Statement::Commit | Statement::Analyze { table: None } | Statement::Purge { table: None } => {
                f.write_str(self.kind_name())
            }
        }
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE TABLE {}{}", when(self.if_not_exists, "IF NOT EXISTS "), self.name)?;
        let key = self.primary_key.iter().map(|keys| format!("PRIMARY KEY ({})", List(keys)));
        let elements: Vec<String> = (self.columns.iter().map(ToString::to_string))
            .chain(key)
            .chain(self.uniques.iter().map(ToString::to_string))
            .chain(self.checks.iter().map(ToString::to_string))
            .chain(self.references.iter().map(ToString::to_string))
            .chain(self.families.iter().map(ToString::to_string))
            .collect();
        if self.query.is_none() || !elements.is_empty() {
            write!(f, " ({})", List(&elements))?;
        }
        write!(f, "{}", Options(&self.options))?;
        match &self.split {
            Some(points @ Split::At(_)) => write!(f, " SPLIT ON {points}")?,
            Some(into) => write!(f, " SPLIT {into}")?,
            None => {}
        }
        write!(f, "{}", Clause("AS", self.query.as_ref()))
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.data_type)?;
        if let Some(max_len) = self.max_len {
            write!(f, "({max_len})")?;
        }
        write!(f, "{}{}", when(self.not_null, " NOT NULL"), Clause("DEFAULT", self.default.as_ref()))?;
        self.identity.iter().try_for_each(|identity| write!(f, " {identity}"))
    }
}

impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Identity { always, start, increment } = self;
        let kind = if *always { "ALWAYS" } else { "BY DEFAULT" };
        write!(f, "GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {increment})")
    }
}

impl Display for KeyExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.expr, when(self.descending, " DESC"))
    }
}

/// `CONSTRAINT name `, or nothing.
fn constraint(name: &Option<Ident>) -> String {
    name.as_ref().map(|name| format!("CONSTRAINT {name} ")).unwrap_or_default()
}

impl Display for UniqueDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}UNIQUE ({})", constraint(&self.name), List(&self.keys))
    }
}

impl Display for CheckDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}CHECK ({})", constraint(&self.name), self.expr)
    }
}

impl Display for ReferenceDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, columns) = (constraint(&self.name), Columns(&self.columns));
        write!(f, "{name}FOREIGN KEY{columns} REFERENCES {}", self.parent)?;
        if !self.parent_columns.is_empty() {
            write!(f, "{}", Columns(&self.parent_columns))?;
        }
        write!(f, "{}{}", self.on_delete.clause(), when(self.deferred, " DEFERRABLE INITIALLY DEFERRED"))
    }
}

impl Display for FamilyDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "FAMILY {}{}{}", self.name, Columns(&self.columns), Options(&self.options))
    }
}

/// ` WITH (name = value)`, or nothing.
struct Options<'a>(&'a [OptionDef]);

impl Display for Options<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " WITH ({})", List(self.0)) }
    }
}

impl Display for OptionDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, Literal(self.value.as_ref()))
    }
}

impl Display for AlterTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER TABLE {}{} {}", when(self.if_exists, "IF EXISTS "), self.name, self.op)
    }
}

impl Display for AlterTableOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AlterTableOp::AddColumn(add) => {
                let exists = when(add.if_not_exists, "IF NOT EXISTS ");
                write!(f, "ADD COLUMN {exists}{}{}", add.column, Clause("FAMILY", add.family.as_ref()))
            }
            AlterTableOp::DropColumn { if_exists, name } => {
                write!(f, "DROP COLUMN {}{name}", when(*if_exists, "IF EXISTS "))
            }
            AlterTableOp::AddCheck(check) => write!(f, "ADD {check}"),
            AlterTableOp::AddReference(reference) => write!(f, "ADD {reference}"),
            AlterTableOp::DropConstraint { if_exists, name } => {
                write!(f, "DROP CONSTRAINT {}{name}", when(*if_exists, "IF EXISTS "))
            }
            AlterTableOp::AlterColumn { name, change } => write!(f, "ALTER COLUMN {name} {change}"),
            AlterTableOp::RenameColumn { from, to } => write!(f, "RENAME COLUMN {from} TO {to}"),
            AlterTableOp::RenameTable { to } => write!(f, "RENAME TO {to}"),
            AlterTableOp::Split(points @ Split::At(_)) => write!(f, "SPLIT ON {points}"),
            AlterTableOp::Split(into) => write!(f, "SPLIT {into}"),
            AlterTableOp::Rekey { keys } => write!(f, "REKEY ({})", List(keys)),
            AlterTableOp::AddKey { keys } => write!(f, "ADD PRIMARY KEY ({})", List(keys)),
            AlterTableOp::CancelRekey => f.write_str("REKEY CANCEL"),
            AlterTableOp::SetOptions(options) => write!(f, "SET ({})", List(options)),
        }
    }
}

impl Display for ColumnChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ColumnChange::SetDefault(expr) => write!(f, "SET DEFAULT {expr}"),
            ColumnChange::DropDefault => f.write_str("DROP DEFAULT"),
            ColumnChange::SetNotNull => f.write_str("SET NOT NULL"),
            ColumnChange::DropNotNull => f.write_str("DROP NOT NULL"),
            ColumnChange::AddIdentity(identity) => write!(f, "ADD {identity}"),
            ColumnChange::Restart(None) => f.write_str("RESTART"),
            ColumnChange::Restart(Some(next)) => write!(f, "RESTART WITH {next}"),
            ColumnChange::SetType(new) => {
                write!(f, "SET DATA TYPE {}", new.data_type)?;
                if let Some(max_len) = new.max_len {
                    write!(f, "({max_len})")?;
                }
                write!(f, "{}", Clause("USING", new.using.as_ref()))
            }
        }
    }
}

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE {}INDEX", when(self.unique, "UNIQUE "))?;
        write!(f, "{}", when(self.if_not_exists, " IF NOT EXISTS"))?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        write!(f, " ON {} ({})", self.table, List(&self.keys))?;
        if !self.include.is_empty() {
            write!(f, " INCLUDE{}", Columns(&self.include))?;
        }
        write!(f, "{}", Clause("WHERE", self.filter.as_ref()))
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verb = match self.mode {
            InsertMode::Upsert if self.replaces => "REPLACE",
            InsertMode::Upsert => "UPSERT",
            _ => "INSERT",
        };
        write!(f, "{verb} INTO {}{}", self.table, Clause("AS", self.alias.as_ref()))?;
        write!(f, "{}", Columns(&self.columns))?;
        match self.overriding {
            Some(Overriding::System) => f.write_str(" OVERRIDING SYSTEM VALUE")?,
            Some(Overriding::User) => f.write_str(" OVERRIDING USER VALUE")?,
            None => {}
        }
        match &self.source {
            InsertSource::Values(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| format!("({})", List(row))).collect();
                write!(f, " VALUES {}", List(&rows))?;
            }
            InsertSource::Query(query) => write!(f, " {query}")?,
            InsertSource::DefaultValues => f.write_str(" DEFAULT VALUES")?,
        }
        match &self.mode {
            InsertMode::Insert | InsertMode::Upsert => {}
            InsertMode::OnConflictDoNothing { target } => {
                write!(f, " ON CONFLICT{} DO NOTHING", Columns(target))?;
            }
            InsertMode::OnConflictUpdate { target, assignments, filter } => {
                write!(f, " ON CONFLICT{} DO UPDATE SET {}", Columns(target), List(assignments))?;
                write!(f, "{}", Clause("WHERE", filter.as_ref()))?;
            }
        }
        write!(f, "{}", returning(&self.returning))
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.column, self.value)
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let alias = Clause("AS", self.alias.as_ref());
        write!(f, "UPDATE {}{}{alias} SET {}", hints(&self.hints), self.table, List(&self.assignments))?;
        write!(f, "{}", clause("FROM", &self.from))?;
        write!(f, "{}{}", Clause("WHERE", self.filter.as_ref()), returning(&self.returning))
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let alias = Clause("AS", self.alias.as_ref());
        write!(f, "DELETE {}FROM {}{alias}", hints(&self.hints), self.table)?;
        write!(f, "{}", clause("USING", &self.using))?;
        write!(f, "{}", Clause("WHERE", self.filter.as_ref()))?;
        write!(f, "{}", clause("ORDER BY", &self.order_by))?;
        write!(f, "{}{}", Clause("LIMIT", self.limit.as_ref()), returning(&self.returning))
    }
}

impl Display for Copy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.source {
            CopySource::Table { name, columns } => write!(f, "COPY {name}{}", Columns(columns))?,
            CopySource::Query(query) => write!(f, "COPY ({query})")?,
        }
        let (way, stream) = if self.to { ("TO", "STDOUT") } else { ("FROM", "STDIN") };
        let stream = if self.file.path.is_none() { stream } else { "" };
        write!(f, " {way} {stream}{}", self.file)
    }
}

impl Display for CopyFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |text: &str| Literal(Value::Text(text.to_owned()).as_ref()).to_string();
        let format = match self.format {
            CopyFormat::Csv => "csv",
            CopyFormat::Text => "text",
            CopyFormat::Jsonl => "jsonl",
            CopyFormat::Parquet => "parquet",
        };
        if let Some(path) = &self.path {
            f.write_str(&text(path))?;
        }
        write!(f, " WITH (FORMAT {format}")?;
        if self.format == CopyFormat::Csv {
            let delimiter = text(&self.delimiter.to_string());
            write!(f, ", HEADER {}, DELIMITER {delimiter}, NULL {}", self.header, text(&self.null))?;
        }
        if self.format == CopyFormat::Text {
            write!(f, ", DELIMITER {}, NULL {}", text(&self.delimiter.to_string()), text(&self.null))?;
        }
        write!(f, "{})", when(self.skip_errors, ", ON_ERROR skip"))
    }
}

/// The LIKE of a SHOW.
fn like_clause(like: &Option<String>) -> Clause<Literal<'_>> {
    Clause("LIKE", like.as_deref().map(|like| Literal(ValueRef::Text(like))))
}

/// The name of a setting, part by part.
fn setting(name: &str) -> String {
    name.split('.').map(name_sql).collect::<Vec<_>>().join(".")
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Show::Tables { like } => write!(f, "SHOW TABLES{}", like_clause(like)),
            Show::Indexes { table } => write!(f, "SHOW INDEXES{}", Clause("FROM", table.as_ref())),
            Show::Views => f.write_str("SHOW VIEWS"),
            Show::Snapshots => f.write_str("SHOW SNAPSHOTS"),
            Show::Functions { like } => write!(f, "SHOW FUNCTIONS{}", like_clause(like)),
            Show::CreateTable { name } => write!(f, "SHOW CREATE TABLE {name}"),
            Show::Regions { name } => write!(f, "SHOW REGIONS FROM {name}"),
            Show::Traffic { name } => write!(f, "SHOW TRAFFIC FROM {name}"),
            Show::Columns { name } => write!(f, "SHOW COLUMNS FROM {name}"),
            Show::Statistics { name } => write!(f, "SHOW STATISTICS FROM {name}"),
            Show::Settings => f.write_str("SHOW SETTINGS"),
            Show::Setting { name } => write!(f, "SHOW {}", setting(name)),
        }
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.target {
            CheckTarget::Table(name) => write!(f, "CHECK TABLE {name}")?,
            CheckTarget::Index(name) => write!(f, "CHECK INDEX {name}")?,
            CheckTarget::Database => f.write_str("CHECK DATABASE")?,
        }
        write!(f, "{}{}", when(self.fast, " FAST"), Clause("LIMIT", self.limit))
    }
}
