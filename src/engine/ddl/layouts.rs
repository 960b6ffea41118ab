//! Key layouts of tables and indexes, and what is to be said of them.

use crate::design::lint::LintRule;
use crate::engine::outcome::Warning;
use crate::error::{Error, Result, Span, sqlstate};
use crate::key::{self, ColumnId, Concern, KeyLayout, LayoutError, PartSpec, Tail, Transform};
use crate::schema::{Column, TableDef};
use crate::sql::{KeyColumn, KeyExpr, key_specs, name_sql};

/// The layout of a table whose rows are numbered.
pub fn numbers(row_number: ColumnId) -> PartSpec {
    let sql = name_sql(&Column::row_number().name);
    PartSpec { transform: Transform::Column(row_number), descending: false, sql }
}

/// The columns that key expressions can name.
pub fn key_columns(columns: &[Column]) -> Vec<KeyColumn<'_>> {
    let live = columns.iter().enumerate().filter(|(_, c)| !c.dropped && !c.hidden && c.formula.is_none());
    live.map(|(i, c)| (c.name.as_str(), ColumnId(i as u16))).collect()
}

pub fn layout(
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
