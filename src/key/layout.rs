//! Key layouts: ordered parts that encode a row as a key and decode it.
//!
//! [`KeyLayout::encode`] asks each part for its bytes, in order; [`KeyLayout::decode`] lets each part find
//! its end and give its value back. A column in several parts is decoded once, by the first part that can.

use serde::{Deserialize, Serialize};

use super::part::{ColumnInfo, KeyPart, NullMark, PartSpec};
use super::problem::{BadKey, KeyError, LayoutError, Warning};
use super::transform::ColumnId;
use super::{check, warn};
use crate::value::{ColumnType, Value, ValueRef};

/// What follows a layout's bytes in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing: a last part of variable width may run to the end of the key.
    Nothing,
    /// A pointer to a row: every part must mark its end.
    Pointer,
}

/// Ordered key parts; encodes, decodes and validates itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLayout {
    parts: Vec<KeyPart>,
    /// For each column in `decodable`, the index of the part that decodes it.
    givers: Vec<usize>,
    #[serde(rename = "undoable")]
    decodable: Vec<ColumnId>,
}

impl KeyLayout {
    /// Binds `specs` to their columns; `tail` follows the layout in the key.
    ///
    /// Errors: different rows could share a key, or parts could not be told apart; the error names the part
    /// and the fix.
    pub fn new<'a>(
        specs: Vec<PartSpec>,
        column: &dyn Fn(ColumnId) -> ColumnInfo<'a>,
        tail: Tail,
    ) -> Result<KeyLayout, LayoutError> {
        Ok(KeyLayout::of(check::parts(specs, column, tail)?))
    }

    fn of(parts: Vec<KeyPart>) -> KeyLayout {
        let (mut givers, mut decodable) = (Vec::new(), Vec::new());
        for (index, part) in parts.iter().enumerate() {
            if let ([column], true) = (part.columns(), part.facts().decodable)
                && !decodable.contains(column)
            {
                decodable.push(*column);
                givers.push(index);
            }
        }
        KeyLayout { parts, givers, decodable }
    }

    /// This layout, which must have been made for a pointer to follow, extended by the first `parts` of
    /// `next`.
    pub fn followed_by(&self, next: &KeyLayout, parts: usize) -> KeyLayout {
        KeyLayout::of([&self.parts[..], &next.parts[..parts]].concat())
    }

    /// The parts, in order; one for each spec.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Does it make the same keys as `other`, even if written differently?
    pub fn makes_same_keys_as(&self, other: &KeyLayout) -> bool {
        let mut pairs = self.parts.iter().zip(&other.parts);
        self.parts.len() == other.parts.len() && pairs.all(|(a, b)| a.makes_same_keys_as(b))
    }

    /// Appends the key of `row`, whose value of column `c` is `row[c.0]` (NULL if the row is shorter).
    /// `entropy` feeds `random(n)`; `names` is asked on errors only. On an error `out` is as before.
    pub fn encode<'n>(
        &self,
        row: &[Value],
        names: &dyn Fn(ColumnId) -> &'n str,
        entropy: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let value = |c: ColumnId| row.get(usize::from(c.0)).map_or(ValueRef::Null, Value::as_ref);
        self.encode_values(&value, names, entropy, out)
    }

    /// Like [`KeyLayout::encode`], with column values from `value`.
    pub fn encode_values<'v, 'n>(
        &self,
        value: &dyn Fn(ColumnId) -> ValueRef<'v>,
        names: &dyn Fn(ColumnId) -> &'n str,
        entropy: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let start = out.len();
        for part in &self.parts {
            if let Err(error) = part.put(value, Some(entropy), out) {
                out.truncate(start);
                let name = error.column.map_or(error.name, |c| names(c).to_owned());
                return Err(KeyError { name, ..error });
            }
        }
        Ok(())
    }

    /// Has it a `random(n)` part? Then rows may be the same but for their bucket.
    pub fn is_drawn(&self) -> bool {
        self.parts.iter().any(KeyPart::is_random)
    }

    /// Would [`KeyLayout::encode`] make `key` from `row`, for some draw of `random(n)`?
    pub fn is_key_of(&self, row: &[Value], key: &[u8]) -> bool {
        let value = |c: ColumnId| row.get(usize::from(c.0)).map_or(ValueRef::Null, Value::as_ref);
        let (mut at, mut bytes) = (0, Vec::with_capacity(key.len()));
        for part in &self.parts {
            let Some(end) = part.end_in(key, at) else { return false };
            bytes.clear();
            if !part.is_random() && (part.put(&value, None, &mut bytes).is_err() || bytes != key[at..end]) {
                return false;
            }
            at = end;
        }
        at == key.len()
    }

    /// End offset of each part in a key that starts with this layout's bytes.
    pub fn split(&self, key: &[u8]) -> Result<Vec<usize>, BadKey> {
        let mut at = 0;
        (0..self.parts.len())
            .map(|part| {
                at = self.end(part, key, at)?;
                Ok(at)
            })
            .collect()
    }

    /// Length of the layout's bytes at the start of `key` (in an index, the pointer follows).
    pub fn len_in(&self, key: &[u8]) -> Result<usize, BadKey> {
        (0..self.parts.len()).try_fold(0, |at, part| self.end(part, key, at))
    }

    /// Calls `f` once for each [`KeyLayout::decodable`] column, in that order, and returns the layout's length
    /// in `key`. Numbers and unescaped text are decoded without allocating.
    pub fn decode(&self, key: &[u8], f: &mut dyn FnMut(ColumnId, ValueRef<'_>)) -> Result<usize, BadKey> {
        self.decode_some(key, usize::MAX, |_| true, f)
    }

    /// Like [`KeyLayout::decode`], for those of the first `n` columns that are `wanted`; stops after them and
    /// returns the length up to there.
    #[inline]
    pub fn decode_some(
        &self,
        key: &[u8],
        n: usize,
        wanted: impl Fn(ColumnId) -> bool,
        f: &mut dyn FnMut(ColumnId, ValueRef<'_>),
    ) -> Result<usize, BadKey> {
        let (mut at, mut given, mut left) = (0, 0, n);
        for (index, part) in self.parts.iter().enumerate() {
            if left == 0 {
                break;
            }
            let end = self.end(index, key, at)?;
            if self.givers.get(given) == Some(&index) {
                let column = self.decodable[given];
                if wanted(column) {
                    let value = part.get(&key[at..end], &mut |value| f(column, value));
                    value.ok_or_else(|| self.bad(index, key))?;
                    left -= 1;
                }
                given += 1;
            }
            at = end;
        }
        Ok(at)
    }

    /// The value of an [`KeyLayout::decodable`] column in a key that starts with this layout's bytes; NULL for
    /// any other column.
    pub fn value_in(&self, key: &[u8], column: ColumnId) -> Result<Value, BadKey> {
        let Some(giver) = self.giver(column) else { return Ok(Value::Null) };
        let start = (0..giver).try_fold(0, |at, part| self.end(part, key, at))?;
        let end = self.end(giver, key, start)?;
        let mut value = Value::Null;
        let given = self.parts[giver].get(&key[start..end], &mut |found| value = found.to_value());
        given.map(|()| value).ok_or_else(|| self.bad(giver, key))
    }

    /// Offset just after a part that starts at `at` in `key`; `None` if there is no such part.
    pub fn end_of(&self, part: usize, key: &[u8], at: usize) -> Option<usize> {
        self.parts[part].end_in(key, at)
    }

    fn end(&self, part: usize, key: &[u8], at: usize) -> Result<usize, BadKey> {
        self.parts[part].end_in(key, at).ok_or_else(|| self.bad(part, key))
    }

    fn bad(&self, part: usize, key: &[u8]) -> BadKey {
        BadKey { part, sql: self.parts[part].sql().to_owned(), key: key.to_vec() }
    }

    /// Columns that [`KeyLayout::decode`] gives back exactly, in key order.
    pub fn decodable(&self) -> &[ColumnId] {
        &self.decodable
    }

    /// The index of the part that decodes a column exactly, if there is one.
    pub fn giver(&self, column: ColumnId) -> Option<usize> {
        let at = self.decodable.iter().position(|id| *id == column)?;
        Some(self.givers[at])
    }

    /// Some part is made from this column.
    pub fn has_column(&self, id: ColumnId) -> bool {
        self.parts.iter().any(|part| part.columns().contains(&id))
    }

    /// All input columns, in key order, once each.
    pub fn columns(&self) -> Vec<ColumnId> {
        let mut all = Vec::new();
        for &column in self.parts.iter().flat_map(KeyPart::columns) {
            if !all.contains(&column) {
                all.push(column);
            }
        }
        all
    }

    /// Rewrites the parts' SQL, for a renamed column.
    pub fn rewrite<E>(&mut self, mut sql: impl FnMut(&str) -> Result<String, E>) -> Result<(), E> {
        for part in &mut self.parts {
            part.sql = sql(&part.sql)?;
        }
        Ok(())
    }

    /// The layout as it was written: `lpad(id, 6), ts DESC`.
    pub fn sql(&self) -> String {
        self.sql_with(usize::MAX, "")
    }

    /// The layout's SQL with `other` in place of one part.
    pub fn sql_with(&self, changed: usize, other: &str) -> String {
        let sql = |(at, part): (usize, &KeyPart)| match () {
            () if at == changed => other.to_owned(),
            () => part.written(),
        };
        let parts = self.parts.iter().enumerate().map(sql).filter(|sql| !sql.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Is every part plain text, so that keys are shown as text instead of hex? (NULL in a text part is 00
    /// bytes, shown as `\0`.)
    pub fn is_text(&self) -> bool {
        self.parts.iter().all(KeyPart::is_text)
    }

    /// The character at place `at` (from 0 on) of every key, if keys are text and have a delimiter there, behind parts
    /// of fixed width: `_` at 6 of `lpad(id, 6), '_', day`.
    pub fn delimiter_at(&self, at: usize) -> Option<char> {
        if !self.is_text() {
            return None;
        }
        let mut left = at;
        for part in &self.parts {
            let width = part.width_in_chars()?;
            if left < width {
                return part.delimiter().and_then(|text| text.chars().nth(left));
            }
            left -= width;
        }
        None
    }

    /// Why no row at all has a key of this layout, if that is so.
    pub fn why_no_row_fits(&self) -> Option<LayoutError> {
        check::why_no_row_fits(&self.parts)
    }

    /// Warnings about the layout; never reasons to refuse it.
    pub fn warnings<'a>(&self, column: &dyn Fn(ColumnId) -> ColumnInfo<'a>) -> Vec<Warning> {
        warn::warnings(&self.parts, column)
    }

    /// Would CREATE accept this layout with this tail over columns of these types? Whether columns are
    /// nullable is taken from the layout itself.
    pub fn is_sound(&self, ty: &dyn Fn(ColumnId) -> Option<ColumnType>, tail: Tail) -> bool {
        if !self.columns().iter().all(|column| ty(*column).is_some()) {
            return false;
        }
        let specs = self.parts.iter().map(|part| PartSpec {
            transform: part.form.transform.clone(),
            descending: part.descending,
            sql: part.sql.clone(),
        });
        let has_null = |c: ColumnId| {
            self.parts
                .iter()
                .filter(|part| part.columns().contains(&c))
                .all(|part| part.null != NullMark::Never)
        };
        let column = |c: ColumnId| ColumnInfo {
            name: "",
            ty: ty(c).unwrap_or(ColumnType::BigInt),
            nullable: has_null(c),
            identity: false,
        };
        KeyLayout::new(specs.collect(), &column, tail).is_ok_and(|made| made == *self)
    }

    /// Does decoding this layout give every column of `other`, so that a key of `other` can be rebuilt from a
    /// key of this one?
    pub fn contains_columns(&self, other: &KeyLayout) -> bool {
        !other.parts.iter().any(KeyPart::is_random)
            && other.columns().iter().all(|column| self.decodable.contains(column))
    }
}
