//! SQL that fixes a finding.

use super::Subject;
use crate::key::{ColumnId, KeyLayout, KeyPart};
use crate::schema::FamilyId;
use crate::sql::name_sql;
use crate::value::ColumnType;

/// The SQL of a layout's parts.
pub(super) fn parts_of(layout: &KeyLayout) -> Vec<String> {
    layout.parts().iter().map(KeyPart::written).collect()
}

impl Subject<'_> {
    /// Gives the table or index another layout.
    pub(super) fn with_layout(&self, layout: &str) -> String {
        let Some(index) = self.index else {
            return format!("ALTER TABLE {} REKEY ({layout})", name_sql(&self.table.name));
        };
        let name = name_sql(&index.name);
        let include = match &self.table.declared(index)[..] {
            [] => String::new(),
            ids => format!(" INCLUDE ({})", self.names(ids)),
        };
        let filter = index.filter_sql.as_ref().map_or_else(String::new, |sql| format!(" WHERE {sql}"));
        format!(
            "DROP INDEX {name}; CREATE {}INDEX {name} ON {} ({layout}){include}{filter}",
            if index.unique { "UNIQUE " } else { "" },
            name_sql(&self.table.name),
        )
    }

    /// Gives a column that is a plain part of the table's key another type. `None` if that takes more than a
    /// few statements, because an index or a constraint uses the column too.
    pub(super) fn with_type(&self, at: usize, column: ColumnId, ty: ColumnType) -> Option<String> {
        if self.index.is_some() || !self.is_free(column) {
            return None;
        }
        let (table, name) = (name_sql(&self.table.name), self.table.column_name(column));
        let other = name_sql(&format!("{name}_number"));
        let name = name_sql(name);
        let layout = self.layout().sql_with(at, &other);
        Some(format!(
            "ALTER TABLE {table} ADD COLUMN {other} {ty}; UPDATE {table} SET {other} = CAST({name} AS {ty}); \
             ALTER TABLE {table} REKEY ({layout}); ALTER TABLE {table} DROP COLUMN {name}; \
             ALTER TABLE {table} RENAME COLUMN {other} TO {name}"
        ))
    }

    /// Moves the columns of a family to a table of their own. `None` as for
    /// [`with_type`](Subject::with_type).
    pub(super) fn apart(&self, family: FamilyId) -> Option<String> {
        let (table, key) = (self.table, self.table.key.columns());
        let members: Vec<ColumnId> =
            table.live_columns().filter(|(_, c)| c.family == family).map(|(id, _)| id).collect();
        let is_keyed = table.row_number().is_none();
        if !is_keyed || !members.iter().all(|id| self.is_free(*id) && !key.contains(id)) {
            return None;
        }
        let name = name_sql(&format!("{}_{}", table.name, table.family(family).name));
        let all: Vec<ColumnId> = key.into_iter().chain(members.iter().copied()).collect();
        let column = |id: &ColumnId| format!("{} {}", name_sql(table.column_name(*id)), table.column(*id).ty);
        let columns: Vec<String> = all.iter().map(column).collect();
        let some = |id: &ColumnId| format!("{} IS NOT NULL", name_sql(table.column_name(*id)));
        let from = name_sql(&table.name);
        let drop =
            |id: &ColumnId| format!("; ALTER TABLE {from} DROP COLUMN {}", name_sql(table.column_name(*id)));
        Some(format!(
            "CREATE TABLE {name} ({}, PRIMARY KEY ({})); INSERT INTO {name} SELECT {} FROM {from} WHERE {}{}",
            columns.join(", "),
            table.key.sql(),
            self.names(&all),
            members.iter().map(some).collect::<Vec<_>>().join(" OR "),
            members.iter().map(drop).collect::<String>(),
        ))
    }

    /// Is the column used by no index and no constraint?
    fn is_free(&self, column: ColumnId) -> bool {
        let reads = |id: ColumnId| self.table.sources(id).contains(&column);
        self.table.checks.is_empty() && !self.table.indexes.iter().any(|i| i.inputs().any(reads))
    }

    pub(super) fn names(&self, ids: &[ColumnId]) -> String {
        let names: Vec<String> = ids.iter().map(|id| name_sql(self.table.column_name(*id))).collect();
        names.join(", ")
    }
}
