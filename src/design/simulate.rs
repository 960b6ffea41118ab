//! Simulates writes onto regions: which region would have had the work, and when.
//!
//! [`replay`] takes keys in write order and cuts them into time slices of equally many writes. Within a slice
//! the regions are fixed; at its end those that are too large are split in the middle, as a store does a
//! while after they have filled up. The figures are those of the second half, by when a table that began as
//! one region has had the time to grow.

use super::spread::Spread;
use crate::key::{End, KeyRange, KeyRanges, Rowkey};

/// Slices of time (count), at least and at most.
const SLICES: (usize, usize) = (8, 60);
/// Writes in a slice for each region (count), so that chance does not look like a hotspot.
const WRITES_PER_REGION: usize = 100;
/// Stripes of the key space in the picture (count).
const STRIPES: usize = 48;

/// The regions before the first write, and when they split.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The initial split points.
    pub splits: Vec<Rowkey>,
    /// Rows above which a region is split.
    pub rows_max: usize,
    /// Expected number of regions, which determines the length of slices.
    pub regions: usize,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Slices of time, in order.
    pub slices: Vec<Slice>,
    /// The regions at the end, in key order.
    pub regions: Vec<SimulatedRegion>,
    /// The average spread of a slice's writes over regions.
    pub spread: Spread,
    /// The first keys of stripes with equally many writes.
    pub stripes: Vec<Rowkey>,
    /// Writes by stripe and slice.
    pub heat: Vec<Vec<u64>>,
}

/// A slice of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The number of its first write.
    pub first: usize,
    /// The first key of each region, and its writes.
    pub regions: Vec<(Rowkey, u64)>,
    /// How these are spread over the regions.
    pub spread: Spread,
}

/// A region at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRegion {
    /// Its first key; empty for the first region.
    pub from: Rowkey,
    /// Rows it holds.
    pub rows: u64,
    /// Its largest share of a slice's writes, over the measured slices.
    pub peak: f64,
}

/// A region during the simulation.
struct Live {
    from: Rowkey,
    /// Its writes, by number; not sorted.
    rows: Vec<u32>,
    /// Writes of the current slice.
    writes: u64,
    peak: f64,
}

/// Replays the writes of `keys`, in order.
pub fn replay(keys: &[Rowkey], setup: &Setup) -> Simulation {
    let slices = (keys.len() / (WRITES_PER_REGION * setup.regions.max(1))).clamp(SLICES.0, SLICES.1);
    let starts = std::iter::once(Rowkey::default()).chain(setup.splits.iter().cloned());
    let mut live: Vec<Live> =
        starts.map(|from| Live { from, rows: Vec::new(), writes: 0, peak: 0.0 }).collect();
    let stripes = stripes(keys);
    let mut simulation = Simulation {
        slices: Vec::with_capacity(slices),
        regions: Vec::new(),
        spread: Spread::default(),
        heat: vec![vec![0; slices]; stripes.len()],
        stripes,
    };
    for slice in 0..slices {
        let (first, end) = (keys.len() * slice / slices, keys.len() * (slice + 1) / slices);
        live.iter_mut().for_each(|region| region.writes = 0);
        for (at, key) in keys.iter().enumerate().take(end).skip(first) {
            let region = live.partition_point(|region| region.from <= *key) - 1;
            live[region].rows.push(at as u32);
            live[region].writes += 1;
            let stripe = simulation.stripes.partition_point(|from| from <= key).saturating_sub(1);
            simulation.heat[stripe][slice] += 1;
        }
        if end > first {
            simulation.slices.push(measured(&mut live, first, slice * 2 >= slices));
        }
        live = live.into_iter().flat_map(|region| split(region, keys, setup.rows_max.max(1))).collect();
    }
    let spreads: Vec<Spread> = simulation.slices.iter().map(|slice| slice.spread).collect();
    simulation.spread = Spread::mean(&spreads[spreads.len() / 2..]);
    let region = |r: Live| SimulatedRegion { from: r.from, rows: r.rows.len() as u64, peak: r.peak };
    simulation.regions = live.into_iter().map(region).collect();
    simulation
}

fn measured(live: &mut [Live], first: usize, is_grown: bool) -> Slice {
    let spread = Spread::of(live.iter().map(|region| region.writes));
    if is_grown {
        for region in live.iter_mut() {
            region.peak = region.peak.max(region.writes as f64 / spread.rows as f64);
        }
    }
    let regions = live.iter().map(|region| (region.from.clone(), region.writes)).collect();
    Slice { first, regions, spread }
}

/// The region, or its pieces after splitting until none is too large.
fn split(mut region: Live, keys: &[Rowkey], rows_max: usize) -> Vec<Live> {
    if region.rows.len() <= rows_max {
        return vec![region];
    }
    let key = |row: &u32| &keys[*row as usize];
    region.rows.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    let middle = region.rows.len() / 2;
    let cut = key(&region.rows[middle]).clone();
    if cut <= region.from {
        // A single key that is written again and again cannot be split.
        return vec![region];
    }
    let middle = region.rows.partition_point(|row| *key(row) < cut);
    let upper = Live { from: cut, rows: region.rows.split_off(middle), writes: 0, peak: region.peak };
    if region.rows.is_empty() || upper.rows.is_empty() {
        region.rows.extend(upper.rows);
        return vec![region];
    }
    let mut pieces = split(region, keys, rows_max);
    pieces.extend(split(upper, keys, rows_max));
    pieces
}

/// First keys of stripes with equally many writes.
fn stripes(keys: &[Rowkey]) -> Vec<Rowkey> {
    let mut sorted: Vec<&Rowkey> = keys.iter().collect();
    sorted.sort_unstable();
    let mut stripes: Vec<Rowkey> = (0..STRIPES)
        .filter_map(|i| sorted.get(sorted.len() * i / STRIPES))
        .map(|key| (*key).clone())
        .collect();
    stripes.dedup();
    stripes
}

impl Simulation {
    /// Number of regions that a read of these ranges asks.
    pub fn regions_asked(&self, ranges: &KeyRanges) -> usize {
        let region = |at: usize| {
            let end = self.regions.get(at + 1).map_or(End::Open, |next| End::Before(next.from.clone()));
            KeyRange { start: self.regions[at].from.clone(), end }
        };
        let is_asked =
            |at: &usize| ranges.as_slice().iter().any(|range| !range.intersect(&region(*at)).is_empty());
        (0..self.regions.len()).filter(is_asked).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::splits::{over_digits, uniform};
    use crate::key::{Digits, md5_bucket};
    use crate::value::ValueRef;

    fn run(writes: i64, key: impl Fn(i64) -> String, splits: Vec<Rowkey>, regions: usize) -> Simulation {
        let keys: Vec<Rowkey> = (1..=writes).map(|id| key(id).into_bytes().into()).collect();
        let rows_max = 2 * keys.len() / regions;
        replay(&keys, &Setup { splits, rows_max, regions })
    }

    fn reversed(id: i64) -> String {
        format!("{id:012}").chars().rev().collect()
    }

    #[test]
    fn sequential_ids_go_to_one_region() {
        for splits in [Vec::new(), over_digits(Digits::all(10, 12), 16).unwrap(), uniform(16)] {
            let found = run(20_000, |id| format!("{id:012}"), splits.clone(), 16);
            assert_eq!((found.spread.hottest, found.spread.parallelism), (1.0, 1.0));
            let alone = |s: &Spread| s.hottest == 1.0 && s.idle == s.regions as f64 - 1.0;
            assert!(found.slices.iter().all(|slice| alone(&slice.spread)));
            assert!(found.regions.len() > splits.len() + 8, "it splits as it fills");
            assert_eq!(found.regions.iter().map(|r| r.rows).sum::<u64>(), 20_000);
        }
    }

    #[test]
    fn reversed_ids_go_everywhere() {
        for n in [4, 10, 16, 31] {
            let found = run(20_000, reversed, over_digits(Digits::all(10, 12), n).unwrap(), n);
            let even = 1.0 / n as f64;
            let Spread { hottest, parallelism, idle, .. } = found.spread;
            assert!((hottest - even).abs() < 0.05 * even, "{n}: {hottest}");
            assert!((parallelism - n as f64).abs() < 0.05 * n as f64, "{n}: {parallelism}");
            assert_eq!((idle, found.regions.len()), (0.0, n));
        }
    }

    #[test]
    fn md5_buckets_are_even() {
        for n in [31_u32, 32, 64] {
            let salt = |id| md5_bucket(std::iter::once(ValueRef::Int(id)), n);
            let digits = Digits { radix: 10, width: 2, count: n.into() };
            let cuts = over_digits(digits, n as usize).unwrap();
            let found = run(100_000, |id| format!("{}{id:012}", salt(id)), cuts, n as usize);
            let rows: Vec<u64> = found.regions.iter().map(|region| region.rows).collect();
            assert_eq!(rows.len(), n as usize);
            let (least, most) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
            assert!(*least > 0 && *most as f64 / *least as f64 <= 1.25, "{n}: {least} to {most}");
        }
    }

    #[test]
    fn hex_keys_over_all_bytes_leave_regions_idle() {
        let cuts = crate::design::splits::between(b"0000", b"ffff", 10).unwrap();
        let found = run(10_000, |id| crate::key::md5_digits(ValueRef::Int(id))[..16].to_owned(), cuts, 10);
        assert!(found.slices[0].spread.idle == 7.0, "{:?}", found.slices[0]);
    }

    #[test]
    fn few_writes_and_one_key() {
        let none = replay(&[], &Setup { splits: Vec::new(), rows_max: 1, regions: 4 });
        assert_eq!((none.slices.len(), none.regions.len()), (0, 1));
        let same: Vec<Rowkey> = vec!["k".into(); 100];
        let found = replay(&same, &Setup { splits: Vec::new(), rows_max: 10, regions: 4 });
        assert_eq!((found.regions.len(), found.spread.hottest), (1, 1.0));
    }

    #[test]
    fn regions_that_a_read_asks() {
        let found = run(10_000, reversed, over_digits(Digits::all(10, 12), 10).unwrap(), 10);
        let asked = |ranges: Vec<KeyRange>| found.regions_asked(&KeyRanges::new(ranges));
        assert_eq!(asked(vec![KeyRange::all()]), 10);
        assert_eq!(asked(vec![KeyRange::point("300000000000")]), 1);
        assert_eq!(asked(vec![KeyRange::new("25", "31"), KeyRange::new("95", "96")]), 3);
        assert_eq!(asked(vec![]), 0);
    }
}
