//! Shows the mutations of a store as text: `put orders '000000000007' status='paid'`.
//!
//! A table's line has the rowkey and the columns stored with it, one line per family (`orders.p`); an index's line
//! has the layout's part of the key, `->` the rowkey it points at, and the included columns.

use std::sync::Arc;

use crate::error::Result;
use crate::index::open_entry;
use crate::key::ColumnId;
use crate::row::{self, PackedRow};
use crate::schema::{FamilyId, IndexDef, TableDef};
use crate::store::{KeyspaceId, Mutation};
use crate::value::Literal;

/// What a keyspace holds.
enum KeyspaceKind<'t> {
    Family(FamilyId),
    Index(&'t IndexDef),
}

/// What a keyspace of a table, or of its next layout, holds.
struct Held<'t> {
    table: &'t TableDef,
    what: KeyspaceKind<'t>,
    next: bool,
}

/// Shows one mutation, by the definitions of `tables`. Errors: bytes that cannot be decoded.
pub fn show_mutation(tables: &[Arc<TableDef>], mutation: &Mutation) -> Result<String> {
    let (verb, keyspace, key, value) = match mutation {
        Mutation::Put(keyspace, key, value) => ("put", *keyspace, &**key, Some(&value[..])),
        Mutation::Delete(keyspace, key) => ("delete", *keyspace, &**key, None),
        Mutation::Clear(keyspace) => ("clear", *keyspace, &[][..], None),
    };
    let text = match held(tables, keyspace) {
        // The catalog's keyspace, whose keys are text.
        None => format!("keyspace {} {}", keyspace.0, String::from_utf8_lossy(key)),
        Some(held) if verb == "clear" => held.name(),
        Some(held) => format!("{} {}", held.name(), held.show(key, value)?),
    };
    Ok(format!("{verb} {text}"))
}

/// Shows one entry, its key and its value, by the definitions of `tables`. Errors: bytes that cannot be decoded.
pub fn show_entry(
    tables: &[Arc<TableDef>],
    keyspace: KeyspaceId,
    key: &[u8],
    value: &[u8],
) -> Result<String> {
    match held(tables, keyspace) {
        // The catalog's keyspace: text and JSON.
        None => Ok(format!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value))),
        Some(held) => held.show(key, Some(value)),
    }
}

fn held(tables: &[Arc<TableDef>], keyspace: KeyspaceId) -> Option<Held<'_>> {
    let within = |table| what_of(table, keyspace);
    tables.iter().find_map(|table| {
        let next = table.rekey.as_deref().map(|rekey| &rekey.next);
        let now = within(table).map(|what| Held { table, what, next: false });
        now.or_else(|| next.and_then(|table| Some(Held { table, what: within(table)?, next: true })))
    })
}

fn what_of(table: &TableDef, keyspace: KeyspaceId) -> Option<KeyspaceKind<'_>> {
    let family = table.family_ids().find(|id| table.family(*id).keyspace == keyspace);
    let index = || table.maintained_indexes().find(|index| index.keyspace == keyspace);
    family.map(KeyspaceKind::Family).or_else(|| index().map(KeyspaceKind::Index))
}

impl Held<'_> {
    fn name(&self) -> String {
        let name = match self.what {
            KeyspaceKind::Family(FamilyId::DEFAULT) => self.table.name.clone(),
            KeyspaceKind::Family(id) => format!("{}.{}", self.table.name, self.table.family(id).name),
            KeyspaceKind::Index(index) => index.name.clone(),
        };
        if self.next { format!("next {name}") } else { name }
    }

    fn show(&self, key: &[u8], value: Option<&[u8]>) -> Result<String> {
        let (table, mut words) = (self.table, Vec::new());
        match self.what {
            KeyspaceKind::Family(_) => {
                words.push(table.key.show_quoted(key));
                if let Some(value) = value {
                    let value = row::open(value)?;
                    words.extend(columns(table, &PackedRow::new(&value)?)?);
                }
            }
            KeyspaceKind::Index(index) => {
                let end = index.layout.len_in(key).unwrap_or(key.len());
                words.push(index.layout.show_quoted(&key[..end]));
                match value {
                    Some(value) => {
                        let entry = open_entry(index, key, value)?;
                        words.push(format!("-> {}", table.key.show_quoted(entry.pointer)));
                        if let Some(included) = entry.include()? {
                            words.extend(columns(table, &included)?);
                        }
                    }
                    None if end < key.len() => {
                        words.push(format!("-> {}", table.key.show_quoted(&key[end..])));
                    }
                    None => {}
                }
            }
        }
        Ok(words.join(" "))
    }
}

/// `status='paid'` for each column of a packed value.
fn columns(table: &TableDef, packed: &PackedRow<'_>) -> Result<Vec<String>> {
    let shown = |id: ColumnId| {
        let column = table.column(id);
        let value = packed.get(id, column.ty)?;
        Ok(value.map(|value| format!("{}={}", column.name, Literal(value))))
    };
    packed.columns().filter_map(|id| shown(id).transpose()).collect()
}
