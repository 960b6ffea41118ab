//! Steps of building an index, or the next table of a REKEY: the rows there are, read and sorted as the entries they
//! become, and these written in order.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;

use super::pieces::{PIECES, pieces_of};
use super::rekey;
use super::run::{Run, sort_all};
use super::stored::{self, Wanted};
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{KeyRange, Rowkey};
use crate::schema::{IndexDef, TableDef};
use crate::store::{BulkWriter, Direction, KeyspaceId, Snapshot};
use crate::value::Value;

/// Entries of rows, sorted.
pub struct Gathered {
    runs: Runs,
    /// The last row it is of; `None` if no rows are left behind it.
    pub last: Option<Rowkey>,
    /// Rows it is of.
    pub rows: u64,
}

/// How much is gathered at the most.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Rows (count).
    pub rows: u64,
    /// Bytes of entries.
    pub bytes: usize,
}

/// Rows, or entries, between two reports.
const TOLD_EVERY: u64 = 8192;

/// Hears now and then how many rows, or entries, are done; its error ends it.
pub type Told<'t> = dyn FnMut(u64) -> Result<()> + 't;

/// One more is done.
fn tell(done: &mut u64, told: &mut Told<'_>) -> Result<()> {
    *done += 1;
    if done.is_multiple_of(TOLD_EVERY) { told(*done) } else { Ok(()) }
}

/// The entries in `index` of rows of `range`, from its start, as `snapshot` shows them.
///
/// Errors: a value the layout cannot hold, naming the row.
pub fn gather_entries(
    (table, index): (&TableDef, &IndexDef),
    range: &KeyRange,
    most: Most,
    snapshot: &dyn Snapshot,
    told: &mut Told<'_>,
) -> Result<Gathered> {
    let wanted = Wanted::only(table, index.inputs().chain(index.include.iter().copied()));
    let entries = |row: &[Value], rowkey: &Rowkey, runs: &mut Runs| {
        if let Some(entry) = entry_of(table, index, row, rowkey)? {
            runs.entry(index.keyspace).or_default().push(&entry.key, &entry.value);
        }
        Ok(())
    };
    gather(&Rows { table, wanted, entries: &entries, snapshot }, range, most, told)
}

/// Like [`gather_entries`], of everything that the rows are in the table they are on their way to.
pub fn gather_rows(
    (table, next): (&TableDef, &TableDef),
    range: &KeyRange,
    most: Most,
    snapshot: &dyn Snapshot,
    told: &mut Told<'_>,
) -> Result<Gathered> {
    let entries = |row: &[Value], rowkey: &Rowkey, runs: &mut Runs| {
        rekey::entries_of(next, row, rowkey, &mut |keyspace, key, value| {
            runs.entry(keyspace).or_default().push(key, value);
        })
    };
    gather(&Rows { table, wanted: Wanted::ALL, entries: &entries, snapshot }, range, most, told)
}

/// Makes entries of a row.
type Entries<'e> = dyn Fn(&[Value], &Rowkey, &mut Runs) -> Result<()> + Sync + 'e;

/// Entries by keyspace.
type Runs = BTreeMap<KeyspaceId, Run>;

/// Rows to be read, and what makes entries of one.
struct Rows<'r> {
    table: &'r TableDef,
    wanted: Wanted,
    entries: &'r Entries<'r>,
    snapshot: &'r dyn Snapshot,
}

/// Rows of a table (count) that are worth a second thread.
const SHARED_ROWS: u64 = if cfg!(test) { 100 } else { 10_000 };

/// What an entry takes in memory, in bytes, about.
const ENTRY_BYTES: u64 = 96;

/// Parts of a range that several threads read, in the order of their keys.
struct Pieces {
    ranges: Vec<KeyRange>,
    /// They are not all of the range, but its start.
    is_start: bool,
    next: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicUsize,
    /// A thread has failed.
    failed: AtomicBool,
}

/// The entries of a part's rows.
struct Piece {
    at: usize,
    runs: Runs,
    rows: u64,
    last_row: Option<Rowkey>,
    /// There was more than may be gathered.
    is_cut: bool,
}

/// The entries of the rows of `range`, from its start, read by as many threads as there are processors, and sorted.
fn gather(rows: &Rows<'_>, range: &KeyRange, most: Most, told: &mut Told<'_>) -> Result<Gathered> {
    let pieces = Pieces::of(rows, range, most)?;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(pieces.ranges.len());
    let mut done = thread::scope(|scope| {
        let work = || rows.gather(&pieces, most, &mut |_| Ok(()));
        // Where the system gives none, the calling thread does the work.
        let spawn =
            |_| thread::Builder::new().name("rowkeydb-build".to_owned()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done = rows.gather(&pieces, most, told);
        for other in others {
            let panicked = |_| Err(Error::internal("a thread that builds an index has panicked"));
            let found = other.join().unwrap_or_else(panicked);
            done = done.and_then(|done| Ok([done, found?].into_iter().flatten().collect()));
        }
        done
    })?;
    done.sort_unstable_by_key(|piece: &Piece| piece.at);
    let (mut runs, mut count, mut last_row, mut is_cut) = (Runs::new(), 0, None, pieces.is_start);
    for (at, piece) in done.into_iter().enumerate() {
        if at != piece.at {
            break;
        }
        for (keyspace, run) in piece.runs {
            runs.entry(keyspace).or_default().append(run);
        }
        count += piece.rows;
        last_row = piece.last_row.or(last_row);
        // What lies behind is for the next time.
        is_cut |= piece.is_cut;
        if piece.is_cut {
            break;
        }
    }
    if is_cut && last_row.is_none() {
        return Err(Error::internal("a piece of a table has no rows"));
    }
    sort_all(runs.values_mut());
    Ok(Gathered { runs, last: last_row.filter(|_| is_cut), rows: count })
}

impl Pieces {
    fn of(rows: &Rows<'_>, range: &KeyRange, most: Most) -> Result<Pieces> {
        let (reader, keyspace) = (rows.snapshot.reader()?, rows.table.rows());
        let (mut ranges, mut is_start) = (vec![range.clone()], false);
        let mut each = reader.entries(keyspace)?;
        let room = most.bytes as u64 / ENTRY_BYTES;
        // Pieces that fit into memory, two of them at the least.
        while most.rows == u64::MAX && each >= SHARED_ROWS && (ranges.len() == 1 || each > room / 2) {
            if ranges.len() > 1 {
                ranges.truncate(1);
                is_start = true;
            }
            let smaller = pieces_of(&*reader, keyspace, ranges.clone(), (0, 1))?;
            if smaller.len() < 2 {
                break;
            }
            (ranges, each) = (smaller, each / PIECES as u64);
        }
        let fit = usize::try_from(room / each.max(1)).unwrap_or(usize::MAX).max(2);
        if ranges.len() > fit {
            ranges.truncate(fit);
            is_start = true;
        }
        let (next, rows, bytes, failed) = Default::default();
        Ok(Pieces { ranges, is_start, next, rows, bytes, failed })
    }
}

impl Rows<'_> {
    /// Takes pieces until there are no more.
    fn gather(&self, pieces: &Pieces, most: Most, told: &mut Told<'_>) -> Result<Vec<Piece>> {
        let mut done = Vec::new();
        while let Some(at) = Some(pieces.next.fetch_add(1, Relaxed)).filter(|at| *at < pieces.ranges.len()) {
            let piece = self.gather_piece(at, pieces, most, told);
            done.push(piece.inspect_err(|_| pieces.failed.store(true, Relaxed))?);
        }
        Ok(done)
    }

    fn gather_piece(&self, at: usize, pieces: &Pieces, most: Most, told: &mut Told<'_>) -> Result<Piece> {
        let Rows { table, wanted, entries, .. } = self;
        let reader = self.snapshot.reader()?;
        let mut piece = Piece { at, runs: Runs::new(), rows: 0, last_row: None, is_cut: false };
        let (mut values, mut bytes_before) = (Vec::new(), 0);
        let mut cursor = reader.cursor(table.rows(), &pieces.ranges[at], Direction::Forward)?;
        while !piece.is_cut
            && let Some((key, value)) = cursor.next()?
        {
            piece.rows += 1;
            stored::values_into(&*reader, table, (key, value), wanted, &mut values)?;
            let rowkey = Rowkey::from(key);
            entries(&values, &rowkey, &mut piece.runs).map_err(|e| of_row(e, table, &rowkey))?;
            piece.last_row = Some(rowkey);
            let bytes: usize = piece.runs.values().map(Run::size).sum();
            piece.is_cut = piece.rows >= most.rows || bytes >= most.bytes;
            if piece.rows.is_multiple_of(TOLD_EVERY) {
                told(pieces.rows.fetch_add(TOLD_EVERY, Relaxed) + TOLD_EVERY)?;
                let all = pieces.bytes.fetch_add(bytes - bytes_before, Relaxed) + bytes - bytes_before;
                bytes_before = bytes;
                piece.is_cut |= all >= most.bytes || pieces.failed.load(Relaxed);
            }
        }
        Ok(piece)
    }
}

/// An error that a row of the table has.
fn of_row(e: Error, table: &TableDef, rowkey: &Rowkey) -> Error {
    let row = format!("row {} of \"{}\"", table.key.show(rowkey), table.name);
    let why = e.reason().map_or_else(|| row.clone(), |why| format!("{why}; {row}"));
    e.why(why)
}

/// Rows that were left out because another one has their key in a UNIQUE index.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// How many.
    pub rows: u64,
    /// The first few of them.
    pub examples: Vec<Taken>,
}

/// A key of a UNIQUE index that two rows want.
#[derive(Debug)]
pub struct Taken {
    /// The key.
    pub key: Rowkey,
    /// The row that has it, and the row that was left out.
    pub rows: (Rowkey, Rowkey),
}

/// Pairs of rows kept to be named (count).
const EXAMPLES_MAX: usize = 10;

impl Gathered {
    /// Writes the entries, over what is there; `told` hears of it.
    pub fn write(&self, writer: &mut dyn BulkWriter, told: &mut Told<'_>) -> Result<()> {
        let mut entries = 0;
        for (keyspace, run) in &self.runs {
            for (key, value) in run.iter() {
                tell(&mut entries, told)?;
                writer.put(*keyspace, key, value)?;
            }
        }
        Ok(())
    }

    /// Writes entries of a UNIQUE index but for those whose keys other rows have.
    pub fn write_unique(
        &self,
        index: &IndexDef,
        writer: &mut dyn BulkWriter,
        told: &mut Told<'_>,
    ) -> Result<LeftOut> {
        let mut left_out = LeftOut::default();
        let mut entries = 0;
        for (key, value) in self.runs.get(&index.keyspace).into_iter().flat_map(Run::iter) {
            tell(&mut entries, told)?;
            if let Some(existing) = writer.get(index.keyspace, key)? {
                // A row written since the index is there has its entry already.
                let (a, b) = (open_entry(index, key, &existing)?, open_entry(index, key, value)?);
                if a.pointer != b.pointer {
                    left_out.rows += 1;
                    if left_out.examples.len() < EXAMPLES_MAX {
                        let rows = (a.pointer.into(), b.pointer.into());
                        left_out.examples.push(Taken { key: key.into(), rows });
                    }
                    continue;
                }
            }
            writer.put(index.keyspace, key, value)?;
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests;
