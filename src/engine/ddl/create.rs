//! CREATE TABLE.

use std::collections::HashSet;

use super::layouts::{index_layout, key_columns, layout, layout_warnings, numbers};
use super::options::{TableOptions, compression};
use super::{COLUMNS_MAX, alter, check, finish, free_name, identities, new_index, new_name, references};
use crate::catalog::{Catalog, CatalogEdit};
use crate::design::lint::LintRule;
use crate::engine::DdlResult;
use crate::engine::design::regions;
use crate::engine::outcome::Warning;
use crate::error::{Error, Result, sqlstate};
use crate::key::{ColumnId, Tail};
use crate::row::Compression;
use crate::schema::{
    CheckConstraint, Column, FAMILIES_MAX, Family, FamilyId, Identity, IndexDef, IndexState, TableDef,
    Traffic,
};
use crate::sql::rewrite::ROWKEY;
use crate::sql::{ColumnDef, CreateTable, FamilyDef, key_specs, name_of, name_sql, span_of_name};

pub fn create_table(catalog: &Catalog, create: &CreateTable) -> DdlResult<Vec<Warning>> {
    let name = new_name(&create.name)?;
    if create.if_not_exists && catalog.table(&name).is_ok() {
        return Ok((Vec::new(), None));
    }
    catalog.check_free(&name).map_err(|e| e.at(span_of_name(&create.name)))?;
    let options = TableOptions::new(&create.options)?;
    let mut edit = catalog.edit();
    let families = families(&mut edit, &create.families)?;
    let mut columns = columns(create)?;
    if columns.is_empty() {
        return Err(no_columns(&name).at(span_of_name(&create.name)));
    }
    let keys = create.primary_key.as_deref().unwrap_or_default();
    let specs = match create.primary_key {
        Some(_) => key_specs(keys, &key_columns(&columns))?,
        None => {
            columns.push(Column::row_number());
            vec![numbers(ColumnId(columns.len() as u16 - 1))]
        }
    };
    // Key columns are NOT NULL: a rowkey has no place for NULL.
    for id in specs.iter().flat_map(|spec| spec.transform.columns()) {
        columns[usize::from(id.0)].nullable = false;
    }
    let mut table = TableDef {
        id: edit.new_table_id(),
        name: name.clone(),
        key: layout(specs, keys, &columns, Tail::Nothing)?,
        columns,
        families,
        checks: checks(create)?,
        references: Vec::new(),
        indexes: Vec::new(),
        written_at: None,
        ttl_us: None,
        history: None,
        splits: Vec::new(),
        rekey: None,
        is_past: false,
        traffic: Traffic::default(),
    };
    if options.need_times() {
        table.keep_write_times();
    }
    options.apply(&mut edit, &mut table).map_err(|e| e.at(create.options.first().map(|o| o.span)))?;
    let mut warnings = match table.row_number() {
        Some(_) => vec![unkeyed(&table)],
        None => layout_warnings(&table, &table.key),
    };
    warnings.extend(create.columns.iter().filter_map(alter::cut_digits));
    warnings.extend(hidden_rowkey(&table));
    if let Some(split) = &create.split {
        table.split_at(regions::cuts(&table, split, None)?);
        warnings.extend(regions::warnings(&table));
    }
    warnings = warnings.into_iter().map(|warning| warning.of(&table.name)).collect();
    for unique in &create.uniques {
        let index_name = match &unique.name {
            Some(name) => new_name(name)?,
            None => free_name(catalog, &table, &unique.keys, true),
        };
        catalog.check_free(&index_name)?;
        let is_taken = index_name == table.name || table.indexes.iter().any(|index| index.name == index_name);
        if let (true, Some(name)) = (is_taken, &unique.name) {
            return Err(Error::invalid(format!("\"{index_name}\" is the name of two things"))
                .why("a UNIQUE constraint is an index table, which has its name")
                .hint("choose another name")
                .at(span_of_name(name))
                .state(sqlstate::DUPLICATE_TABLE));
        }
        let formulas = vec![None; unique.keys.len()];
        let layout = index_layout(&table, &unique.keys, &formulas)?;
        let index = new_index(&mut edit, &table, index_name, true, layout, &[], None);
        warnings.extend(layout_warnings(&table, &index.layout).into_iter().map(|w| w.of(&index.name)));
        table.indexes.push(IndexDef { state: IndexState::Ready, ..index });
    }
    for def in &create.references {
        references::add(&mut edit, catalog, &mut table, def)?;
    }
    edit.put_table(table)?;
    finish(edit, warnings)
}

/// The error for a table that would have no columns.
pub fn no_columns(table: &str) -> Error {
    Error::invalid(format!("table \"{table}\" would have no column"))
        .why("no statement could say what its rows are")
        .state(sqlstate::INVALID_TABLE_DEFINITION)
}

/// Warns of a table without a PRIMARY KEY.
fn unkeyed(table: &TableDef) -> Warning {
    let add = format!("ALTER TABLE {} ADD PRIMARY KEY", name_sql(&table.name));
    Warning {
        code: Some(LintRule::Unkeyed.code()),
        what: "there is no PRIMARY KEY: the rowkeys are numbers, in the order of INSERT".into(),
        why: "so a condition reads all rows, unless there is an index for it".into(),
        hint: format!("{add} (col), or (reverse(lpad(id, 12))) and the like, gives it one"),
    }
}

/// Warns of a column called like the rowkey, which it is not.
pub fn hidden_rowkey(table: &TableDef) -> Option<Warning> {
    let id = table.column_id(ROWKEY)?;
    (!table.is_key_column(id)).then(|| Warning {
        code: None,
        what: format!("column {ROWKEY} hides the rowkey"),
        why: "every table has a pseudo-column of that name, and it is not in the key".into(),
        hint: "give the column another name".into(),
    })
}

fn families(edit: &mut CatalogEdit, defs: &[FamilyDef]) -> Result<Vec<Family>> {
    let mut families = vec![Family {
        name: "default".into(),
        keyspace: edit.new_keyspace(),
        compression: Compression::None,
    }];
    for def in defs {
        let name = new_name(&def.name)?;
        let compression = compression(&def.options)?;
        if name == "default" {
            families[0].compression = compression;
            continue;
        }
        if families.iter().any(|f| f.name == name) {
            return Err(
                Error::invalid(format!("family \"{name}\" is declared twice")).at(span_of_name(&def.name))
            );
        }
        families.push(Family { name, keyspace: edit.new_keyspace(), compression });
    }
    if families.len() - 1 > FAMILIES_MAX {
        return Err(Error::invalid(format!("a table has {FAMILIES_MAX} column families at the most"))
            .why("beside the default one")
            .hint("put columns that are read together into one family")
            .state(sqlstate::LIMIT));
    }
    Ok(families)
}

pub fn columns(create: &CreateTable) -> Result<Vec<Column>> {
    if create.columns.len() > COLUMNS_MAX {
        return Err(
            Error::invalid(format!("a table has {COLUMNS_MAX} columns at the most")).state(sqlstate::LIMIT)
        );
    }
    let mut columns: Vec<Column> = Vec::with_capacity(create.columns.len());
    for def in &create.columns {
        let column = column(def, family_of(create, &name_of(&def.name)))?;
        if columns.iter().any(|c| c.name == column.name) {
            return Err(Error::invalid(format!("column \"{}\" is declared twice", column.name))
                .state(sqlstate::DUPLICATE_COLUMN)
                .at(span_of_name(&def.name)));
        }
        columns.push(column);
    }
    let mut placed = HashSet::new();
    for ident in create.families.iter().flat_map(|f| &f.columns) {
        let name = name_of(ident);
        if !columns.iter().any(|c| c.name == name) {
            return Err(Error::invalid(format!("a family lists column \"{name}\", which is not declared"))
                .state(sqlstate::UNDEFINED_COLUMN)
                .at(span_of_name(ident)));
        }
        if !placed.insert(name.clone()) {
            return Err(
                Error::invalid(format!("column \"{name}\" is in two families")).at(span_of_name(ident))
            );
        }
    }
    Ok(columns)
}

/// The family that a column is declared in; too many families are refused elsewhere.
fn family_of(create: &CreateTable, column: &str) -> FamilyId {
    let mut id = 0u8;
    for def in &create.families {
        let default = name_of(&def.name) == "default";
        id = id.saturating_add(u8::from(!default));
        if def.columns.iter().any(|c| name_of(c) == column) {
            return if default { FamilyId::DEFAULT } else { FamilyId(id) };
        }
    }
    FamilyId::DEFAULT
}

pub fn column(def: &ColumnDef, family: FamilyId) -> Result<Column> {
    let name = new_name(&def.name)?;
    if def.identity.is_some() {
        identities::check_counts(&name, def.data_type).map_err(|e| e.at(def.span))?;
    }
    Ok(Column {
        nullable: !def.not_null && def.identity.is_none(),
        max_len: def.max_len,
        default: def.default.as_ref().map(ToString::to_string),
        identity: def.identity.map(|i| Identity { always: i.always, start: i.start, increment: i.increment }),
        family,
        ..Column::new(name, def.data_type)
    })
}

fn checks(create: &CreateTable) -> Result<Vec<CheckConstraint>> {
    let mut checks = Vec::with_capacity(create.checks.len());
    for def in &create.checks {
        checks.push(check(&name_of(&create.name), (&checks, &[]), def)?);
    }
    Ok(checks)
}
