//! One part of a key layout: a transform's content, made ready to stand among others.
//!
//! The content of a value becomes the part's bytes in three steps, undone in reverse by decoding:
//!
//! 1. NULL, if it can occur, gets bytes of its own ([`NullMark`]).
//! 2. The part gets an end, if what follows would otherwise run into it ([`Ending`]).
//! 3. `DESC` inverts every byte, the end included.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::problem::{KeyError, Rule};
use super::scalar;
use super::transform::{ColumnId, Form, Shape, Transform, bucket_of, bucket_width, normal, put_bucket};
use crate::value::{ColumnType, Literal, Value, ValueRef};

/// What CREATE gives for one part, before it is resolved against the columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSpec {
    /// The form.
    pub transform: Transform,
    /// `DESC`.
    pub descending: bool,
    /// As written, for messages.
    pub sql: String,
}

/// What a layout needs to know about a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo<'a> {
    /// As declared.
    pub name: &'a str,
    /// Its type.
    pub ty: ColumnType,
    /// May be NULL.
    pub nullable: bool,
    /// `GENERATED ... AS IDENTITY`: grows with every insert.
    pub identity: bool,
}

/// How the order of a part's bytes follows the order of the column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// NULL first, then small to great.
    Ascending,
    /// Great to small, then NULL.
    Descending,
}

impl KeyOrder {
    fn reversed(self) -> KeyOrder {
        match self {
            KeyOrder::Ascending => KeyOrder::Descending,
            KeyOrder::Descending => KeyOrder::Ascending,
        }
    }
}

/// What a part states about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Distinct values have distinct bytes: an equality range holds nothing else.
    pub injective: bool,
    /// How the order of bytes follows the order of values; `None` if it does not.
    pub order: Option<KeyOrder>,
    /// Decoding gives the column's value back exactly.
    pub undoable: bool,
    /// Bytes every value takes, NULL included, if that is fixed.
    pub width: Option<usize>,
}

/// How a reader finds where a part stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// After so many bytes, not counting a presence byte.
    Bytes(usize),
    /// After so many characters of UTF-8.
    Chars(u16),
    /// At 00 01, every other 00 being written 00 FF.
    Escaped,
    /// Before this text, which is the next part.
    Delimiter(String),
    /// At the end of the key.
    Rest,
}

/// How NULL is told from values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NullMark {
    /// There is none.
    Never,
    /// A byte comes first: 00 for NULL, which ends there, or 01 for a value (FF and FE where values run
    /// backwards).
    Presence,
    /// So many 00 bytes (FF where values run backwards), which no value has: for values the part is plain
    /// text.
    Filled(usize),
}

/// One part of a layout: a transform, bound to its column's type and to what follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    pub(super) form: Form,
    pub(super) descending: bool,
    pub(super) sql: String,
    pub(super) ending: Ending,
    pub(super) null: NullMark,
}

impl KeyPart {
    /// Binds a form to what follows it. `ending` is used for contents of variable length only.
    pub(super) fn new(form: Form, nullable: bool, descending: bool, sql: String, ending: Ending) -> KeyPart {
        let shape = form.shape();
        let ending = match shape {
            Shape::Binary(n) | Shape::Text(n) => Ending::Bytes(n),
            Shape::Chars(n) => Ending::Chars(n),
            Shape::Variable => ending,
        };
        let null = match (&ending, shape) {
            _ if !nullable || form.transform.columns().is_empty() => NullMark::Never,
            (Ending::Delimiter(_), _) => NullMark::Filled(1),
            (_, Shape::Text(n)) => NullMark::Filled(n),
            (_, Shape::Chars(n)) => NullMark::Filled(n.into()),
            (_, Shape::Binary(_) | Shape::Variable) => NullMark::Presence,
        };
        KeyPart { form, descending, sql, ending, null }
    }

    /// Makes the same bytes as `other`, however the two are written.
    pub(super) fn does_as(&self, other: &KeyPart) -> bool {
        let facts = |part: &KeyPart| (part.descending, part.null);
        self.form == other.form && self.ending == other.ending && facts(self) == facts(other)
    }

    /// Input columns: none for a literal and for `random(n)`.
    pub fn columns(&self) -> &[ColumnId] {
        self.form.transform.columns()
    }

    /// A literal delimiter.
    pub fn is_literal(&self) -> bool {
        matches!(self.form.transform, Transform::Literal(_))
    }

    /// Bytes are drawn at insert (`random(n)`): they follow from no column. Ask [`KeyPart::fan_out`].
    pub fn is_random(&self) -> bool {
        matches!(self.form.transform, Transform::Random { .. })
    }

    /// `DESC`: its bytes are inverted.
    pub fn is_descending(&self) -> bool {
        self.descending
    }

    /// As written in the SQL.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Bytes of values are UTF-8 text, as people would write it.
    pub fn is_text(&self) -> bool {
        let text = match &self.ending {
            Ending::Escaped => false,
            Ending::Bytes(_) => !matches!(self.form.shape(), Shape::Binary(_)),
            Ending::Rest => self.form.ty() != Some(ColumnType::Varbinary),
            Ending::Chars(_) | Ending::Delimiter(_) => true,
        };
        // NULL of a part that runs backwards is FF bytes, which are no text.
        let null = self.null == NullMark::Never || (self.null != NullMark::Presence && self.null_byte() == 0);
        text && null && !self.descending
    }

    /// What the planner may rely on.
    pub fn facts(&self) -> Facts {
        let nature = self.form.nature();
        let order = nature.order.filter(|_| match &self.ending {
            // A text is followed by its delimiter, a longer one by a character: only the smallest
            // delimiter sorts below all characters.
            Ending::Delimiter(d) => d == LOWEST,
            // Nothing follows the shorter of two texts, inverted or not.
            Ending::Rest => !self.descending,
            _ => true,
        });
        Facts {
            injective: nature.injective,
            order: order.map(|order| if self.descending { order.reversed() } else { order }),
            undoable: nature.undoable,
            width: match self.ending {
                Ending::Bytes(n) if self.null != NullMark::Presence => Some(n),
                _ => None,
            },
        }
    }

    /// Appends this part's bytes for the given input values, exactly as [`super::KeyLayout::encode`] does.
    ///
    /// Values must have their column's type. An error means that no row can hold such a value, so equality
    /// with it matches nothing; `out` is then as before. Not for [`KeyPart::is_random`] parts, which always
    /// give an error. A part that a delimiter ends writes its text only: the delimiter is the next part, and
    /// a prefix without it also covers longer texts.
    pub fn bytes_of<'v>(
        &self,
        value: &dyn Fn(ColumnId) -> &'v Value,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        // A write rounds to REAL, but no REAL equals a double that it would be rounded from.
        for (&column, &ty) in self.columns().iter().zip(&self.form.types) {
            let value = value(column).as_ref();
            if ty == ColumnType::Real && scalar::floor(ty, value).is_some_and(|(_, exact)| !exact) {
                return Err(self.error(Some((column, value)), Rule::Range(ty.sql_name())));
            }
        }
        self.put(&|c| value(c).as_ref(), None, out)
    }

    /// Appends the bytes; `entropy` feeds `random(n)`. On an error `out` is as before.
    pub(super) fn put<'v>(
        &self,
        value: &dyn Fn(ColumnId) -> ValueRef<'v>,
        entropy: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let start = out.len();
        let blamed = match self.columns() {
            [] => None,
            [column] => Some((*column, value(*column))),
            // The first NULL of several decides.
            several => several.iter().map(|&c| (c, value(c))).find(|(_, v)| v.is_null()),
        };
        if let Some((_, ValueRef::Null)) = blamed {
            return self.put_null(out).map_err(|rule| self.error(blamed, rule));
        }
        if self.null == NullMark::Presence {
            out.push(self.value_byte());
        }
        let content = out.len();
        let done = match (&self.form.transform, blamed) {
            (Transform::Literal(text), _) => {
                out.extend_from_slice(text.as_bytes());
                return Ok(());
            }
            (Transform::Random { buckets }, _) => self.put_random(entropy, *buckets, out),
            (Transform::Md5Bucket { columns, buckets }, _) => self.put_hashed(columns, *buckets, value, out),
            (_, Some((_, v))) => self.form.put(v, out),
            (_, None) => Err(Rule::Drawn),
        };
        if let Err(rule) = done.and_then(|()| self.close(content, out)) {
            out.truncate(start);
            return Err(self.error(blamed, rule));
        }
        self.turn(&mut out[start..]);
        Ok(())
    }

    fn put_random(&self, entropy: Option<u64>, buckets: u32, out: &mut Vec<u8>) -> Result<(), Rule> {
        let drawn = entropy.ok_or(Rule::Drawn)? % u64::from(buckets);
        put_bucket(drawn as u32, buckets, out);
        Ok(())
    }

    fn put_hashed<'v>(
        &self,
        columns: &[ColumnId],
        buckets: u32,
        value: &dyn Fn(ColumnId) -> ValueRef<'v>,
        out: &mut Vec<u8>,
    ) -> Result<(), Rule> {
        let inputs = || columns.iter().zip(&self.form.types).map(|(&c, &ty)| normal(ty, value(c)));
        inputs().try_for_each(|input| input.map(drop))?;
        put_bucket(bucket_of(inputs().filter_map(Result::ok), buckets), buckets, out);
        Ok(())
    }

    fn put_null(&self, out: &mut Vec<u8>) -> Result<(), Rule> {
        let start = out.len();
        match self.null {
            NullMark::Never => return Err(Rule::Null),
            NullMark::Presence => out.push(self.null_byte()),
            NullMark::Filled(n) => out.resize(start + n, self.null_byte()),
        }
        self.turn(&mut out[start..]);
        Ok(())
    }

    /// 00 sorts NULL first; FF sorts it last, where values run backwards.
    pub(super) fn null_byte(&self) -> u8 {
        if self.runs_backwards() { 0xFF } else { 0 }
    }

    /// The byte before a value, where NULL has a presence byte: 01, or FE where values run backwards.
    pub(super) fn value_byte(&self) -> u8 {
        self.null_byte() ^ 1
    }

    /// Contents order the other way round than values, before `DESC`.
    pub(super) fn runs_backwards(&self) -> bool {
        self.form.nature().order == Some(KeyOrder::Descending)
    }

    /// Checks and ends the content that starts at `from`.
    fn close(&self, from: usize, out: &mut Vec<u8>) -> Result<(), Rule> {
        match &self.ending {
            Ending::Escaped => {
                scalar::escape(out, from);
                out.extend_from_slice(&scalar::END);
            }
            Ending::Delimiter(delimiter) => {
                if out[from..].contains(&0) {
                    return Err(Rule::Nul);
                }
                // The delimiter must first occur where the text ends, also when text runs into it.
                let end = out.len();
                out.extend_from_slice(delimiter.as_bytes());
                let first = find(&out[from..], delimiter.as_bytes());
                out.truncate(end);
                if first != Some(end - from) {
                    return Err(Rule::Delimiter(delimiter.clone()));
                }
            }
            Ending::Bytes(_) | Ending::Chars(_) | Ending::Rest => {}
        }
        Ok(())
    }

    /// Inverts bytes of a `DESC` part.
    pub(super) fn turn(&self, bytes: &mut [u8]) {
        if self.descending {
            bytes.iter_mut().for_each(|b| *b = !*b);
        }
    }

    fn error(&self, blamed: Option<(ColumnId, ValueRef<'_>)>, rule: Rule) -> KeyError {
        KeyError {
            column: blamed.map(|(column, _)| column).or(self.columns().first().copied()),
            name: self.sql.clone(),
            value: blamed.map_or_else(String::new, |(_, value)| shortened(Literal(value).to_string())),
            part: self.sql.clone(),
            rule,
        }
    }

    fn mask(&self) -> u8 {
        if self.descending { 0xFF } else { 0 }
    }

    /// Offset just after this part, which starts at `at`; `None` if there is no such part.
    #[inline]
    pub(super) fn end_in(&self, key: &[u8], at: usize) -> Option<usize> {
        let Ending::Bytes(n) = self.ending else { return self.end_in_any(key, at) };
        let before = match self.null {
            NullMark::Presence if *key.get(at)? ^ self.mask() == self.value_byte() => 1,
            NullMark::Never | NullMark::Filled(_) if !self.is_literal() => 0,
            _ => return self.end_in_any(key, at),
        };
        Some(at + before + n).filter(|end| *end <= key.len())
    }

    fn end_in_any(&self, key: &[u8], mut at: usize) -> Option<usize> {
        let mask = self.mask();
        if self.null == NullMark::Presence {
            let mark = key.get(at)? ^ mask;
            at += 1;
            if mark == self.null_byte() {
                return Some(at);
            } else if mark != self.value_byte() {
                return None;
            }
        }
        match &self.ending {
            Ending::Bytes(n) => {
                let bytes = key.get(at..at + n)?;
                match &self.form.transform {
                    Transform::Literal(text) if bytes != text.as_bytes() => None,
                    _ => Some(at + n),
                }
            }
            Ending::Chars(n) => (0..*n).try_fold(at, |at, _| {
                let end = at + char_width(key.get(at)? ^ mask)?;
                (end <= key.len()).then_some(end)
            }),
            Ending::Escaped => scalar::escaped_end(key, at, mask),
            Ending::Delimiter(d) => Some(at + find(key.get(at..)?, d.as_bytes())?),
            Ending::Rest => Some(key.len()),
        }
    }

    /// Gives `f` the value in this part's `bytes`, which end where [`KeyPart::end_in`] says. `None` if they
    /// stand for no value, or the part cannot be undone.
    pub(super) fn get(&self, bytes: &[u8], f: &mut dyn FnMut(ValueRef<'_>)) -> Option<()> {
        if !self.descending {
            return self.get_straight(bytes, f);
        }
        let mut short = [0u8; 64];
        match short.get_mut(..bytes.len()) {
            Some(copy) => {
                copy.copy_from_slice(bytes);
                self.turn(copy);
                self.get_straight(copy, f)
            }
            None => self.get_straight(&bytes.iter().map(|b| !b).collect::<Vec<u8>>(), f),
        }
    }

    fn get_straight(&self, bytes: &[u8], f: &mut dyn FnMut(ValueRef<'_>)) -> Option<()> {
        match self.content(bytes)? {
            Some(content) => self.form.get(&content, f),
            None => {
                f(ValueRef::Null);
                Some(())
            }
        }
    }

    /// The start of a text that is not NULL, as far as `bytes` hold it; `None` if the part is something else.
    pub(super) fn begun(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut straight = bytes.to_vec();
        self.turn(&mut straight);
        match (self.form.shape(), self.null) {
            (Shape::Variable, NullMark::Presence) if straight.first() != Some(&self.null_byte()) => {
                straight.get(1..).map(<[u8]>::to_vec)
            }
            (Shape::Variable, NullMark::Never) => Some(straight),
            _ => None,
        }
    }

    /// The content in bytes that are not inverted; `Some(None)` for NULL.
    pub(super) fn content<'b>(&self, bytes: &'b [u8]) -> Option<Option<Cow<'b, [u8]>>> {
        let bytes = match self.null {
            NullMark::Never => bytes,
            NullMark::Presence if *bytes.first()? == self.null_byte() => return Some(None),
            NullMark::Presence => &bytes[1..],
            NullMark::Filled(n) if bytes.len() == n && bytes.iter().all(|&b| b == self.null_byte()) => {
                return Some(None);
            }
            NullMark::Filled(_) => bytes,
        };
        if self.ending != Ending::Escaped {
            return Some(Some(Cow::Borrowed(bytes)));
        }
        let escaped = bytes.strip_suffix(&scalar::END)?;
        Some(Some(scalar::unescape(escaped).map_or(Cow::Borrowed(escaped), Cow::Owned)))
    }

    /// Bucket numbers are below this; `None` for parts that are no buckets.
    pub fn buckets(&self) -> Option<u32> {
        self.form.transform.buckets()
    }

    /// All byte strings a bucket part can have, in order, those of NULL included; `None` for other parts.
    pub fn fan_out(&self) -> Option<Vec<Vec<u8>>> {
        let buckets = self.buckets()?;
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(buckets as usize + 1);
        all.extend(self.null_bytes());
        all.extend((0..buckets).map(|bucket| {
            let mut bytes = Vec::with_capacity(bucket_width(buckets).into());
            put_bucket(bucket, buckets, &mut bytes);
            self.turn(&mut bytes);
            bytes
        }));
        if self.descending {
            all.sort();
        }
        Some(all)
    }

    /// NULL as this part's bytes; `None` if its columns are never NULL.
    pub fn null_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.put_null(&mut out).ok()?;
        Some(out)
    }
}

/// Long values are cut: a message is for reading.
fn shortened(mut value: String) -> String {
    const SHOWN_BYTES: usize = 80;
    if let Some((end, _)) = value.char_indices().find(|(i, _)| *i >= SHOWN_BYTES) {
        value.truncate(end);
        value.push('…');
    }
    value
}

/// The delimiter that sorts below every character a delimited text may hold.
pub(super) const LOWEST: &str = "\u{1}";

/// Offset of the first `needle` in `hay`.
pub(super) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    match needle {
        [byte] => hay.iter().position(|b| b == byte),
        _ => hay.windows(needle.len().max(1)).position(|w| w == needle),
    }
}

/// Bytes of the UTF-8 character that starts with `lead`; `None` if none does.
fn char_width(lead: u8) -> Option<usize> {
    match lead {
        0..=0x7F => Some(1),
        0xC2..=0xDF => Some(2),
        0xE0..=0xEF => Some(3),
        0xF0..=0xF4 => Some(4),
        _ => None,
    }
}
