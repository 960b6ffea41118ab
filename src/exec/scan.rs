//! An access path → record batches.
//!
//! A [`Scan`] is pulled batch by batch. Each pull takes a reader of the snapshot, continues where the
//! last one stopped, and lends every entry to a [`View`]: filters are decided on the encoded bytes,
//! and only the wanted fields of the rows that pass are decoded, straight into Arrow builders.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::gather::Gather;
pub use super::pieces::PIECES;
pub use super::view::field_type;
use super::view::{Found, Scratch, Sources, View, see_entry};
use super::walk::{Side, Visited, Walk};
use super::watch::PlanText;
use crate::access::{Access, Method, Path, Source, describe, refused};
use crate::error::{Error, Result};
use crate::index::open_entry;
use crate::key::{Rowkey, hex};
use crate::plan::{Field, Predicate, RowView};
use crate::row::{self, ColumnBuilder, PackedRow};
use crate::schema::{self, FamilyId, IndexDef, IndexId, TableDef};
use crate::store::{KeyspaceId, Reader, Snapshot};
use crate::value::{Value, name_sql};

/// Rows in a batch at the most.
pub const BATCH_ROWS: usize = 8192;

/// Rows to make room for in the first batch.
const ROWS_EXPECTED: usize = 1024;

/// Entries (count) that are worth a thread of their own.
pub const PARALLEL_ENTRIES: f64 = 5_000.0;

/// What a scan did, in entries, keys and bytes; shared by everyone who watches it.
#[derive(Debug, Default)]
pub struct Counters {
    /// GETs by key.
    pub gets: AtomicU64,
    /// Cursors placed.
    pub seeks: AtomicU64,
    /// Entries looked at.
    pub entries: AtomicU64,
    /// Rows read for index entries.
    pub fetched: AtomicU64,
    /// Rows given out.
    pub returned: AtomicU64,
    /// Key and value bytes read.
    pub bytes: AtomicU64,
}

impl Counters {
    /// Adds to one of them.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// What to scan, fixed when the statement is planned.
#[derive(Debug)]
pub struct ScanSpec {
    /// The table.
    pub table: Arc<TableDef>,
    /// The index table that is walked, or read as a table of its own.
    pub index: Option<IndexId>,
    /// The index table is what the statement reads: its `rowkey` is its own.
    pub as_table: bool,
    /// How to reach the rows.
    pub access: Access,
    /// Fields of each row, in the schema's order.
    pub output: Vec<Field>,
    /// The batches' schema.
    pub schema: SchemaRef,
    /// Rows may be given out as they are found.
    pub any_order: bool,
}

impl ScanSpec {
    /// Its definition.
    pub fn index(&self) -> Option<&IndexDef> {
        self.index.and_then(|id| self.table.index_by_id(id))
    }

    /// What is read.
    pub fn source(&self) -> Source<'_> {
        match self.index() {
            Some(index) if self.as_table => Source::Index(&self.table, index),
            _ => Source::Table(&self.table),
        }
    }
}

/// Where the next pull goes on.
enum Position {
    /// The keys not yet asked for start here.
    Keys(usize),
    /// What is left of the walk.
    Walk(Box<Walk>),
    /// Rowkeys that are being found, then asked for.
    Gather(Box<Gather>),
    /// So many rows are left of which nothing is asked but that they are there.
    Count(u64),
}

/// A scan under way.
pub struct Scan {
    spec: Arc<ScanSpec>,
    snapshot: Arc<dyn Snapshot>,
    counters: Arc<Counters>,
    /// None if no entries are read.
    entry_sources: Option<Sources>,
    row_sources: Sources,
    position: Position,
    left: u64,
    gets_max: Option<u64>,
    /// Rows to make room for in the next batch.
    rows_expected: usize,
    /// Which of how many parts of the work to do; none, once it has begun.
    part: Option<(usize, usize)>,
}

impl Scan {
    /// A scan of `spec` over `snapshot`, giving out `limit` rows at the most.
    pub fn new(
        spec: Arc<ScanSpec>,
        snapshot: Arc<dyn Snapshot>,
        limit: Option<u64>,
        counters: Arc<Counters>,
    ) -> Scan {
        let mut row_fields = spec.access.filter.fields();
        row_fields.extend(&spec.output);
        let row_sources = Sources::new(&spec.table, None, &row_fields);
        let entry_sources = match spec.access.path {
            Path::Primary => None,
            Path::IndexFetch(_) => Some(spec.access.entry_filter.fields()),
            Path::IndexOnly(_) => {
                row_fields.extend(spec.access.entry_filter.fields());
                Some(row_fields)
            }
        };
        let entry_sources = entry_sources.map(|fields| Sources::new(&spec.table, spec.index(), &fields));
        let keyspace = spec.index().map_or(spec.table.rows(), |index| index.keyspace);
        let position = match &spec.access.method {
            Method::Empty | Method::Get(_) => Position::Keys(0),
            method @ Method::Scan { .. } => Position::Walk(Box::new(Walk::new(method, keyspace))),
            Method::Gather { set, branches, direction, covering } => {
                Position::Gather(Box::new(Gather::new(&spec, *set, branches, *direction, *covering)))
            }
        };
        Scan {
            spec,
            snapshot,
            counters,
            entry_sources,
            row_sources,
            position,
            left: limit.unwrap_or(u64::MAX),
            gets_max: None,
            rows_expected: ROWS_EXPECTED,
            part: Some((0, 1)),
        }
    }

    /// With a limit on GETs and fetches.
    #[must_use]
    pub fn with_gets_max(self, gets_max: Option<u64>) -> Scan {
        Scan { gets_max, ..self }
    }

    /// Part `part` of `parts`, which are scans of their own and give out every row once, all together. If there
    /// are few entries, the first one gives out all.
    #[must_use]
    pub fn of_parts(self, part: usize, parts: usize) -> Scan {
        Scan { part: Some((part, parts)), ..self }
    }

    /// Entries that it is expected to read (count).
    pub fn expected(&self) -> f64 {
        self.spec.access.entries
    }

    /// Columns of its batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.spec.schema
    }

    /// Settles, before the first row, what this part has to do; false if that is nothing.
    fn begin(&mut self, reader: &dyn Reader) -> Result<bool> {
        let Some((part, parts)) = self.part.take() else { return Ok(true) };
        let Position::Walk(walk) = &mut self.position else { return Ok(part == 0) };
        let ScanSpec { access, output, .. } = &*self.spec;
        let reads_nothing = output.is_empty() && access.filter.is_true() && access.entry_filter.is_true();
        if reads_nothing
            && access.method.is_whole()
            && let Some(rows) = reader.count(walk.keyspace())?
        {
            self.position = Position::Count(rows);
            return Ok(part == 0);
        }
        if parts > 1 && walk.is_divisible() && access.entries >= PARALLEL_ENTRIES {
            walk.keep_part(reader, (part, parts))?;
            return Ok(true);
        }
        Ok(part == 0)
    }

    /// Its line of EXPLAIN, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        let spec = Arc::clone(&self.spec);
        Arc::new(move || (describe(spec.source(), &spec.access, None, false).to_string(), None))
    }

    fn check_gets(&self) -> Result<()> {
        let Some(max) = self.gets_max else { return Ok(()) };
        let done = self.counters.gets.load(Ordering::Relaxed) + self.counters.fetched.load(Ordering::Relaxed);
        if done <= max {
            return Ok(());
        }
        let (plan, _) = self.plan_text()();
        let error = refused(&format!("the statement made {done} GETs"), "max_gets", max, &plan);
        Err(error.hint("include the wanted columns in the index, narrow the WHERE, or RESET max_gets"))
    }

    /// The next rows, possibly none of them yet; `None` when the scan is over.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = Columns::new(&self.spec, self.rows_max(BATCH_ROWS), self.rows_expected);
        let more = self.pull(&mut out)?;
        // Where one batch was full, the next one will be.
        self.rows_expected = out.rows;
        if more || out.rows > 0 { out.finish(&self.spec.schema).map(Some) } else { Ok(None) }
    }

    /// The next rows one by one, `rows_max` at the most; `None` when the scan is over. For few rows this is
    /// cheaper than a batch.
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<Vec<Value>>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = Rows { rows: Vec::new(), rows_max: self.rows_max(rows_max) };
        let more = self.pull(&mut out)?;
        Ok((more || !out.rows.is_empty()).then_some(out.rows))
    }

    fn rows_max(&self, most: usize) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(most)
    }

    /// Fills `out`; false if nothing follows.
    fn pull(&mut self, out: &mut impl Sink) -> Result<bool> {
        let spec = Arc::clone(&self.spec);
        let snapshot = Arc::clone(&self.snapshot);
        let reader = snapshot.reader()?;
        if !self.begin(&*reader)? {
            self.left = 0;
            return Ok(false);
        }
        let Scan { entry_sources, row_sources, position, counters, .. } = self;
        let entry_sources = entry_sources.as_ref();
        let pull = Pull { spec: &spec, reader: &*reader, counters, entry_sources, row_sources };
        let more = match (position, &spec.access.method, spec.access.path) {
            (Position::Keys(next), Method::Get(keys), _) => pull.get_rows(keys, next, out)?,
            (Position::Walk(walk), _, Path::Primary) => pull.walk_rows(walk, out)?,
            (Position::Walk(walk), _, Path::IndexOnly(_)) => pull.walk_entries(walk, out)?,
            (Position::Walk(walk), _, Path::IndexFetch(_)) => pull.walk_and_fetch(walk, out)?,
            (Position::Gather(gather), ..) => gather.go(&pull, out)?,
            (Position::Count(left), ..) => {
                let rows = usize::try_from(*left).unwrap_or(usize::MAX).min(out.rows_max());
                out.append_empty(rows);
                *left -= rows as u64;
                *left > 0
            }
            (Position::Keys(_), ..) => false,
        };
        self.check_gets()?;
        self.left = if more { self.left - out.rows() as u64 } else { 0 };
        Counters::add(&self.counters.returned, out.rows() as u64);
        Ok(more)
    }
}

/// Takes the rows of one pull.
pub(super) trait Sink {
    /// Adds the wanted fields of a row.
    fn append(&mut self, spec: &ScanSpec, view: &View<'_>) -> Result<()>;

    /// Adds so many rows without fields.
    fn append_empty(&mut self, rows: usize);

    /// Rows so far.
    fn rows(&self) -> usize;

    /// Rows it takes.
    fn rows_max(&self) -> usize;

    fn is_full(&self) -> bool {
        self.rows() >= self.rows_max()
    }
}

/// What a GET gave: the default family's value, and those of the other families.
type Fetched<'a> = (&'a [u8], Vec<Option<&'a [u8]>>);

/// Rowkeys, one behind the other in one piece of memory.
#[derive(Default)]
struct Pointers {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Pointers {
    fn push(&mut self, pointer: &[u8]) {
        self.bytes.extend_from_slice(pointer);
        self.ends.push(self.bytes.len());
    }

    fn at(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    fn len(&self) -> usize {
        self.ends.len()
    }
}

/// What one pull works with.
pub(super) struct Pull<'a> {
    pub spec: &'a ScanSpec,
    pub reader: &'a dyn Reader,
    pub counters: &'a Counters,
    entry_sources: Option<&'a Sources>,
    row_sources: &'a Sources,
}

impl<'a> Pull<'a> {
    fn get_rows(&self, keys: &[Rowkey], next: &mut usize, out: &mut impl Sink) -> Result<bool> {
        let mut scratch = Scratch::new(&self.spec.table);
        while *next < keys.len() && !out.is_full() {
            let key = &keys[*next];
            *next += 1;
            Counters::add(&self.counters.gets, 1);
            if let Some(value) = self.get(self.spec.table.rows(), key)? {
                let families = self.families(key)?;
                self.row_out(key, value, families.into_iter(), &mut scratch, out)?;
            }
        }
        Ok(*next < keys.len())
    }

    fn walk_rows(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        let mut scratch = Scratch::new(&self.spec.table);
        if !walk.is_ordered() {
            return walk.go(self.reader, self.counters, &mut |key, value| {
                let before = out.rows();
                self.row_out(key, value, self.families(key)?.into_iter(), &mut scratch, out)?;
                Ok(visited(before, out))
            });
        }
        let mut sides = Side::for_families(self.spec, &self.row_sources.families, walk.direction());
        walk.go(self.reader, self.counters, &mut |key, value| {
            for side in &mut sides {
                side.advance(self.reader, key, self.counters)?;
            }
            let before = out.rows();
            self.row_out(key, value, sides.iter().map(Side::value), &mut scratch, out)?;
            Ok(visited(before, out))
        })
    }

    fn walk_entries(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        let (index, sources) = self.index()?;
        let mut scratch = Scratch::new(&self.spec.table);
        let access = &self.spec.access;
        walk.go(self.reader, self.counters, &mut |key, value| {
            let parts = open_entry(index, key, value)?;
            let before = out.rows();
            see_entry(self.spec, sources, index, &parts, &mut scratch, |view| {
                match passes(&access.entry_filter, view)? && passes(&access.filter, view)? {
                    true => out.append(self.spec, view),
                    false => Ok(()),
                }
            })?;
            Ok(visited(before, out))
        })
    }

    /// Collects the pointers of a batch of entries, gets their rows in key order, and gives them out
    /// in index order, unless any will do.
    fn walk_and_fetch(&self, walk: &mut Walk, out: &mut impl Sink) -> Result<bool> {
        let (index, sources) = self.index()?;
        let mut scratch = Scratch::new(&self.spec.table);
        let filter = &self.spec.access.entry_filter;
        loop {
            let wanted = out.rows_max() - out.rows();
            let mut pointers = Pointers::default();
            let more = walk.go(self.reader, self.counters, &mut |key, value| {
                let parts = open_entry(index, key, value)?;
                let taken = filter.is_true()
                    || see_entry(self.spec, sources, index, &parts, &mut scratch, |view| {
                        passes(filter, view)
                    })?;
                if taken {
                    pointers.push(parts.pointer);
                }
                Ok(Visited { taken, go_on: pointers.len() < wanted })
            })?;
            self.fetch(index, &pointers, &mut scratch, out)?;
            if !more || out.is_full() || pointers.len() < wanted {
                return Ok(more);
            }
        }
    }

    fn fetch(
        &self,
        index: &IndexDef,
        pointers: &Pointers,
        scratch: &mut Scratch,
        out: &mut impl Sink,
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..pointers.len()).collect();
        order.sort_unstable_by(|a, b| pointers.at(*a).cmp(pointers.at(*b)));
        let mut rows: Vec<Fetched<'_>> = Vec::new();
        if !self.spec.any_order {
            rows.resize(pointers.len(), (&[], Vec::new()));
        }
        Counters::add(&self.counters.fetched, pointers.len() as u64);
        for i in order {
            let key = pointers.at(i);
            let Some(value) = self.get(self.spec.table.rows(), key)? else {
                return Err(dangling(self.spec, index, key));
            };
            let families = self.families(key)?;
            match rows.get_mut(i) {
                Some(row) => *row = (value, families),
                // While it is in the processor's cache.
                None => self.row_out(key, value, families.into_iter(), scratch, out)?,
            }
        }
        for (i, (value, families)) in rows.into_iter().enumerate() {
            self.row_out(pointers.at(i), value, families.into_iter(), scratch, out)?;
        }
        Ok(())
    }

    /// The value under a key; its bytes and the key's count as read, if it is there.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&'a [u8]>> {
        let value = self.reader.get(keyspace, key)?;
        if let Some(value) = value {
            Counters::add(&self.counters.bytes, (key.len() + value.len()) as u64);
        }
        Ok(value)
    }

    /// Sealed values of the families other than the default one.
    pub fn families(&self, key: &[u8]) -> Result<Vec<Option<&'a [u8]>>> {
        let mut rows = Vec::new();
        for &family in self.row_sources.families.iter().filter(|f| **f != FamilyId::DEFAULT) {
            Counters::add(&self.counters.gets, 1);
            rows.push(self.get(self.spec.table.family(family).keyspace, key)?);
        }
        Ok(rows)
    }

    fn index(&self) -> Result<(&'a IndexDef, &'a Sources)> {
        let found = self.spec.index().zip(self.entry_sources);
        found.ok_or_else(|| Error::internal("an index path without its index"))
    }

    /// Decides the filter on one row and appends it if it passes. `others`: the sealed values of the
    /// families other than the default one.
    pub fn row_out<'b>(
        &self,
        key: &[u8],
        default: &[u8],
        others: impl Iterator<Item = Option<&'b [u8]>>,
        scratch: &mut Scratch,
        out: &mut impl Sink,
    ) -> Result<()> {
        let sources = self.row_sources;
        self.spec.table.touched(schema::Access::Read, key);
        scratch.decode_rowkey(self.spec, sources, key)?;
        let default = if sources.families.first() == Some(&FamilyId::DEFAULT) {
            Some(row::open(default)?)
        } else {
            None
        };
        let mut opened: Vec<Option<Cow<'_, [u8]>>> = Vec::new();
        for sealed in others {
            opened.push(sealed.map(row::open).transpose()?);
        }
        let packed = opened.iter().map(|bytes| bytes.as_deref().map(PackedRow::new).transpose());
        let others: Vec<Option<PackedRow<'_>>> = packed.collect::<Result<_>>()?;
        let mut view = View::of_row(self.spec, sources, key, scratch);
        view.packed = default.as_deref().map(PackedRow::new).transpose()?;
        view.others = &others;
        if passes(&self.spec.access.filter, &view)? {
            out.append(self.spec, &view)?;
        }
        Ok(())
    }
}

/// What became of an entry, of which `out` had so many rows before.
fn visited(before: usize, out: &impl Sink) -> Visited {
    Visited { taken: out.rows() > before, go_on: !out.is_full() }
}

pub(super) fn passes(filter: &Predicate, view: &View<'_>) -> Result<bool> {
    Ok(filter.is_true() || filter.eval(view)? == Some(true))
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

/// Rows as values.
struct Rows {
    rows: Vec<Vec<Value>>,
    rows_max: usize,
}

impl Sink for Rows {
    fn append(&mut self, spec: &ScanSpec, view: &View<'_>) -> Result<()> {
        let mut row = Vec::with_capacity(spec.output.len());
        for field in &spec.output {
            row.push(view.field(*field)?.to_value());
        }
        self.rows.push(row);
        Ok(())
    }

    fn append_empty(&mut self, rows: usize) {
        self.rows.resize(self.rows.len() + rows, Vec::new());
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn rows_max(&self) -> usize {
        self.rows_max
    }
}

/// Rows as Arrow columns.
struct Columns {
    builders: Vec<ColumnBuilder>,
    rows: usize,
    rows_max: usize,
}

impl Columns {
    fn new(spec: &ScanSpec, rows_max: usize, rows_expected: usize) -> Columns {
        let index = spec.index().filter(|_| spec.as_table);
        let types = spec.output.iter().map(|f| field_type(&spec.table, index, *f));
        let capacity = rows_max.min(rows_expected);
        Columns { builders: types.map(|ty| ColumnBuilder::new(ty, capacity)).collect(), rows: 0, rows_max }
    }

    fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let is_missing =
            |(field, array): &(&FieldRef, &ArrayRef)| !field.is_nullable() && array.null_count() > 0;
        if let Some((field, _)) = schema.fields().iter().zip(&arrays).find(is_missing) {
            return Err(Error::corrupt("a row is damaged")
                .why(format!("its column \"{}\" is NOT NULL and has no value", field.name()))
                .hint("CHECK DATABASE lists what is wrong"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
            .map_err(|e| Error::internal("a batch does not fit its schema").caused_by(e))
    }
}

impl Sink for Columns {
    fn append(&mut self, spec: &ScanSpec, view: &View<'_>) -> Result<()> {
        for (builder, field) in self.builders.iter_mut().zip(&spec.output) {
            match view.find(*field)? {
                Found::Value(value) => builder.append(value)?,
                Found::Packed(column, bytes) => builder.append_packed(column, bytes)?,
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn append_empty(&mut self, rows: usize) {
        self.rows += rows;
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn rows_max(&self) -> usize {
        self.rows_max
    }
}
