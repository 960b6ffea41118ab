//! How a walk gets over keys that cannot match: step by step if the next possible key is near, by a seek
//! if it is far.
//!
//! How far it is, only walking there shows. So a [`Jumper`] is patient for a few steps, less so after steps
//! that were in vain, more so after others, and now and then tries anew: where jumps are short it costs
//! hardly more than reading on, where they are long little more than the seeks.

use std::sync::Arc;

use crate::key::Rowkey;
use crate::plan::{Skip, Skipping};
use crate::store::Direction;

/// Steps (count) towards the next possible key before a seek, at the most.
const PATIENCE_MAX: u32 = 16;
/// Every so many jumps, patience is tried again.
const RETRY_JUMPS: u32 = 16;

/// What to do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It can match.
    Possible,
    /// It cannot; the next one may.
    StepOn,
    /// It cannot, nor any before [`Jumper::take_target`].
    Seek,
    /// Neither it nor any behind it can.
    Done,
}

/// Tells what to do with each entry of a walk.
#[derive(Debug)]
pub struct Jumper {
    skipping: Arc<Skipping>,
    direction: Direction,
    starts: Vec<usize>,
    /// Nothing before this key can match; in reverse, it itself cannot, either.
    target: Option<Rowkey>,
    /// Steps left towards the target.
    steps: u32,
    patience: u32,
    jumps: u32,
    /// The group that rows were last taken of, and how many (count).
    group: Vec<u8>,
    taken: u64,
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
        }
    }

    /// Another one, for a walk beside this one.
    pub fn anew(&self) -> Jumper {
        Jumper::new(Arc::clone(&self.skipping), self.direction)
    }

    /// Where to seek to, if it is still under way to a possible key.
    pub fn take_target(&mut self) -> Option<Rowkey> {
        self.target.take()
    }

    /// A row of `key` was given out; false if none behind it is wanted.
    pub fn taken(&mut self, key: &[u8]) -> bool {
        let skip = &self.skipping.skip;
        let (Some(each), Some(group)) = (skip.each_of(), skip.group(key)) else { return true };
        if self.taken == 0 || self.group != group {
            self.group.clear();
            self.group.extend_from_slice(group);
            self.taken = 0;
        }
        self.taken += 1;
        if self.taken < each.rows {
            return true;
        }
        let target = Skip::behind_group(group, self.direction == Direction::Forward);
        let goes_on = target.is_some();
        if goes_on {
            self.aim(target);
        }
        goes_on
    }

    /// The walk came to `key`.
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

    /// From here on to `target`, the current entry being the first step.
    fn aim(&mut self, target: Option<Rowkey>) {
        self.target = target;
        self.jumps += 1;
        self.steps = if self.jumps.is_multiple_of(RETRY_JUMPS) { PATIENCE_MAX } else { self.patience };
        self.steps -= 1;
    }
}
