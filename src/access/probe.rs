//! Probes the data before a plan is chosen: how far the jumps of a [`Skip`] lead.

use super::cost::COST;
use crate::error::Result;
use crate::key::{End, KeyRange, KeyRanges, Rowkey};
use crate::plan::Skip;
use crate::store::{Direction, KeyspaceId, Reader};

/// Jumps (count) from the first key on, and entries (count) visited, at most.
const AT_THE_START: (u64, u64) = (24, 400);
/// The same at each spot further on.
const AT_A_SPOT: (u64, u64) = (2, 100);
/// Spots (count) further on, evenly spaced over the keys left.
const SPOTS: u64 = 4;
/// Entries (count) to step over before seeking.
const STEPS_MAX: u64 = 16;

/// Measurements of a skip scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// Times that a key could not match.
    pub jumps: u64,
    /// Jumps after which the next possible key was not near.
    pub seeks: u64,
    /// Entries visited.
    pub entries: u64,
    /// Entries passed unseen, about.
    pub passed: u64,
    /// Entries that can match.
    pub possible: u64,
    /// It reached the end.
    pub done: bool,
}

/// Runs a skip scan over `ranges` for a while: from the first key on, and if that leaves keys, at some spots
/// further on. How far these jumps lead then counts: what is in front is often not like the rest.
pub fn probe_jumps(
    reader: &dyn Reader,
    keyspace: KeyspaceId,
    ranges: &KeyRanges,
    skip: &Skip,
) -> Result<Jumps> {
    let probe = Probe { reader, keyspace, ranges, skip };
    let (start, stopped) = probe.from(None, AT_THE_START, Jumps::default())?;
    let Some(stopped) = stopped else { return Ok(Jumps { done: true, ..start }) };
    let mut further = Jumps::default();
    for spot in probe.spots(&stopped)? {
        (further, _) = probe.from(Some(spot), AT_A_SPOT, further)?;
    }
    if further.jumps < AT_A_SPOT.0 * SPOTS / 2 {
        return Ok(start);
    }
    let (possible, jumps) = (start.possible + further.possible, start.jumps + further.jumps);
    Ok(Jumps { possible: (possible * further.jumps).div_ceil(jumps), ..further })
}

struct Probe<'a> {
    reader: &'a dyn Reader,
    keyspace: KeyspaceId,
    ranges: &'a KeyRanges,
    skip: &'a Skip,
}

impl Probe<'_> {
    /// Skips on from a key for a while, and adds what it did to `did`. Also tells where it stopped; `None`: at the end.
    fn from(
        &self,
        spot: Option<Rowkey>,
        (jumps_max, entries_max): (u64, u64),
        mut did: Jumps,
    ) -> Result<(Jumps, Option<Rowkey>)> {
        let Probe { reader, keyspace, ranges, skip } = *self;
        let (measures, mut from) = (spot.is_some(), spot);
        let mut starts = Vec::new();
        let (jumps_max, entries_max) = (did.jumps + jumps_max, did.entries + entries_max);
        let is_passed = |range: &&KeyRange| from.as_ref().is_some_and(|target| range.is_past(target));
        let passed = ranges.as_slice().iter().take_while(is_passed).count();
        for range in &ranges.as_slice()[passed..] {
            let mut range = match &from {
                Some(target) => range.intersect(&KeyRange { start: target.clone(), end: End::Open }),
                None => range.clone(),
            };
            'placed: while !range.is_empty() {
                let mut cursor = reader.cursor(keyspace, &range, Direction::Forward)?;
                let mut steps = 0;
                while let Some((key, _)) = cursor.next()? {
                    if did.entries >= entries_max {
                        return Ok((did, Some(key.into())));
                    }
                    if from.as_ref().is_some_and(|target| key < &**target) {
                        did.entries += 1;
                        steps += 1;
                        if steps < STEPS_MAX {
                            continue;
                        }
                        did.seeks += 1;
                        let unseen = || KeyRange { start: key.into(), end: range.end.clone() };
                        let target = from.clone().unwrap_or_default();
                        // To ask takes two searches.
                        did.passed += match measures {
                            true => self.entries_before(&target, unseen())?,
                            false => COST.jump_entries as u64,
                        };
                        range.start = target;
                        continue 'placed;
                    }
                    if did.jumps >= jumps_max {
                        return Ok((did, Some(key.into())));
                    }
                    did.entries += 1;
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
                        return Ok((did, None));
                    }
                }
                break;
            }
        }
        Ok((did, None))
    }

    /// About how many entries of a range lie before a key.
    fn entries_before(&self, key: &Rowkey, range: KeyRange) -> Result<u64> {
        let before = range.intersect(&KeyRange { start: Rowkey::default(), end: End::Before(key.clone()) });
        let known = self.reader.estimate(self.keyspace, &before)?;
        Ok(known.unwrap_or(COST.jump_entries as u64))
    }

    /// Keys in the middle of equal parts of all bytes between `first` and the last key.
    fn spots(&self, first: &Rowkey) -> Result<Vec<Rowkey>> {
        let Some(last) = self.ranges.as_slice().last() else { return Ok(Vec::new()) };
        let mut cursor = self.reader.cursor(self.keyspace, last, Direction::Reverse)?;
        let Some((last, _)) = cursor.next()? else { return Ok(Vec::new()) };
        let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let eight = |key: &[u8]| {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(&key[same..]).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(bytes)
        };
        let (low, high) = (eight(first), eight(last));
        let step = high.saturating_sub(low) / (2 * SPOTS);
        let spot =
            |n: u64| Rowkey::from([&first[..same], &(low + (2 * n + 1) * step).to_be_bytes()].concat());
        Ok((0..SPOTS).map(spot).collect())
    }
}
