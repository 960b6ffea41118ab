//! The numbers of identity columns.
//!
//! A statement reads the counter of the column and writes the next number beside its rows: so numbers have no gaps, and
//! of two such statements that run side by side one is refused and runs again. While writers are in each other's way,
//! numbers come from a block that one of them has reserved by a commit of its own, as from a sequence of PostgreSQL:
//! then they do not depend on the counter, and what is left of a block when the process ends, or belongs to what was
//! rolled back, is never given.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::view::StatementView;
use crate::catalog::{CATALOG_KEYSPACE, identity_key};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::key::ColumnId;
use crate::schema::{Column, Identity, TableDef, TableId};
use crate::store::{Mutation, Recording, Snapshot, WriteBatch};
use crate::value::Value;

/// Numbers (count) that are reserved beside those which are wanted at once.
const RESERVED: usize = 256;

/// Writers are in each other's way until nobody has lost a conflict for so long, nor used up a block.
const BUSY: Duration = Duration::from_secs(1);

/// The blocks of numbers that are reserved.
#[derive(Default)]
pub struct Numbers {
    blocks: Mutex<HashMap<(TableId, ColumnId), Block>>,
    /// When a writer has lost a conflict.
    lost: Mutex<Option<Instant>>,
}

/// Numbers that nobody has yet.
struct Block {
    next: i64,
    /// How many.
    left: usize,
    /// The counter as it was written behind them: it is so as long as nothing else has set it.
    counter: Vec<u8>,
    reserved: Instant,
}

impl Numbers {
    /// Notes that a commit was refused, if it was by a conflict.
    pub fn note(&self, refused: &Error) {
        if refused.kind() == Kind::Conflict {
            *self.lost.lock() = Some(Instant::now());
        }
    }

    /// The first of `wanted` numbers in a row that are nobody else's; `None`: the statement has to count itself.
    fn take(
        &self,
        view: &StatementView,
        table: &TableDef,
        (id, identity): (ColumnId, Identity),
        wanted: usize,
    ) -> Result<Option<i64>> {
        let mut blocks = self.blocks.lock();
        let known = blocks.remove(&(table.id, id));
        let lost_one = || self.lost.lock().is_some_and(|at| at.elapsed() < BUSY);
        if known.is_none() && !lost_one() {
            return Ok(None);
        }
        let (catalog, snapshot) = view.db.view()?;
        // Others may have dropped it since the statement began.
        let now = catalog.table_by_id(table.id).and_then(|now| now.columns.get(usize::from(id.0)));
        if now.is_none_or(|column| column.identity != Some(identity)) {
            return Ok(None);
        }
        let recording = Recording::new(snapshot);
        let counter =
            recording.reader()?.get(CATALOG_KEYSPACE, &identity_key(table.id, id))?.map(<[u8]>::to_vec);
        let known = known.filter(|block| counter.as_ref() == Some(&block.counter));
        let is_busy = match known {
            Some(mut block) if block.left >= wanted => {
                let first = block.next;
                block.left -= wanted;
                // Where a block ends, its counter goes on: that is a number.
                block.next = first.saturating_add(identity.increment.saturating_mul(wanted as i64));
                blocks.insert((table.id, id), block);
                return Ok(Some(first));
            }
            Some(block) => block.reserved.elapsed() < BUSY,
            None => false,
        };
        // Nobody waits here: a load, or one that has priority, might wait for the blocks.
        let Some(_permit) = (is_busy || lost_one()).then(|| view.db.shared.turns.pass_at_once()).flatten()
        else {
            return Ok(None);
        };
        let first = next_number(table.column(id), identity, counter.as_deref())?;
        let end = |n: usize| first.checked_add(identity.increment.checked_mul(i64::try_from(n).ok()?)?);
        let (min, max) = bounds(table.column(id));
        let (Some(next), Some(behind)) = (end(wanted), end(wanted + RESERVED)) else { return Ok(None) };
        if !(min..=max).contains(&behind) {
            return Ok(None);
        }
        // A blank behind the number tells it from one that RESTART has set.
        let counter = format!("{behind} ").into_bytes();
        let mut batch = WriteBatch { reads: recording.reads(), ..WriteBatch::default() };
        batch.put(CATALOG_KEYSPACE, identity_key(table.id, id), counter.clone());
        catalog.rely_on(&mut batch.reads, &table.keyspaces().collect());
        match view.db.store().commit(batch) {
            Err(e) if e.kind() == Kind::Conflict => return Ok(None),
            committed => committed?,
        }
        let block = Block { next, left: RESERVED, counter, reserved: Instant::now() };
        blocks.insert((table.id, id), block);
        Ok(Some(first))
    }

    /// Gives up a block in which one of the numbers `given` by a statement lies.
    fn give_up(&self, of: (TableId, ColumnId), step: i64, given: impl Iterator<Item = i64>) {
        let mut blocks = self.blocks.lock();
        let Some(block) = blocks.get(&of) else { return };
        let last = block.next.saturating_add(step.saturating_mul(block.left as i64));
        let (from, to) = (block.next.min(last), block.next.max(last));
        if given.into_iter().any(|number| (from..=to).contains(&number)) {
            blocks.remove(&of);
        }
    }
}

/// The next number by the stored counter. Errors: it cannot be read.
fn next_number(column: &Column, identity: Identity, counter: Option<&[u8]>) -> Result<i64> {
    let Some(bytes) = counter else { return Ok(identity.start) };
    serde_json::from_slice(bytes).map_err(|e| {
        Error::corrupt(format!("the counter of column \"{}\" cannot be read", column.name)).caused_by(e)
    })
}

fn bounds(column: &Column) -> (i64, i64) {
    column.ty.integer_bounds().unwrap_or((i64::MIN, i64::MAX))
}

/// Numbers the `wanted` rows. If the statement counts, the counter first passes the numbers given explicitly for other
/// rows, so that no number comes twice, and is written to `batch`.
pub fn number(
    view: &StatementView,
    table: &TableDef,
    (id, identity): (ColumnId, Identity),
    rows: &mut [Vec<Value>],
    wanted: &[usize],
    batch: &mut WriteBatch,
) -> Result<()> {
    let (column, step, at) = (table.column(id), identity.increment, usize::from(id.0));
    let given = |row: &Vec<Value>| match row[at] {
        Value::Int(given) => Some(given),
        _ => None,
    };
    let numbers = &view.db.shared.numbers;
    let key = identity_key(table.id, id);
    // The statement may have taken numbers already.
    let taken = batch.mutations.iter_mut().find_map(|mutation| match mutation {
        Mutation::Put(CATALOG_KEYSPACE, k, counter) if **k == key[..] => Some(counter),
        _ => None,
    });
    let are_given = rows.iter().any(|row| given(row).is_some());
    if are_given {
        numbers.give_up((table.id, id), step, rows.iter().filter_map(given));
    } else if taken.is_none()
        && !wanted.is_empty()
        && !view.counts_alone
        && let Some(first) = numbers.take(view, table, (id, identity), wanted.len())?
    {
        (0..).zip(wanted).for_each(|(number, row)| rows[*row][at] = Value::Int(first + number * step));
        return Ok(());
    }
    let reader = view.snapshot.reader()?;
    let stored = reader.get(CATALOG_KEYSPACE, &key)?;
    let counter = next_number(column, identity, taken.as_deref().map(Vec::as_slice).or(stored))?;
    let mut first = counter;
    for given in rows.iter().filter_map(given) {
        if if step < 0 { given <= first } else { given >= first } {
            // The very last number has no successor, so it counts as taken.
            first = given.saturating_add(step);
        }
    }
    let exhausted = || {
        Error::invalid(format!("the numbers of identity column \"{}\" are used up", column.name))
            .state(sqlstate::SEQUENCE_LIMIT)
    };
    let mut next = first;
    if !wanted.is_empty() {
        let (min, max) = bounds(column);
        let last = i64::try_from(wanted.len() - 1)
            .ok()
            .and_then(|n| step.checked_mul(n))
            .and_then(|way| first.checked_add(way))
            .filter(|last| (min..=max).contains(last))
            .ok_or_else(exhausted)?;
        next = last.checked_add(step).ok_or_else(exhausted)?;
    }
    if next != counter {
        let next = next.to_string().into_bytes();
        match taken {
            Some(counter) => *counter = next,
            None => batch.put(CATALOG_KEYSPACE, key, next),
        }
    }
    (0..).zip(wanted).for_each(|(number, row)| rows[*row][at] = Value::Int(first + number * step));
    Ok(())
}
