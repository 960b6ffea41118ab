//! Steps of building an index, or the next table of a REKEY: the rows there are, read and sorted as the entries they
//! become, and these written in order.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::pieces::{PIECES, pieces_of};
use super::rekey;
use super::run::{Run, sort_all};
use super::stored::{self, Packer, Wanted};
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
const TOLD_EVERY: u64 = if cfg!(test) { 16 } else { 8192 };

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
    let next = Packer::new(next);
    let entries = |row: &[Value], rowkey: &Rowkey, runs: &mut Runs| {
        rekey::entries_of(&next, row, rowkey, &mut |keyspace, key, value| {
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

/// Rows that a piece of a table should have (count), so that those who read pieces hear of each other.
const PIECE_ROWS: u64 = if cfg!(test) { 64 } else { 32_768 };

/// Pieces of a table (count), about, at the most.
const PIECES_MAX: u64 = 4096;

/// Bytes of entries after which a thread says how many it has.
const TOLD_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// How often the calling thread looks after the others when it has nothing else to do, and after how many times it tells
/// how far they are, and hears whether to go on.
const PATIENCE: Duration = Duration::from_millis(1);
const TOLD_TURNS: u64 = 20;

/// A range in pieces, which threads take one after the other.
struct Pieces {
    ranges: Vec<KeyRange>,
    /// What is gathered at the most; and of one piece, so that all that are under way take twice as much.
    most: Most,
    piece_bytes: usize,
    done: Progress,
}

/// How far the threads are, all together.
#[derive(Default)]
struct Progress {
    /// Pieces that were taken.
    taken: AtomicUsize,
    /// Rows that were read, and bytes of their entries.
    rows: AtomicU64,
    bytes: AtomicUsize,
    /// No more pieces are taken: one was not gathered to its end, or is damaged.
    is_full: AtomicBool,
    /// Nobody wants the entries any more.
    is_cancelled: AtomicBool,
}

/// The entries of a piece's rows.
struct Piece {
    runs: Runs,
    rows: u64,
    last_row: Option<Rowkey>,
    /// There were more rows.
    is_cut: bool,
}

/// A piece's place, and what came of it.
type Done = (usize, Result<Piece>);

/// The entries of the rows of `range`, from its start, read by some threads, and sorted.
///
/// Pieces are taken in the order of their keys until enough is gathered, and those that were taken are read to their
/// end, so that what is gathered has no gaps. Only if a piece takes more than its share of memory, those behind it were
/// read in vain.
fn gather(rows: &Rows<'_>, range: &KeyRange, most: Most, told: &mut Told<'_>) -> Result<Gathered> {
    let ranges = rows.pieces(range, most)?;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(PIECES).min(ranges.len());
    let piece_bytes = most.bytes / threads.max(1);
    let pieces = Pieces { ranges, most, piece_bytes, done: Progress::default() };
    let mut stopped = None;
    let told = &mut |rows| {
        if let Err(e) = told(rows) {
            pieces.done.is_cancelled.store(true, Relaxed);
            stopped.get_or_insert(e);
        }
    };
    let gathered = thread::scope(|scope| -> Result<Vec<Done>> {
        let work = || rows.gather(&pieces, &mut |_| ());
        // Where the system gives none, the calling thread does the work.
        let spawn =
            |_| thread::Builder::new().name("rowkeydb-entries".to_owned()).spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut gathered = rows.gather(&pieces, told);
        for other in others {
            gathered.extend(pieces.wait_for(other, told)?);
        }
        Ok(gathered)
    })?;
    match stopped {
        Some(e) => Err(e),
        None => pieces.put_together(gathered),
    }
}

impl Pieces {
    /// What another thread has gathered, once it is done; `told` goes on to hear how far all are.
    fn wait_for(
        &self,
        other: ScopedJoinHandle<'_, Vec<Done>>,
        told: &mut dyn FnMut(u64),
    ) -> Result<Vec<Done>> {
        let mut turns = 0;
        while !other.is_finished() {
            thread::sleep(PATIENCE);
            turns += 1;
            if turns % TOLD_TURNS == 0 {
                told(self.done.rows.load(Relaxed));
            }
        }
        other.join().map_err(|_| Error::internal("a thread that makes entries has panicked"))
    }

    /// The entries of the pieces up to the first that was left early.
    fn put_together(&self, mut gathered: Vec<Done>) -> Result<Gathered> {
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
                // What lies behind is for the next time.
                is_cut = true;
                break;
            }
        }
        if is_cut && last_row.is_none() {
            return Err(Error::internal("a piece of a table has no rows"));
        }
        sort_all(runs.values_mut());
        Ok(Gathered { runs, last: last_row.filter(|_| is_cut), rows })
    }
}

impl Rows<'_> {
    /// The range in pieces, each with keys in it: one, if only some rows are wanted.
    fn pieces(&self, range: &KeyRange, most: Most) -> Result<Vec<KeyRange>> {
        let (reader, keyspace) = (self.snapshot.reader()?, self.table.rows());
        // Of a range that is a part of the table they are smaller, which does no harm.
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

    /// Takes pieces until there are no more, or enough is gathered.
    fn gather(&self, pieces: &Pieces, told: &mut dyn FnMut(u64)) -> Vec<Done> {
        let (mut gathered, done) = (Vec::new(), &pieces.done);
        while !done.is_full.load(Relaxed) && done.bytes.load(Relaxed) < pieces.most.bytes {
            let at = done.taken.fetch_add(1, Relaxed);
            let Some(range) = pieces.ranges.get(at) else { break };
            let piece = self.gather_piece(range, pieces, told);
            if piece.as_ref().map_or(true, |piece| piece.is_cut) {
                done.is_full.store(true, Relaxed);
            }
            gathered.push((at, piece));
        }
        gathered
    }

    fn gather_piece(&self, range: &KeyRange, pieces: &Pieces, told: &mut dyn FnMut(u64)) -> Result<Piece> {
        let Rows { table, wanted, entries, .. } = self;
        let reader = self.snapshot.reader()?;
        let mut piece = Piece { runs: Runs::new(), rows: 0, last_row: None, is_cut: false };
        let (mut values, mut bytes, mut bytes_told) = (Vec::new(), 0, 0);
        let mut cursor = reader.cursor(table.rows(), range, Direction::Forward)?;
        while !piece.is_cut
            && let Some((key, value)) = cursor.next()?
        {
            piece.rows += 1;
            stored::values_into(&*reader, table, (key, value), wanted, &mut values)?;
            let rowkey = Rowkey::from(key);
            entries(&values, &rowkey, &mut piece.runs).map_err(|e| of_row(e, table, &rowkey))?;
            piece.last_row = Some(rowkey);
            bytes = piece.runs.values().map(Run::size).sum();
            piece.is_cut = piece.rows >= pieces.most.rows || bytes >= pieces.piece_bytes;
            if bytes - bytes_told >= TOLD_BYTES {
                pieces.done.bytes.fetch_add(bytes - bytes_told, Relaxed);
                bytes_told = bytes;
            }
            if piece.rows.is_multiple_of(TOLD_EVERY) {
                told(pieces.done.rows.fetch_add(TOLD_EVERY, Relaxed) + TOLD_EVERY);
                piece.is_cut |= pieces.done.is_cancelled.load(Relaxed);
            }
        }
        pieces.done.bytes.fetch_add(bytes - bytes_told, Relaxed);
        pieces.done.rows.fetch_add(piece.rows % TOLD_EVERY, Relaxed);
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
