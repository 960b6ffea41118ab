//! FOREIGN KEY in definitions: what it may refer to, and what may no longer change.

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::in_rows::{alter_rows, count, purge, purge_rest, rows_of};
use super::options::TableOptions;
use super::{constraint_name, create_table, fitted};
use crate::catalog::{Catalog, CatalogEdit};
use crate::engine::outcome::Warning;
use crate::engine::references::{name_list, orphans, parent_of, reference_sql};
use crate::engine::rekeying;
use crate::engine::session::Session;
use crate::engine::view::columns_named;
use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::schema::{IndexDef, OnDelete, Reference, TableDef, TableId};
use crate::sql::{self, AlterTable, CreateTable, ReferenceDef, name_of, name_sql, span_of_name};
use crate::value::ColumnType;

/// CREATE TABLE. Foreign keys to tables that come later wait, where COMMIT checks them.
pub fn create(session: &mut Session, create: &CreateTable) -> Result<Vec<Warning>> {
    let (now, awaited) = session.without_awaited(create);
    let warnings = session.change_catalog(|catalog| create_table(catalog, &now))?;
    session.keep_awaited(&create.name, awaited)?;
    Ok(warnings)
}

/// Adds a foreign key to a table that is new or changed. The table that it refers to is stored anew, so that a
/// concurrent writer, who does not know of it, conflicts.
///
/// Errors: columns that are not there, no key, or of other types; an action that the columns rule out.
pub fn add(
    edit: &mut CatalogEdit,
    catalog: &Catalog,
    table: &mut TableDef,
    def: &ReferenceDef,
) -> Result<()> {
    let of_itself = name_of(&def.parent) == table.name;
    let parent = match of_itself {
        true => table.clone(),
        false => {
            let name = name_of(&def.parent);
            let parent = catalog.table(&name).map_err(|e| e.at(span_of_name(&def.parent)));
            let parent = parent.map_err(|e| match catalog.find(&name) {
                Some(_) => e,
                None => e.hint(format!(
                    "create it first, or leave this out and write behind both: ALTER TABLE {} ADD {def}",
                    name_sql(&table.name)
                )),
            })?;
            rekeying::refuse(&parent)?;
            (*parent).clone()
        }
    };
    let reference = reference(table, &parent, def).map_err(|e| e.at(def.span))?;
    table.references.push(reference);
    if of_itself { Ok(()) } else { edit.put_table(parent) }
}

fn reference(table: &TableDef, parent: &TableDef, def: &ReferenceDef) -> Result<Reference> {
    let columns = columns_named(table, &def.columns)?;
    let parent_columns = match def.parent_columns.is_empty() {
        true if parent.row_number().is_some() => return Err(no_key(parent)),
        true => parent.key.columns(),
        false => columns_named(parent, &def.parent_columns)?,
    };
    let on_delete = match def.on_delete {
        sql::OnDelete::Refuse => OnDelete::Refuse,
        sql::OnDelete::Cascade => OnDelete::Cascade,
        sql::OnDelete::SetNull => OnDelete::SetNull,
        sql::OnDelete::SetDefault => OnDelete::SetDefault,
    };
    let (name, parent_id, deferred) = (String::new(), parent.id, def.deferred);
    let reference = Reference { name, columns, parent: parent_id, parent_columns, on_delete, deferred };
    check_columns(table, parent, &reference)?;
    check_parent(parent, &reference)?;
    check_actions(table, parent, &reference, def)?;
    let columns: Vec<&str> = reference.columns.iter().map(|id| table.column_name(*id)).collect();
    let stem = fitted(format!("{}_{}_fkey", table.name, columns.join("_")));
    let generated = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}{n}")));
    let others = (&*table.checks, &*table.references);
    let name = constraint_name(&table.name, others, def.name.as_ref(), generated)?;
    Ok(Reference { name, ..reference })
}

/// The error for a reference that names no columns of a table without a PRIMARY KEY.
fn no_key(parent: &TableDef) -> Error {
    let name = name_sql(&parent.name);
    Error::invalid(format!("table \"{}\" has no PRIMARY KEY", parent.name))
        .why("that is what a foreign key refers to, if it names no columns")
        .hint(format!(
            "ALTER TABLE {name} ADD PRIMARY KEY (...) first; or name the columns of a UNIQUE index"
        ))
        .state(sqlstate::INVALID_FOREIGN_KEY)
}

/// Errors: more or fewer columns than the parent's; others types than theirs.
fn check_columns(table: &TableDef, parent: &TableDef, reference: &Reference) -> Result<()> {
    let (own, others) = (&reference.columns, &reference.parent_columns);
    if own.len() != others.len() {
        let (left, right) = (name_list(table, own), name_list(parent, others));
        return Err(Error::invalid(format!("{left} cannot refer to {right} of \"{}\"", parent.name))
            .why(format!("{} and {} columns do not fit together", own.len(), others.len()))
            .hint("name as many columns on both sides: FOREIGN KEY (a, b) REFERENCES t (x, y)")
            .state(sqlstate::INVALID_FOREIGN_KEY));
    }
    let fits = |(own, other): (&ColumnId, &ColumnId)| {
        let (own, other) = (table.column(*own).ty, parent.column(*other).ty);
        own == other || own.is_integer() && other.is_integer()
    };
    match own.iter().zip(others).find(|pair| !fits(*pair)) {
        None => Ok(()),
        Some((own, other)) => {
            let ty = |table: &TableDef, id: ColumnId| -> (String, ColumnType) {
                (table.column_name(id).to_owned(), table.column(id).ty)
            };
            let ((own, own_type), (other, other_type)) = (ty(table, *own), ty(parent, *other));
            Err(Error::invalid(format!(
                "{own} is {own_type}, and {other} of \"{}\" {other_type}",
                parent.name
            ))
            .why("a foreign key has the values of the key it refers to")
            .hint(format!("give both one type: {} {other_type}", name_sql(&own)))
            .state(sqlstate::DATATYPE_MISMATCH))
        }
    }
}

/// Errors: no key tells whether the parent has a row; its rows go away by themselves.
fn check_parent(parent: &TableDef, reference: &Reference) -> Result<()> {
    if parent.ttl_us.is_some() {
        return Err(Error::invalid(format!("rows of \"{}\" expire by themselves", parent.name))
            .why("what refers to them would be left alone")
            .hint(format!("ALTER TABLE {} SET (ttl = 'forever') keeps them", name_sql(&parent.name)))
            .state(sqlstate::OBJECT_STATE));
    }
    if reference.key_in(parent).is_some() {
        return Ok(());
    }
    let columns = name_list(parent, &reference.parent_columns);
    let is_primary = parent.key.columns() == reference.parent_columns;
    let why = match is_primary {
        true if parent.key.is_drawn() => {
            "its bucket is drawn, so several rows may have the same values there".to_owned()
        }
        true => format!("({}) does not tell all values apart", parent.key.sql()),
        false => {
            "a foreign key refers to the columns of the primary key, or of a UNIQUE index that is Ready and has no WHERE"
                .to_owned()
        }
    };
    Err(Error::invalid(format!("{columns} is not a key of table \"{}\"", parent.name))
        .why(why)
        .hint(format!("CREATE UNIQUE INDEX ON {} {columns} makes them one", name_sql(&parent.name)))
        .state(sqlstate::INVALID_FOREIGN_KEY))
}

/// Errors: an ON DELETE or ON UPDATE that could not be done.
fn check_actions(
    table: &TableDef,
    parent: &TableDef,
    reference: &Reference,
    def: &ReferenceDef,
) -> Result<()> {
    if let Some(place) = def.on_update
        && !reference.parent_columns.iter().all(|id| parent.is_key_column(*id))
    {
        return Err(Error::unsupported("ON UPDATE changes no rows")
            .why(format!(
                "{} of \"{}\" is no part of its rowkey, so it may get other values",
                name_list(parent, &reference.parent_columns),
                parent.name
            ))
            .hint("leave it out: an UPDATE of what others refer to is refused")
            .at(place));
    }
    let (what, is_null) = match reference.on_delete {
        OnDelete::Refuse | OnDelete::Cascade => return Ok(()),
        OnDelete::SetNull => ("SET NULL", true),
        OnDelete::SetDefault => ("SET DEFAULT", false),
    };
    let refused = |id: &ColumnId, why: &str| {
        Err(Error::invalid(format!("ON DELETE {what} cannot change column \"{}\"", table.column_name(*id)))
            .why(why.to_owned())
            .hint("ON DELETE CASCADE deletes the row; without ON DELETE, the other one stays")
            .state(sqlstate::INVALID_FOREIGN_KEY))
    };
    if let Some(id) = reference.columns.iter().find(|id| table.is_key_column(**id)) {
        return refused(id, "it is part of the rowkey");
    }
    match reference.columns.iter().find(|id| is_null && !table.column(**id).nullable) {
        Some(id) => refused(id, "it is NOT NULL"),
        None => Ok(()),
    }
}

/// ADD FOREIGN KEY. Errors: as [`add`]; an existing row refers to one that is not there.
pub fn add_reference(session: &mut Session, alter: &AlterTable, def: &ReferenceDef) -> Result<Vec<Warning>> {
    purge(session, alter)?;
    let committed = session.database().catalog();
    alter_rows(session, alter, |view, table, edit, writer| {
        add(edit, &view.catalog, table, def)?;
        purge_rest(view, table, writer)?;
        let Some(reference) = table.references.last() else {
            return Err(Error::internal("it was not added"));
        };
        let parent = parent_of(view, reference)?;
        // A column that the same ALTER TABLE adds is gone with it.
        let before = committed.table_by_id(table.id);
        let has_columns = before.is_some_and(|before| before.columns.len() == table.columns.len());
        let orphans = orphans(table, reference, parent);
        let n = count(view, &orphans)?;
        if n > 0 {
            return Err(Error::invalid(format!("foreign key \"{}\" does not hold", reference.name))
                .why(format!(
                    "{} of \"{}\" {} to what is not in \"{}\"",
                    rows_of(n),
                    table.name,
                    if n == 1 { "refers" } else { "refer" },
                    parent.name
                ))
                .hint(match has_columns {
                    true => format!("SELECT * FROM {orphans} shows them"),
                    false => "give the column no DEFAULT, and the rows their values, before ADD FOREIGN KEY"
                        .to_owned(),
                })
                .state(sqlstate::FOREIGN_KEY)
                .at(def.span));
        }
        Ok(Some(Vec::new()))
    })
}

/// Errors: other tables, but for those among `dropped`, refer to rows of this one, which would be gone.
pub fn refuse_if_referred(
    catalog: &Catalog,
    table: &TableDef,
    dropped: &[TableId],
    name: &Ident,
) -> Result<()> {
    let is_left = |child: &TableDef| child.id != table.id && !dropped.contains(&child.id);
    match catalog.references_to(table.id).iter().find(|referrer| is_left(&referrer.child)) {
        None => Ok(()),
        Some(referrer) => {
            let (child, reference) = (&referrer.child, referrer.reference());
            Err(Error::invalid(format!("rows of \"{}\" refer to \"{}\"", child.name, table.name))
                .why(format!(
                    "by foreign key \"{}\": {}",
                    reference.name,
                    reference_sql(child, reference, table)
                ))
                .hint(match dropped.is_empty() {
                    true => {
                        "CASCADE truncates the tables that refer to it, too; a DELETE looks after each row"
                            .to_owned()
                    }
                    false => format!(
                        "CASCADE drops the foreign key, too; or DROP TABLE {}, {}",
                        name_sql(&table.name),
                        name_sql(&child.name)
                    ),
                })
                .state(sqlstate::DEPENDENT)
                .at(span_of_name(name)))
        }
    }
}

/// Drops the foreign keys of other tables that refer to these. Errors: one of those is being re-keyed.
pub fn drop_references(edit: &mut CatalogEdit, catalog: &Catalog, parents: &[TableId]) -> Result<()> {
    let refers = |reference: &Reference| parents.contains(&reference.parent);
    for child in catalog.tables().filter(|child| !parents.contains(&child.id)) {
        if child.references.iter().any(refers) {
            rekeying::refuse(child)?;
            let mut child = (**child).clone();
            child.references.retain(|reference| !refers(reference));
            edit.put_table(child)?;
        }
    }
    Ok(())
}

/// The table, with those whose rows refer to its own, and so on.
pub fn with_children(catalog: &Catalog, table: Arc<TableDef>) -> Vec<Arc<TableDef>> {
    let (mut all, mut at) = (vec![table], 0);
    while let Some(parent) = all.get(at).map(|parent| parent.id) {
        for referrer in catalog.references_to(parent) {
            if all.iter().all(|known| known.id != referrer.child.id) {
                all.push(Arc::clone(&referrer.child));
            }
        }
        at += 1;
    }
    all
}

/// Errors: the rows would expire by themselves, and others refer to them.
pub fn refuse_to_expire(catalog: &Catalog, table: &TableDef, wanted: TableOptions) -> Result<()> {
    let Some(referrer) = catalog.references_to(table.id).first() else { return Ok(()) };
    if wanted.ttl_us.flatten().is_none() {
        return Ok(());
    }
    let (child, reference) = (&referrer.child, referrer.reference());
    Err(Error::invalid(format!("rows of \"{}\" cannot expire by themselves", table.name))
        .why(format!("those of \"{}\" refer to them, by foreign key \"{}\"", child.name, reference.name))
        .hint(format!("{} first", without(child, reference)))
        .state(sqlstate::DEPENDENT))
}

/// Errors: a reference to the table as it was `before` has no key `after`, or only one that is not Ready.
pub fn refuse_without_key(catalog: &Catalog, before: &TableDef, after: &TableDef, what: &str) -> Result<()> {
    let lost = catalog.references_to(before.id).iter().find(|referrer| {
        let reference = referrer.reference();
        let has_any = |table| reference.keys_in(table).next().is_some();
        let is_ready = |table| reference.key_in(table).is_some();
        (has_any(before) && !has_any(after)) || (is_ready(before) && !is_ready(after))
    });
    match lost {
        None => Ok(()),
        Some(referrer) => {
            let (child, reference) = (&referrer.child, referrer.reference());
            Err(Error::invalid(what.to_owned())
                .why(format!(
                    "foreign key \"{}\" of \"{}\" goes by it: {}",
                    reference.name,
                    child.name,
                    reference_sql(child, reference, before)
                ))
                .hint(format!("{} first", without(child, reference)))
                .state(sqlstate::DEPENDENT))
        }
    }
}

/// Errors: a reference sets columns to NULL or their defaults that the next layout makes part of the rowkey.
pub fn refuse_if_set(table: &TableDef, next: &TableDef) -> Result<()> {
    let sets =
        |reference: &&Reference| matches!(reference.on_delete, OnDelete::SetNull | OnDelete::SetDefault);
    let is_key = |reference: &&Reference| reference.columns.iter().any(|id| next.is_key_column(*id));
    match table.references.iter().filter(sets).find(is_key) {
        None => Ok(()),
        Some(reference) => Err(Error::invalid(format!(
            "{} cannot be part of the rowkey",
            name_list(table, &reference.columns)
        ))
        .why(format!("foreign key \"{}\" changes them when a row goes away", reference.name))
        .hint(format!("{} first", without(table, reference)))
        .state(sqlstate::DEPENDENT)),
    }
}

/// The statement that drops a foreign key.
pub fn without(table: &TableDef, reference: &Reference) -> String {
    format!("ALTER TABLE {} DROP CONSTRAINT {}", name_sql(&table.name), name_sql(&reference.name))
}

/// Errors: a reference goes by this UNIQUE index.
pub fn refuse_if_key(catalog: &Catalog, table: &TableDef, index: &IndexDef) -> Result<()> {
    let mut after = table.clone();
    after.indexes.retain(|other| other.id != index.id);
    refuse_without_key(catalog, table, &after, &format!("index \"{}\" cannot be dropped", index.name))
}
