//! Probes the data before a plan is chosen: how far the jumps of a [`Skip`] lead.

use crate::error::Result;
use crate::key::{End, KeyRange, KeyRanges};
use crate::plan::Skip;
use crate::store::{Direction, KeyspaceId, Reader};

/// Jumps (count), at most.
const JUMPS_MAX: u64 = 32;
/// Entries (count) visited, at most.
const ENTRIES_MAX: u64 = 400;
/// Entries (count) to step over before seeking.
const STEPS_MAX: u64 = 16;

/// Measurements of a skip scan, from the first key of its ranges on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// Times that a key could not match.
    pub jumps: u64,
    /// Jumps after which the next possible key was not near.
    pub seeks: u64,
    /// Entries visited.
    pub entries: u64,
    /// Entries that can match.
    pub possible: u64,
    /// It reached the end.
    pub done: bool,
}

/// Runs a skip scan over `ranges` for a while.
pub fn probe_jumps(
    reader: &dyn Reader,
    keyspace: KeyspaceId,
    ranges: &KeyRanges,
    skip: &Skip,
) -> Result<Jumps> {
    let mut did = Jumps::default();
    let mut starts = Vec::new();
    let mut from = None;
    for range in ranges.as_slice() {
        let mut range = match &from {
            Some(target) => range.intersect(&KeyRange { start: Clone::clone(target), end: End::Open }),
            None => range.clone(),
        };
        'placed: while !range.is_empty() {
            let mut cursor = reader.cursor(keyspace, &range, Direction::Forward)?;
            let mut steps = 0;
            while let Some((key, _)) = cursor.next()? {
                if did.jumps > JUMPS_MAX || did.entries >= ENTRIES_MAX {
                    return Ok(did);
                }
                did.entries += 1;
                if from.as_ref().is_some_and(|target| key < &**target) {
                    steps += 1;
                    if steps < STEPS_MAX {
                        continue;
                    }
                    did.seeks += 1;
                    range.start = from.clone().unwrap_or_default();
                    continue 'placed;
                }
                let target = if skip.is_possible(key, &mut starts) {
                    did.possible += 1;
                    skip.group(key).map(|group| Skip::behind_group(group, true))
                } else {
                    Some(skip.next(key, &starts))
                };
                let Some(target) = target else { continue };
                did.jumps += 1;
                steps = 0;
                from = target;
                if from.is_none() {
                    return Ok(Jumps { done: true, ..did });
                }
            }
            break;
        }
    }
    Ok(Jumps { done: true, ..did })
}
