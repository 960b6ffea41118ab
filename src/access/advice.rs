//! Suggests an index for a query that reads a whole table.

use super::path::Need;
use crate::key::{ColumnId, KeyLayout};
use crate::plan::{CmpOp, Field, Predicate};
use crate::schema::{IndexDef, TableDef};
use crate::value::{ColumnType, name_sql};

/// Columns of a proposed index (count), at most.
const COLUMNS_MAX: usize = 4;

/// A part of a proposed key: a column, perhaps descending.
pub type IndexPart = (ColumnId, bool);

/// The CREATE INDEX of an index with [such a key](key_for).
pub fn index_for(table: &TableDef, need: &Need) -> Option<String> {
    let parts = key_for(table, need)?;
    let sources = parts.iter().flat_map(|(id, _)| table.sources(*id));
    let names: Vec<&str> = sources.map(|id| table.column_name(id)).collect();
    let listed: Vec<String> = parts
        .iter()
        .map(|(id, descending)| key_sql(table, *id) + if *descending { " DESC" } else { "" })
        .collect();
    let name = format!("{}_by_{}", table.name, names.join("_"));
    let is_taken = |name: &String| table.index(name).is_some();
    let mut others = (2..).map(|n| format!("{name}{n}"));
    let name = if is_taken(&name) { others.find(|name| !is_taken(name))? } else { name };
    let index = name_sql(&name);
    Some(format!("CREATE INDEX {index} ON {} ({})", name_sql(&table.name), listed.join(", ")))
}

/// A column as a key of CREATE INDEX; a formula's column is shown as the formula.
fn key_sql(table: &TableDef, id: ColumnId) -> String {
    let name = table.column_name(id);
    if table.column(id).formula.is_some() { format!("({name})") } else { name_sql(name) }
}

/// The key of an index that would help: first columns with one or few values, then one with a range; or the
/// ORDER BY, if there is no condition. `None` if no index would help.
pub fn key_for(table: &TableDef, need: &Need) -> Option<Vec<IndexPart>> {
    if table.is_past {
        return None;
    }
    let mut conjuncts = need.predicate.clone().conjuncts();
    // The condition on expiry is true for nearly all rows.
    conjuncts.retain(|about| column_of(about).is_none_or(|id| !table.column(id).hidden));
    let is_no_key = |id: ColumnId| table.column(id).ty == ColumnType::Json;
    let about = |what: fn(&Predicate) -> bool| {
        let columns = conjuncts.iter().filter(move |c| what(c)).filter_map(column_of);
        columns.filter(|id| !is_no_key(*id))
    };
    let mut columns: Vec<ColumnId> = Vec::new();
    for column in about(is_listed) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let range = about(is_ranged).find(|column| !columns.contains(column));
    columns.extend(range);
    let ordered = need.order.iter().map(|by| match by.field {
        Field::Column(id) => Some((id, by.descending)),
        Field::Rowkey | Field::PrimaryRowkey => None,
    });
    let mut parts: Vec<IndexPart> = match columns.is_empty() {
        false => columns.into_iter().map(|id| (id, false)).collect(),
        true if need.limit.is_some() => ordered.collect::<Option<_>>()?,
        true => return None,
    };
    if parts.is_empty()
        || parts.iter().any(|(id, _)| is_no_key(*id))
        || is_there(table, &need.predicate, &parts)
    {
        return None;
    }
    parts.truncate(COLUMNS_MAX);
    Some(parts)
}

/// Does the table or an index that could serve lead with these columns already? Then it was not chosen for other reasons.
fn is_there(table: &TableDef, predicate: &Predicate, parts: &[IndexPart]) -> bool {
    let leads = |layout: &KeyLayout| {
        let leading = layout.parts().iter().take(parts.len());
        leading.map(|part| part.columns()).eq(parts.iter().map(|(id, _)| std::slice::from_ref(id)))
    };
    let is_sorted = table.key.parts().iter().take(parts.len()).all(|part| part.facts().order.is_some());
    let has_all = |index: &&IndexDef| index.filter.as_ref().is_none_or(|filter| predicate.implies(filter));
    is_sorted && leads(&table.key) || table.indexes.iter().filter(has_all).any(|index| leads(&index.layout))
}

fn column_of(predicate: &Predicate) -> Option<ColumnId> {
    match predicate.fields()[..] {
        [Field::Column(id)] => Some(id),
        _ => None,
    }
}

fn is_listed(predicate: &Predicate) -> bool {
    matches!(
        predicate,
        Predicate::Compare { op: CmpOp::Eq, .. }
            | Predicate::In { negated: false, .. }
            | Predicate::IsNull { negated: false, .. }
    )
}

fn is_ranged(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { op, .. } => !matches!(op, CmpOp::Eq | CmpOp::Ne),
        Predicate::Like { negated: false, case_insensitive: false, pattern, .. } => {
            !pattern.prefix().is_empty()
        }
        _ => false,
    }
}
