//! One part of a key layout: a transform's content, encoded so that other parts can follow.
//!
//! The content of a value becomes the part's bytes in three steps, which decoding undoes in reverse:
//!
//! 1. NULL, if it can occur, gets bytes of its own ([`NullMark`]).
//! 2. The part gets an end, if its end could not be found otherwise ([`Ending`]).
//! 3. `DESC` inverts every byte, the end included.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::problem::{KeyError, Rule};
use super::scalar;
use super::transform::{ColumnId, Form, Shape, Transform, bucket_of, bucket_width, normal, put_bucket};
use crate::value::{ColumnType, Literal, Value, ValueRef};

/// A key part as written, before it is bound to its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSpec {
    /// The transform.
    pub transform: Transform,
    /// `DESC`.
    pub descending: bool,
    /// Its SQL, as written.
    pub sql: String,
}

/// What a layout needs to know about a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: ColumnType,
    /// It may be NULL.
    pub nullable: bool,
    /// `GENERATED ... AS IDENTITY`: grows with every insert.
    pub identity: bool,
}

/// How the order of a part's bytes follows the order of the column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// NULL first, then ascending values.
    Ascending,
    /// Descending values, then NULL.
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

/// The properties of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Distinct values have distinct bytes: the range of an equality contains no other value.
    pub injective: bool,
    /// How the order of bytes follows the order of values; `None` if it does not.
    pub order: Option<KeyOrder>,
    /// Decoding gives the exact value back.
    pub decodable: bool,
    /// Length in bytes of every value, NULL included, if it is fixed.
    pub width: Option<usize>,
}

/// How the end of a part is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// After this many bytes, not counting a presence byte.
    Bytes(usize),
    /// After this many UTF-8 characters.
    Chars(u16),
    /// At 00 01; every 00 inside is escaped as 00 FF.
    Escaped,
    /// Before this text, which is the next part.
    Delimiter(String),
    /// At the end of the key.
    Rest,
}

/// How NULL is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NullMark {
    /// It cannot occur.
    Never,
    /// A byte comes first: 00 for NULL, with nothing after it, or 01 for a value (FF and FE where values run
    /// backwards).
    Presence,
    /// This many 00 bytes (FF where values run backwards), which no value has; values stay plain text.
    Filled(usize),
}

/// One part of a layout: a transform bound to its column's type and its ending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    pub(super) form: Form,
    pub(super) descending: bool,
    pub(super) sql: String,
    pub(super) ending: Ending,
    pub(super) null: NullMark,
}

impl KeyPart {
    /// Makes a part of a form. `ending` is used for contents of variable length only.
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

    /// Does it make the same bytes as `other`, even if written differently?
    pub(super) fn makes_same_keys_as(&self, other: &KeyPart) -> bool {
        let facts = |part: &KeyPart| (part.descending, part.null);
        self.form == other.form && self.ending == other.ending && facts(self) == facts(other)
    }

    /// Input columns: none for a literal and for `random(n)`.
    pub fn columns(&self) -> &[ColumnId] {
        self.form.transform.columns()
    }

    /// Do different values have different bytes, but for collisions of a whole hash?
    pub fn tells_apart(&self) -> bool {
        self.facts().injective
            || matches!(self.form.transform, Transform::Md5(_) | Transform::Md5Hex { len: 32, .. })
    }

    /// Is it a literal delimiter?
    pub fn is_literal(&self) -> bool {
        self.delimiter().is_some()
    }

    /// The delimiter that the part is, if it is one.
    pub(super) fn delimiter(&self) -> Option<&str> {
        match &self.form.transform {
            Transform::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// Are its bytes drawn at insert (`random(n)`)? They depend on no column; [`KeyPart::fan_out`] lists
    /// them.
    pub fn is_random(&self) -> bool {
        self.drawn_of().is_some()
    }

    /// The number of buckets that it is drawn from, if it is [random](KeyPart::is_random).
    pub fn drawn_of(&self) -> Option<u32> {
        match self.form.transform {
            Transform::Random { buckets } => Some(buckets),
            _ => None,
        }
    }

    /// Is it `DESC`, so that its bytes are inverted?
    pub fn is_descending(&self) -> bool {
        self.descending
    }

    /// Its SQL, as written.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The SQL text, with the order.
    pub fn written(&self) -> String {
        format!("{}{}", self.sql, if self.is_descending() { " DESC" } else { "" })
    }

    /// Are its bytes readable UTF-8 text?
    pub fn is_text(&self) -> bool {
        let text = match &self.ending {
            Ending::Escaped => false,
            Ending::Bytes(_) => !matches!(self.form.shape(), Shape::Binary(_)),
            Ending::Rest => self.form.ty() != Some(ColumnType::Varbinary),
            Ending::Chars(_) | Ending::Delimiter(_) => true,
        };
        // Where values run backwards, NULL is FF bytes, which are no text.
        let null = self.null == NullMark::Never || (self.null != NullMark::Presence && self.null_byte() == 0);
        text && null && !self.descending
    }

    /// Bytes that it has at least, in every key.
    pub(super) fn least_bytes(&self) -> usize {
        match self.form.shape() {
            Shape::Binary(n) | Shape::Text(n) => n,
            Shape::Chars(n) => n.into(),
            Shape::Variable => 0,
        }
    }

    /// Number of characters of a text part, if that is the same for all values.
    pub(super) fn width_in_chars(&self) -> Option<usize> {
        match (&self.ending, &self.form.transform) {
            (_, Transform::Literal(text)) => Some(text.chars().count()),
            (Ending::Bytes(_), Transform::ToChar { format, .. }) if !format.is_ascii() => None,
            (Ending::Bytes(_), Transform::Code { codes, .. }) if !codes.iter().all(|(_, c)| c.is_ascii()) => {
                None
            }
            (Ending::Bytes(n), _) => Some(*n),
            (Ending::Chars(n), _) => Some((*n).into()),
            (Ending::Escaped | Ending::Delimiter(_) | Ending::Rest, _) => None,
        }
    }

    /// Do its bytes begin as the text that it holds, whatever marks follow?
    pub fn begins_as_text(&self) -> bool {
        let is_text = !self.is_binary() && self.form.ty() != Some(ColumnType::Varbinary);
        is_text && !self.descending && self.null != NullMark::Presence
    }

    /// Are its values bytes, as those of plain numbers are, and not those of a text with marks?
    pub fn is_binary(&self) -> bool {
        matches!(self.form.shape(), Shape::Binary(_))
    }

    /// Its properties.
    pub fn facts(&self) -> Facts {
        let of_form = self.form.facts();
        let order = of_form.order.filter(|_| match &self.ending {
            // A text is followed by its delimiter where a longer one has a character: it sorts first only if
            // the delimiter is below all characters.
            Ending::Delimiter(d) => d == LOWEST,
            // At the end of the key nothing follows the shorter of two texts; inverted, it would sort first
            // all the same.
            Ending::Rest => !self.descending,
            _ => true,
        });
        Facts {
            order: order.map(|order| if self.descending { order.reversed() } else { order }),
            width: match self.ending {
                Ending::Bytes(n) if self.null != NullMark::Presence => Some(n),
                _ => None,
            },
            ..of_form
        }
    }

    /// Appends this part's bytes for the given values, exactly as [`super::KeyLayout::encode`] does.
    ///
    /// Values must have their column's type. An error means that no row can hold such a value, so equality
    /// with it matches nothing; `out` is unchanged then. Always an error for a [`KeyPart::is_random`] part. A
    /// part that a delimiter ends appends its text only: the delimiter is the next part, and a prefix without
    /// it also covers longer texts.
    pub fn bytes_of<'v>(
        &self,
        value: &dyn Fn(ColumnId) -> &'v Value,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        // A write rounds to REAL, but a comparison does not: no REAL equals a double between two REALs.
        for (&column, &ty) in self.columns().iter().zip(&self.form.types) {
            let value = value(column).as_ref();
            if ty == ColumnType::Real && scalar::floor(ty, value).is_some_and(|(_, exact)| !exact) {
                return Err(self.error(Some((column, value)), Rule::Range(ty.sql_name())));
            }
        }
        self.put(&|c| value(c).as_ref(), None, out)
    }

    /// Appends the bytes; `entropy` feeds `random(n)`. On an error `out` is unchanged.
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
            // If any of several columns is NULL, the part is NULL.
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
        put_bucket(drawn as u32, buckets, out)
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
        put_bucket(bucket_of(inputs().filter_map(Result::ok), buckets), buckets, out)
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

    /// Do contents sort in the opposite order of values, before `DESC`?
    pub(super) fn runs_backwards(&self) -> bool {
        self.form.facts().order == Some(KeyOrder::Descending)
    }

    /// Checks and terminates the content that starts at `from`.
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
                // The delimiter must not occur earlier, also not overlapping the end of the text.
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

    /// The part's bytes for a content of fixed width, which needs no end.
    pub(super) fn enclosed(&self, mut content: Vec<u8>) -> Vec<u8> {
        if self.null == NullMark::Presence {
            content.insert(0, self.value_byte());
        }
        self.turn(&mut content);
        content
    }

    /// Inverts the bytes if the part is `DESC`.
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

    /// Offset just after this part, which starts at `at`; `None` if `key` has no such part there.
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

    /// Passes the value in this part's `bytes`, which end where [`KeyPart::end_in`] says, to `f`. `None` if
    /// they are no valid value, or the part cannot be decoded.
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

    /// The beginning of a text that is not NULL, from incomplete `bytes`; `None` if the part is something
    /// else.
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

    /// The number of buckets; `None` for other parts.
    pub fn buckets(&self) -> Option<u32> {
        self.form.transform.buckets()
    }

    /// All byte strings of a bucket part, sorted, NULL included; `None` for other parts, and if there are more than `max`.
    pub fn fan_out(&self, max: usize) -> Option<Vec<Vec<u8>>> {
        let buckets = self.buckets()?;
        let null = self.null_bytes();
        let count = buckets as usize + usize::from(null.is_some());
        if count > max {
            return None;
        }
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(count);
        all.extend(null);
        all.extend((0..buckets).filter_map(|bucket| {
            let mut bytes = Vec::with_capacity(bucket_width(buckets).into());
            put_bucket(bucket, buckets, &mut bytes).ok()?;
            self.turn(&mut bytes);
            Some(bytes)
        }));
        if self.descending {
            all.sort();
        }
        Some(all)
    }

    /// The bytes of NULL; `None` if the part is never NULL.
    pub fn null_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.put_null(&mut out).ok()?;
        Some(out)
    }
}

/// Cuts a long value for a message.
fn shortened(mut value: String) -> String {
    const SHOWN_BYTES: usize = 80;
    if let Some((end, _)) = value.char_indices().find(|(i, _)| *i >= SHOWN_BYTES) {
        value.truncate(end);
        value.push('…');
    }
    value
}

/// The delimiter that sorts below every character of a delimited text.
pub(super) const LOWEST: &str = "\u{1}";

/// Offset of the first `needle` in `hay`.
pub(super) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    match needle {
        [byte] => hay.iter().position(|b| b == byte),
        _ => hay.windows(needle.len().max(1)).position(|w| w == needle),
    }
}

/// Length in bytes of the UTF-8 character that starts with `lead`; `None` if no character does.
fn char_width(lead: u8) -> Option<usize> {
    match lead {
        0..=0x7F => Some(1),
        0xC2..=0xDF => Some(2),
        0xE0..=0xEF => Some(3),
        0xF0..=0xF4 => Some(4),
        _ => None,
    }
}
