//! A scan: runs an access path and gives record batches.
//!
//! A [`Scan`] is pulled batch by batch. Each pull takes a reader of the snapshot, continues where the last one
//! stopped, and shows every entry through a [`StoredRowView`](super::view::StoredRowView): filters compare the encoded
//! bytes, and only the wanted fields of the rows that pass are decoded, straight into Arrow builders.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::encoded::EncodedRows;
use super::fetch::Fetch;
use super::gather::Gather;
use super::groups::Groups;
use super::next_rows::NextRows;
pub use super::pieces::PIECES;
use super::pull::Pull;
use super::seats::Seat;
use super::sink::{ArrowSink, Passed, Sink};
pub use super::sources::{ScanSources, field_type};
pub use super::spec::{BATCH_ROWS, ScanCounters, ScanSpec};
use super::sums::Sums;
use super::walk::Walk;
use super::watch::PlanText;
use crate::access::{Method, Path, refused};
use crate::error::Result;
use crate::store::{Reader, Snapshot};

/// Rows to allocate for in the first batch.
const ROWS_EXPECTED: usize = 1024;

/// The same where several short scans share a batch.
const TOGETHER_EXPECTED: usize = 64;

/// Work, in the units of [`Access::work`](crate::access::Access::work), that justifies another thread.
pub const PARALLEL_WORK: f64 = 8_000.0;

/// The length (rows) of the batch behind one of `rows`: a consumer that wanted more wants many.
pub fn grown(rows: usize, most: usize) -> usize {
    (4 * rows).min(most)
}

/// Where the next pull continues.
enum Position {
    /// Index of the next key to GET.
    Keys(usize),
    /// The rest of the walk.
    Walk(Box<Walk>),
    /// A union or intersection of several indexes.
    Gather(Box<Gather>),
    /// The number of rows left, when only their number is wanted.
    Count(u64),
}

/// Collects rows of several scans with the same columns in one batch.
pub struct BatchCollector(ArrowSink);

impl BatchCollector {
    /// No rows yet, of scans like this one.
    pub fn new(spec: &ScanSpec) -> BatchCollector {
        BatchCollector(ArrowSink::new(spec, BATCH_ROWS, TOGETHER_EXPECTED))
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// It takes no more rows.
    pub fn is_full(&self) -> bool {
        self.rows() >= BATCH_ROWS || self.0.is_heavy()
    }

    /// All rows. Errors: `Corrupt` if a row has a missing or invalid value.
    pub fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        self.0.finish(schema)
    }
}

/// A scan in progress.
pub struct Scan {
    spec: Arc<ScanSpec>,
    snapshot: Arc<dyn Snapshot>,
    counters: Arc<ScanCounters>,
    position: Position,
    /// Rows that the walk has found but that are not fetched yet.
    found: Option<Fetch>,
    /// Rows still to skip before the first is given out.
    skip: u64,
    left: u64,
    gets_max: Option<u64>,
    /// Rows to allocate for in the next batch.
    rows_expected: usize,
    /// Which of how many parts of the work to do; `None` once it has begun.
    part: Option<(usize, usize)>,
    /// The seat of its thread, if it shares the work.
    seat: Option<Seat>,
}

impl Scan {
    /// A scan of `spec` over `snapshot` that gives out at most `limit` rows.
    pub fn new(
        spec: Arc<ScanSpec>,
        snapshot: Arc<dyn Snapshot>,
        limit: Option<u64>,
        counters: Arc<ScanCounters>,
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

    /// Skips the first `skip` rows, which the limit does not count.
    #[must_use]
    pub fn without_first(self, skip: u64) -> Scan {
        Scan { skip, ..self }
    }

    /// Limits the number of GETs and fetches.
    #[must_use]
    pub fn with_gets_max(self, gets_max: Option<u64>) -> Scan {
        Scan { gets_max, ..self }
    }

    /// Makes it part `part` of `parts`: separate scans that together give out every row once. If there are few
    /// entries, the first part gives out all.
    #[must_use]
    pub fn of_parts(self, part: usize, parts: usize) -> Scan {
        Scan { part: Some((part, parts)), ..self }
    }

    /// Continues with another spec of the same path, such as one with another filter.
    pub fn go_on_as(&mut self, spec: ScanSpec) {
        self.spec = Arc::new(spec);
    }

    /// Its expected work, as [`Access::work`](crate::access::Access::work) has it.
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

    /// Determines, before the first row, what this part has to do; false if nothing.
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

    /// For a scan that fetches rows, before it starts: walks the entries that point at them, to the end if that comes
    /// before `entries_max`. Otherwise false, and the scan is reset.
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

    /// Its line of EXPLAIN, computed when asked for.
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

    /// The next rows, possibly none yet; `None` when the scan is over.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.next_batch_of(BATCH_ROWS)
    }

    /// As [`Scan::next_batch`], at most `rows_max` rows.
    pub fn next_batch_of(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = ArrowSink::new(&self.spec, self.rows_max(rows_max), self.rows_expected);
        let more = self.pull(&mut out)?;
        // If this batch was full, the next one probably will be.
        self.rows_expected = out.rows();
        if more || out.rows() > 0 { out.finish(&self.spec.schema).map(Some) } else { Ok(None) }
    }

    /// Adds the next rows to those of other scans, as far as there is room; false when the scan is over.
    pub fn next_into(&mut self, together: &mut BatchCollector) -> Result<bool> {
        let out = &mut together.0;
        let before = out.rows();
        out.room_mut().rows_max = before + self.rows_max(BATCH_ROWS - before);
        self.pull(out)?;
        Ok(self.left > 0)
    }

    /// The next rows, at most `rows_max`, for a consumer that reads them one by one: for few rows this is cheaper
    /// than a batch. `None` when the scan is over.
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        if matches!(self.position, Position::Gather(_)) || !self.spec.places.rows.is_one_entry() {
            return Ok(self.next_batch_of(rows_max)?.map(NextRows::Batch));
        }
        if self.left == 0 {
            return Ok(None);
        }
        let mut out = EncodedRows::new(Arc::clone(&self.spec), self.rows_max(rows_max));
        let more = self.pull(&mut out)?;
        Ok((more || !out.is_empty()).then_some(NextRows::Encoded(out)))
    }

    /// All of its rows were given out.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Aggregates the next rows; false when the scan is over.
    pub fn add_up(&mut self, sums: &mut Sums) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        sums.begin(self.left);
        let more = self.pull(sums)?;
        sums.end();
        Ok(more)
    }

    /// Groups the next rows; false when the scan is over.
    pub fn group(&mut self, groups: &mut Groups) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        groups.begin(self.left);
        self.pull(groups)
    }

    /// Cuts the scan into pieces that together give out every row once, in key order. One piece if it is less work
    /// than `work_min`, or cannot be shared.
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

    /// Fills `out`, or first skips rows that are to be skipped; false if nothing follows.
    fn pull(&mut self, out: &mut impl Sink) -> Result<bool> {
        let before = out.rows();
        let more = match usize::try_from(self.skip).unwrap_or(usize::MAX) {
            0 => self.pull_into(out)?,
            skip => {
                let mut passed = Passed::new(skip.min(BATCH_ROWS));
                let more = self.pull_into(&mut passed)?;
                self.skip -= passed.rows() as u64;
                more
            }
        };
        let added = (out.rows() - before) as u64;
        self.left = if more { self.left - added } else { 0 };
        ScanCounters::add(&self.counters.returned, added);
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
