//! DDL: CREATE, DROP, ALTER and TRUNCATE. Each is one atomic change of the catalog.

mod alter;
mod identities;
mod in_rows;
mod options;
pub mod references;
mod retype;
mod table_as;

use std::collections::HashSet;
use std::sync::Arc;

use sqlparser::ast::Ident;

use super::design::regions;
use super::outcome::Warning;
use super::session::{IN_STEPS, Session};
use super::view::StatementView;
use super::{Database, DdlResult, rekey, rekeying, vet};
use crate::catalog::{Catalog, CatalogEdit, Relation};
use crate::design::lint::LintRule;
use crate::error::{Error, Result, Span, sqlstate};
use crate::key::{self, ColumnId, Concern, KeyLayout, LayoutError, PartSpec, Tail, Transform};
use crate::row::Compression;
use crate::schema::{
    CheckConstraint, Column, FAMILIES_MAX, Family, FamilyId, Identity, IndexDef, IndexState, Reference,
    SortedBy, TableDef, TableId, Traffic, ViewDef,
};
use crate::sql::rewrite::ROWKEY;
use crate::sql::{
    AlterTable, AlterTableOp, CheckDef, ColumnChange, ColumnDef, CreateTable, CreateView, FamilyDef,
    KeyColumn, KeyExpr, Statement, key_specs, name_of, name_sql, span_of_name, unqualified,
};
use crate::value::Value;

use options::{TableOptions, compression};
pub use table_as::create_table_as;

/// Columns of a table (count), at most.
pub const COLUMNS_MAX: usize = 4096;
/// Bytes of a name, at most.
const NAME_BYTES_MAX: usize = 128;

/// Runs a DDL statement; gives its warnings.
pub async fn run(session: &mut Session, statement: &Statement) -> Result<Vec<Warning>> {
    match statement {
        Statement::CreateTable(create) => {
            vet::table(session, create, &columns(create)?).await?;
            references::create(session, create)
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
        AlterTableOp::Rekey { keys } => {
            session.outside_transaction("REKEY", IN_STEPS)?;
            rekey::rekey(session.database(), alter, keys, session.watch())
        }
        AlterTableOp::AddKey { keys } => {
            session.outside_transaction("ADD PRIMARY KEY", IN_STEPS)?;
            if let Ok(table) = session.catalog().table(&name_of(&alter.name))
                && table.row_number().is_none()
            {
                return Err(has_key(&table).at(span_of_name(&alter.name)));
            }
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

/// The error for ADD PRIMARY KEY.
fn has_key(table: &TableDef) -> Error {
    Error::invalid(format!("table \"{}\" has a PRIMARY KEY already", table.name))
        .why(format!("its rowkeys are made of {}", table.key.sql()))
        .hint(format!("ALTER TABLE {} REKEY (...) gives it another one", name_sql(&table.name)))
        .state(sqlstate::INVALID_TABLE_DEFINITION)
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

fn create_table(catalog: &Catalog, create: &CreateTable) -> DdlResult<Vec<Warning>> {
    let name = new_name(&create.name)?;
    if create.if_not_exists && catalog.table(&name).is_ok() {
        return Ok((Vec::new(), None));
    }
    catalog.check_free(&name).map_err(|e| e.at(span_of_name(&create.name)))?;
    let options = TableOptions::new(&create.options)?;
    let mut edit = catalog.edit();
    let families = families(&mut edit, &create.families)?;
    let mut columns = columns(create)?;
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

/// The layout of a table whose rows are numbered.
fn numbers(row_number: ColumnId) -> PartSpec {
    let sql = name_sql(&Column::row_number().name);
    PartSpec { transform: Transform::Column(row_number), descending: false, sql }
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

/// The columns that key expressions can name.
fn key_columns(columns: &[Column]) -> Vec<KeyColumn<'_>> {
    let live = columns.iter().enumerate().filter(|(_, c)| !c.dropped && !c.hidden && c.formula.is_none());
    live.map(|(i, c)| (c.name.as_str(), ColumnId(i as u16))).collect()
}

fn layout(
    specs: Vec<crate::key::PartSpec>,
    keys: &[KeyExpr],
    columns: &[Column],
    tail: Tail,
) -> Result<KeyLayout> {
    let made = KeyLayout::new(specs, &|id| columns[usize::from(id.0)].info(), tail);
    let checked = made.and_then(|layout| layout.why_no_row_fits().map_or(Ok(layout), Err));
    checked.map_err(|e: LayoutError| {
        let span: Option<Span> = keys.get(e.part).map(|key| key.span);
        Error::from(e).at(span)
    })
}

/// Warnings about a layout that works but has drawbacks.
pub fn layout_warnings(table: &TableDef, layout: &KeyLayout) -> Vec<Warning> {
    // A random bucket is no concern in an index: its entries are found through their rows.
    let matters = |w: &key::Warning| w.concern != Concern::DrawnKey || *layout == table.key;
    let warnings = layout.warnings(&|id| table.column_info(id)).into_iter().filter(matters);
    let code = |concern| Some(LintRule::from(concern).code());
    // Hints name source columns, not the hidden columns of formulas.
    let is_formula = |id: &ColumnId| table.column(*id).formula.is_some();
    let hint = |w: &key::Warning| match layout.parts()[w.part].columns().iter().find(|id| is_formula(id)) {
        Some(id) if w.concern == Concern::Hotspot => {
            let of = table.sources(*id).into_iter().map(|id| name_sql(table.column_name(id)));
            format!("lead with another column, or with md5_bucket({}, 16)", of.collect::<Vec<_>>().join(", "))
        }
        _ => w.hint.clone(),
    };
    warnings.map(|w| Warning { code: code(w.concern), hint: hint(&w), what: w.what, why: w.why }).collect()
}

/// The layout for an index of `table`. `formulas`: the columns, mostly hidden, of keys that are none of the
/// key forms.
pub fn index_layout(table: &TableDef, keys: &[KeyExpr], formulas: &[Option<ColumnId>]) -> Result<KeyLayout> {
    let columns = key_columns(&table.columns);
    let mut specs = Vec::with_capacity(keys.len());
    for (key, formula) in keys.iter().zip(formulas) {
        match formula {
            Some(id) => specs.push(PartSpec {
                transform: Transform::Column(*id),
                descending: key.descending,
                // A hidden column is shown as its formula.
                sql: match table.column(*id).formula {
                    Some(_) => table.column_name(*id).to_owned(),
                    None => name_sql(table.column_name(*id)),
                },
            }),
            None => {
                let parts = key_specs(std::slice::from_ref(key), &columns)?;
                if let Some(Transform::Random { buckets }) = parts.first().map(|part| &part.transform) {
                    return Err(drawn_entry(table, *buckets).at(key.span));
                }
                specs.extend(parts);
            }
        }
    }
    layout(specs, keys, &table.columns, Tail::Pointer)
}

/// The error for `random(n)` in an index.
pub fn drawn_entry(table: &TableDef, buckets: u32) -> Error {
    let names = table.key.columns().into_iter().map(|id| name_sql(table.column_name(id)));
    let spread = format!("md5_bucket({}, {buckets})", names.collect::<Vec<_>>().join(", "));
    Error::invalid("an index cannot draw a part at random")
        .why("its entries are found again by what their rows say, when these change or go")
        .hint(format!("{spread} spreads them as well"))
        .state(sqlstate::INVALID_TABLE_DEFINITION)
}

/// A new layout for the rows of `table`.
pub fn primary_layout(table: &TableDef, keys: &[KeyExpr]) -> Result<KeyLayout> {
    let specs = key_specs(keys, &key_columns(&table.columns))?;
    let mut columns = table.columns.clone();
    for id in specs.iter().flat_map(|spec| spec.transform.columns()) {
        columns[usize::from(id.0)].nullable = false;
    }
    layout(specs, keys, &columns, Tail::Nothing)
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

fn columns(create: &CreateTable) -> Result<Vec<Column>> {
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

fn column(def: &ColumnDef, family: FamilyId) -> Result<Column> {
    let name = new_name(&def.name)?;
    if def.identity.is_some() {
        identities::numbers_itself(&name, def.data_type).map_err(|e| e.at(def.span))?;
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
