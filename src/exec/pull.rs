//! One pull of a scan: GETs and walks that feed a [`Sink`]. Fetches of rows for index entries are in `fetch`.

use std::borrow::Cow;

use super::sink::Sink;
use super::spec::{ScanCounters, ScanSpec};
use super::view::{RowScratch, StoredRowView, see_entry};
use super::walk::{Side, Visited, Walk};
use crate::access::Path;
use crate::error::{Error, Result};
use crate::index::open_entry;
use crate::key::{Rowkey, hex};
use crate::row::{self, PackedRow};
use crate::schema::{self, FamilyId, IndexDef};
use crate::store::{KeyspaceId, Reader};
use crate::value::name_sql;

/// Rows that are read together (count).
pub(super) const TOGETHER: usize = 64;

/// The context of one pull.
pub(super) struct Pull<'a> {
    pub spec: &'a ScanSpec,
    pub reader: &'a dyn Reader,
    pub counters: &'a ScanCounters,
}

impl<'a> Pull<'a> {
    pub fn get_rows(&self, keys: &[Rowkey], next: &mut usize, out: &mut impl Sink) -> Result<bool> {
        let mut scratch = RowScratch::of(&self.spec.table, out.sources(&self.spec.places));
        while *next < keys.len() && !out.is_full() {
            let some = &keys[*next..keys.len().min(*next + TOGETHER.min(out.rows_max() - out.rows()))];
            let some: Vec<&[u8]> = some.iter().map(|key| &key[..]).collect();
            *next += some.len();
            ScanCounters::add(&self.counters.gets, some.len() as u64);
            for (key, value) in some.iter().zip(self.get_many(self.spec.table.rows(), &some)?) {
                let Some(value) = value else { continue };
                let families = self.families(key)?;
                self.row_out(key, value, families.into_iter(), &mut scratch, out)?;
            }
        }
        Ok(*next < keys.len())
    }

    /// Walks entries only to count them.
    #[inline(never)]
    fn walk_counting(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        let is_table = matches!(self.spec.access.path, Path::Primary);
        walk.go(self.reader, self.counters, &mut |key, _| {
            if is_table {
                self.spec.table.touched(schema::TrafficKind::Read, key);
            }
            out.append_empty(1);
            Ok(Visited { taken: true, go_on: !out.is_full() })
        })
    }

    /// Every entry is a row, and only the number of rows is wanted.
    fn only_counts(&self, out: &impl Sink) -> bool {
        let access = &self.spec.access;
        !out.looks() && access.passes_all()
    }

    pub fn walk_rows(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        if self.only_counts(out) {
            return self.walk_counting(walk, out);
        }
        let mut scratch = RowScratch::of(&self.spec.table, out.sources(&self.spec.places));
        if !walk.is_ordered() {
            return walk.go(self.reader, self.counters, &mut |key, value| {
                let before = out.rows();
                self.row_out(key, value, self.families(key)?.into_iter(), &mut scratch, out)?;
                Ok(visited(before, out))
            });
        }
        let mut sides = Side::for_families(self.spec, &self.spec.places.rows.families, walk.direction());
        walk.go(self.reader, self.counters, &mut |key, value| {
            for side in &mut sides {
                side.advance(self.reader, key, self.counters)?;
            }
            let before = out.rows();
            self.row_out(key, value, sides.iter().map(Side::value), &mut scratch, out)?;
            Ok(visited(before, out))
        })
    }

    pub fn walk_entries(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        if self.only_counts(out) {
            return self.walk_counting(walk, out);
        }
        let (index, sources) = (self.index()?, out.sources(&self.spec.places));
        let mut scratch = RowScratch::of(&self.spec.table, sources);
        let access = &self.spec.access;
        let is_filtered = !access.passes_all();
        if is_filtered && sources.decode_more_than(&self.spec.places.compared) {
            return self.walk_filtered(walk, index, out);
        }
        walk.go(self.reader, self.counters, &mut |key, value| {
            let parts = open_entry(index, key, value)?;
            let before = out.rows();
            see_entry(self.spec, sources, index, &parts, &mut scratch, |view| {
                match access.entry_filter.passes(view)? && access.filter.passes(view)? {
                    true => out.append(self.spec, view),
                    false => Ok(()),
                }
            })?;
            Ok(visited(before, out))
        })
    }

    /// Walks entries, decoding only what the filter compares of those that it drops.
    #[inline(never)]
    fn walk_filtered(&self, walk: &mut Walk, index: &IndexDef, out: &mut impl Sink) -> Result<bool> {
        let (sources, compared) = (out.sources(&self.spec.places), &self.spec.places.compared);
        let mut scratch = RowScratch::of(&self.spec.table, sources);
        let access = &self.spec.access;
        walk.go(self.reader, self.counters, &mut |key, value| {
            let parts = open_entry(index, key, value)?;
            let passes = |view: &StoredRowView<'_>| {
                Ok(access.entry_filter.passes(view)? && access.filter.passes(view)?)
            };
            if !see_entry(self.spec, compared, index, &parts, &mut scratch, passes)? {
                return Ok(Visited { taken: false, go_on: true });
            }
            let before = out.rows();
            see_entry(self.spec, sources, index, &parts, &mut scratch, |view| out.append(self.spec, view))?;
            Ok(visited(before, out))
        })
    }

    /// The value under a key; if it exists, key and value count as bytes read.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&'a [u8]>> {
        let value = self.reader.get(keyspace, key)?;
        if let Some(value) = value {
            ScanCounters::add(&self.counters.bytes, (key.len() + value.len()) as u64);
        }
        Ok(value)
    }

    /// [`Pull::get`] for many keys.
    pub fn get_many(&self, keyspace: KeyspaceId, keys: &[&[u8]]) -> Result<Vec<Option<&'a [u8]>>> {
        let values = self.reader.get_many(keyspace, keys)?;
        let bytes =
            values.iter().zip(keys).filter_map(|(value, key)| Some(value.as_ref()?.len() + key.len()));
        ScanCounters::add(&self.counters.bytes, bytes.sum::<usize>() as u64);
        Ok(values)
    }

    /// Sealed values of the families other than the default one, if they are wanted.
    #[inline]
    pub fn families(&self, key: &[u8]) -> Result<Vec<Option<&'a [u8]>>> {
        match &*self.spec.places.rows.families {
            [] | [FamilyId::DEFAULT] => Ok(Vec::new()),
            _ => self.other_families(key),
        }
    }

    #[inline(never)]
    fn other_families(&self, key: &[u8]) -> Result<Vec<Option<&'a [u8]>>> {
        let mut rows = Vec::new();
        for &family in self.spec.places.rows.families.iter().filter(|f| **f != FamilyId::DEFAULT) {
            ScanCounters::add(&self.counters.gets, 1);
            rows.push(self.get(self.spec.table.family(family).keyspace, key)?);
        }
        Ok(rows)
    }

    pub(super) fn index(&self) -> Result<&'a IndexDef> {
        self.spec.index().ok_or_else(|| Error::internal("an index path without its index"))
    }

    /// Applies the filter to one row and appends it if it passes. `others`: the sealed values of the families other
    /// than the default one.
    #[inline(always)]
    pub fn row_out<'b>(
        &self,
        key: &[u8],
        default: &[u8],
        others: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
        scratch: &mut RowScratch,
        out: &mut impl Sink,
    ) -> Result<()> {
        if others.len() == 0 {
            return self.opened_out(key, default, &[], scratch, out);
        }
        let opened: Vec<Option<Cow<'_, [u8]>>> =
            others.map(|sealed| sealed.map(row::open).transpose()).collect::<Result<_>>()?;
        let packed = opened.iter().map(|bytes| bytes.as_deref().map(PackedRow::new).transpose());
        self.opened_out(key, default, &packed.collect::<Result<Vec<_>>>()?, scratch, out)
    }

    /// The same, with the other families' values opened.
    #[inline(always)]
    fn opened_out(
        &self,
        key: &[u8],
        default: &[u8],
        others: &[Option<PackedRow<'_>>],
        scratch: &mut RowScratch,
        out: &mut impl Sink,
    ) -> Result<()> {
        let sources = out.sources(&self.spec.places);
        self.spec.table.touched(schema::TrafficKind::Read, key);
        // A sink that copies whole rows needs these bytes too, even if it reads none of their columns now.
        let default = if self.spec.places.rows.families.first() == Some(&FamilyId::DEFAULT) {
            Some(row::open(default)?)
        } else {
            None
        };
        let filter = &self.spec.access.filter;
        if !filter.is_true() && sources.decode_more_than(&self.spec.places.compared) {
            return self.filtered_out(key, default.as_deref(), others, scratch, out);
        }
        scratch.decode_rowkey(self.spec, sources, key)?;
        let mut view = StoredRowView::of_row(self.spec, sources, key, scratch);
        view.packed = default.as_deref().map(PackedRow::new).transpose()?;
        view.others = others;
        if filter.passes(&view)? {
            out.append(self.spec, &view)?;
        }
        Ok(())
    }

    /// The same, decoding only what the filter compares if it drops the row.
    #[inline(never)]
    fn filtered_out(
        &self,
        key: &[u8],
        default: Option<&[u8]>,
        others: &[Option<PackedRow<'_>>],
        scratch: &mut RowScratch,
        out: &mut impl Sink,
    ) -> Result<()> {
        let (sources, compared) = (out.sources(&self.spec.places), &self.spec.places.compared);
        scratch.decode_compared(self.spec, (sources, compared), key)?;
        let packed = default.map(PackedRow::new).transpose()?;
        let mut view = StoredRowView::of_row(self.spec, sources, key, scratch);
        (view.packed, view.others) = (packed, others);
        if !self.spec.access.filter.passes(&view)? {
            return Ok(());
        }
        scratch.decode_pointer(self.spec, sources, key)?;
        let mut view = StoredRowView::of_row(self.spec, sources, key, scratch);
        (view.packed, view.others) = (packed, others);
        out.append(self.spec, &view)
    }
}

/// Whether an entry became a row, given how many rows `out` had before it.
fn visited(before: usize, out: &impl Sink) -> Visited {
    Visited { taken: out.rows() > before, go_on: !out.is_full() }
}

pub(super) fn dangling(spec: &ScanSpec, index: &IndexDef, pointer: &[u8]) -> Error {
    let table = &spec.table;
    Error::corrupt(format!("an entry of index \"{}\" points at a row that is not there", index.name))
        .why(format!("table \"{}\" has no rowkey {} ({})", table.name, table.key.show(pointer), hex(pointer)))
        .hint(format!(
            "CHECK INDEX {0} lists what is wrong, REPAIR INDEX {0} mends it",
            name_sql(&index.name)
        ))
}
