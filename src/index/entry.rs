//! Makes the index entry of a row, and takes entries apart.
//!
//! | part of the entry | bytes |
//! |---|---|
//! | key | the layout's bytes, then the pointer (the primary rowkey) unless it is in the value |
//! | value | pointer length (LEB128; 0: the pointer is in the key), pointer, packed `INCLUDE` columns |
//!
//! The pointer makes keys unique, so it is part of the key. A UNIQUE index keeps it in the value, so that two rows
//! with one key collide; but a row with a NULL in the key is distinct from every other, so there the pointer is in
//! the key again. A layout that already contains the whole primary key needs no second copy of it in the key.

use crate::error::{Error, Result, sqlstate};
use crate::key::{ColumnId, KEY_BYTES_MAX, KeyError, Rowkey, Rule};
use crate::plan::{Field, RowView, Values};
use crate::row::{PackedRow, pack};
use crate::schema::{IndexDef, TableDef};
use crate::value::{Value, ValueRef, name_sql};

/// Key and value of one index entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Layout bytes, and the pointer unless it is in the value.
    pub key: Rowkey,
    /// Pointer if it is not in the key, and the included columns.
    pub value: Vec<u8>,
    /// In a UNIQUE index no other row may have this key: no part of it is NULL.
    pub claims: bool,
}

/// A row's values, and the formulas computed from them.
struct ComputedRow<'a> {
    row: Values<'a>,
    values: Vec<(ColumnId, Value)>,
}

impl ComputedRow<'_> {
    /// Computes the formulas among `columns`.
    fn add(&mut self, table: &TableDef, columns: impl Iterator<Item = ColumnId>) -> Result<()> {
        for id in columns {
            if let Some(formula) = &table.column(id).formula
                && !self.values.iter().any(|(computed, _)| *computed == id)
            {
                self.values.push((id, formula.eval(&self.row)?));
            }
        }
        Ok(())
    }

    fn get(&self, id: ColumnId) -> ValueRef<'_> {
        self.field(Field::Column(id)).unwrap_or(ValueRef::Null)
    }
}

impl RowView for ComputedRow<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        match self.values.iter().find(|(id, _)| Field::Column(*id) == field) {
            Some((_, value)) => Ok(value.as_ref()),
            None => self.row.get(field),
        }
    }
}

/// The entry that `row`, stored under `rowkey`, has in `index`; `None` if the index's WHERE excludes it. A pure
/// function of its arguments.
///
/// Errors: a value the layout cannot hold, naming column, value and rule; a key that is too long.
pub fn entry_of(
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
    rowkey: &[u8],
) -> Result<Option<IndexEntry>> {
    let mut row = ComputedRow { row: Values(row), values: Vec::new() };
    if let Some(filter) = &index.filter {
        row.add(table, index.filter_inputs()).map_err(|e| uncomputed(index, e))?;
        if filter.eval(&row)? != Some(true) {
            return Ok(None);
        }
    }
    let columns = || index.layout.parts().iter().flat_map(|part| part.columns().iter().copied());
    row.add(table, columns()).map_err(|e| uncomputed(index, e))?;
    let mut key = Vec::with_capacity(64);
    let encoded = index.layout.encode_values(&|id| row.get(id), &|id| table.column_name(id), 0, &mut key);
    encoded.map_err(|e| refused(table, index, e))?;
    let has_null = columns().any(|id| row.get(id).is_null());
    let mut value = Vec::with_capacity(16);
    if index.pointer_in_value(has_null) {
        write_leb128(rowkey.len(), &mut value);
        value.extend_from_slice(rowkey);
    } else {
        key.extend_from_slice(rowkey);
        value.push(0);
    }
    if !index.include.is_empty() {
        let columns = index.include.iter().map(|&id| (id, table.column(id).ty, row.get(id)));
        pack(columns, &mut value)?;
    }
    if key.is_empty() {
        let what = match table.is_next_key(index) {
            true => format!("the next rowkey of a row of \"{}\" would be empty", table.name),
            false => format!("a key of \"{}\" would be empty", index.name),
        };
        return Err(Error::invalid(what)
            .why("every part of the key is the empty string")
            .state(sqlstate::KEY_RULE));
    }
    check_length(table, Some(index), &key, &|id| row.get(id))?;
    Ok(Some(IndexEntry { key: key.into(), value, claims: index.unique && !has_null }))
}

/// Refuses a key of `index`, or of the table itself (`None`), that is longer than engines can store.
pub fn check_length<'v>(
    table: &TableDef,
    index: Option<&IndexDef>,
    key: &[u8],
    value_of: &dyn Fn(ColumnId) -> ValueRef<'v>,
) -> Result<()> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let whose = match index {
        None => format!("table {}", name_sql(&table.name)),
        Some(index) if table.is_next_key(index) => format!("the next layout of {}", name_sql(&table.name)),
        Some(index) => format!("index {}", name_sql(&index.name)),
    };
    let bytes_of = |id: ColumnId| match value_of(id) {
        ValueRef::Text(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let layout = index.map_or(&table.key, |index| &index.layout);
    let longest = layout.columns().into_iter().max_by_key(|id| bytes_of(*id));
    let longest = longest.filter(|id| bytes_of(*id) > 0).map(|id| {
        let name = name_sql(table.column_name(id));
        format!("; the longest value in this one is that of {name}, {} bytes", bytes_of(id))
    });
    Err(Error::invalid(format!("key of {} bytes is too long for {whose}", key.len()))
        .why(format!("the longest key is {KEY_BYTES_MAX} bytes{}", longest.unwrap_or_default()))
        .hint("shorten the values, or let the key have md5(col) in place of a long column")
        .state(sqlstate::LIMIT))
}

/// Adds a hint to the error of a formula.
fn uncomputed(index: &IndexDef, e: Error) -> Error {
    e.hint(format!("index \"{}\" is made of it: change the value, or do without the index", index.name))
}

fn refused(table: &TableDef, index: &IndexDef, e: KeyError) -> Error {
    if !table.is_next_key(index) {
        let mut hint = format!(
            "the part belongs to index \"{}\": change the value, or do without the index",
            index.name
        );
        if matches!(e.rule, Rule::Finer(_)) {
            let column = name_sql(&e.name);
            hint += &format!("; one on {column} itself, or on date_trunc('day', {column}), takes any time");
        }
        return Error::from(e).hint(hint);
    }
    let null = e.rule == Rule::Null;
    let error = Error::from(e).hint(format!(
        "the part belongs to the next layout of \"{}\": change the value, or ALTER TABLE {} REKEY CANCEL",
        table.name,
        name_sql(&table.name)
    ));
    if null { error.why("a rowkey has no place for NULL") } else { error }
}

/// An entry taken apart.
pub struct EntryParts<'a> {
    /// The layout's bytes.
    pub layout: &'a [u8],
    /// The primary rowkey.
    pub pointer: &'a [u8],
    /// The packed `INCLUDE` columns; empty if there are none.
    include: &'a [u8],
}

impl<'a> EntryParts<'a> {
    /// The packed `INCLUDE` columns.
    #[inline(always)]
    pub fn include(&self) -> Result<Option<PackedRow<'a>>> {
        if self.include.is_empty() { Ok(None) } else { PackedRow::new(self.include).map(Some) }
    }
}

/// Takes an entry apart. Errors: `Corrupt` when key or value is not an entry of this index.
#[inline(always)]
pub fn open_entry<'a>(index: &IndexDef, key: &'a [u8], value: &'a [u8]) -> Result<EntryParts<'a>> {
    let Some((pointer_len, rest)) = read_leb128(value) else {
        return Err(damaged(index, key, "no pointer length"));
    };
    if pointer_len > 0 {
        return match rest.split_at_checked(pointer_len) {
            Some((pointer, include)) => Ok(EntryParts { layout: key, pointer, include }),
            None => Err(damaged(index, key, "the pointer is cut off")),
        };
    }
    let end = match index.layout.len_in(key) {
        Ok(end) => end,
        Err(e) => return Err(damaged(index, key, &e.to_string())),
    };
    let (layout, pointer) = key.split_at(end);
    if pointer.is_empty() {
        return Err(damaged(index, key, "it has no pointer"));
    }
    Ok(EntryParts { layout, pointer, include: rest })
}

#[cold]
fn damaged(index: &IndexDef, key: &[u8], what: &str) -> Error {
    Error::corrupt(format!("entry of index \"{}\" is damaged: {what}", index.name))
        .why(format!("key {}", index.layout.show(key)))
        .hint(format!("CHECK INDEX {} lists what is wrong", name_sql(&index.name)))
}

fn write_leb128(mut n: usize, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[inline]
fn read_leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut n = 0usize;
    for (i, &b) in bytes.iter().enumerate().take(4) {
        n |= usize::from(b & 0x7F) << (7 * i);
        if b < 0x80 {
            return Some((n, &bytes[i + 1..]));
        }
    }
    None
}
