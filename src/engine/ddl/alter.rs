//! ALTER TABLE.

use std::sync::Arc;

use sqlparser::ast::{Expr, Ident};

use super::create::no_columns;
use super::references::without;
use super::{COLUMNS_MAX, change, column, finish, hidden_rowkey, new_name, table_if};
use crate::catalog::Catalog;
use crate::engine::design::regions;
use crate::engine::outcome::Warning;
use crate::engine::session::Session;
use crate::engine::view::{column_named, family_named};
use crate::engine::{DdlResult, rekeying, vet};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::key::ColumnId;
use crate::schema::{FamilyId, IndexDef, OnDelete, Reference, TableDef};
use crate::sql::{
    AddColumn, AlterTable, AlterTableOp, ColumnChange, ColumnDef, Split, name_of, name_sql, names_column,
    rename_column, span_of_name,
};
use crate::value::ColumnType;

/// The table to alter; `None` if it is missing and IF EXISTS was given. Errors: no such table; it is being
/// re-keyed.
pub fn altered(catalog: &Catalog, alter: &AlterTable) -> Result<Option<Arc<TableDef>>> {
    let table = table_if(catalog, &alter.name, alter.if_exists)?;
    table.iter().try_for_each(|table| rekeying::refuse(table))?;
    Ok(table)
}

/// ALTER TABLE ... SPLIT. Finding the points may take a walk through the table, which blocks no writer.
pub fn split_table(session: &mut Session, alter: &AlterTable, split: &Split) -> Result<Vec<Warning>> {
    let view = session.view()?;
    let Some(old) = altered(&view.catalog, alter)? else { return Ok(Vec::new()) };
    let cuts = regions::cuts(&old, split, Some((&*view.snapshot.reader()?, &view.watch)))?;
    session.change_catalog(|catalog| {
        let Some(table) = altered(catalog, alter)? else { return Ok((Vec::new(), None)) };
        if (table.id, &table.key, &table.splits) != (old.id, &old.key, &old.splits) {
            return Err(changed_meanwhile(&table));
        }
        let mut table = (*table).clone();
        table.split_at(cuts);
        let warnings = regions::warnings(&table).into_iter().map(|w| w.of(&table.name)).collect();
        let mut edit = catalog.edit();
        edit.put_table(table)?;
        finish(edit, warnings)
    })
}

/// SET DEFAULT. Errors: a value that does not fit the column; `Conflict` if others have changed what fits it.
pub async fn set_default(
    session: &mut Session,
    alter: &AlterTable,
    name: &Ident,
    default: &Expr,
) -> Result<Vec<Warning>> {
    let what_fits = |table: &TableDef| {
        let column = table.column(column_named(table, name)?);
        Ok::<_, Error>((column.ty, column.max_len))
    };
    let mut vetted = None;
    if let Ok(table) = session.catalog().table(&name_of(&alter.name)) {
        vetted = Some(what_fits(&table)?);
        vet::default(session, Some(default), table.column(column_named(&table, name)?)).await?;
    }
    change(session, |catalog| {
        if let Ok(table) = catalog.table(&name_of(&alter.name))
            && vetted != Some(what_fits(&table)?)
        {
            return Err(changed_meanwhile(&table));
        }
        alter_table(catalog, alter)
    })
}

/// The error when a statement finds another definition than the one that it prepared for.
pub fn changed_meanwhile(table: &TableDef) -> Error {
    Error::new(Kind::Conflict, format!("somebody else has changed table \"{}\" meanwhile", table.name))
        .hint("run the statement again")
}

pub fn alter_table(catalog: &Catalog, alter: &AlterTable) -> DdlResult<Vec<Warning>> {
    let Some(old) = altered(catalog, alter)? else { return Ok((Vec::new(), None)) };
    let mut edit = catalog.edit();
    let mut table = (*old).clone();
    let mut warnings = Vec::new();
    match &alter.op {
        AlterTableOp::AddColumn(add) => match new_column(&mut table, add)? {
            Some(of_column) => warnings.extend(of_column),
            None => return Ok((Vec::new(), None)),
        },
        AlterTableOp::AlterColumn { name, change } => {
            let id = column_named(&table, name)?;
            alter_column(&mut table, id, change).map_err(|e| e.at(span_of_name(name)))?;
        }
        AlterTableOp::DropColumn { if_exists, name } => {
            let id = match column_named(&table, name) {
                Err(_) if *if_exists => return Ok((Vec::new(), None)),
                found => found?,
            };
            refuse_if_used(&table, id, name, "cannot be dropped")?;
            if table.live_columns().count() == 1 {
                return Err(no_columns(&table.name)
                    .hint(format!("DROP TABLE {}, or add another column first", name_sql(&table.name)))
                    .at(span_of_name(name)));
            }
            table.columns[usize::from(id.0)].dropped = true;
        }
        AlterTableOp::RenameColumn { from, to } => {
            let id = column_named(&table, from)?;
            let to_name = new_name(to)?;
            if table.column_id(&to_name).is_some() {
                return Err(Error::invalid(format!(
                    "table \"{}\" has a column \"{to_name}\" already",
                    table.name
                ))
                .state(sqlstate::DUPLICATE_COLUMN)
                .at(span_of_name(to)));
            }
            refuse_if_shown(&table, to)?;
            rewrite(&mut table, |sql| rename_column(sql, &name_of(from), &to_name))?;
            table.columns[usize::from(id.0)].name = to_name;
            let hides = hidden_rowkey(&table).filter(|_| !old.names_rowkey());
            warnings.extend(hides.map(|w| w.of(&table.name)));
        }
        AlterTableOp::RenameTable { to } => {
            let name = new_name(to)?;
            catalog.check_free(&name).map_err(|e| e.at(span_of_name(to)))?;
            edit.rename_table(&table.name);
            table.name = name;
        }
        AlterTableOp::DropConstraint { if_exists, name } => {
            let constraints = |table: &TableDef| table.checks.len() + table.references.len();
            table.checks.retain(|check| check.name != name_of(name));
            table.references.retain(|reference| reference.name != name_of(name));
            if constraints(&table) == constraints(&old) {
                return if *if_exists { Ok((Vec::new(), None)) } else { Err(no_constraint(&table, name)) };
            }
        }
        AlterTableOp::Split(_)
        | AlterTableOp::Rekey { .. }
        | AlterTableOp::AddKey { .. }
        | AlterTableOp::CancelRekey
        | AlterTableOp::SetOptions(_)
        | AlterTableOp::AddCheck(_)
        | AlterTableOp::AddReference(_) => {
            return Err(Error::internal("no single change of the catalog"));
        }
    }
    edit.put_table(table)?;
    finish(edit, warnings)
}

/// ALTER INDEX ... RENAME TO.
pub fn rename_index(
    catalog: &Catalog,
    table: &TableDef,
    index: &IndexDef,
    to: &Ident,
) -> DdlResult<Vec<Warning>> {
    rekeying::refuse(table)?;
    let name = new_name(to)?;
    catalog.check_free(&name).map_err(|e| e.at(span_of_name(to)))?;
    let mut table = table.clone();
    table.indexes.iter_mut().filter(|other| other.id == index.id).for_each(|index| index.name = name.clone());
    let mut edit = catalog.edit();
    edit.put_table(table)?;
    finish(edit, Vec::new())
}

/// Adds a column to the definition and gives warnings; `None` if it exists and IF NOT EXISTS was given.
pub fn new_column(table: &mut TableDef, add: &AddColumn) -> Result<Option<Vec<Warning>>> {
    let AddColumn { if_not_exists, column: def, family } = add;
    if table.column_id(&name_of(&def.name)).is_some() {
        if *if_not_exists {
            return Ok(None);
        }
        return Err(Error::invalid(format!(
            "table \"{}\" has a column \"{}\" already",
            table.name,
            name_of(&def.name)
        ))
        .state(sqlstate::DUPLICATE_COLUMN)
        .at(def.span));
    }
    refuse_if_shown(table, &def.name)?;
    let family = match family {
        None => FamilyId::DEFAULT,
        Some(name) => {
            let at = family_named(table, &name_of(name)).map_err(|e| e.at(span_of_name(name)))?;
            FamilyId(at as u8)
        }
    };
    if table.columns.len() >= COLUMNS_MAX {
        return Err(Error::invalid(format!(
            "a table has {COLUMNS_MAX} columns at the most, dropped ones included"
        ))
        .state(sqlstate::LIMIT));
    }
    let hid_rowkey = table.names_rowkey();
    table.columns.push(column(def, family)?);
    let hides_rowkey = hidden_rowkey(table).filter(|_| !hid_rowkey);
    Ok(Some(cut_digits(def).into_iter().chain(hides_rowkey).map(|w| w.of(&table.name)).collect()))
}

/// Warns of NUMERIC without digits, which elsewhere keeps any number.
pub fn cut_digits(column: &ColumnDef) -> Option<Warning> {
    let (ty, name) = (column.data_type, &column.name);
    let ColumnType::Decimal { scale, .. } = ty else { return None };
    column.without_digits.then(|| Warning {
        code: None,
        what: format!("{name} keeps {scale} digits behind the point"),
        why: format!("NUMERIC and DECIMAL without digits are {ty} here"),
        hint: "write NUMERIC(p, s) with up to 38 digits, s of them behind the point, or DOUBLE".into(),
    })
}

/// Errors: VERSIONS OF already shows a column of this name.
fn refuse_if_shown(table: &TableDef, name: &Ident) -> Result<()> {
    if !table.is_shown_in_versions(&name_of(name)) {
        return Ok(());
    }
    Err(Error::invalid(format!("VERSIONS OF {} has a column \"{}\" already", table.name, name_of(name)))
        .why("it tells when a version was written, or ended")
        .hint("give the column another name")
        .state(sqlstate::DUPLICATE_COLUMN)
        .at(span_of_name(name)))
}

/// Changes of a column that need no look at the rows.
fn alter_column(table: &mut TableDef, id: ColumnId, change: &ColumnChange) -> Result<()> {
    let column = &mut table.columns[usize::from(id.0)];
    match change {
        ColumnChange::SetDefault(_) if column.identity.is_some() => {
            Err(Error::invalid(format!("column \"{}\" numbers itself", column.name))
                .why("a DEFAULT and an identity both say what it gets when nothing is given"))
        }
        ColumnChange::SetDefault(expr) => {
            column.default = Some(expr.to_string());
            Ok(())
        }
        ColumnChange::DropDefault => {
            column.default = None;
            Ok(())
        }
        ColumnChange::DropNotNull => may_be_null(table, id, true),
        ColumnChange::SetNotNull
        | ColumnChange::SetType(_)
        | ColumnChange::AddIdentity(_)
        | ColumnChange::Restart(_) => Err(Error::internal("no rows were looked at")),
    }
}

/// Makes a column nullable or NOT NULL. Errors: a key layout relies on it.
pub fn may_be_null(table: &mut TableDef, id: ColumnId, nullable: bool) -> Result<()> {
    if table.column(id).nullable == nullable {
        return Ok(());
    }
    let refused = |user: String, hint: String| {
        let to = if nullable { "may be NULL" } else { "is NOT NULL" };
        Err(Error::invalid(format!("whether column \"{}\" {to} cannot change", table.column_name(id)))
            .why(format!("{user} goes by that"))
            .hint(hint)
            .state(sqlstate::DEPENDENT))
    };
    if table.is_key_column(id) {
        return refused(
            "the rowkey".to_owned(),
            format!("INSERT INTO a table that declares it so SELECT ... FROM {}", name_sql(&table.name)),
        );
    }
    let sets_null = |of: &&Reference| of.on_delete == OnDelete::SetNull && of.columns.contains(&id);
    if let Some(reference) = table.references.iter().filter(|_| !nullable).find(sets_null) {
        let user = format!("ON DELETE SET NULL of \"{}\"", reference.name);
        return refused(user, format!("{} first", without(table, reference)));
    }
    if table.column(id).identity.is_some() {
        return Err(Error::invalid(format!("identity column \"{}\" is NOT NULL", table.column_name(id)))
            .why("it numbers itself"));
    }
    let user =
        table.indexes.iter().find(|index| index.inputs().any(|used| table.sources(used).contains(&id)));
    if let Some(index) = user {
        return refused(
            format!("index \"{}\"", index.name),
            format!("DROP INDEX {} first, and create it again afterwards", name_sql(&index.name)),
        );
    }
    table.columns[usize::from(id.0)].nullable = nullable;
    Ok(())
}

/// Applies `sql` to every expression that a table stores as SQL text.
fn rewrite(table: &mut TableDef, sql: impl Fn(&str) -> Result<String>) -> Result<()> {
    table.key.rewrite(&sql)?;
    if let Some(history) = &mut table.history {
        history.key.rewrite(&sql)?;
    }
    for index in &mut table.indexes {
        index.layout.rewrite(&sql)?;
        if let Some(filter) = &mut index.filter_sql {
            *filter = sql(filter)?;
        }
    }
    for check in &mut table.checks {
        check.sql = sql(&check.sql)?;
    }
    let formulas = table.columns.iter_mut().filter(|c| c.formula.is_some() && !c.dropped);
    for column in formulas {
        column.name = sql(&column.name)?;
    }
    Ok(())
}

fn no_constraint(table: &TableDef, name: &Ident) -> Error {
    let error = Error::invalid(format!("table \"{}\" has no constraint \"{}\"", table.name, name_of(name)))
        .state(sqlstate::UNDEFINED_OBJECT)
        .at(span_of_name(name));
    let checks = table.checks.iter().map(|check| &*check.name);
    let names: Vec<&str> = checks.chain(table.references.iter().map(|reference| &*reference.name)).collect();
    match table.indexes.iter().any(|index| index.unique && index.name == name_of(name)) {
        true => error.hint(format!("DROP INDEX {} drops a UNIQUE", name_sql(&name_of(name)))),
        false if names.is_empty() => error.hint("it has none"),
        false => error.hint(format!("it has {}", names.join(", "))),
    }
}

/// Errors: the rowkey, a CHECK, a foreign key or an index uses the column, which therefore, `what`, cannot be changed.
pub fn refuse_if_used(table: &TableDef, id: ColumnId, name: &Ident, what: &str) -> Result<()> {
    let mut user = None;
    for of in &table.checks {
        if names_column(&of.sql, &name_of(name))? {
            let (of_table, check) = (name_sql(&table.name), name_sql(&of.name));
            let hint = format!("ALTER TABLE {of_table} DROP CONSTRAINT {check} first");
            user = Some((format!("check \"{}\"", of.name), hint));
        }
    }
    if let Some(reference) = table.references.iter().find(|reference| reference.columns.contains(&id)) {
        let hint = format!("{} first", without(table, reference));
        user = Some((format!("foreign key \"{}\"", reference.name), hint));
    }
    if table.is_key_column(id) {
        let hint = format!("ALTER TABLE {} REKEY (...) gives it another one first", name_sql(&table.name));
        user = Some(("the rowkey".to_owned(), hint));
    }
    let user = user.or_else(|| {
        let of = |used: ColumnId| table.sources(used).contains(&id);
        let uses = |i: &&IndexDef| i.inputs().any(of) || i.include.contains(&id);
        let index = table.indexes.iter().find(uses)?;
        Some((format!("index \"{}\"", index.name), format!("DROP INDEX {} first", name_sql(&index.name))))
    });
    match user {
        None => Ok(()),
        Some((user, hint)) => Err(Error::invalid(format!("column \"{}\" {what}", name_of(name)))
            .why(format!("{user} uses it"))
            .hint(hint)
            .state(sqlstate::DEPENDENT)
            .at(span_of_name(name))),
    }
}
