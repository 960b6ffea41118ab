//! ALTER TABLE.

use std::sync::Arc;

use sqlparser::ast::Ident;

use super::{COLUMNS_MAX, Changed, column, cut_digits, finish, hidden_rowkey, new_name};
use crate::catalog::Catalog;
use crate::engine::design::regions;
use crate::engine::outcome::Warning;
use crate::engine::view::column_named;
use crate::engine::{Database, rekey};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::watch::Watch;
use crate::key::ColumnId;
use crate::schema::{FamilyId, IndexDef, TableDef};
use crate::sql::{AlterTable, AlterTableOp, Split, name_of, names_column, rename_column, span_of_name};

/// The table to be altered, if it has to be there. Errors: it is not, or it is being re-keyed.
fn altered(catalog: &Catalog, alter: &AlterTable) -> Result<Option<Arc<TableDef>>> {
    match catalog.table(&name_of(&alter.name)) {
        Ok(table) => rekey::refuse(&table).map(|()| Some(table)),
        Err(_) if alter.if_exists => Ok(None),
        Err(e) => Err(e.at(span_of_name(&alter.name))),
    }
}

/// ALTER TABLE ... SPLIT. The points may take a walk through the table, for which nobody waits.
pub fn split_table(db: &Database, alter: &AlterTable, split: &Split, watch: &Watch) -> Result<Vec<Warning>> {
    let (catalog, snapshot) = db.view()?;
    let Some(old) = altered(&catalog, alter)? else { return Ok(Vec::new()) };
    let cuts = regions::cuts(&old, split, Some((&*snapshot.reader()?, watch)))?;
    db.change_catalog(&watch.cancel, |catalog| {
        let Some(table) = altered(catalog, alter)? else { return Ok((Vec::new(), None)) };
        if (table.id, &table.key, &table.splits) != (old.id, &old.key, &old.splits) {
            return Err(Error::new(
                Kind::Conflict,
                format!("table \"{}\" was changed while it was split", table.name),
            )
            .hint("run the statement again"));
        }
        let mut table = (*table).clone();
        table.split_at(cuts);
        let warnings = regions::warnings(&table);
        let mut edit = catalog.edit();
        edit.put_table(table)?;
        finish(edit, warnings)
    })
}

pub fn alter_table(catalog: &Catalog, alter: &AlterTable) -> Changed<Vec<Warning>> {
    let Some(old) = altered(catalog, alter)? else { return Ok((Vec::new(), None)) };
    let mut edit = catalog.edit();
    let mut table = (*old).clone();
    let mut warnings = Vec::new();
    match &alter.op {
        AlterTableOp::AddColumn { if_not_exists, column: def, family } => {
            if table.column_id(&name_of(&def.name)).is_some() {
                if *if_not_exists {
                    return Ok((Vec::new(), None));
                }
                return Err(Error::invalid(format!(
                    "table \"{}\" has a column \"{}\" already",
                    table.name,
                    name_of(&def.name)
                ))
                .state(sqlstate::DUPLICATE_COLUMN)
                .at(def.span));
            }
            let family = match family {
                None => FamilyId::DEFAULT,
                Some(name) => {
                    let wanted = name_of(name);
                    let at = table.families.iter().position(|f| f.name == wanted);
                    FamilyId(at.ok_or_else(|| {
                        Error::invalid(format!("table \"{}\" has no family \"{wanted}\"", table.name))
                            .at(span_of_name(name))
                    })? as u8)
                }
            };
            let column = column(def, family)?;
            if !column.nullable || column.default.is_some() || column.identity.is_some() {
                return Err(Error::unsupported(format!("column \"{}\" cannot be added as NOT NULL or with a DEFAULT", column.name))
                    .why("adding a column is instant: the rows that are there are not rewritten, so it is NULL in them")
                    .hint("add it without, then UPDATE")
                    .at(def.span));
            }
            if table.columns.len() >= COLUMNS_MAX {
                return Err(Error::invalid(format!(
                    "a table has {COLUMNS_MAX} columns at the most, dropped ones included"
                ))
                .state(sqlstate::LIMIT));
            }
            table.columns.push(column);
            warnings.extend(cut_digits(def));
        }
        AlterTableOp::DropColumn { if_exists, name } => {
            let id = match column_named(&table, name) {
                Err(_) if *if_exists => return Ok((Vec::new(), None)),
                found => found?,
            };
            refuse_if_used(&table, id, name)?;
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
            rewrite(&mut table, |sql| rename_column(sql, &name_of(from), &to_name))?;
            table.columns[usize::from(id.0)].name = to_name;
        }
        AlterTableOp::RenameTable { to } => {
            let name = new_name(to)?;
            catalog.check_free(&name).map_err(|e| e.at(span_of_name(to)))?;
            edit.rename_table(&table.name);
            table.name = name;
        }
        AlterTableOp::Split(_) | AlterTableOp::Rekey { .. } | AlterTableOp::CancelRekey => {
            return Err(Error::internal("no single change of the catalog"));
        }
    }
    if !old.names_rowkey() {
        warnings.extend(hidden_rowkey(&table));
    }
    edit.put_table(table)?;
    finish(edit, warnings)
}

/// Changes every expression that a table keeps as it was written.
fn rewrite(table: &mut TableDef, sql: impl Fn(&str) -> Result<String>) -> Result<()> {
    table.key.rewrite(&sql)?;
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

fn refuse_if_used(table: &TableDef, id: ColumnId, name: &Ident) -> Result<()> {
    let mut user = None;
    for of in &table.checks {
        if names_column(&of.sql, &name_of(name))? {
            let hint = "a CHECK stays; INSERT INTO a table without it SELECT ... FROM this one".to_owned();
            user = Some((format!("check \"{}\"", of.name), hint));
        }
    }
    if table.is_key_column(id) {
        let hint = format!("ALTER TABLE {} REKEY (...) gives it another one first", table.name);
        user = Some(("the rowkey".to_owned(), hint));
    }
    let user = user.or_else(|| {
        let of = |used: ColumnId| table.sources(used).contains(&id);
        let uses = |i: &&IndexDef| i.inputs().any(of) || i.include.contains(&id);
        let index = table.indexes.iter().find(uses)?;
        Some((format!("index \"{}\"", index.name), format!("DROP INDEX {} first", index.name)))
    });
    match user {
        None => Ok(()),
        Some((user, hint)) => Err(Error::invalid(format!("column \"{}\" cannot be dropped", name_of(name)))
            .why(format!("{user} uses it"))
            .hint(hint)
            .state("2BP01")
            .at(span_of_name(name))),
    }
}
