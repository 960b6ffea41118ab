//! DDL: CREATE, DROP, ALTER and TRUNCATE. Each is one atomic change of the catalog.

mod alter;
mod create;
mod identities;
mod in_rows;
mod layouts;
mod options;
pub mod references;
mod retype;
mod table_as;

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::outcome::Warning;
use super::session::{IN_STEPS, Session};
use super::view::StatementView;
use super::{Database, DdlResult, rekey, rekeying, vet};
use crate::catalog::{Catalog, CatalogEdit, Relation};
use crate::error::{Error, Result, sqlstate};
use crate::key::{ColumnId, KeyLayout};
use crate::schema::{
    CheckConstraint, FamilyId, IndexDef, IndexState, Reference, SortedBy, TableDef, TableId, ViewDef,
};
use crate::sql::{
    AlterTable, AlterTableOp, CheckDef, ColumnChange, CreateView, KeyExpr, Statement, name_of, name_sql,
    span_of_name, unqualified,
};
use crate::value::Value;

use create::{column, columns, create_table, hidden_rowkey};
pub use layouts::{drawn_entry, index_layout, layout_warnings, primary_layout};
use layouts::{key_columns, numbers};
pub use table_as::create_table_as;

/// Columns of a table (count), at most.
pub const COLUMNS_MAX: usize = 4096;
/// Bytes of a name, at most.
const NAME_BYTES_MAX: usize = 128;

/// Runs a DDL statement; gives its warnings.
pub async fn run(session: &mut Session, statement: &Statement) -> Result<Vec<Warning>> {
    match statement {
        Statement::CreateTable(create) => {
            let create = session.as_dumped(create);
            vet::table(session, &create, &columns(&create)?).await?;
            references::create(session, &create)
        }
        Statement::DropTable { if_exists, names, cascade } => change(session, |catalog| {
            drop_tables(catalog, names, *if_exists, *cascade)
        })
        .map_err(|e| match *cascade && e.sqlstate() == sqlstate::DEPENDENT {
            true => e.why("CASCADE drops the foreign keys that refer to it, and no views"),
            false => e,
        }),
        Statement::Truncate { name, cascade } => {
            session.change_catalog(|catalog| truncate(catalog, name, *cascade))
        }
        Statement::AlterTable(alter) => alter_table(session, alter).await,
        Statement::RenameIndex { if_exists, name, to } => {
            change(session, |catalog| match catalog.index(&name_of(name)) {
                Ok((table, index)) => alter::rename_index(catalog, &table, &index, to),
                Err(_) if *if_exists && catalog.find(&name_of(name)).is_none() => Ok((Vec::new(), None)),
                Err(e) => Err(e.at(span_of_name(name))),
            })
        }
        Statement::DropIndex { if_exists, name } => {
            change(session, |catalog| drop_index(catalog, name, *if_exists))
        }
        Statement::CreateView(create) => create_view(session, create),
        Statement::Counters { counters, .. } => identities::set_counters(session, counters),
        Statement::DropView { if_exists, name } => {
            change(session, |catalog| drop_view(catalog, name, *if_exists))
        }
        other => Err(Error::unsupported(format!("{} is not supported yet", other.kind_name()))),
    }
}

async fn alter_table(session: &mut Session, alter: &AlterTable) -> Result<Vec<Warning>> {
    match &alter.op {
        AlterTableOp::Rekey { keys } | AlterTableOp::AddKey { keys } => {
            let is_added = matches!(alter.op, AlterTableOp::AddKey { .. });
            session.outside_transaction(if is_added { "ADD PRIMARY KEY" } else { "REKEY" }, IN_STEPS)?;
            rekey::rekey(session.database(), alter, keys, session.watch())
        }
        AlterTableOp::CancelRekey => {
            session.outside_transaction("REKEY", IN_STEPS)?;
            rekey::cancel(session.database(), &alter.name, session.watch()).map(|()| Vec::new())
        }
        AlterTableOp::Split(split) => alter::split_table(session, alter, split),
        AlterTableOp::AddColumn(add) => {
            let new = column(&add.column, FamilyId::DEFAULT)?;
            vet::default(session, add.column.default.as_ref(), &new).await?;
            match new.nullable && new.default.is_none() && new.identity.is_none() {
                true => change(session, |catalog| alter::alter_table(catalog, alter)),
                false => in_rows::add_column(session, alter, add),
            }
        }
        AlterTableOp::AddCheck(check) => {
            if let Ok(table) = session.catalog().table(&name_of(&alter.name)) {
                let columns = table.live_columns().map(|(_, column)| column);
                vet::check(session, &table.name, columns, check).await?;
            }
            in_rows::add_check(session, alter, check)
        }
        AlterTableOp::AddReference(reference) => references::add_reference(session, alter, reference),
        AlterTableOp::SetOptions(options) => in_rows::set_options(session, alter, options),
        AlterTableOp::AlterColumn { name, change: ColumnChange::SetNotNull } => {
            in_rows::set_not_null(session, alter, name)
        }
        AlterTableOp::AlterColumn { name, change: ColumnChange::SetType(new) } => {
            new.using.as_ref().map_or(Ok(()), vet::using)?;
            retype::set_type(session, alter, name, new)
        }
        AlterTableOp::AlterColumn { name, change: ColumnChange::SetDefault(expr) } => {
            alter::set_default(session, alter, name, expr).await
        }
        AlterTableOp::AlterColumn { name, change: ColumnChange::Restart(with) } => {
            identities::restart(session, alter, name, *with)
        }
        AlterTableOp::AlterColumn { name, change: ColumnChange::AddIdentity(identity) } => {
            identities::add_identity(session, alter, name, identity)
        }
        _ => change(session, |catalog| alter::alter_table(catalog, alter)),
    }
}

fn drop_tables(
    catalog: &Catalog,
    names: &[Ident],
    if_exists: bool,
    cascade: bool,
) -> DdlResult<Vec<Warning>> {
    let mut edit = catalog.edit();
    let of_name = |name| match (table_if(catalog, name, if_exists), catalog.find(&name_of(name))) {
        (Err(e), Some(Relation::View(_))) => Err(e.hint(format!("write DROP VIEW {name}"))),
        (found, _) => Ok(found?.map(|table| (name, table))),
    };
    let dropped = names.iter().filter_map(|name| of_name(name).transpose()).collect::<Result<Vec<_>>>()?;
    let ids: Vec<TableId> = dropped.iter().map(|(_, table)| table.id).collect();
    if cascade {
        references::drop_references(&mut edit, catalog, &ids)?;
    }
    for (name, table) in dropped {
        if !cascade {
            references::refuse_if_referred(catalog, &table, &ids, name)?;
        }
        edit.drop_table(&table.name);
    }
    finish(edit, Vec::new())
}

fn truncate(catalog: &Catalog, name: &Ident, cascade: bool) -> DdlResult<Vec<Warning>> {
    let table = catalog.table(&name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
    let tables = match cascade {
        true => references::with_children(catalog, table),
        false => {
            references::refuse_if_referred(catalog, &table, &[], name)?;
            vec![table]
        }
    };
    let mut edit = catalog.edit();
    for table in tables {
        table.keyspaces().for_each(|keyspace| edit.batch.clear(keyspace));
        edit.forget_builds(&table);
        // The definition is the same, but storing it makes concurrent writers of the table conflict.
        edit.put_table((*table).clone())?;
    }
    finish(edit, Vec::new())
}

fn drop_index(catalog: &Catalog, name: &Ident, if_exists: bool) -> DdlResult<Vec<Warning>> {
    match catalog.index(&name_of(name)) {
        Ok((table, index)) => {
            rekeying::refuse(&table)?;
            references::refuse_if_key(catalog, &table, &index).map_err(|e| e.at(span_of_name(name)))?;
            let mut edit = catalog.edit();
            edit.drop_index(&table, &index)?;
            finish(edit, Vec::new())
        }
        Err(_) if if_exists && catalog.find(&name_of(name)).is_none() => Ok((Vec::new(), None)),
        Err(e) => Err(e.at(span_of_name(name))),
    }
}

fn drop_view(catalog: &Catalog, name: &Ident, if_exists: bool) -> DdlResult<Vec<Warning>> {
    match catalog.find(&name_of(name)) {
        Some(Relation::View(view)) => {
            let mut edit = catalog.edit();
            edit.drop_view(&view.name);
            finish(edit, Vec::new())
        }
        None if if_exists => Ok((Vec::new(), None)),
        None => Err(Error::invalid(format!("there is no view \"{}\"", name_of(name)))
            .state(sqlstate::UNDEFINED_TABLE)
            .at(span_of_name(name))),
        Some(other) => {
            let (is, drop) = match other {
                Relation::Index(..) => ("an index", "INDEX"),
                _ => ("a table", "TABLE"),
            };
            Err(Error::invalid(format!("\"{}\" is {is}, not a view", name_of(name)))
                .hint(format!("write DROP {drop} {name}"))
                .state(sqlstate::WRONG_OBJECT)
                .at(span_of_name(name)))
        }
    }
}

/// Changes definitions that views may depend on. Errors: a view could not be planned any more.
fn change<T>(session: &mut Session, to: impl FnOnce(&Catalog) -> DdlResult<T>) -> Result<T> {
    let db = session.database().clone();
    session.change_catalog(|catalog| {
        let (result, next) = to(catalog)?;
        if let Some((after, _)) = &next {
            check_views(&db, catalog, after)?;
        }
        Ok((result, next))
    })
}

/// Errors: a view whose names could be resolved before cannot be resolved after.
pub fn check_views(db: &Database, before: &Catalog, after: &Catalog) -> Result<()> {
    views_pass(db, before, after, |view, def| view.view_schema(def).map(drop))
}

/// Errors: a view that passed a check before does not pass it after.
pub fn views_pass(
    db: &Database,
    before: &Catalog,
    after: &Catalog,
    check: impl Fn(&StatementView, &ViewDef) -> Result<()>,
) -> Result<()> {
    let mut view = StatementView { moments: Arc::default(), ..db.session().view()? };
    let [before, after] = [before, after].map(|catalog| Arc::new(catalog.clone()));
    for def in after.views() {
        let mut under = |catalog: &Arc<Catalog>| {
            view.catalog = Arc::clone(catalog);
            check(&view, def)
        };
        if let Err(e) = under(&after)
            && under(&before).is_ok()
        {
            return Err(Error::invalid(format!("view \"{}\" reads what this would change", def.name))
                .why(format!("it would say: {}", e.what()))
                .hint(format!("DROP VIEW {} first", name_sql(&def.name)))
                .state(sqlstate::DEPENDENT));
        }
    }
    Ok(())
}

/// The table of this name; `None` if nothing has the name and IF EXISTS was given. Errors: there is none.
pub fn table_if(catalog: &Catalog, name: &Ident, if_exists: bool) -> Result<Option<Arc<TableDef>>> {
    match catalog.table(&name_of(name)) {
        Err(_) if if_exists && catalog.find(&name_of(name)).is_none() => Ok(None),
        found => found.map(Some).map_err(|e| e.at(span_of_name(name))),
    }
}

fn finish(edit: CatalogEdit, warnings: Vec<Warning>) -> DdlResult<Vec<Warning>> {
    Ok((warnings, Some(edit.finish()?)))
}

/// Checks and gives the name for a new object.
pub fn new_name(ident: &Ident) -> Result<String> {
    let name = name_of(ident);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(['\0', '/']) {
        return Err(Error::invalid(format!(
            "{} cannot be a name",
            crate::value::Literal(Value::Text(cut(&name)).as_ref())
        ))
        .why(format!("a name has 1 to {NAME_BYTES_MAX} bytes and no slash"))
        .hint("give another: what a query computes is named by AS, as in SELECT a / b AS ratio")
        .state(sqlstate::INVALID_NAME)
        .at(span_of_name(ident)));
    }
    Ok(name)
}

/// The stem of a generated name, cut so that a number fits behind it.
fn fitted(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX - 8));
    name
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A new index in state Building, with a new keyspace.
pub fn new_index(
    edit: &mut CatalogEdit,
    table: &TableDef,
    name: String,
    unique: bool,
    layout: KeyLayout,
    include: &[ColumnId],
    filter: Option<(crate::plan::Predicate, String)>,
) -> IndexDef {
    let mut include: Vec<ColumnId> = include.to_vec();
    // An index-only scan must see from the entry whether its row has expired.
    include.extend(table.written_at);
    let (filter, filter_sql) = filter.unzip();
    let mut index = IndexDef {
        id: edit.new_index_id(),
        name,
        unique,
        holds_primary: false,
        layout,
        include,
        given: Vec::new(),
        filter,
        filter_sql,
        state: IndexState::Building,
        keyspace: edit.new_keyspace(),
        sorted_by: SortedBy::default(),
    };
    index.point_at(&table.key);
    index
}

/// `table_column_key` for a UNIQUE index, `table_column_idx` for others; with a number if that is taken.
pub fn free_name(catalog: &Catalog, table: &TableDef, keys: &[KeyExpr], unique: bool) -> String {
    let parts: Vec<String> = keys
        .iter()
        .map(|key| {
            key.sql
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
                .collect()
        })
        .collect();
    let kind = if unique { "key" } else { "idx" };
    let base = fitted(format!("{}_{}_{kind}", table.name, parts.join("_")));
    // A new table is not in the catalog yet.
    let taken =
        |name: &str| name == table.name || catalog.find(name).is_some() || table.index(name).is_some();
    let mut name = base.clone();
    let mut n = 1;
    while taken(&name) {
        n += 1;
        name = format!("{base}{n}");
    }
    name
}

/// The constraints that a table has.
type Constraints<'t> = (&'t [CheckConstraint], &'t [Reference]);

/// A new CHECK of a table that has `others`. Errors: the name is taken.
fn check(table: &str, others: Constraints<'_>, def: &CheckDef) -> Result<CheckConstraint> {
    let stem = fitted(format!("{table}_check"));
    let generated = (others.0.len() + 1..).map(|n| format!("{stem}_{n}"));
    let name = constraint_name(table, others, def.name.as_ref(), generated)?;
    Ok(CheckConstraint { name, sql: unqualified(&def.sql, table)? })
}

/// The name for a new constraint: the given one, or the first free of the generated ones. Errors: the given one is taken.
fn constraint_name(
    table: &str,
    (checks, references): Constraints<'_>,
    given: Option<&Ident>,
    mut generated: impl Iterator<Item = String>,
) -> Result<String> {
    let is_taken = |name: &String| {
        checks.iter().any(|other| other.name == *name) || references.iter().any(|other| other.name == *name)
    };
    let Some(given) = given else {
        let free = generated.find(|name| !is_taken(name));
        return free.ok_or_else(|| Error::internal("all names are taken"));
    };
    let name = new_name(given)?;
    match is_taken(&name) {
        false => Ok(name),
        true => Err(Error::invalid(format!("table \"{table}\" has a constraint \"{name}\" already"))
            .state(sqlstate::DUPLICATE_OBJECT)
            .at(span_of_name(given))),
    }
}

fn create_view(session: &mut Session, create: &CreateView) -> Result<Vec<Warning>> {
    let name = new_name(&create.name)?;
    // The query must plan now: a view that cannot be read is refused. Named snapshots (`moments`) are not
    // offered: they end with the process, and a view does not.
    let view = StatementView { moments: Arc::default(), ..session.view()? };
    let columns = create.columns.iter().map(new_name).collect::<Result<Vec<_>>>()?;
    let checked = view.columns_of((*create.query).clone(), columns.len(), &[]);
    checked.map_err(|e| e.at(span_of_name(&create.name)))?;
    let define = |catalog: &Catalog| {
        match catalog.find(&name) {
            Some(Relation::View(_)) if create.or_replace => {}
            Some(Relation::View(_)) if create.if_not_exists => return Ok((Vec::new(), None)),
            _ => catalog.check_free(&name).map_err(|e| e.at(span_of_name(&create.name)))?,
        }
        let mut edit = catalog.edit();
        let def = ViewDef { name: name.clone(), columns, sql: create.sql.clone() };
        edit.put_view(def.clone())?;
        let (next, batch) = edit.finish()?;
        // The view must not read itself, which OR REPLACE could make it do.
        let view = StatementView { catalog: Arc::new(next.clone()), ..view };
        view.view_schema(&def).map_err(|e| e.unplaced().at(span_of_name(&create.name)))?;
        Ok((Vec::new(), Some((next, batch))))
    };
    // A new view has no dependents.
    if create.or_replace { change(session, define) } else { session.change_catalog(define) }
}
