//! Which index would serve a query that reads a whole table.

use super::path::Need;
use crate::key::ColumnId;
use crate::plan::{CmpOp, Field, Predicate};
use crate::schema::TableDef;

/// Columns of an index that is proposed, at the most.
const COLUMNS_MAX: usize = 4;

/// The CREATE INDEX of an index that would serve: columns that have one value or few first, then one with
/// a range; or the order, if that is all there is. `None` if no index would help.
pub fn index_for(table: &TableDef, need: &Need) -> Option<String> {
    let conjuncts = need.predicate.clone().conjuncts();
    let about =
        |what: fn(&Predicate) -> bool| conjuncts.iter().filter(move |c| what(c)).filter_map(column_of);
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
    let parts: Vec<(ColumnId, bool)> = match columns.is_empty() {
        false => columns.into_iter().map(|id| (id, false)).collect(),
        true if need.limit.is_some() => ordered.collect::<Option<_>>()?,
        true => return None,
    };
    if parts.is_empty() || is_there(table, &parts) {
        return None;
    }
    let parts = &parts[..parts.len().min(COLUMNS_MAX)];
    let sources = parts.iter().flat_map(|(id, _)| table.sources(*id));
    let names: Vec<&str> = sources.map(|id| table.column_name(id)).collect();
    let listed = parts.iter().map(|(id, descending)| {
        let column = table.column(*id);
        let key = if column.formula.is_some() { format!("({})", column.name) } else { column.name.clone() };
        key + if *descending { " DESC" } else { "" }
    });
    let listed: Vec<String> = listed.collect();
    Some(format!("CREATE INDEX {0}_by_{1} ON {0} ({2})", table.name, names.join("_"), listed.join(", ")))
}

/// An index leads with these columns already: that it was not chosen has other reasons.
fn is_there(table: &TableDef, parts: &[(ColumnId, bool)]) -> bool {
    table.indexes.iter().any(|index| {
        let leading = index.layout.parts().iter().take(parts.len());
        leading.map(|part| part.columns()).eq(parts.iter().map(|(id, _)| std::slice::from_ref(id)))
    })
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
