//! Builds an index, or the next table of a REKEY: reads the existing rows, sorts the entries they become, and writes
//! these in key order.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::bulk::RowsBefore;
use super::gets::Gets;
use super::pieces::{PIECES, pieces_of};
use super::rekey;
use super::run::{Run, sort_all};
use super::stored::{self, ColumnProjection, Packer};
use super::watch::CancelHandle;
use crate::error::{Error, Result};
use crate::index::{entry_of, open_entry};
use crate::key::{KeyRange, Rowkey};
use crate::schema::{IndexDef, TableDef};
use crate::store::{BulkWriter, Direction, KeyspaceId, Snapshot};
use crate::value::Value;

/// Sorted entries of some rows.
pub struct SortedEntries {
    runs: Runs,
    /// The last of these rows; `None` if no rows follow it.
    pub last: Option<Rowkey>,
    /// Number of these rows.
    pub rows: u64,
}

/// Limits on what is gathered at a time.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Rows (count).
    pub rows: u64,
    /// Bytes of entries.
    pub bytes: usize,
}

/// Rows, or entries, between two progress reports.
const PROGRESS_EVERY: u64 = if cfg!(test) { 16 } else { 8192 };

/// Receives how many rows, or entries, are done; its error stops the work.
pub type ProgressCallback<'t> = dyn FnMut(u64) -> Result<()> + 't;

/// Gathers the entries in `index` of the rows in `range`, from its start, as `snapshot` shows them.
///
/// Errors: a value the layout cannot hold, naming the row.
pub fn gather_entries(
    (table, index): (&TableDef, &IndexDef),
    range: &KeyRange,
    most: Most,
    snapshot: &dyn Snapshot,
    progress: &mut ProgressCallback<'_>,
) -> Result<SortedEntries> {
    let wanted = ColumnProjection::only(table, index.inputs().chain(index.include.iter().copied()));
    let entries = |row: &[Value], rowkey: &Rowkey, runs: &mut Runs| {
        if let Some(entry) = entry_of(table, index, row, rowkey)? {
            runs.entry(index.keyspace).or_default().push(&entry.key, &entry.value);
        }
        Ok(())
    };
    gather(&EntrySource { table, wanted, entries: &entries, snapshot }, range, most, progress)
}

/// Like [`gather_entries`], but gathers all entries that the rows have in the next table.
pub fn gather_rows(
    (table, next): (&TableDef, &TableDef),
    range: &KeyRange,
    most: Most,
    snapshot: &dyn Snapshot,
    progress: &mut ProgressCallback<'_>,
) -> Result<SortedEntries> {
    let next = Packer::new(next);
    let entries = |row: &[Value], rowkey: &Rowkey, runs: &mut Runs| {
        rekey::entries_of(&next, row, rowkey, &mut |keyspace, key, value| {
            runs.entry(keyspace).or_default().push(key, value);
        })
    };
    gather(
        &EntrySource { table, wanted: ColumnProjection::ALL, entries: &entries, snapshot },
        range,
        most,
        progress,
    )
}

/// Adds the entries of one row.
type EntryMaker<'e> = dyn Fn(&[Value], &Rowkey, &mut Runs) -> Result<()> + Sync + 'e;

/// Entries by keyspace.
type Runs = BTreeMap<KeyspaceId, Run>;

/// Where rows are read, and how entries are made of them.
struct EntrySource<'r> {
    table: &'r TableDef,
    wanted: ColumnProjection,
    entries: &'r EntryMaker<'r>,
    snapshot: &'r dyn Snapshot,
}

/// Rows per piece of a table (count), so few that the threads notice in time when others have gathered enough.
const PIECE_ROWS: u64 = if cfg!(test) { 64 } else { 32_768 };

/// Most pieces of a table (count), roughly.
const PIECES_MAX: u64 = 4096;

/// Bytes of entries after which a thread adds to the common count.
const COUNTED_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// How often the calling thread polls the others when it has nothing else to do, and every how many polls it reports
/// progress and learns whether to go on.
const PATIENCE: Duration = Duration::from_millis(1);
const PROGRESS_POLLS: u64 = 20;

/// A range in pieces, which threads take one after the other.
struct RangePieces {
    ranges: Vec<KeyRange>,
    /// Limits of the whole; and bytes per piece, so that the pieces in progress add at most as much again.
    most: Most,
    piece_bytes: usize,
    done: GatherProgress,
}

/// Progress of all threads together.
#[derive(Default)]
struct GatherProgress {
    /// Pieces that were taken.
    taken: AtomicUsize,
    /// Rows read, and bytes of their entries.
    rows: AtomicU64,
    bytes: AtomicUsize,
    /// No more pieces are taken: one was cut short, or failed.
    is_full: AtomicBool,
    /// The entries are no longer wanted.
    is_cancelled: AtomicBool,
}

/// The entries of a piece's rows.
struct PieceEntries {
    runs: Runs,
    rows: u64,
    last_row: Option<Rowkey>,
    /// There were more rows.
    is_cut: bool,
}

/// A piece's number, and its result.
type Done = (usize, Result<PieceEntries>);

/// Gathers the entries of the rows of `range`, from its start, with several threads, and sorts them.
///
/// Pieces are taken in key order until enough is gathered, and each piece taken is read to its end, so that the
/// result has no gaps. Only if a piece exceeds its share of memory is it cut short; the pieces behind it are then
/// discarded.
fn gather(
    rows: &EntrySource<'_>,
    range: &KeyRange,
    most: Most,
    progress: &mut ProgressCallback<'_>,
) -> Result<SortedEntries> {
    let ranges = rows.pieces(range, most)?;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(PIECES).min(ranges.len());
    let piece_bytes = most.bytes / threads.max(1);
    let pieces = RangePieces { ranges, most, piece_bytes, done: GatherProgress::default() };
    let mut stopped = None;
    let progress = &mut |rows| {
        if let Err(e) = progress(rows) {
            pieces.done.is_cancelled.store(true, Relaxed);
            stopped.get_or_insert(e);
        }
    };
    let gathered = thread::scope(|scope| -> Result<Vec<Done>> {
        let work = || rows.gather(&pieces, &mut |_| ());
        // If the system has no thread to give, the calling thread does the work.
        let spawn =
            |_| thread::Builder::new().name("rowkeydb-entries".to_owned()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut gathered = rows.gather(&pieces, progress);
        for other in others {
            gathered.extend(pieces.wait_for(other, progress)?);
        }
        Ok(gathered)
    })?;
    match stopped {
        Some(e) => Err(e),
        None => pieces.put_together(gathered),
    }
}

impl RangePieces {
    /// Waits for what another thread gathers, reporting the progress of all meanwhile.
    fn wait_for(
        &self,
        other: ScopedJoinHandle<'_, Vec<Done>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Done>> {
        let mut turns = 0;
        while !other.is_finished() {
            thread::sleep(PATIENCE);
            turns += 1;
            if turns % PROGRESS_POLLS == 0 {
                progress(self.done.rows.load(Relaxed));
            }
        }
        other.join().map_err(|_| Error::internal("a thread that makes entries has panicked"))
    }

    /// Combines the pieces up to the first that was cut short.
    fn put_together(&self, mut gathered: Vec<Done>) -> Result<SortedEntries> {
        gathered.sort_unstable_by_key(|(at, _)| *at);
        let mut is_cut = gathered.len() < self.ranges.len();
        let (mut runs, mut rows, mut last_row) = (Runs::new(), 0, None);
        for (_, piece) in gathered {
            let piece = piece?;
            for (keyspace, run) in piece.runs {
                runs.entry(keyspace).or_default().append(run);
            }
            rows += piece.rows;
            last_row = piece.last_row.or(last_row);
            if piece.is_cut {
                // The pieces behind it are gathered the next time.
                is_cut = true;
                break;
            }
        }
        if is_cut && last_row.is_none() {
            return Err(Error::internal("a piece of a table has no rows"));
        }
        sort_all(runs.values_mut());
        Ok(SortedEntries { runs, last: last_row.filter(|_| is_cut), rows })
    }
}

impl EntrySource<'_> {
    /// Cuts the range into pieces, each with keys in it; just one if the number of rows is limited.
    fn pieces(&self, range: &KeyRange, most: Most) -> Result<Vec<KeyRange>> {
        let (reader, keyspace) = (self.snapshot.reader()?, self.table.rows());
        // If the range is only a part of the table, the pieces are smaller, which does no harm.
        let wanted = (reader.entries(keyspace)? / PIECE_ROWS).min(PIECES_MAX) as usize;
        let mut pieces = vec![range.clone()];
        while most.rows == u64::MAX && pieces.len() < wanted {
            let mut smaller = Vec::with_capacity(pieces.len() * PIECES);
            for piece in &pieces {
                smaller.extend(pieces_of(&*reader, keyspace, vec![piece.clone()], (0, 1))?);
            }
            if smaller.len() == pieces.len() {
                break;
            }
            pieces = smaller;
        }
        Ok(pieces)
    }

    /// Gathers pieces until none are left, or enough is gathered.
    fn gather(&self, pieces: &RangePieces, progress: &mut dyn FnMut(u64)) -> Vec<Done> {
        let (mut gathered, done) = (Vec::new(), &pieces.done);
        while !done.is_full.load(Relaxed) && done.bytes.load(Relaxed) < pieces.most.bytes {
            let at = done.taken.fetch_add(1, Relaxed);
            let Some(range) = pieces.ranges.get(at) else { break };
            let piece = self.gather_piece(range, pieces, progress);
            if piece.as_ref().map_or(true, |piece| piece.is_cut) {
                done.is_full.store(true, Relaxed);
            }
            gathered.push((at, piece));
        }
        gathered
    }

    fn gather_piece(
        &self,
        range: &KeyRange,
        pieces: &RangePieces,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PieceEntries> {
        let EntrySource { table, wanted, entries, .. } = self;
        let (reader, mut gets) = (self.snapshot.reader()?, Gets::of(self.snapshot)?);
        let mut piece = PieceEntries { runs: Runs::new(), rows: 0, last_row: None, is_cut: false };
        let (mut values, mut bytes, mut bytes_counted) = (Vec::new(), 0, 0);
        let mut cursor = reader.cursor(table.rows(), range, Direction::Forward)?;
        while !piece.is_cut
            && let Some((key, value)) = cursor.next()?
        {
            piece.rows += 1;
            stored::values_into(gets.next()?, table, (key, value), wanted, &mut values)?;
            let rowkey = Rowkey::from(key);
            entries(&values, &rowkey, &mut piece.runs).map_err(|e| of_row(e, table, &rowkey))?;
            piece.last_row = Some(rowkey);
            bytes = piece.runs.values().map(Run::size).sum();
            piece.is_cut = piece.rows >= pieces.most.rows || bytes >= pieces.piece_bytes;
            if bytes - bytes_counted >= COUNTED_BYTES {
                pieces.done.bytes.fetch_add(bytes - bytes_counted, Relaxed);
                bytes_counted = bytes;
            }
            if piece.rows.is_multiple_of(PROGRESS_EVERY) {
                progress(pieces.done.rows.fetch_add(PROGRESS_EVERY, Relaxed) + PROGRESS_EVERY);
                piece.is_cut |= pieces.done.is_cancelled.load(Relaxed);
            }
        }
        pieces.done.bytes.fetch_add(bytes - bytes_counted, Relaxed);
        pieces.done.rows.fetch_add(piece.rows % PROGRESS_EVERY, Relaxed);
        Ok(piece)
    }
}

/// Adds the row to an error.
fn of_row(e: Error, table: &TableDef, rowkey: &Rowkey) -> Error {
    let row = format!("row {} of \"{}\"", table.key.show(rowkey), table.name);
    let why = e.reason().map_or_else(|| row.clone(), |why| format!("{why}; {row}"));
    e.why(why)
}

/// A key of a UNIQUE index that two rows claim.
#[derive(Debug)]
pub struct DuplicateKey {
    /// The key.
    pub key: Rowkey,
    /// The row that has it, and the row that was left out.
    pub rows: (Rowkey, Rowkey),
}

/// Examples for the message (count), of all steps together.
const EXAMPLES_MAX: usize = 10;

impl SortedEntries {
    /// Writes the entries, replacing existing ones. Errors: those of the store; the statement was cancelled.
    pub fn write(&self, writer: &mut dyn BulkWriter, cancel: &CancelHandle) -> Result<()> {
        let all =
            self.runs.iter().flat_map(|(keyspace, run)| run.iter().map(move |entry| (*keyspace, entry)));
        for (done, (keyspace, (key, value))) in (0..).zip(all) {
            cancel.tick(done)?;
            writer.put(keyspace, key, value)?;
        }
        Ok(())
    }

    /// Writes entries of a UNIQUE index, except those of rows whose key another row has; gives the number of these,
    /// and adds the first few of them to `examples`. A row of `before` that has expired holds no key: it is deleted.
    pub fn write_unique(
        &self,
        (table, index): (&TableDef, &IndexDef),
        before: &mut RowsBefore<'_>,
        writer: &mut dyn BulkWriter,
        examples: &mut Vec<DuplicateKey>,
        cancel: &CancelHandle,
    ) -> Result<u64> {
        let mut left_out = 0;
        let entries = self.runs.get(&index.keyspace).into_iter().flat_map(Run::iter);
        for (done, (key, value)) in (0..).zip(entries) {
            cancel.tick(done)?;
            if let Some(existing) = writer.get(index.keyspace, key)? {
                // A row written after the index was created has its entry already.
                let (holder, row) = (open_entry(index, key, &existing)?, open_entry(index, key, value)?);
                if holder.pointer != row.pointer {
                    let (holder, row) = (Rowkey::from(holder.pointer), Rowkey::from(row.pointer));
                    if before.purge(table, &row, writer)? {
                        continue;
                    }
                    if !before.purge(table, &holder, writer)? {
                        left_out += 1;
                        if examples.len() < EXAMPLES_MAX {
                            examples.push(DuplicateKey { key: key.into(), rows: (holder, row) });
                        }
                        continue;
                    }
                }
            }
            writer.put(index.keyspace, key, value)?;
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests;
