//! Skips keys that cannot match: step by step if the next possible key is near, by a seek if it is far.
//!
//! Only walking shows how far it is. So a [`Jumper`] tries a few steps first, fewer after steps in vain, more after
//! steps that succeeded, and now and then the maximum again. Where jumps are short this costs hardly more than
//! reading on; where they are long, little more than the seeks.
//!
//! A walk looks at all possible entries and at most [`PATIENCE_MAX`] + 1 more for each jump; where all jumps are
//! long, at three for each, and a few to begin with. It seeks at most once per jump; `plan/proof.rs` bounds their
//! number.

use std::sync::Arc;

use crate::key::Rowkey;
use crate::plan::{Skip, Skipping};
use crate::store::Direction;

/// Most steps (count) towards the next possible key before a seek.
const PATIENCE_MAX: u32 = 16;
/// Every so many jumps, the maximum is tried again.
const RETRY_JUMPS: u32 = 16;

/// What to do after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It can match.
    Possible,
    /// It cannot; the next one may.
    StepOn,
    /// It cannot match, nor any before [`Jumper::take_target`].
    Seek,
    /// Neither it nor any entry behind it can match.
    Done,
}

/// Decides what to do after each entry of a walk.
#[derive(Debug)]
pub struct Jumper {
    skipping: Arc<Skipping>,
    direction: Direction,
    starts: Vec<usize>,
    /// No key before this one can match; in reverse, nor can this key itself.
    target: Option<Rowkey>,
    /// Steps left towards the target.
    steps: u32,
    patience: u32,
    jumps: u32,
    /// The group of the last rows given out, and their number (count).
    group: Vec<u8>,
    taken: u64,
    /// What the keys behind them have to begin with; empty while more of the group are wanted anyway.
    tied: Vec<u8>,
}

impl Jumper {
    pub fn new(skipping: Arc<Skipping>, direction: Direction) -> Jumper {
        Jumper {
            skipping,
            direction,
            starts: Vec::new(),
            target: None,
            steps: 0,
            patience: PATIENCE_MAX,
            jumps: 0,
            group: Vec::new(),
            taken: 0,
            tied: Vec::new(),
        }
    }

    /// A fresh one, for another walk of the same scan.
    pub fn anew(&self) -> Jumper {
        Jumper::new(Arc::clone(&self.skipping), self.direction)
    }

    /// The key to seek to, if a jump is in progress.
    pub fn take_target(&mut self) -> Option<Rowkey> {
        self.target.take()
    }

    /// Counts a row of `key` that was given out; false if no row behind it is wanted.
    pub fn taken(&mut self, key: &[u8]) -> bool {
        let skip = &self.skipping.skip;
        let (Some(each), Some(group)) = (skip.each_of(), skip.group(key)) else { return true };
        if self.taken == 0 || self.group != group {
            self.group.clear();
            self.group.extend_from_slice(group);
            self.tied.clear();
            self.taken = 0;
        }
        self.taken += 1;
        if self.taken < each.rows || !self.tied.is_empty() {
            return true;
        }
        if let Some(tied) = skip.tied(key) {
            self.tied.extend_from_slice(tied);
            return true;
        }
        self.leave_group()
    }

    /// Begins a jump behind the group; false if there is nothing.
    fn leave_group(&mut self) -> bool {
        let target = Skip::behind_group(&self.group, self.direction == Direction::Forward);
        let goes_on = target.is_some();
        if goes_on {
            self.aim(target);
        }
        goes_on
    }

    /// Decides about `key`, which the walk has reached.
    pub fn look(&mut self, key: &[u8]) -> Look {
        if let Some(target) = &self.target {
            let is_before = match self.direction {
                Direction::Forward => *key < **target,
                Direction::Reverse => *key >= **target,
            };
            if is_before && self.steps == 0 {
                self.patience = (self.patience / 2).max(1);
                return Look::Seek;
            } else if is_before {
                self.steps -= 1;
                return Look::StepOn;
            }
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.target = None;
        }
        if !self.tied.is_empty() && !key.starts_with(&self.tied) {
            self.tied.clear();
            if key.starts_with(&self.group) {
                return if self.leave_group() { Look::StepOn } else { Look::Done };
            }
        }
        let skip = &self.skipping.skip;
        if skip.is_possible(key, &mut self.starts) {
            return Look::Possible;
        }
        let target = match self.direction {
            Direction::Forward => skip.next(key, &self.starts),
            Direction::Reverse => skip.previous(key, &self.starts),
        };
        if target.is_none() {
            return Look::Done;
        }
        self.aim(target);
        Look::StepOn
    }

    /// Begins a jump to `target`; the current entry is its first step.
    fn aim(&mut self, target: Option<Rowkey>) {
        self.target = target;
        self.jumps += 1;
        self.steps = if self.jumps.is_multiple_of(RETRY_JUMPS) { PATIENCE_MAX } else { self.patience };
        self.steps -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::{ColumnId, ColumnInfo, KeyLayout, PartSpec, Tail, Transform};
    use crate::plan::{EachOf, Field, LayoutRole, Predicate, ranges};
    use crate::value::{ColumnType, Value};

    const A: ColumnId = ColumnId(0);
    const B: ColumnId = ColumnId(1);
    const C: ColumnId = ColumnId(2);

    /// `(a, b)`
    fn layout() -> KeyLayout {
        layout_of(&[A, B])
    }

    fn layout_of(columns: &[ColumnId]) -> KeyLayout {
        let part =
            |column| PartSpec { sql: "c".into(), transform: Transform::Column(column), descending: false };
        let info = |_| ColumnInfo { name: "c", ty: ColumnType::Integer, nullable: false, identity: false };
        KeyLayout::new(columns.iter().copied().map(part).collect(), &info, Tail::Nothing).unwrap()
    }

    fn key(layout: &KeyLayout, a: i64, b: i64) -> Vec<u8> {
        key_of(layout, &[a, b])
    }

    fn key_of(layout: &KeyLayout, values: &[i64]) -> Vec<u8> {
        let (mut key, values) = (Vec::new(), values.iter().copied().map(Value::Int).collect::<Vec<_>>());
        layout.encode(&values, &|_| "c", 0, &mut key).unwrap();
        key
    }

    #[derive(Debug, Default)]
    struct Walked {
        found: Vec<Vec<u8>>,
        entries: usize,
        seeks: usize,
    }

    /// Walks sorted keys as the jumper says.
    fn walk(keys: &[Vec<u8>], skipping: &Arc<Skipping>, direction: Direction) -> Walked {
        let mut jumper = Jumper::new(Arc::clone(skipping), direction);
        let mut out = Walked::default();
        let (mut from, mut to) = (0, keys.len());
        while from < to {
            let key = match direction {
                Direction::Forward => &keys[from],
                Direction::Reverse => &keys[to - 1],
            };
            out.entries += 1;
            match jumper.look(key) {
                Look::Possible => {
                    out.found.push(key.clone());
                    if !jumper.taken(key) {
                        break;
                    }
                }
                Look::StepOn => {}
                Look::Done => break,
                Look::Seek => {
                    out.seeks += 1;
                    let target = jumper.take_target().unwrap();
                    let at = keys.partition_point(|key| key[..] < target[..]);
                    match direction {
                        Direction::Forward => from = at,
                        Direction::Reverse => to = at,
                    }
                    continue;
                }
            }
            match direction {
                Direction::Forward => from += 1,
                Direction::Reverse => to -= 1,
            }
        }
        out
    }

    fn skipping(layout: &KeyLayout, b: &[i64]) -> Arc<Skipping> {
        let values = b.iter().copied().map(Value::Int).collect();
        let wanted = Predicate::is_in(Field::Column(B), values);
        let found = ranges(&wanted, layout, LayoutRole::Primary);
        Arc::new(found.skipping.unwrap())
    }

    proptest! {
        #[test]
        fn looks_at_what_is_possible_and_a_few_more_for_each_jump(
            groups in prop::collection::vec((0_i64..200, 1_i64..80), 1..40),
            wanted in prop::collection::btree_set(0_i64..90, 1..4),
            reverse: bool,
        ) {
            let layout = layout();
            let wanted: Vec<i64> = wanted.into_iter().collect();
            let groups: std::collections::BTreeMap<i64, i64> = groups.into_iter().collect();
            let of_group = |(&a, &n): (&i64, &i64)| (0..n).map(move |b| (a, b)).collect::<Vec<_>>();
            let rows: Vec<(i64, i64)> = groups.iter().flat_map(of_group).collect();
            let keys: Vec<Vec<u8>> = rows.iter().map(|&(a, b)| key(&layout, a, b)).collect();
            let mut matching: Vec<Vec<u8>> = rows.iter().zip(&keys)
                .filter(|((_, b), _)| wanted.contains(b)).map(|(_, key)| key.clone()).collect();
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            if reverse {
                matching.reverse();
            }
            let walked = walk(&keys, &skipping(&layout, &wanted), direction);
            let jumps_max = groups.len() * (wanted.len() + 1);
            prop_assert!(walked.seeks <= jumps_max, "{walked:?}");
            prop_assert!(walked.entries <= matching.len() + (PATIENCE_MAX as usize + 1) * jumps_max, "{walked:?}");
            prop_assert_eq!(walked.found, matching);
        }
    }

    proptest! {
        #[test]
        fn the_first_of_each_group_are_taken_and_those_that_tie(
            rows in prop::collection::btree_set((0_i64..6, 0_i64..5, 0_i64..30), 1..300),
            enough in 1_u64..6,
            tied: bool,
            reverse: bool,
        ) {
            let layout = layout_of(&[A, B, C]);
            let each = EachOf { parts: 1, rows: enough, tied: tied.then_some(2) };
            let skipping = Arc::new(Skipping::each(&layout, each, None, &Predicate::True));
            let keys: Vec<Vec<u8>> = rows.iter().map(|&(a, b, c)| key_of(&layout, &[a, b, c])).collect();
            let mut in_turn: Vec<_> = rows.iter().zip(&keys).collect();
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            if reverse {
                in_turn.reverse();
            }
            let is_wanted = |at: usize| {
                let (a, b, _) = *in_turn[at].0;
                let before: Vec<_> = in_turn[..at].iter().filter(|(row, _)| row.0 == a).collect();
                let last = before.get(enough as usize - 1);
                last.is_none_or(|(last, _)| tied && last.1 == b)
            };
            let wanted = (0..in_turn.len()).filter(|at| is_wanted(*at)).map(|at| in_turn[at].1.clone());
            let wanted: Vec<Vec<u8>> = wanted.collect();
            let walked = walk(&keys, &skipping, direction);
            prop_assert!(walked.seeks <= 6, "{walked:?}");
            prop_assert_eq!(walked.found, wanted);
        }
    }

    #[test]
    fn long_jumps_cost_three_entries_each() {
        let layout = layout();
        let rows = (0..100).flat_map(|a| (0..200).map(move |b| (a, b)));
        let keys: Vec<Vec<u8>> = rows.map(|(a, b)| key(&layout, a, b)).collect();
        let walked = walk(&keys, &skipping(&layout, &[100]), Direction::Forward);
        assert_eq!((walked.found.len(), walked.seeks), (100, 200));
        assert!(walked.entries <= 100 + 3 * 200 + 2 * PATIENCE_MAX as usize, "{}", walked.entries);
    }

    #[test]
    fn short_jumps_are_stepped_over() {
        let layout = layout();
        let rows = (0..100).flat_map(|a| (0..4).map(move |b| (a, b)));
        let keys: Vec<Vec<u8>> = rows.map(|(a, b)| key(&layout, a, b)).collect();
        let walked = walk(&keys, &skipping(&layout, &[2]), Direction::Forward);
        assert_eq!((walked.found.len(), walked.seeks, walked.entries), (100, 0, 400));
    }
}
