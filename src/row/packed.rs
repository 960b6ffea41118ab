//! One packed value per row and column family.
//!
//! [`pack`] writes the columns that are not NULL under their numbers; [`PackedRow`] checks the frame
//! once and then decodes only the columns it is asked for. Names cost nothing, NULLs cost nothing.
//!
//! # Format, version 1
//!
//! Numbers are little-endian. *w* is 1 or 2, *e* is 1, 2 or 4; each row has the narrowest that do.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | head: bits 0–1 version (1), 2 wide ids (*w* = 2), 3–4 *e* (0: 1, 1: 2, 2: 4), 5–6 zero, 7 sealed |
//! | *w* | number of columns, *n* |
//! | *n·w* | their ids, ascending |
//! | *n·e* | where the data of each ends, counted from the start of the data |
//! | the rest | the data, column after column |
//!
//! A sealed row is another frame around the same bytes; see the `compress` module. In the data:
//!
//! | type | bytes |
//! |---|---|
//! | SMALLINT, INTEGER, BIGINT, DATE (days), TIMESTAMP, TIMESTAMPTZ (microseconds), DECIMAL (unscaled) | two's complement, as few bytes as keep the sign; zero has none |
//! | BOOLEAN | the integer 0 or 1 |
//! | REAL, DOUBLE | IEEE 754, most significant byte first, zero bytes at the end left out |
//! | VARCHAR, JSON | UTF-8 |
//! | VARBINARY, UUID | as they are |
//!
//! Example: column 1 INTEGER 300, column 3 VARCHAR 'paid', column 5 NULL, column 7 BOOLEAN true.
//!
//! ```text
//! 01        version 1, one-byte ids and ends
//! 03        three columns
//! 01 03 07  their ids
//! 02 06 07  their ends
//! 2c 01  70 61 69 64  01
//! ```

use std::ops::Range;

use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::value::{ColumnType, ValueRef};

const VERSION: u8 = 1;
const VERSION_MASK: u8 = 0b0000_0011;
const WIDE_IDS: u8 = 0b0000_0100;
const END_WIDTH_SHIFT: u32 = 3;
const END_WIDTH_MASK: u8 = 0b0001_1000;
/// Bits reserved for later formats.
const RESERVED: u8 = 0b0110_0000;
pub(super) const SEALED: u8 = 0b1000_0000;

/// Ids below this fit into one byte, and so do counts of such ids.
const NARROW_IDS: u16 = 255;

/// Columns (count) of a row, at most, that is read as [`Narrow`].
const NARROW_COLUMNS_MAX: usize = 16;

/// What a column is packed from.
enum PackSource<'v> {
    Value(ColumnType, ValueRef<'v>),
    /// Its bytes in another packed row.
    Packed(&'v [u8]),
}

/// Appends the packed form of `columns` to `out`. NULLs are skipped.
///
/// Errors: `Internal` when ids do not ascend or a value is not of its type; `Invalid` beyond 4 GiB.
pub fn pack<'v>(
    columns: impl IntoIterator<Item = (ColumnId, ColumnType, ValueRef<'v>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let value = |(id, ty, value): (_, _, ValueRef<'v>)| {
        (id, (!value.is_null()).then_some(PackSource::Value(ty, value)))
    };
    pack_from(columns.into_iter().map(value), out)
}

/// Packs these columns as they are in `row`, except those with a value here.
pub fn repack<'v>(
    row: &PackedRow<'v>,
    columns: impl IntoIterator<Item = (ColumnId, Option<(ColumnType, ValueRef<'v>)>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let source = |(id, value): (ColumnId, Option<(_, ValueRef<'v>)>)| match value {
        Some((ty, value)) => (id, (!value.is_null()).then_some(PackSource::Value(ty, value))),
        None => (id, row.bytes(id).map(PackSource::Packed)),
    };
    pack_from(columns.into_iter().map(source), out)
}

/// As [`repack`], where each of these values takes as many bytes as the one in `row`: only these are written anew. False,
/// and nothing is: one does not.
pub fn overwrite<'v>(
    row: &PackedRow<'_>,
    columns: impl IntoIterator<Item = (ColumnId, ColumnType, ValueRef<'v>)>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let base = out.len();
    out.extend_from_slice(row.0);
    let end = out.len();
    for (id, ty, value) in columns {
        let old = row.place(id).filter(|_| !value.is_null());
        if old.is_some() {
            encode(ty, value, out)?;
        }
        let Some(old) = old.filter(|old| old.len() == out.len() - end) else {
            out.truncate(base);
            return Ok(false);
        };
        out.copy_within(end.., base + old.start);
        out.truncate(end);
    }
    Ok(true)
}

/// Packs columns; those without a source are NULL.
fn pack_from<'v>(
    columns: impl Iterator<Item = (ColumnId, Option<PackSource<'v>>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    // Ids and data ends of the non-NULL columns. The data is first written to `out`, then moved behind the frame.
    let mut packed: Vec<(u16, u32)> =
        Vec::with_capacity(columns.size_hint().1.unwrap_or(0).min(NARROW_COLUMNS_MAX));
    let base = out.len();
    for (ColumnId(id), source) in columns {
        let Some(source) = source else { continue };
        if packed.last().is_some_and(|&(last, _)| last >= id) {
            return Err(Error::internal(format!("column {id} packed out of order")));
        }
        match source {
            PackSource::Value(ty, value) => encode(ty, value, out)?,
            PackSource::Packed(bytes) => out.extend_from_slice(bytes),
        }
        packed.push((id, u32::try_from(out.len() - base).map_err(|_| too_long())?));
    }

    let count = u16::try_from(packed.len()).map_err(|_| too_long())?;
    let data_len = out.len() - base;
    let wide_ids = packed.last().is_some_and(|&(id, _)| id >= NARROW_IDS);
    let end_code = match data_len {
        0..=0xFF => 0,
        0x100..=0xFFFF => 1,
        _ => 2u8,
    };
    let mut head = VERSION | end_code << END_WIDTH_SHIFT;
    head |= if wide_ids { WIDE_IDS } else { 0 };

    let (w, e) = (id_width(head), end_width(head));
    out.reserve(1 + w + packed.len() * (w + e));
    out.push(head);
    out.extend_from_slice(&count.to_le_bytes()[..w]);
    packed.iter().for_each(|(id, _)| out.extend_from_slice(&id.to_le_bytes()[..w]));
    packed.iter().for_each(|(_, end)| out.extend_from_slice(&end.to_le_bytes()[..e]));
    out[base..].rotate_left(data_len);
    Ok(())
}

fn too_long() -> Error {
    Error::invalid("the row is too long").why("a row holds up to 4 GiB in a family").state(sqlstate::LIMIT)
}

fn id_width(head: u8) -> usize {
    if head & WIDE_IDS == 0 { 1 } else { 2 }
}

fn end_width(head: u8) -> usize {
    1 << ((head & END_WIDTH_MASK) >> END_WIDTH_SHIFT)
}

/// The columns of one packed row and family, read in place.
// Holds only the bytes: parsing the head again takes less time than passing it on.
#[derive(Clone, Copy, Debug)]
pub struct PackedRow<'a>(&'a [u8]);

impl<'a> PackedRow<'a> {
    /// Checks the frame of a row made by [`pack`]: version, lengths, order of ids and ends. The data
    /// of a column is checked when it is asked for.
    ///
    /// Errors: `Corrupt`; the caller knows the key and adds it.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Result<PackedRow<'a>> {
        let is_sound = Narrow::of(bytes).is_some_and(|row| row.is_sound());
        if is_sound { Ok(PackedRow(bytes)) } else { PackedRow::any(bytes) }
    }

    /// A row from a copy of [its bytes](PackedRow::as_bytes), which were checked before.
    #[inline]
    pub fn again(bytes: &'a [u8]) -> PackedRow<'a> {
        PackedRow(bytes)
    }

    /// The bytes it was made from.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    #[inline(never)]
    fn any(bytes: &'a [u8]) -> Result<PackedRow<'a>> {
        Frame::of(bytes)?.check_order()?;
        Ok(PackedRow(bytes))
    }

    /// Valid, because [`PackedRow::new`] has checked it.
    fn frame(&self) -> Frame<'a> {
        Frame::of(self.0).unwrap_or_default()
    }

    /// Ids of the columns that are not NULL, ascending.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> + 'a {
        let ids = self.frame().ids();
        (0..ids.len()).map(move |at| ColumnId(ids.at(at) as u16))
    }

    /// The value of `column`, which is of type `ty`; `None` when it is NULL or was never written.
    ///
    /// Errors: `Corrupt` when the bytes are not a value of `ty`.
    pub fn get(&self, column: ColumnId, ty: ColumnType) -> Result<Option<ValueRef<'a>>> {
        self.bytes(column).map(|bytes| unpack(column, ty, bytes)).transpose()
    }

    /// The bytes of `column`, for [`unpack`]; `None` when it is NULL or was never written.
    #[inline(always)]
    pub fn bytes(&self, column: ColumnId) -> Option<&'a [u8]> {
        self.0.get(self.place(column)?)
    }

    /// Where the bytes of `column` are.
    #[inline(always)]
    fn place(&self, column: ColumnId) -> Option<Range<usize>> {
        if let [VERSION, count, first, ..] = *self.0 {
            // Where no column is NULL or in the key, ids are consecutive.
            let (count, at) = (usize::from(count), usize::from(column.0).wrapping_sub(first.into()));
            let (ids, ends, data) = (2, 2 + count, 2 + 2 * count);
            if at < count && self.0.get(ids + at).is_some_and(|id| u16::from(*id) == column.0) {
                let start = if at == 0 { 0 } else { *self.0.get(ends + at - 1)? };
                return Some(data + usize::from(start)..data + usize::from(*self.0.get(ends + at)?));
            }
        }
        self.place_of_any(column)
    }

    #[inline(never)]
    fn place_of_any(&self, column: ColumnId) -> Option<Range<usize>> {
        let frame = self.frame();
        let data = self.0.len() - frame.data.len();
        frame.place(column).map(|place| data + place.start..data + place.end)
    }
}

/// The common case, parsed with few instructions: few columns, short data, nothing else.
struct Narrow<'a> {
    ids: &'a [u8],
    ends: &'a [u8],
    data: &'a [u8],
}

impl<'a> Narrow<'a> {
    #[inline(always)]
    fn of(bytes: &'a [u8]) -> Option<Narrow<'a>> {
        let (&[head, count], rest) = bytes.split_first_chunk::<2>()?;
        let (ids, rest) = rest.split_at_checked(count.into())?;
        let (ends, data) = rest.split_at_checked(count.into())?;
        (head == VERSION && ids.len() <= NARROW_COLUMNS_MAX).then_some(Narrow { ids, ends, data })
    }

    #[inline(always)]
    fn is_sound(&self) -> bool {
        let (mut last_end, mut least_id, mut is_sound) = (0, 0, true);
        for (id, end) in self.ids.iter().zip(self.ends) {
            is_sound &= u32::from(*id) >= least_id && *end >= last_end;
            (least_id, last_end) = (u32::from(*id) + 1, *end);
        }
        is_sound && usize::from(last_end) == self.data.len()
    }
}

/// A row in the general form.
#[derive(Default)]
struct Frame<'a> {
    head: u8,
    ids: &'a [u8],
    ends: &'a [u8],
    data: &'a [u8],
}

impl<'a> Frame<'a> {
    fn of(bytes: &'a [u8]) -> Result<Frame<'a>> {
        let mut rest = bytes;
        let head = take(&mut rest, 1)?[0];
        if head & VERSION_MASK != VERSION {
            return Err(corrupt(format!("row format {} is unknown", head & VERSION_MASK)));
        }
        if head & SEALED != 0 {
            return Err(corrupt("the row is sealed"));
        }
        if head & END_WIDTH_MASK == END_WIDTH_MASK || head & RESERVED != 0 {
            return Err(corrupt("its head makes no sense"));
        }
        let count = load(take(&mut rest, id_width(head))?) as usize;
        let ids = take(&mut rest, count * id_width(head))?;
        let ends = take(&mut rest, count * end_width(head))?;
        Ok(Frame { head, ids, ends, data: rest })
    }

    fn ids(&self) -> Numbers<'a> {
        Numbers { bytes: self.ids, width: id_width(self.head) }
    }

    fn ends(&self) -> Numbers<'a> {
        Numbers { bytes: self.ends, width: end_width(self.head) }
    }

    fn check_order(&self) -> Result<()> {
        let (ids, ends) = (self.ids(), self.ends());
        let (mut next_id, mut last_end) = (0, 0);
        for at in 0..ids.len() {
            let (id, end) = (ids.at(at), ends.at(at));
            if id < next_id || end < last_end {
                return Err(corrupt(format!("its column {id} is out of order")));
            }
            (next_id, last_end) = (id + 1, end);
        }
        if last_end != self.data.len() {
            return Err(corrupt(format!("its data has {} bytes and not {last_end}", self.data.len())));
        }
        Ok(())
    }

    /// Where the bytes of `column` are in the data.
    fn place(&self, column: ColumnId) -> Option<Range<usize>> {
        let at = self.ids().position(column.0.into())?;
        let ends = self.ends();
        let start = if at == 0 { 0 } else { ends.at(at - 1) };
        Some(start..ends.at(at))
    }
}

/// The value in the `bytes` of `column`, which is of type `ty`.
///
/// Errors: `Corrupt` when they are not a value of `ty`.
#[inline]
pub fn unpack(column: ColumnId, ty: ColumnType, bytes: &[u8]) -> Result<ValueRef<'_>> {
    decode(ty, bytes).ok_or_else(|| no_value(column, ty, bytes))
}

/// The same for types whose values are whole numbers internally: [`ValueRef::number`]. Errors: also `Internal` for
/// any other type.
#[inline(always)]
pub fn unpack_number(column: ColumnId, ty: ColumnType, bytes: &[u8]) -> Result<i128> {
    // The most common types need no value in between.
    let number = match ty {
        ColumnType::Decimal { .. } | ColumnType::BigInt => decode_int(bytes),
        _ => None,
    };
    number.map_or_else(|| unpack_any_number(column, ty, bytes), |number| Ok(number.into()))
}

#[inline(never)]
fn unpack_any_number(column: ColumnId, ty: ColumnType, bytes: &[u8]) -> Result<i128> {
    let value = unpack(column, ty, bytes)?;
    value.number().ok_or_else(|| Error::internal(format!("{ty} is not a number inside")))
}

#[cold]
pub(super) fn no_value(column: ColumnId, ty: ColumnType, bytes: &[u8]) -> Error {
    corrupt(format!("column {} holds no {ty}: {}", column.0, preview(bytes)))
}

#[cold]
fn corrupt(why: impl Into<String>) -> Error {
    Error::corrupt("a packed row is damaged").why(why)
}

/// The first bytes in hex, for a message.
fn preview(bytes: &[u8]) -> String {
    let shown = crate::key::hex(&bytes[..bytes.len().min(32)]);
    if bytes.len() > 32 { format!("{shown}… ({} bytes)", bytes.len()) } else { format!("'{shown}'") }
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(n).ok_or_else(|| corrupt("it ends too early"))?;
    *rest = after;
    Ok(taken)
}

/// Up to eight bytes as an unsigned number.
fn load(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b))
}

/// An array of unsigned numbers of 1, 2 or 4 bytes.
#[derive(Clone, Copy, Debug)]
struct Numbers<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl Numbers<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    #[inline]
    fn at(&self, at: usize) -> usize {
        let b = &self.bytes[at * self.width..][..self.width];
        match *b {
            [a] => a.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            _ => load(b) as usize,
        }
    }

    /// The index of `number` in ascending numbers.
    #[inline]
    fn position(&self, number: usize) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.at(middle).cmp(&number) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Appends the packed form of a non-NULL value. Errors: `Internal` when it is not of type `ty`.
pub fn encode(ty: ColumnType, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    use ColumnType as T;
    match (ty, value) {
        (T::Boolean, ValueRef::Boolean(b)) => encode_int(b.into(), out),
        (T::SmallInt | T::Integer | T::BigInt, ValueRef::Int(i)) => encode_int(i, out),
        (T::Real, ValueRef::Double(d)) => encode_float(&(d as f32).to_be_bytes(), out),
        (T::Double, ValueRef::Double(d)) => encode_float(&d.to_be_bytes(), out),
        (T::Decimal { scale, .. }, ValueRef::Decimal(d, s)) if s == scale => encode_wide(d, out),
        (T::Varchar | T::Json, ValueRef::Text(t)) => out.extend_from_slice(t.as_bytes()),
        (T::Varbinary, ValueRef::Bytes(b)) => out.extend_from_slice(b),
        (T::Date, ValueRef::Date(days)) => encode_int(days.into(), out),
        (T::Timestamp, ValueRef::Timestamp(us)) => encode_int(us, out),
        (T::TimestampTz, ValueRef::TimestampTz(us)) => encode_int(us, out),
        (T::Uuid, ValueRef::Uuid(u)) => out.extend_from_slice(&u),
        (ty, value) => return Err(Error::internal(format!("{value:?} packed as {ty}"))),
    }
    Ok(())
}

/// The value in `bytes`; `None` when they are not a value of type `ty`.
#[inline]
fn decode(ty: ColumnType, bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(match ty {
        ColumnType::Boolean => match decode_int(bytes)? {
            0 => ValueRef::Boolean(false),
            1 => ValueRef::Boolean(true),
            _ => return None,
        },
        ColumnType::SmallInt => ValueRef::Int(i16::try_from(decode_int(bytes)?).ok()?.into()),
        ColumnType::Integer => ValueRef::Int(i32::try_from(decode_int(bytes)?).ok()?.into()),
        ColumnType::BigInt => ValueRef::Int(decode_int(bytes)?),
        ColumnType::Real => ValueRef::Double(f32::from_be_bytes(padded(bytes)?).into()),
        ColumnType::Double => ValueRef::Double(f64::from_be_bytes(padded(bytes)?)),
        ColumnType::Decimal { scale, .. } => ValueRef::Decimal(decode_wide(bytes)?, scale),
        ColumnType::Varchar | ColumnType::Json => ValueRef::Text(std::str::from_utf8(bytes).ok()?),
        ColumnType::Varbinary => ValueRef::Bytes(bytes),
        ColumnType::Date => ValueRef::Date(i32::try_from(decode_int(bytes)?).ok()?),
        ColumnType::Timestamp => ValueRef::Timestamp(decode_int(bytes)?),
        ColumnType::TimestampTz => ValueRef::TimestampTz(decode_int(bytes)?),
        ColumnType::Uuid => ValueRef::Uuid(bytes.try_into().ok()?),
    })
}

fn encode_int(i: i64, out: &mut Vec<u8>) {
    // The bits without repeated sign bits, plus one for the sign.
    let bits = 65 - (if i < 0 { !i } else { i }).leading_zeros() as usize;
    let bytes = if i == 0 { 0 } else { bits.div_ceil(8) };
    out.extend_from_slice(&i.to_le_bytes()[..bytes]);
}

#[inline]
pub(super) fn decode_int(bytes: &[u8]) -> Option<i64> {
    let len = bytes.len();
    let unsigned = match len {
        0 => return Some(0),
        // The first, middle and last byte cover all bytes, some of them twice.
        1..=3 => [0, len / 2, len - 1].iter().fold(0, |sum, at| sum | u64::from(bytes[*at]) << (8 * at)),
        // Two loads that overlap.
        4..=8 => {
            let (low, high) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
            u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (8 * (len - 4))
        }
        _ => return None,
    };
    let unused = 64 - 8 * len;
    Some((unsigned << unused) as i64 >> unused)
}

fn encode_wide(i: i128, out: &mut Vec<u8>) {
    let bits = 129 - (if i < 0 { !i } else { i }).leading_zeros() as usize;
    let bytes = if i == 0 { 0 } else { bits.div_ceil(8) };
    out.extend_from_slice(&i.to_le_bytes()[..bytes]);
}

#[inline]
pub(super) fn decode_wide(bytes: &[u8]) -> Option<i128> {
    if bytes.len() <= 8 {
        return decode_int(bytes).map(i128::from);
    }
    let negative = bytes.last().is_some_and(|&b| b >= 0x80);
    let mut wide = [if negative { 0xFF } else { 0 }; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

fn encode_float(big_endian: &[u8], out: &mut Vec<u8>) {
    let used = big_endian.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    out.extend_from_slice(&big_endian[..used]);
}

fn padded<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut wide = [0; N];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(wide)
}

#[cfg(test)]
mod tests;
