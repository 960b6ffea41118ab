//! Groups rows and aggregates them as they are found: a [`Sink`] that keeps a row's group instead of the row.
//!
//! Two rows are in one group if the stored bytes of their grouping columns are equal. So a value is decoded once per
//! group instead of once per row. Equal values with different bytes come out as two groups, and a long scan gives out
//! its groups in several pieces; whoever combines these compares values.

use std::hash::{Hash, Hasher};

use arrow::array::ArrayRef;

use super::sink::{Room, Sink};
use super::spec::{BATCH_ROWS, ScanSpec};
use super::sums::{AggregateKind, AggregateTerm, ScanColumn, Total, double, number};
use super::view::{StoredField, StoredRowView};
use crate::error::Result;
use crate::key::FastMap;
use crate::row::{self, ColumnBuilder};
use crate::value::ValueRef;

/// Most groups (count) kept before they are given out.
const GROUPS_MAX: usize = 65_536;

/// If more than one row in this many (count) begins a group, grouping early does not pay.
const SHARING_MIN: usize = 2;

/// Limit of the bytes of grouping values kept; rows fetched together may exceed it.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// Approximate bytes per group besides its key and totals: its slot in the hash table.
const PLACE_BYTES: usize = 48;

/// Size of the cache of groups with short keys (count), a power of two.
const RECENT: usize = 256;

/// Aggregates rows by group.
pub struct Groups {
    by: Vec<(ColumnBuilder, ScanColumn)>,
    terms: Vec<(AggregateKind, Option<ScanColumn>)>,
    /// Groups by the bytes of their values.
    places: FastMap<Box<[u8]>, usize>,
    /// Groups whose key is one short value, by that value.
    short_places: FastMap<ShortValue, usize>,
    /// A direct-mapped cache of `short_places`.
    recent: Vec<Option<(ShortValue, usize)>>,
    /// The totals of each group, one per term.
    totals: Vec<Total>,
    groups: usize,
    /// Approximate bytes of the grouping values.
    value_bytes: usize,
    /// The key bytes of the current row.
    key: Vec<u8>,
    /// The key bytes and group of the last lookup: rows of one group often follow each other.
    last: (Vec<u8>, usize),
    /// Rows since groups were last given out.
    rows_in: usize,
    /// Rows hardly share groups, so each row gets a group of its own.
    is_ungrouped: bool,
    /// Row limit of the current batch.
    room: Room,
}

impl Groups {
    /// Groups rows of `spec` by some of its columns, and aggregates `terms`.
    pub fn new(by: &[usize], terms: impl Iterator<Item = AggregateTerm>, spec: &ScanSpec) -> Groups {
        let by = by.iter().map(|place| ScanColumn::of(*place, spec));
        let term =
            |term: AggregateTerm| (term.function, term.column.map(|place| ScanColumn::of(place, spec)));
        Groups {
            by: by.map(|column| (ColumnBuilder::new(column.ty, 0), column)).collect(),
            terms: terms.map(term).collect(),
            places: FastMap::default(),
            short_places: FastMap::default(),
            recent: Vec::new(),
            totals: Vec::new(),
            groups: 0,
            value_bytes: 0,
            key: Vec::new(),
            last: Default::default(),
            rows_in: 0,
            is_ungrouped: false,
            room: Room::default(),
        }
    }

    /// Begins a batch of at most `left` rows.
    pub(super) fn begin(&mut self, left: u64) {
        self.room = Room { rows: 0, rows_max: usize::try_from(left).unwrap_or(usize::MAX).min(BATCH_ROWS) };
    }

    /// There are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// The groups should be [taken](Groups::take) now.
    pub fn is_large(&self) -> bool {
        let groups_max = if self.is_ungrouped { BATCH_ROWS } else { GROUPS_MAX };
        self.groups >= groups_max || self.value_bytes >= VALUE_BYTES_MAX
    }

    /// Approximate memory used, in bytes.
    pub fn size(&self) -> usize {
        // The values are in the builders, and mostly in the keys too.
        let places = self.places.len() + self.short_places.len();
        2 * self.value_bytes + places * PLACE_BYTES + self.totals.len() * size_of::<Total>()
    }

    /// Takes the groups so far, and begins anew. Gives a column for each grouping column, and for each term the
    /// totals of all groups.
    ///
    /// Errors: `Corrupt` when the bytes of a text are not UTF-8.
    pub fn take(&mut self) -> Result<(Vec<ArrayRef>, Vec<Vec<Total>>)> {
        let columns = self.by.iter_mut().map(|(builder, _)| builder.finish()).collect::<Result<_>>()?;
        let each = self.terms.len();
        let of_term = |term| self.totals.iter().skip(term).step_by(each).copied().collect();
        let totals = (0..each).map(of_term).collect();
        self.is_ungrouped |= self.groups * SHARING_MIN > self.rows_in;
        (self.groups, self.value_bytes, self.rows_in) = (0, 0, 0);
        self.places.clear();
        self.short_places.clear();
        self.recent.clear();
        self.last.0.clear();
        self.totals.clear();
        Ok((columns, totals))
    }

    /// The group of the current row, which may be a new one.
    #[inline(always)]
    fn group_of(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<usize> {
        let short = match &self.by[..] {
            [(_, column)] => match column.find(spec, view)? {
                Some(StoredField::Packed(_, bytes)) => ShortValue::of(bytes),
                Some(StoredField::Value(value)) => ShortValue::of_value(value),
                None => None,
            },
            _ => None,
        };
        let Some(short) = short else { return self.group_by_key(spec, view) };
        let at = short.place();
        if let Some(Some((recent, group))) = self.recent.get(at)
            && *recent == short
        {
            return Ok(*group);
        }
        let group = match self.short_places.get(&short) {
            Some(group) => *group,
            None => {
                let group = self.begin_group(spec, view)?;
                self.short_places.insert(short, group);
                group
            }
        };
        self.recent.resize(RECENT, None);
        self.recent[at] = Some((short, group));
        Ok(group)
    }

    /// The same, by the bytes of all grouping values.
    fn group_by_key(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<usize> {
        self.key.clear();
        for (_, column) in &self.by {
            let at = self.key.len();
            self.key.extend_from_slice(&[0; 4]);
            match column.find(spec, view)? {
                // The length plus one is stored, so it is never 0, which means NULL.
                None => continue,
                Some(StoredField::Packed(_, bytes)) => self.key.extend_from_slice(bytes),
                Some(StoredField::Value(value)) => row::encode(column.ty, value, &mut self.key)?,
            }
            let len = (self.key.len() - at - 3) as u32;
            self.key[at..at + 4].copy_from_slice(&len.to_le_bytes());
        }
        if self.key != self.last.0 {
            self.last.1 = match self.places.get(&self.key[..]) {
                Some(group) => *group,
                None => {
                    let group = self.begin_group(spec, view)?;
                    self.places.insert(self.key[..].into(), group);
                    group
                }
            };
            std::mem::swap(&mut self.key, &mut self.last.0);
        }
        Ok(self.last.1)
    }

    /// Begins a group with the current row.
    #[cold]
    fn begin_group(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<usize> {
        for (builder, column) in &mut self.by {
            match column.find(spec, view)? {
                None => builder.append(ValueRef::Null)?,
                Some(StoredField::Packed(id, bytes)) => {
                    self.value_bytes += bytes.len();
                    builder.append_packed(id, bytes)?;
                }
                Some(StoredField::Value(value)) => {
                    self.value_bytes += match value {
                        ValueRef::Text(text) => text.len(),
                        ValueRef::Bytes(bytes) => bytes.len(),
                        _ => size_of::<u64>(),
                    };
                    builder.append(value)?;
                }
            }
        }
        self.totals.resize(self.totals.len() + self.terms.len(), Total::default());
        self.groups += 1;
        Ok(self.groups - 1)
    }
}

impl Sink for Groups {
    #[inline]
    fn append(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<()> {
        let group =
            if self.is_ungrouped { self.begin_group(spec, view)? } else { self.group_of(spec, view)? };
        let totals = &mut self.totals[group * self.terms.len()..];
        for ((function, column), total) in self.terms.iter().zip(totals) {
            if let Some(column) = column {
                let Some(found) = column.find(spec, view)? else { continue };
                match function {
                    AggregateKind::Count => {}
                    AggregateKind::SumOfDoubles => total.double += double(found, column.ty)?,
                    function => total.add(*function, number(found, column.ty)?)?,
                }
            }
            total.values += 1;
        }
        self.room.rows += 1;
        self.rows_in += 1;
        Ok(())
    }

    fn room(&self) -> &Room {
        &self.room
    }

    fn room_mut(&mut self) -> &mut Room {
        &mut self.room
    }

    fn is_heavy(&self) -> bool {
        self.value_bytes >= VALUE_BYTES_MAX
    }
}

/// A value of at most 16 bytes: the bytes and their number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ShortValue([u64; 2], u8);

impl Hash for ShortValue {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ShortValue([first, last], len) = self;
        state.write_usize((*len).into());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&first.to_ne_bytes());
        bytes[8..].copy_from_slice(&last.to_ne_bytes());
        state.write(&bytes);
    }
}

impl ShortValue {
    #[inline(always)]
    fn of(bytes: &[u8]) -> Option<ShortValue> {
        // Two loads, which overlap if there are fewer bytes.
        let words = match bytes.len() {
            0..=3 => [bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0],
            4..=7 => {
                [bytes.first_chunk::<4>()?, bytes.last_chunk()?].map(|word| u32::from_le_bytes(*word).into())
            }
            8..=16 => [bytes.first_chunk::<8>()?, bytes.last_chunk()?].map(|word| u64::from_le_bytes(*word)),
            _ => return None,
        };
        Some(ShortValue(words, bytes.len() as u8))
    }

    /// From the values of one column.
    #[inline(always)]
    fn of_value(value: ValueRef<'_>) -> Option<ShortValue> {
        match value {
            ValueRef::Text(text) => ShortValue::of(text.as_bytes()),
            ValueRef::Bytes(bytes) => ShortValue::of(bytes),
            ValueRef::Int(n) | ValueRef::Timestamp(n) | ValueRef::TimestampTz(n) => {
                Some(ShortValue([n as u64, 0], size_of::<u64>() as u8))
            }
            _ => None,
        }
    }

    /// Its slot in the cache of recent groups.
    fn place(self) -> usize {
        // Fibonacci hashing (Knuth): the upper bits depend on all.
        let ShortValue([first, last], len) = self;
        let mixed = (first ^ last.rotate_left(32) ^ u64::from(len)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - RECENT.ilog2())) as usize
    }
}
