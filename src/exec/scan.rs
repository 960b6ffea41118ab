//! An access path → record batches.
//!
//! A [`Scan`] is pulled batch by batch. Each pull takes a reader of the snapshot, continues where the
//! last one stopped, and lends every entry to a [`View`](super::view::View): filters are decided on the encoded bytes,
//! and only the wanted fields of the rows that pass are decoded, straight into Arrow builders.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::apart::Seat;
use super::fetch::Fetch;
use super::gather::Gather;
use super::groups::Groups;
use super::kept::{KeptRows, NextRows};
pub use super::pieces::PIECES;
use super::pull::Pull;
use super::sink::{Columns, Passed, Sink};
use super::sums::Sums;
pub use super::view::{Places, field_type};
use super::walk::Walk;
use super::watch::PlanText;
use crate::access::{Access, COST, Method, Path, Source, describe, refused};
use crate::error::Result;
use crate::plan::Field;
use crate::schema::{IndexDef, IndexId, TableDef};
use crate::store::{Reader, Snapshot};

/// Rows in a batch at the most.
pub const BATCH_ROWS: usize = 8192;

/// Bytes of values in a batch of rows, at the most but for those of the rows that were read together.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// Rows to make room for in the first batch.
const ROWS_EXPECTED: usize = 1024;

/// The same in one of short scans together.
const TOGETHER_EXPECTED: usize = 64;

/// Work, as of [`Access::work`], that is worth a thread of its own.
pub const PARALLEL_WORK: f64 = 5_000.0;

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

    /// What that has taken, as of [`Access::work`].
    pub fn work(&self) -> f64 {
        let Counters { gets, seeks, entries, fetched, .. } = self;
        let of = |(counter, cost): (&AtomicU64, f64)| cost * counter.load(Ordering::Relaxed) as f64;
        [(gets, COST.get), (seeks, COST.seek), (entries, COST.entry), (fetched, COST.fetch)]
            .map(of)
            .iter()
            .sum()
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
    pub output: Arc<[Field]>,
    /// Where they are found, and those that are compared.
    pub places: Arc<Places>,
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

    /// Its line of EXPLAIN, when it is asked for.
    pub fn plan_text(self: &Arc<Self>) -> PlanText {
        let spec = Arc::clone(self);
        Arc::new(move || (describe(spec.source(), &spec.access, None, false).to_string(), None))
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

/// Rows of several scans with the same columns, one behind the other.
pub struct Together(Columns);

impl Together {
    /// No rows yet, of scans like this one.
    pub fn new(spec: &ScanSpec) -> Together {
        Together(Columns::new(spec, BATCH_ROWS, TOGETHER_EXPECTED))
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// It takes no more.
    pub fn is_full(&self) -> bool {
        self.rows() >= BATCH_ROWS || self.0.is_heavy()
    }

    /// All of them. Errors: `Corrupt`, if a row lacks a value or has one that is none.
    pub fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        self.0.finish(schema)
    }
}

/// A scan under way.
pub struct Scan {
    spec: Arc<ScanSpec>,
    snapshot: Arc<dyn Snapshot>,
    counters: Arc<Counters>,
    position: Position,
    /// Rows that the walk has found and that are not fetched yet.
    found: Option<Fetch>,
    /// Rows to be passed over before the first one is given out.
    skip: u64,
    left: u64,
    gets_max: Option<u64>,
    /// Rows to make room for in the next batch.
    rows_expected: usize,
    /// Which of how many parts of the work to do; none, once it has begun.
    part: Option<(usize, usize)>,
    /// Where it does its part.
    seat: Option<Seat>,
}

impl Scan {
    /// A scan of `spec` over `snapshot`, giving out `limit` rows at the most.
    pub fn new(
        spec: Arc<ScanSpec>,
        snapshot: Arc<dyn Snapshot>,
        limit: Option<u64>,
        counters: Arc<Counters>,
    ) -> Scan {
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
            position,
            found: None,
            skip: 0,
            left: limit.unwrap_or(u64::MAX),
            gets_max: None,
            rows_expected: ROWS_EXPECTED,
            part: Some((0, 1)),
            seat: None,
        }
    }

    /// Without the first `skip` rows, which its limit does not count.
    #[must_use]
    pub fn without_first(self, skip: u64) -> Scan {
        Scan { skip, ..self }
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

    /// Goes on with what is read along the same path, its rows filtered in another way.
    pub fn go_on_as(&mut self, spec: ScanSpec) {
        self.spec = Arc::new(spec);
    }

    /// What it is expected to do, as [`Access::work`] has it.
    pub fn work(&self) -> f64 {
        self.spec.access.work()
    }

    /// What it reads, and how.
    pub fn spec(&self) -> &Arc<ScanSpec> {
        &self.spec
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
        if access.only_counts(output)
            && let Some(rows) = reader.count(walk.keyspace())?
        {
            self.position = Position::Count(rows);
            return Ok(part == 0);
        }
        if parts > 1 && walk.is_divisible() && access.work() >= PARALLEL_WORK {
            let seat = self.seat.insert(Seat::take());
            seat.yield_once();
            walk.keep_part(reader, (part, parts))?;
            return Ok(true);
        }
        Ok(part == 0)
    }

    /// Of a scan that fetches rows, before it starts: goes to the end of the entries that point at them, if that comes
    /// before `entries_max`. If not, false, and the scan is as before.
    pub fn walk_ahead(&mut self, entries_max: usize) -> Result<bool> {
        let Position::Walk(walk) = &mut self.position else { return Ok(false) };
        if !matches!(self.spec.access.path, Path::IndexFetch(_)) {
            return Ok(false);
        }
        let snapshot = Arc::clone(&self.snapshot);
        let reader = snapshot.reader()?;
        let pull = Pull { spec: &self.spec, reader: &*reader, counters: &self.counters };
        let found = pull.pointers(walk, entries_max)?;
        let is_all = !found.more();
        if is_all {
            (self.found, self.part) = (Some(found), None);
        } else {
            **walk = Walk::new(&self.spec.access.method, walk.keyspace());
        }
        Ok(is_all)
    }

    /// Its line of EXPLAIN, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        self.spec.plan_text()
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
        self.next_batch_of(BATCH_ROWS)
    }

    /// As [`Scan::next_batch`], `rows_max` rows at the most.
    pub fn next_batch_of(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = Columns::new(&self.spec, self.rows_max(rows_max), self.rows_expected);
        let more = self.pull(&mut out)?;
        // Where one batch was full, the next one will be.
        self.rows_expected = out.rows();
        if more || out.rows() > 0 { out.finish(&self.spec.schema).map(Some) } else { Ok(None) }
    }

    /// Adds the next rows to those of other scans, as far as there is room; false when the scan is over.
    pub fn next_into(&mut self, together: &mut Together) -> Result<bool> {
        let out = &mut together.0;
        let before = out.rows();
        out.room_mut().rows_max = before + self.rows_max(BATCH_ROWS - before);
        let more = self.pull_into(out)?;
        let added = (out.rows() - before) as u64;
        Counters::add(&self.counters.returned, added);
        self.left = if more { self.left - added } else { 0 };
        Ok(self.left > 0)
    }

    /// The next rows, `rows_max` at the most, for somebody who reads them one by one: for few rows this is cheaper
    /// than a batch. `None` when the scan is over.
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        if matches!(self.position, Position::Gather(_)) || !self.spec.places.rows.is_one_entry() {
            return Ok(self.next_batch_of(rows_max)?.map(NextRows::Batch));
        }
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = KeptRows::new(Arc::clone(&self.spec), self.rows_max(rows_max));
        let more = self.pull(&mut out)?;
        Ok((more || !out.is_empty()).then_some(NextRows::Kept(out)))
    }

    /// It has given out all of its rows.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Adds up the next rows; false when the scan is over.
    pub fn add_up(&mut self, sums: &mut Sums) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        sums.begin(self.left);
        let more = self.pull(sums)?;
        sums.end();
        Ok(more)
    }

    /// Puts the next rows into groups; false when the scan is over.
    pub fn group(&mut self, groups: &mut Groups) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        groups.begin(self.left);
        self.pull(groups)
    }

    /// The scan in pieces, which give out every row once, all together, in the order of their keys; one piece where
    /// it is less work than `work_min`, or nobody else can do any of it.
    pub fn pieces(mut self, work_min: f64) -> Result<Vec<Scan>> {
        let is_shared =
            self.spec.any_order && self.skip == 0 && self.left == u64::MAX && self.work() >= work_min;
        if !is_shared || self.found.is_some() {
            return Ok(vec![self]);
        }
        let snapshot = Arc::clone(&self.snapshot);
        let reader = snapshot.reader()?;
        self.begin(&*reader)?;
        let Position::Walk(walk) = &self.position else { return Ok(vec![self]) };
        let walks = if walk.is_divisible() { walk.pieces(&*reader)? } else { Vec::new() };
        if walks.len() < 2 {
            return Ok(vec![self]);
        }
        let piece = |walk| {
            let (spec, snapshot, counters) = (&self.spec, &self.snapshot, &self.counters);
            let scan = Scan::new(Arc::clone(spec), Arc::clone(snapshot), None, Arc::clone(counters));
            Scan { position: Position::Walk(Box::new(walk)), part: None, gets_max: self.gets_max, ..scan }
        };
        Ok(walks.into_iter().map(piece).collect())
    }

    fn rows_max(&self, most: usize) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(most)
    }

    /// Fills `out`, if there is nothing to be passed over any more; false if nothing follows.
    fn pull(&mut self, out: &mut impl Sink) -> Result<bool> {
        let more = match usize::try_from(self.skip).unwrap_or(usize::MAX) {
            0 => self.pull_into(out)?,
            skip => {
                let mut passed = Passed::new(skip.min(BATCH_ROWS));
                let more = self.pull_into(&mut passed)?;
                self.skip -= passed.rows() as u64;
                more
            }
        };
        self.left = if more { self.left - out.rows() as u64 } else { 0 };
        Counters::add(&self.counters.returned, out.rows() as u64);
        Ok(more)
    }

    fn pull_into(&mut self, out: &mut impl Sink) -> Result<bool> {
        let spec = Arc::clone(&self.spec);
        let snapshot = Arc::clone(&self.snapshot);
        let reader = snapshot.reader()?;
        if !self.begin(&*reader)? {
            return Ok(false);
        }
        let Scan { position, found, counters, .. } = self;
        let pull = Pull { spec: &spec, reader: &*reader, counters };
        let more = match (position, &spec.access.method, spec.access.path) {
            (Position::Keys(next), Method::Get(keys), _) => pull.get_rows(keys, next, out)?,
            (Position::Walk(walk), _, Path::Primary) => pull.walk_rows(walk, out)?,
            (Position::Walk(walk), _, Path::IndexOnly(_)) => pull.walk_entries(walk, out)?,
            (Position::Walk(walk), _, Path::IndexFetch(_)) => pull.walk_and_fetch(walk, found, out)?,
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
        Ok(more)
    }
}
