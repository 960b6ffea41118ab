//! Images: ranges of a part's bytes for intervals of a column's values.
//!
//! An image is computed as two *cuts*: positions between contents, before or after all keys that start with
//! some bytes. `DESC` inverts bytes, which mirrors each cut and keeps what lies between two of them, so only
//! the last step handles it.

use std::ops::Bound;

use super::part::{Ending, KeyPart, LOWEST, NullMark, find};
use super::range::{End, KeyRange};
use super::rowkey::{Rowkey, prefix_end};
use super::transform::{Form, Transform};
use super::{scalar, text};
use crate::value::{ColumnType, Value, unit_around};

/// An interval of non-NULL values of one column, all of the column's type.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub lower: Bound<Value>,
    /// Upper bound.
    pub upper: Bound<Value>,
}

/// The bytes, from one part on, of every row whose column lies in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Relative to the part's start, and including whatever follows the part; may be empty. An open end is
    /// the end of the part's own space: the caller closes it with the bytes before the part.
    pub range: KeyRange,
    /// No other row lies inside the range.
    pub tight: bool,
}

impl Image {
    fn nothing() -> Image {
        Image { range: KeyRange::new(Rowkey::default(), Rowkey::default()), tight: true }
    }
}

/// The smallest text greater than every text that starts with `prefix`, so that `LIKE 'prefix%'` is
/// the interval from `prefix` up to it; `None` if there is none.
pub fn text_successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            c => char::from_u32(c as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// A position between contents.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cut {
    /// Before every value.
    First,
    /// Before every key that continues with these bytes.
    Before(Vec<u8>),
    /// After every key that continues with these bytes.
    After(Vec<u8>),
    /// Just after the key that ends with these bytes.
    Beyond(Vec<u8>),
    /// After every value.
    Last,
}

/// The contents between two cuts.
pub(super) struct Span {
    lower: Cut,
    upper: Cut,
    tight: bool,
}

impl Span {
    pub(super) fn exact(lower: Cut, upper: Cut) -> Span {
        Span { lower, upper, tight: true }
    }

    fn nothing() -> Span {
        Span::exact(Cut::Last, Cut::First)
    }
}

impl KeyPart {
    /// The range of every row whose column lies in `interval`; `None` if this part cannot bound intervals, or
    /// the bounds are not of the column's type.
    pub fn image(&self, interval: &Interval) -> Option<Image> {
        let [_] = self.columns() else { return None };
        let span = match (&self.form.transform, &self.ending) {
            (Transform::ToChar { .. }, _) => self.form.time_span(interval)?,
            (Transform::Rpad { width, pad, .. }, _) => rpad_span(interval, *width, *pad)?,
            _ if self.form.is_plain() => self.plain_span(interval)?,
            _ if self.form.facts().order.is_some() => self.form.number_span(interval)?,
            _ => return None,
        };
        Some(self.image_of(span))
    }

    /// The values in an interval that this part can hold, if they are integers, or times that its format shows: at most
    /// `max`. `None` if there are more, or for other types.
    pub fn values_in(&self, interval: &Interval, max: usize) -> Option<Vec<Value>> {
        let (Bound::Included(first), Bound::Included(last)) = (&interval.lower, &interval.upper) else {
            return None;
        };
        let is_few = |count: i64| usize::try_from(count).is_ok_and(|count| count < max);
        match (first, last) {
            (Value::Int(first), Value::Int(last)) => {
                is_few(last.checked_sub(*first)?).then(|| (*first..=*last).map(Value::Int).collect())
            }
            (Value::Date(first), Value::Date(last)) => {
                let count = i64::from(*last) - i64::from(*first);
                is_few(count).then(|| (*first..=*last).map(Value::Date).collect())
            }
            (Value::Timestamp(first), Value::Timestamp(last)) => {
                Some(self.times_in(*first, *last, max)?.into_iter().map(Value::Timestamp).collect())
            }
            (Value::TimestampTz(first), Value::TimestampTz(last)) => {
                Some(self.times_in(*first, *last, max)?.into_iter().map(Value::TimestampTz).collect())
            }
            _ => None,
        }
    }

    /// The times between two, both included, that a format shows exactly.
    fn times_in(&self, first: i64, last: i64, max: usize) -> Option<Vec<i64>> {
        let unit = self.form.time.as_ref().filter(|format| format.decodable())?.unit()?;
        let (start, next) = unit_around(unit, first)?;
        let mut time = if start == first { first } else { next };
        let mut times = Vec::new();
        while time <= last {
            if times.len() >= max {
                return None;
            }
            times.push(time);
            time = unit_around(unit, time)?.1;
        }
        Some(times)
    }

    /// The range of every row whose text ends with `suffix`, for `LIKE '%suffix'`; `None` if this part cannot
    /// bound suffixes.
    pub fn suffix_image(&self, suffix: &str) -> Option<Image> {
        let Transform::Reverse { width, .. } = self.form.transform else { return None };
        if !self.form.ty().is_some_and(ColumnType::is_text) {
            return None;
        }
        let mut turned = Vec::with_capacity(suffix.len());
        text::put_reversed(suffix, &mut turned);
        let tight = match (&self.ending, width) {
            (Ending::Delimiter(d), _) => !runs_into(&turned, d.as_bytes()),
            // The zeros that pad a short text look like its own.
            (_, Some(_)) => !turned.ends_with(b"0"),
            _ => true,
        };
        let turned = if self.ending == Ending::Escaped { scalar::escaped(&turned) } else { turned };
        Some(self.image_of(match width {
            _ if suffix.is_empty() => Span::exact(Cut::First, Cut::Last),
            Some(width) if suffix.chars().count() > width.into() => Span::nothing(),
            // Texts that are stored unescaped contain no NUL.
            _ if suffix.contains('\0') && matches!(self.ending, Ending::Chars(_) | Ending::Delimiter(_)) => {
                Span::nothing()
            }
            _ => Span { lower: Cut::Before(turned.clone()), upper: Cut::After(turned), tight },
        }))
    }

    /// Unchanged text or bytes, with any ending.
    fn plain_span(&self, interval: &Interval) -> Option<Span> {
        let (lower, upper) = (plain(&interval.lower)?, plain(&interval.upper)?);
        match &self.ending {
            Ending::Escaped => Some(escaped_span(lower, upper)),
            Ending::Delimiter(delimiter) => Some(delimited_span(lower, upper, delimiter)),
            _ => Some(Span::exact(
                match lower {
                    Bound::Included(x) => Cut::Before(x.to_vec()),
                    Bound::Excluded(x) => Cut::Beyond(x.to_vec()),
                    Bound::Unbounded => Cut::First,
                },
                match upper {
                    Bound::Included(y) => Cut::Beyond(y.to_vec()),
                    Bound::Excluded(y) => Cut::Before(y.to_vec()),
                    Bound::Unbounded => Cut::Last,
                },
            )),
        }
    }

    /// The range between two cuts, with presence byte and `DESC` applied.
    pub(super) fn image_of(&self, span: Span) -> Image {
        let (mut lower, mut upper) = (self.place(span.lower), self.place(span.upper));
        if self.descending {
            (lower, upper) = (self.turned(upper), self.turned(lower));
        }
        let start = match lower {
            Cut::First => Some(Vec::new()),
            Cut::Before(bytes) => Some(bytes),
            Cut::After(bytes) => prefix_end(&bytes),
            Cut::Beyond(bytes) => Some(Rowkey::new(bytes).successor().into_bytes()),
            Cut::Last => None,
        };
        let end = match upper {
            Cut::First => return Image::nothing(),
            Cut::Before(bytes) => End::Before(bytes.into()),
            Cut::After(bytes) => prefix_end(&bytes).map_or(End::Open, |end| End::Before(end.into())),
            Cut::Beyond(bytes) => End::Before(Rowkey::new(bytes).successor()),
            Cut::Last => End::Open,
        };
        let Some(start) = start else { return Image::nothing() };
        let range = KeyRange { start: start.into(), end };
        if range.is_empty() { Image::nothing() } else { Image { range, tight: span.tight } }
    }

    /// Turns a cut between contents into one between the part's bytes, before `DESC`; NULL stays outside.
    fn place(&self, cut: Cut) -> Cut {
        let value = |mut bytes: Vec<u8>| {
            if self.null == NullMark::Presence {
                bytes.insert(0, self.value_byte());
            }
            bytes
        };
        let null = |len| vec![self.null_byte(); len];
        match (cut, self.null) {
            (Cut::First, NullMark::Presence) if !self.runs_backwards() => Cut::After(null(1)),
            (Cut::First, NullMark::Filled(n)) if !self.runs_backwards() => Cut::After(null(n)),
            (Cut::Last, NullMark::Presence) if self.runs_backwards() => Cut::Before(null(1)),
            (Cut::Last, NullMark::Filled(n)) if self.runs_backwards() => Cut::Before(null(n)),
            // The empty text sorts before all others, but after NULL.
            (Cut::Before(bytes), NullMark::Filled(n)) if null(n).starts_with(&bytes) => Cut::After(null(n)),
            (Cut::Before(bytes), _) => Cut::Before(value(bytes)),
            (Cut::After(bytes), _) => Cut::After(value(bytes)),
            (Cut::Beyond(bytes), _) => Cut::Beyond(value(bytes)),
            (cut, _) => cut,
        }
    }

    fn turned(&self, cut: Cut) -> Cut {
        let invert = |mut bytes: Vec<u8>| {
            self.turn(&mut bytes);
            bytes
        };
        match cut {
            Cut::First => Cut::Last,
            Cut::Before(bytes) => Cut::After(invert(bytes)),
            Cut::After(bytes) => Cut::Before(invert(bytes)),
            // Only texts that run to the end of the key have such cuts, and those are escaped under DESC.
            Cut::Beyond(bytes) => Cut::Beyond(invert(bytes)),
            Cut::Last => Cut::First,
        }
    }
}

impl Form {
    /// The ordinals in an interval that the form can hold; `None` for bounds of another type.
    fn ordinals(&self, interval: &Interval) -> Option<(i128, i128)> {
        let ty = self.ty()?;
        let (min, max) = self.domain();
        let lower = match &interval.lower {
            Bound::Unbounded => min,
            Bound::Included(v) => match scalar::floor(ty, v.as_ref())? {
                (n, true) => n,
                (n, false) => n.saturating_add(1),
            },
            Bound::Excluded(v) => match scalar::floor(ty, v.as_ref())? {
                (i128::MAX, _) => return Some((max, min.min(max - 1))),
                (n, _) => n + 1,
            },
        };
        let upper = match &interval.upper {
            Bound::Unbounded => max,
            Bound::Included(v) => scalar::floor(ty, v.as_ref())?.0,
            Bound::Excluded(v) => match scalar::floor(ty, v.as_ref())? {
                (i128::MIN, true) => return Some((max, min.min(max - 1))),
                (n, true) => n - 1,
                (n, false) => n,
            },
        };
        Some((lower.max(min), upper.min(max)))
    }

    /// Contents of numbers that sort, ascending or descending.
    fn number_span(&self, interval: &Interval) -> Option<Span> {
        let (low, high) = self.ordinals(interval)?;
        if low > high {
            return Some(Span::nothing());
        }
        let content = |n: i128| {
            let mut out = Vec::with_capacity(16);
            self.put_number(n, &mut out).ok()?;
            Some(out)
        };
        let backwards = matches!(self.transform, Transform::MaxMinus { .. });
        let (first, last) = if backwards { (high, low) } else { (low, high) };
        let (open_first, open_last) = match (&interval.lower, &interval.upper) {
            (lower, upper) if backwards => (*upper == Bound::Unbounded, *lower == Bound::Unbounded),
            (lower, upper) => (*lower == Bound::Unbounded, *upper == Bound::Unbounded),
        };
        let lower = if open_first { Cut::First } else { Cut::Before(content(first)?) };
        let upper = if open_last { Cut::Last } else { Cut::After(content(last)?) };
        Some(Span::exact(lower, upper))
    }

    /// Contents of times in a format that sorts; bounds are rounded to its precision.
    fn time_span(&self, interval: &Interval) -> Option<Span> {
        let (format, ty) = (self.time.as_ref()?, self.ty()?);
        let (low, high) = self.ordinals(interval)?;
        if low > high {
            return Some(Span::nothing());
        }
        // `DD-MM-YYYY HH24:MI` sorts within a day.
        let is_within = || {
            let time = |n| text::time_of(ty, n);
            Some(format.sorts_within(time(low)?, time(high)?))
        };
        if !format.sorts() && !is_within()? {
            return None;
        }
        // The rounded time as text, and whether rounding changed nothing.
        let shown = |n: i128| {
            let time = text::time_of(ty, n)?;
            let floor = format.floor(time);
            let mut out = Vec::with_capacity(format.width());
            format.put(floor, &mut out);
            Some((out, floor == time))
        };
        let (first, exact) = shown(low)?;
        let (last, _) = shown(high)?;
        let (bounded_low, bounded_high) =
            (interval.lower != Bound::Unbounded, interval.upper != Bound::Unbounded);
        // Texts that sort only within the span have others around it.
        let lower = match exact {
            _ if !bounded_low && format.sorts() => Cut::First,
            // Finer times are refused on writes, so the rounded time itself lies outside.
            false if format.decodable() => Cut::After(first),
            _ => Cut::Before(first),
        };
        let upper = match shown(high + 1) {
            _ if !bounded_high && format.sorts() => Cut::Last,
            // `< 2024-03-04` ends at that day, instead of after the last second before it.
            Some((next, true)) if format.sorts() && next.len() == last.len() && next > last => {
                Cut::Before(next)
            }
            _ => Cut::After(last),
        };
        let whole = |n: i128| text::time_of(ty, n).is_some_and(|time| format.floor(time) == time);
        let tight = format.decodable()
            || ((!bounded_low || exact) && (!bounded_high || high == self.domain().1 || whole(high + 1)));
        Some(Span { lower, upper, tight })
    }
}

/// A bound of text or bytes; `None` for other values.
fn plain(bound: &Bound<Value>) -> Option<Bound<&[u8]>> {
    fn bytes(value: &Value) -> Option<&[u8]> {
        match value {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
    Some(match bound {
        Bound::Included(value) => Bound::Included(bytes(value)?),
        Bound::Excluded(value) => Bound::Excluded(bytes(value)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// Escaped contents: the terminator sorts below whatever may follow in a longer text.
fn escaped_span(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Span {
    let closed = |bytes: &[u8]| [&scalar::escaped(bytes)[..], &scalar::END].concat();
    Span::exact(
        match lower {
            Bound::Included(x) => Cut::Before(scalar::escaped(x)),
            Bound::Excluded(x) => Cut::After(closed(x)),
            Bound::Unbounded => Cut::First,
        },
        match upper {
            Bound::Included(y) => Cut::After(closed(y)),
            Bound::Excluded(y) => Cut::Before(scalar::escaped(y)),
            Bound::Unbounded => Cut::Last,
        },
    )
}

/// Unescaped texts in the interval of a `LIKE 'prefix%'`.
fn starting_with(prefix: &[u8], tight: bool) -> Span {
    if prefix.contains(&0) {
        return Span::nothing();
    }
    Span { lower: Cut::Before(prefix.to_vec()), upper: Cut::After(prefix.to_vec()), tight }
}

/// Does a suffix of `bytes` start `delimiter`, so that a shorter text followed by its delimiter could look
/// the same?
fn runs_into(bytes: &[u8], delimiter: &[u8]) -> bool {
    find(bytes, delimiter).is_some()
        || (1..delimiter.len()).any(|n| n <= bytes.len() && bytes.ends_with(&delimiter[..n]))
}

/// Text terminated by a delimiter, the next part.
fn delimited_span(lower: Bound<&[u8]>, upper: Bound<&[u8]>, delimiter: &str) -> Span {
    let end = delimiter.as_bytes();
    if let Some(prefix) = prefix_of(lower, upper) {
        return starting_with(prefix, !runs_into(prefix, end));
    }
    let close = |text: &[u8]| [text, end].concat();
    let holds = |text: &[u8]| !text.contains(&0) && find(&close(text), end) == Some(text.len());
    let fits = |bound: Bound<&[u8]>| match bound {
        Bound::Included(x) | Bound::Excluded(x) => holds(x),
        Bound::Unbounded => true,
    };
    match point_of(lower, upper) {
        Some(x) if !holds(x) => Span::nothing(),
        _ => closed_span(lower, upper, delimiter == LOWEST && fits(lower) && fits(upper), &close),
    }
}

/// Text padded to `width` characters; no value ends with `pad`.
fn rpad_span(interval: &Interval, width: u16, pad: char) -> Option<Span> {
    let (lower, upper) = (plain(&interval.lower)?, plain(&interval.upper)?);
    let mut utf8 = [0; 4];
    let pad = pad.encode_utf8(&mut utf8).as_bytes();
    let ends_in_pad = |text: &[u8]| text.ends_with(pad);
    if let Some(prefix) = prefix_of(lower, upper) {
        if chars(prefix) > width.into() {
            return Some(Span::nothing());
        }
        return Some(starting_with(prefix, !ends_in_pad(prefix)));
    }
    // No value is longer, so a longer bound lies just after its first `width` characters.
    let lower = match lower {
        Bound::Included(x) | Bound::Excluded(x) if chars(x) > width.into() => Bound::Excluded(cut(x, width)),
        bound => bound,
    };
    let upper = match upper {
        Bound::Included(y) | Bound::Excluded(y) if chars(y) > width.into() => Bound::Included(cut(y, width)),
        bound => bound,
    };
    // Check the bounds as cut: only 'a ' lies between 'a ' and 'a b', and it ends with the pad.
    if point_of(lower, upper).is_some_and(ends_in_pad) {
        return Some(Span::nothing());
    }
    Some(closed_span(lower, upper, false, &|text| {
        let mut out = text.to_vec();
        (chars(text)..width.into()).for_each(|_| out.extend_from_slice(pad));
        out
    }))
}

/// Texts that are stored with something after them (`close`), which may sort above a character, so that a
/// text can be stored after a longer one. `sorted`: it sorts below all characters.
fn closed_span(
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
    sorted: bool,
    close: &dyn Fn(&[u8]) -> Vec<u8>,
) -> Span {
    if let Some(x) = point_of(lower, upper) {
        return Span::exact(Cut::Before(close(x)), Cut::After(close(x)));
    }
    // Prefixes of a bound are less than it, but may be stored after it.
    let late = |bound: &[u8]| -> Vec<Vec<u8>> {
        let starts = (0..bound.len()).filter(|&n| bound[n] & 0xC0 != 0x80).map(|n| close(&bound[..n]));
        starts.filter(|stored| **stored > *bound || bound.starts_with(stored)).collect()
    };
    let (low, low_tight) = match lower {
        Bound::Unbounded => (Cut::First, true),
        Bound::Excluded(x) if sorted || close(x) == x => (Cut::After(close(x)), late(x).is_empty()),
        Bound::Excluded(x) => (Cut::Before(x.to_vec()), false),
        Bound::Included(x) => (Cut::Before(x.to_vec()), late(x).is_empty()),
    };
    let (high, high_tight) = match upper {
        Bound::Unbounded => (Cut::Last, true),
        Bound::Included(y) if sorted || close(y) == y => widen(Cut::After(close(y)), late(y)),
        Bound::Included(y) => {
            let mut all = late(y);
            all.push(close(y));
            (widen(Cut::Before(y.to_vec()), all).0, false)
        }
        Bound::Excluded(y) => widen(Cut::Before(y.to_vec()), late(y)),
    };
    Span { lower: low, upper: high, tight: low_tight && high_tight }
}

/// Moves an upper cut behind keys that start with any of `stored`; also says whether it stayed.
fn widen(cut: Cut, stored: Vec<Vec<u8>>) -> (Cut, bool) {
    let position = |cut: &Cut| match cut {
        Cut::Before(bytes) => End::Before(bytes.clone().into()),
        Cut::After(bytes) => prefix_end(bytes).map_or(End::Open, |end| End::Before(end.into())),
        _ => End::Open,
    };
    let stayed = stored.is_empty();
    let all = stored.into_iter().map(Cut::After).chain([cut]);
    (all.max_by_key(position).unwrap_or(Cut::Last), stayed)
}

/// The only text in an interval.
fn point_of<'a>(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Option<&'a [u8]> {
    match (lower, upper) {
        (Bound::Included(x), Bound::Included(y)) if x == y => Some(x),
        _ => None,
    }
}

/// The prefix, if the interval is that of a `LIKE 'prefix%'`.
fn prefix_of<'a>(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Option<&'a [u8]> {
    let (Bound::Included(prefix), Bound::Excluded(end)) = (lower, upper) else { return None };
    let after = text_successor(std::str::from_utf8(prefix).ok()?)?;
    (after.as_bytes() == end).then_some(prefix)
}

fn chars(text: &[u8]) -> usize {
    text.iter().filter(|&&b| b & 0xC0 != 0x80).count()
}

/// The first `count` characters.
fn cut(text: &[u8], count: u16) -> &[u8] {
    let starts = text.iter().enumerate().filter(|(_, b)| **b & 0xC0 != 0x80);
    let end = starts.map(|(i, _)| i).nth(count.into());
    &text[..end.unwrap_or(text.len())]
}
