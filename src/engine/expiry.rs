//! Expiry (`ttl`): how it is written in SQL, and how expired rows are purged.
//!
//! No query sees an expired row ([`Ttl`] defines which are), so the time of purging never changes an answer; until
//! then the row takes up disk space. PURGE removes the expired rows of a table at once; a background thread does
//! so from time to time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Database;
use super::turns::{Defeats, Priority};
use super::view::StatementView;
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::{ROWS_READ, Writes};
use crate::exec::stored;
use crate::exec::watch::{CancelHandle, Watch};
use crate::key::KeyRange;
use crate::schema::{TableDef, TableId, Ttl};
use crate::sql::{OptionDef, name_sql};
use crate::store::{Recording, Snapshot, WriteBatch};
use crate::value::{Literal, Value, length_of};

/// The value of `ttl` for rows that never expire.
const FOREVER: &str = "forever";

/// Purge rounds per `ttl` of a table (count), which bounds how many expired rows are on disk.
const ROUNDS_PER_TTL: u32 = 16;

/// The shortest time between two rounds, and the longest before the first.
const ROUND_MIN: Duration = Duration::from_secs(1);
const FIRST_ROUND_MAX: Duration = Duration::from_secs(600);

/// The tables are looked at at least this often: a new one may have a shorter `ttl`.
const LOOK: Duration = Duration::from_secs(60);

/// The value of the `ttl` option, in microseconds; `None`: forever.
///
/// Errors: it is no time.
pub fn ttl_of(option: &OptionDef) -> Result<Option<i64>> {
    micros(&option.value).ok_or_else(|| {
        Error::invalid(format!("ttl cannot be {}", Literal(option.value.as_ref())))
            .why("it is how long a row lasts after it was written")
            .hint("give seconds, minutes, hours, days or weeks, such as '30 days' or '1 day 12 hours', or 'forever'")
            .state(sqlstate::INVALID_PARAMETER)
            .at(option.span)
    })
}

/// `'1 day 12 hours'`, `'forever'` (`Some(None)`), or seconds; `None` if it is none of these, or not
/// positive.
fn micros(value: &Value) -> Option<Option<i64>> {
    let micros = match value {
        Value::Int(seconds) => seconds.checked_mul(1_000_000),
        Value::Text(text) if text.trim().eq_ignore_ascii_case(FOREVER) => return Some(None),
        Value::Text(text) => length_of(text),
        _ => None,
    };
    micros.filter(|micros| *micros > 0).map(Some)
}

/// Errors: the rows of a table do not expire.
pub fn check_expires(table: &TableDef) -> Result<()> {
    if table.ttl_us.is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!("the rows of table \"{}\" do not expire", table.name))
        .hint(format!(
            "ALTER TABLE {} SET (ttl = '30 days') lets them; DELETE takes others away",
            name_sql(&table.name)
        ))
        .state(sqlstate::OBJECT_STATE))
}

/// Purges the rows and versions of a table that have expired by `as_of_us`, in microseconds since 1970; gives
/// the number of rows. They are deleted in steps, between which other writers get in. A no-op if the table
/// has no `ttl`.
pub fn purge_before(db: &Database, table: &TableDef, as_of_us: i64, watch: &Watch) -> Result<u64> {
    if table.ttl_us.is_none() {
        return Ok(0);
    }
    if let Some(past) = table.past() {
        purge_before(db, past, as_of_us, watch)?;
    }
    let mut purge = Purge { as_of_us, watch, rest: KeyRange::all(), looked_at: 0, purged: 0 };
    let mut defeats = Defeats::default();
    loop {
        match purge.step(db, table, defeats.priority()) {
            Ok(true) => defeats = Defeats::default(),
            Ok(false) => break,
            Err(e) => defeats.again(e, &db.shared.turns, &watch.cancel)?,
        }
    }
    Ok(purge.finish(table))
}

/// Purges what a statement sees; `write` takes the deletes.
pub fn purge_in(
    view: &StatementView,
    table: &TableDef,
    write: &mut dyn FnMut(WriteBatch) -> Result<()>,
) -> Result<u64> {
    if table.ttl_us.is_none() {
        return Ok(0);
    }
    if let Some(past) = table.past() {
        purge_in(view, past, write)?;
    }
    let StatementView { watch, as_of_us, snapshot, .. } = view;
    let mut purge = Purge { as_of_us: *as_of_us, watch, rest: KeyRange::all(), looked_at: 0, purged: 0 };
    while purge.next(table, snapshot, &mut *write)?.is_some() {}
    Ok(purge.finish(table))
}

/// A purge, which proceeds in steps.
struct Purge<'a> {
    as_of_us: i64,
    watch: &'a Watch,
    /// The range not looked at yet.
    rest: KeyRange,
    /// Rows looked at, and rows purged (count).
    looked_at: u64,
    purged: u64,
}

impl Purge<'_> {
    /// Commits the next step; false at the end.
    fn step(&mut self, db: &Database, table: &TableDef, priority: Option<&Priority>) -> Result<bool> {
        let (catalog, snapshot) = db.view()?;
        // The table may have been dropped meanwhile, or its `ttl` removed.
        let mut tables = catalog.tables().chain(catalog.tables().filter_map(|table| table.past()));
        let Some(table) = tables.find(|now| now.id == table.id) else { return Ok(false) };
        let cancel = &self.watch.cancel;
        let gone = self.next(table, &snapshot, |batch| db.commit_rows(batch, &catalog, cancel, priority))?;
        if gone.is_some() {
            cancel.note_committed("some expired rows are purged; nothing else of the statement was written");
        }
        Ok(gone.is_some())
    }

    /// Passes the batch that deletes the next expired rows to `write`; progress counts if that succeeds.
    fn next<T>(
        &mut self,
        table: &TableDef,
        snapshot: &Arc<dyn Snapshot>,
        write: impl FnOnce(WriteBatch) -> Result<T>,
    ) -> Result<Option<T>> {
        let Purge { as_of_us, watch, .. } = *self;
        let total = snapshot.reader()?.entries(table.rows())?;
        let label = label(table);
        let progress = |n: u64| watch.step(&label, self.looked_at + n, Some(total), "rows");
        let found = stored::expired(&*snapshot.reader()?, table, as_of_us, &self.rest, ROWS_READ, &progress)?;
        let Some(last) = found.rowkeys.last() else {
            self.looked_at += found.looked_at;
            return Ok(None);
        };
        // Only reads of the expired rows are recorded: others may write the rest.
        let recording = Recording::new(Arc::clone(snapshot));
        let reader = recording.reader()?;
        let rowkeys: Vec<&[u8]> = found.rowkeys.iter().map(|rowkey| &rowkey[..]).collect();
        let mut writes = Writes::new(table, WriteBatch::default(), as_of_us);
        for (rowkey, row) in found.rowkeys.iter().zip(stored::rows_of(&*reader, table, &rowkeys)?) {
            writes.add(&*reader, rowkey, row.as_ref(), None)?;
        }
        let mut batch = writes.finish(&*reader)?;
        drop(reader);
        batch.reads = recording.reads();
        let written = write(batch)?;
        self.rest.start = last.successor();
        self.looked_at += found.looked_at;
        self.purged += found.rowkeys.len() as u64;
        Ok(Some(written))
    }

    fn finish(self, table: &TableDef) -> u64 {
        self.watch.finish(&label(table), self.looked_at, "rows");
        self.purged
    }
}

fn label(table: &TableDef) -> String {
    format!("purging {}", table.name)
}

/// Purges tables from time to time, until the sender of `stop` is dropped.
pub fn purge_now_and_then(db: &Database, cancel: CancelHandle, stop: &Receiver<()>) {
    let watch = Watch { cancel, ..Watch::default() };
    let began = Instant::now();
    let mut rounds: HashMap<TableId, Instant> = HashMap::new();
    loop {
        let (catalog, mut wait) = (db.catalog(), LOOK);
        for table in catalog.tables() {
            let Some(round) = table.ttl().and_then(round_of) else { continue };
            let due = match rounds.get(&table.id) {
                Some(last) => *last + round,
                None => began + round.min(FIRST_ROUND_MAX),
            };
            if due <= Instant::now() {
                // If this fails, users of the table will hit the same error.
                let _ = purge_before(db, table, db.now_us(), &watch);
                rounds.insert(table.id, Instant::now());
                wait = wait.min(round);
            } else {
                wait = wait.min(due.saturating_duration_since(Instant::now()));
            }
        }
        if stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The time between two rounds through a table.
fn round_of(ttl: Ttl) -> Option<Duration> {
    let ttl = Duration::from_micros(u64::try_from(ttl.us).ok()?);
    Some((ttl / ROUNDS_PER_TTL).max(ROUND_MIN))
}

#[cfg(test)]
mod tests;
