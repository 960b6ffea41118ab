//! DESCRIBE KEY, which shows a key part by part, and the dump of a keyspace as decoded entries.

use arrow::array::RecordBatch;
use sqlparser::ast::Ident;

use crate::catalog::{CATALOG_KEYSPACE, Catalog, Relation, index_of};
use crate::design::keys::KeyspaceLayout;
use crate::engine::Database;
use crate::engine::show::TextTable;
use crate::engine::view::{StatementView, family_named};
use crate::error::{Error, Result, sqlstate};
use crate::exec::trace;
use crate::key::{KeyLayout, KeyRange, hex};
use crate::schema::TableDef;
use crate::sql::{name_of, name_sql, span_of_name};
use crate::store::{Direction, KeyspaceId};
use crate::value::Value;

/// Characters of an entry (count) that a dump shows, at most.
const SHOWN_CHARS: usize = 2_000;

/// DESCRIBE KEY: a row for each part of a key; without one, of the first key of the keyspace.
pub fn describe(view: &StatementView, key: Option<&Value>, of: &Ident) -> Result<RecordBatch> {
    let name = name_of(of);
    let relation = view.catalog.find(&name);
    let (table, keyspace) = match &relation {
        Some(Relation::Table(table)) => (table, KeyspaceLayout::of_table(table)),
        Some(Relation::Index(table, id)) => (table, KeyspaceLayout::of_index(table, index_of(table, *id)?)),
        Some(Relation::View(_)) => {
            return Err(Error::invalid(format!("\"{name}\" is a view, whose rows have no keys"))
                .state(sqlstate::WRONG_OBJECT)
                .at(span_of_name(of)));
        }
        None => return Err(view.catalog.unknown(&name).at(span_of_name(of))),
    };
    let key = match key {
        Some(given) => keyspace.key(given)?,
        None => view.first_key(keyspace.id)?.ok_or_else(|| {
            Error::invalid(format!("\"{name}\" has no key yet"))
                .hint(format!("give one: DESCRIBE KEY '...' OF {}", name_sql(&name)))
                .state(sqlstate::OBJECT_STATE)
        })?,
    };
    let mut parts = Parts::new();
    let end = parts.add(table, keyspace.layout, &key);
    match keyspace.pointer {
        Some(pointer) if end < key.len() => drop(parts.add(table, pointer, &key[end..])),
        None if end < key.len() && !parts.broken => {
            parts.push(
                [keyspace.layout.0.into(), String::new(), "not part of the key".into()],
                &key[end..],
                None,
            );
        }
        _ => {}
    }
    parts.finish()
}

/// Rows of DESCRIBE KEY.
struct Parts {
    rows: TextTable<7>,
    broken: bool,
}

impl Parts {
    fn new() -> Parts {
        let rows = TextTable::new(["of", "part", "form", "bytes", "content", "column", "value"]);
        Parts { rows, broken: false }
    }

    /// Adds the parts of `key` and gives their length; an unreadable rest becomes one more row.
    fn add(&mut self, table: &TableDef, (of, layout): (&str, &KeyLayout), key: &[u8]) -> usize {
        let (pieces, wrong) = layout.take_apart(key);
        let mut end = 0;
        for piece in pieces {
            let part = &layout.parts()[piece.part];
            end = piece.at.end;
            let value = piece.value.map(|(column, value)| (table.column_name(column).to_owned(), value));
            let words = [of.to_owned(), part.sql().to_owned(), part.form_in_words()];
            self.push_shown(words, &key[piece.at], piece.content, value);
        }
        if let Some(wrong) = wrong {
            let part = &layout.parts()[wrong.part];
            let form = part.form_in_words();
            let form = format!("cannot be read as {}", form.strip_prefix("as ").unwrap_or(&form));
            self.push([of.to_owned(), wrong.sql, form], &key[end..], None);
            self.broken = true;
            return key.len();
        }
        end
    }

    fn push(&mut self, words: [String; 3], bytes: &[u8], value: Option<(String, String)>) {
        let shown = bytes.escape_ascii().to_string();
        self.push_shown(words, bytes, shown, value);
    }

    fn push_shown(
        &mut self,
        words: [String; 3],
        bytes: &[u8],
        content: String,
        value: Option<(String, String)>,
    ) {
        let [of, part, form] = words;
        let (column, value) = value.unwrap_or_default();
        self.rows.row([of, part, form, hex(bytes), content, column, value]);
    }

    fn finish(self) -> Result<RecordBatch> {
        self.rows.finish()
    }
}

impl Database {
    /// Passes the entries of a keyspace to `line`, decoded, one line each: those whose key starts with
    /// `prefix`, `limit` at most. `keyspace` is the name of a table, of an index, of a family, such as
    /// `orders.details`, or `catalog`. Gives whether there are more.
    ///
    /// Errors: no such keyspace; those of `line`. An entry that cannot be decoded is a line that says so.
    pub fn keydump(
        &self,
        keyspace: &str,
        prefix: &[u8],
        limit: u64,
        line: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<bool> {
        let (catalog, snapshot) = Database::view(self)?;
        let id = keyspace_named(&catalog, keyspace)?;
        let tables: Vec<_> = catalog.tables().cloned().collect();
        let reader = snapshot.reader()?;
        let range = KeyRange::prefix(prefix);
        let mut cursor = reader.cursor(id, &range, Direction::Forward)?;
        let mut left = limit;
        while let Some((key, value)) = cursor.next()? {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let shown = trace::show_entry(&tables, id, key, value)
                .unwrap_or_else(|e| format!("cannot be decoded: {}", e.what()));
            line(format!("{}  {}", hex(key), shortened(shown)))?;
        }
        Ok(false)
    }
}

/// Cuts an entry that is too long to be read.
fn shortened(mut shown: String) -> String {
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        let more = shown.len() - end;
        shown.truncate(end);
        shown.push_str(&format!("… ({more} bytes more)"));
    }
    shown
}

fn keyspace_named(catalog: &Catalog, name: &str) -> Result<KeyspaceId> {
    if name == "catalog" {
        return Ok(CATALOG_KEYSPACE);
    }
    if let Some((table, family)) = name.split_once('.') {
        let table = catalog.table(table)?;
        return Ok(table.families[family_named(&table, family)?].keyspace);
    }
    match catalog.find(name) {
        Some(Relation::Table(table)) => Ok(table.rows()),
        Some(Relation::Index(table, id)) => Ok(index_of(&table, id)?.keyspace),
        Some(Relation::View(_)) => {
            Err(Error::invalid(format!("\"{name}\" is a view: it stores nothing"))
                .state(sqlstate::WRONG_OBJECT))
        }
        None => Err(catalog.unknown(name)),
    }
}
