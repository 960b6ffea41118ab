//! Keys of a table or an index: parsed from literals, and shown part by part.

use crate::error::{Error, Result, sqlstate};
use crate::key::{KeyLayout, hex};
use crate::schema::{IndexDef, TableDef};
use crate::store::KeyspaceId;
use crate::value::{ColumnType, Value, from_hex, name_sql};

/// A keyspace, and how its keys are made.
pub struct KeyspaceLayout<'t> {
    /// The keyspace.
    pub id: KeyspaceId,
    /// The layout of a table or an index, with its name.
    pub layout: (&'t str, &'t KeyLayout),
    /// The layout of the pointer in an index entry's key, with the table's name.
    pub pointer: Option<(&'t str, &'t KeyLayout)>,
}

impl<'t> KeyspaceLayout<'t> {
    /// The rows of a table.
    pub fn of_table(table: &'t TableDef) -> KeyspaceLayout<'t> {
        KeyspaceLayout { id: table.rows(), layout: (&table.name, &table.key), pointer: None }
    }

    /// The entries of an index.
    pub fn of_index(table: &'t TableDef, index: &'t IndexDef) -> KeyspaceLayout<'t> {
        let pointer = Some((&table.name[..], &table.key));
        KeyspaceLayout { id: index.keyspace, layout: (&index.name, &index.layout), pointer }
    }

    /// The bytes of a literal: plain text if the layout is text, as `rowkey` is then, hex digits otherwise.
    ///
    /// Errors: neither bytes nor text; invalid hex digits.
    pub fn key(&self, given: &Value) -> Result<Vec<u8>> {
        match given {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            Value::Text(text) if self.layout.1.is_text() => Ok(text.clone().into_bytes()),
            Value::Text(text) => match Value::parse(&hex_literal(text), ColumnType::Varbinary) {
                Ok(Value::Bytes(bytes)) => Ok(bytes),
                _ => Err(Error::invalid(format!("'{text}' is not a key of \"{}\"", self.layout.0))
                    .why("its keys are not plain text, so they are written in hex digits")
                    .hint(format!("SELECT rowkey FROM {} shows some", name_sql(self.layout.0)))
                    .state(sqlstate::INVALID_TEXT)),
            },
            other => Err(Error::invalid(format!("{other} is not a key")).state(sqlstate::INVALID_TEXT)),
        }
    }

    /// Are these the bytes of a whole key?
    pub fn has(&self, key: &[u8]) -> bool {
        let end_in = |layout: &KeyLayout, key: &[u8]| layout.decode(key, &mut |_, _| ()).ok();
        let Some(end) = end_in(self.layout.1, key) else { return false };
        let pointer = &key[end..];
        pointer.is_empty()
            || self.pointer.is_some_and(|(_, layout)| end_in(layout, pointer) == Some(pointer.len()))
    }

    /// Are these the hex digits of a whole key, as queries print it?
    pub fn has_in_hex(&self, digits: &str) -> bool {
        from_hex(digits).is_some_and(|bytes| !bytes.is_empty() && self.has(&bytes))
    }

    /// A key part by part on one line: `lpad(id, 4) '0007' (id=7); '_' '_'; day ...`; for an index entry,
    /// followed by `->` and the rowkey.
    pub fn in_words(&self, table: &TableDef, key: &[u8]) -> String {
        let (mut words, end) = parts_in_words(table, self.layout.1, key);
        if let (Some((_, layout)), Some(pointer)) =
            (self.pointer, key.get(end..).filter(|rest| !rest.is_empty()))
        {
            words.push_str(" -> ");
            words.push_str(&parts_in_words(table, layout, pointer).0);
        }
        words
    }
}

/// The parts of a key on one line, and where they end.
fn parts_in_words(table: &TableDef, layout: &KeyLayout, key: &[u8]) -> (String, usize) {
    let (pieces, wrong) = layout.take_apart(key);
    let end = pieces.last().map_or(0, |piece| piece.at.end);
    let mut words: Vec<String> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let part = &layout.parts()[piece.part];
        words.push(match piece.value {
            _ if part.is_literal() => piece.content,
            Some((column, value)) => {
                format!("{} {} ({}={value})", part.sql(), piece.content, table.column_name(column))
            }
            None => format!("{} {}", part.sql(), piece.content),
        });
    }
    let end = match wrong {
        Some(wrong) => {
            words.push(format!("{} cannot be read as {}", hex(&key[end..]), wrong.sql));
            key.len()
        }
        None => end,
    };
    (words.join("; "), end)
}

fn hex_literal(text: &str) -> String {
    let digits = text.strip_prefix("\\x").or_else(|| text.strip_prefix("0x")).unwrap_or(text);
    format!("\\x{digits}")
}
