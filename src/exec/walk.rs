//! Walks the entries of key ranges in order, resuming where the last call stopped.

use std::cmp::Ordering as Order;
use std::collections::VecDeque;
use std::sync::Arc;

use super::jump::{Jumper, Look};
use super::pieces::pieces_of;
use super::spec::{ScanCounters, ScanSpec};
use crate::access::Method;
use crate::error::Result;
use crate::key::{End, KeyRange, Rowkey};
use crate::plan::Stream;
use crate::schema::FamilyId;
use crate::store::{Cursor, Direction, KeyspaceId, Reader};

/// Entries that one call looks at before it returns, so that a scan can be stopped.
const WALK_ENTRIES: u64 = 65_536;
/// Cost of a seek, in entries.
const SEEK_ENTRIES: u64 = 16;
/// Entries that a family's cursor steps over before it seeks instead.
const STEPS_BEFORE_SEEK: usize = 16;

/// The rest of a walk.
#[derive(Debug)]
pub struct Walk {
    keyspace: KeyspaceId,
    direction: Direction,
    /// The ranges are merged, by the key bytes behind a prefix of this length for each range; `None`: walked one by
    /// one.
    merge: Option<Vec<usize>>,
    /// In walking order; what was walked is cut off.
    ranges: VecDeque<KeyRange>,
    /// Skips keys that cannot match, if possible.
    jumper: Option<Box<Jumper>>,
}

/// Receives an entry.
type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<Visited> + 'v;

/// What the visitor did with an entry.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// It became a row.
    pub taken: bool,
    /// The walk should go on.
    pub go_on: bool,
}

impl Walk {
    /// A walk of `method`, which must be a scan, through `keyspace`.
    pub fn new(method: &Method, keyspace: KeyspaceId) -> Walk {
        let Method::Scan { ranges, direction, merge, skip } = method else {
            let direction = Direction::Forward;
            return Walk { keyspace, direction, merge: None, ranges: VecDeque::new(), jumper: None };
        };
        let (mut all, mut prefix_lens) = (Vec::new(), Vec::new());
        match merge {
            None => all = ranges.as_slice().to_vec(),
            Some(fan_out) => {
                for Stream { ranges, prefix_len } in fan_out.streams(ranges) {
                    all.extend_from_slice(ranges.as_slice());
                    prefix_lens.resize(all.len(), prefix_len);
                }
            }
        }
        if *direction == Direction::Reverse {
            all.reverse();
            prefix_lens.reverse();
        }
        let merge = merge.as_ref().map(|_| prefix_lens);
        let jumper = skip.as_ref().map(|skipping| Box::new(Jumper::new(Arc::clone(skipping), *direction)));
        Walk { keyspace, direction: *direction, merge, ranges: all.into(), jumper }
    }

    /// The keyspace that is walked.
    pub fn keyspace(&self) -> KeyspaceId {
        self.keyspace
    }

    /// It can be cut into parts, because it goes through its ranges from end to end.
    pub fn is_divisible(&self) -> bool {
        self.merge.is_none() && self.jumper.is_none() && self.direction == Direction::Forward
    }

    /// Keeps only what thread `part` of `parts` walks, in key order.
    pub fn keep_part(&mut self, reader: &dyn Reader, part: (usize, usize)) -> Result<()> {
        let ranges = std::mem::take(&mut self.ranges).into();
        self.ranges = pieces_of(reader, self.keyspace, ranges, part)?.into();
        Ok(())
    }

    /// Cuts the walk into pieces, in key order.
    pub fn pieces(&self, reader: &dyn Reader) -> Result<Vec<Walk>> {
        let pieces = pieces_of(reader, self.keyspace, self.ranges.clone().into(), (0, 1))?;
        let Walk { keyspace, direction, .. } = *self;
        let walk = |piece| Walk { keyspace, direction, merge: None, ranges: [piece].into(), jumper: None };
        Ok(pieces.into_iter().map(walk).collect())
    }

    /// The direction of the walk.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Keys come in order, so a cursor that walks alongside only moves on.
    pub fn is_ordered(&self) -> bool {
        self.merge.is_none()
    }

    /// Shows the next entries to `visit`, until it stops, the ranges end, or enough entries were looked at in this
    /// call. True: there may be more.
    pub fn go(
        &mut self,
        reader: &dyn Reader,
        counters: &ScanCounters,
        visit: &mut impl FnMut(&[u8], &[u8]) -> Result<Visited>,
    ) -> Result<bool> {
        match self.merge {
            None => self.one_by_one(reader, counters, visit),
            Some(_) => self.merged(reader, counters, visit),
        }
    }

    fn one_by_one(
        &mut self,
        reader: &dyn Reader,
        counters: &ScanCounters,
        visit: &mut impl FnMut(&[u8], &[u8]) -> Result<Visited>,
    ) -> Result<bool> {
        let mut looked = Looked { counters, entries: 0, bytes: 0 };
        let mut jumps = 0;
        let mut cursor: Option<Box<dyn Cursor + '_>> = None;
        loop {
            // The target of a jump in progress when the last call stopped or its range ended.
            if let Some(target) = self.jumper.as_mut().and_then(|jumper| jumper.take_target()) {
                self.cut_up_to(&target);
            }
            let Walk { keyspace, direction, ranges, jumper, .. } = self;
            let Some(range) = ranges.front_mut() else { return Ok(false) };
            ScanCounters::add(&counters.seeks, 1);
            let mut placed = placed(cursor.take(), reader, *keyspace, range, *direction)?;
            let mut then = Then::NextRange;
            placed.walk(&mut |key, value| {
                looked.at(key, value);
                let go_on = match jumper.as_mut().map_or(Look::Possible, |jumper| jumper.look(key)) {
                    Look::Possible => {
                        let visited = visit(key, value)?;
                        if visited.taken && jumper.as_mut().is_some_and(|jumper| !jumper.taken(key)) {
                            then = Then::End;
                            return Ok(false);
                        }
                        visited.go_on
                    }
                    Look::StepOn => true,
                    Look::Seek => {
                        then = Then::Jump;
                        return Ok(false);
                    }
                    Look::Done => {
                        then = Then::End;
                        return Ok(false);
                    }
                };
                if !go_on || looked.entries >= WALK_ENTRIES {
                    cut(range, key, *direction);
                    then = Then::Stop;
                }
                Ok(then == Then::NextRange)
            })?;
            cursor = Some(placed);
            match then {
                Then::NextRange => drop(ranges.pop_front()),
                Then::Stop => return Ok(true),
                // The next call continues at the target.
                Then::Jump if looked.entries + jumps * SEEK_ENTRIES >= WALK_ENTRIES => return Ok(true),
                Then::Jump => jumps += 1,
                Then::End => {
                    ranges.clear();
                    return Ok(false);
                }
            }
        }
    }

    /// Cuts off everything before `target`, in walking order; in reverse, also `target` itself.
    fn cut_up_to(&mut self, target: &Rowkey) {
        let direction = self.direction;
        let passed = self.ranges.iter().take_while(|range| is_passed(range, target, direction)).count();
        self.ranges.drain(..passed);
        if let Some(range) = self.ranges.front_mut() {
            *range = from_target(range, target, direction);
        }
    }

    /// Like [`Walk::one_by_one`], but merges the entries of all ranges, ordered by the key bytes behind each range's
    /// prefix.
    fn merged(
        &mut self,
        reader: &dyn Reader,
        counters: &ScanCounters,
        visit: &mut Visit<'_>,
    ) -> Result<bool> {
        let mut patience = WALK_ENTRIES;
        let Some(mut heads) = self.heads(reader, counters, &mut patience)? else { return Ok(true) };
        let Walk { keyspace, direction, ranges, .. } = self;
        let mut looked_at = 0;
        while let Some(i) = heads.waiting.pop() {
            looked_at += 1;
            let head = &mut heads.all[i];
            let go_on = visit(&head.key, &head.value)?.go_on && looked_at < WALK_ENTRIES;
            let range = &mut ranges[head.range];
            let step = match go_on {
                true => head.step(reader, *keyspace, range, counters, &mut patience)?,
                false => {
                    cut(range, &head.key, *direction);
                    StepResult::Stopped
                }
            };
            match step {
                StepResult::Here => heads.wait(i),
                StepResult::Ended => finish(range),
                StepResult::Stopped => {
                    for head in heads.waiting.into_iter().map(|i| &heads.all[i]) {
                        begin_at(&mut ranges[head.range], &head.key, *direction);
                    }
                    return Ok(true);
                }
            }
        }
        ranges.clear();
        Ok(false)
    }

    /// The first entries of all ranges; `None`: they are not found yet, and the ranges begin where the search stopped.
    fn heads<'r>(
        &mut self,
        reader: &'r dyn Reader,
        counters: &ScanCounters,
        patience: &mut u64,
    ) -> Result<Option<RangeHeads<'r>>> {
        let Walk { keyspace, direction, merge, ranges, jumper } = self;
        let prefix_lens = merge.as_deref().unwrap_or_default();
        let (all, waiting) = (Vec::with_capacity(ranges.len()), Vec::with_capacity(ranges.len()));
        let mut heads = RangeHeads { all, waiting };
        for (i, range) in ranges.iter_mut().enumerate().filter(|(_, range)| !range.is_empty()) {
            ScanCounters::add(&counters.seeks, 1);
            let mut head = RangeHead {
                range: i,
                prefix_len: prefix_lens.get(i).copied().unwrap_or_default(),
                direction: *direction,
                cursor: reader.cursor(*keyspace, range, *direction)?,
                key: Vec::new(),
                value: Vec::new(),
                jumper: jumper.as_ref().map(|jumper| Box::new(jumper.anew())),
            };
            match head.step(reader, *keyspace, range, counters, patience)? {
                StepResult::Here => {
                    heads.all.push(head);
                    heads.wait(heads.all.len() - 1);
                }
                StepResult::Ended => finish(range),
                StepResult::Stopped => return Ok(None),
            }
        }
        Ok(Some(heads))
    }
}

/// The cursor, moved to a range, or a new one there.
fn placed<'r>(
    cursor: Option<Box<dyn Cursor + 'r>>,
    reader: &'r dyn Reader,
    keyspace: KeyspaceId,
    range: &KeyRange,
    direction: Direction,
) -> Result<Box<dyn Cursor + 'r>> {
    if let Some(mut cursor) = cursor
        && cursor.move_to(range)?
    {
        return Ok(cursor);
    }
    reader.cursor(keyspace, range, direction)
}

/// What follows after an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    NextRange,
    /// A jump to the jumper's target.
    Jump,
    /// The call ends, but not the walk.
    Stop,
    /// The walk ends.
    End,
}

/// What one call looked at; added to the common counters at its end.
struct Looked<'c> {
    counters: &'c ScanCounters,
    entries: u64,
    bytes: u64,
}

impl Looked<'_> {
    fn at(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.bytes += (key.len() + value.len()) as u64;
    }
}

impl Drop for Looked<'_> {
    fn drop(&mut self) {
        ScanCounters::add(&self.counters.entries, self.entries);
        ScanCounters::add(&self.counters.bytes, self.bytes);
    }
}

/// Cuts off from `range` what was walked, up to and including `key`.
fn cut(range: &mut KeyRange, key: &[u8], direction: Direction) {
    match direction {
        Direction::Forward => range.start = Rowkey::from(key).successor(),
        Direction::Reverse => range.end = End::Before(key.into()),
    }
}

/// Empties `range`.
fn finish(range: &mut KeyRange) {
    range.end = End::Before(range.start.clone());
}

/// Cuts off from `range` what is before `key`, in walking order.
fn begin_at(range: &mut KeyRange, key: &[u8], direction: Direction) {
    match direction {
        Direction::Forward => range.start = key.into(),
        Direction::Reverse => range.end = End::Before(Rowkey::from(key).successor()),
    }
}

/// All of `range` is before `target`, in walking order.
fn is_passed(range: &KeyRange, target: &Rowkey, direction: Direction) -> bool {
    match direction {
        Direction::Forward => range.is_past(target),
        Direction::Reverse => range.start >= *target,
    }
}

/// The part of `range` from `target` on, in walking order.
fn from_target(range: &KeyRange, target: &Rowkey, direction: Direction) -> KeyRange {
    match direction {
        Direction::Forward => range.intersect(&KeyRange::starting_at(target.clone())),
        Direction::Reverse => range.intersect(&KeyRange::new(Rowkey::default(), target.clone())),
    }
}

/// Where a step has led.
enum StepResult {
    /// To an entry that can match.
    Here,
    /// To the end of the range.
    Ended,
    /// Nowhere yet: the range begins where the step stopped.
    Stopped,
}

/// The next entries of the merged ranges.
struct RangeHeads<'a> {
    all: Vec<RangeHead<'a>>,
    /// Positions in `all`; the one whose turn it is comes last.
    waiting: Vec<usize>,
}

impl RangeHeads<'_> {
    /// Has a head wait for the turn of its entry.
    fn wait(&mut self, i: usize) {
        let head = &self.all[i];
        let behind = match head.direction {
            Direction::Forward => Order::Greater,
            Direction::Reverse => Order::Less,
        };
        let comes_behind =
            |other: &usize| self.all[*other].behind_prefix().cmp(head.behind_prefix()) == behind;
        let at = self.waiting.partition_point(comes_behind);
        self.waiting.insert(at, i);
    }
}

/// The next entry of one of the merged ranges.
struct RangeHead<'a> {
    range: usize,
    prefix_len: usize,
    direction: Direction,
    cursor: Box<dyn Cursor + 'a>,
    key: Vec<u8>,
    value: Vec<u8>,
    jumper: Option<Box<Jumper>>,
}

impl<'a> RangeHead<'a> {
    /// The key bytes by which it is merged.
    fn behind_prefix(&self) -> &[u8] {
        self.key.get(self.prefix_len..).unwrap_or_default()
    }

    /// Moves to the next entry that can match, cutting off from `range` what it skips; stops after `patience`
    /// entries.
    fn step(
        &mut self,
        reader: &'a dyn Reader,
        keyspace: KeyspaceId,
        range: &mut KeyRange,
        counters: &ScanCounters,
        patience: &mut u64,
    ) -> Result<StepResult> {
        let mut has_passed = false;
        loop {
            let Some((key, value)) = self.cursor.next()? else { return Ok(StepResult::Ended) };
            ScanCounters::add(&counters.entries, 1);
            ScanCounters::add(&counters.bytes, (key.len() + value.len()) as u64);
            let direction = self.direction;
            match self.jumper.as_mut().map_or(Look::Possible, |jumper| jumper.look(key)) {
                Look::Possible => {
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    self.value.clear();
                    self.value.extend_from_slice(value);
                    if has_passed {
                        begin_at(range, &self.key, direction);
                    }
                    return Ok(StepResult::Here);
                }
                Look::StepOn => {
                    has_passed = true;
                    *patience = patience.saturating_sub(1);
                    if *patience == 0 {
                        cut(range, key, direction);
                        return Ok(StepResult::Stopped);
                    }
                }
                Look::Done => return Ok(StepResult::Ended),
                Look::Seek => {
                    let target = self.jumper.as_mut().and_then(|jumper| jumper.take_target());
                    let Some(target) = target.filter(|t| !is_passed(range, t, direction)) else {
                        return Ok(StepResult::Ended);
                    };
                    *range = from_target(range, &target, direction);
                    *patience = patience.saturating_sub(SEEK_ENTRIES);
                    if *patience == 0 {
                        return Ok(StepResult::Stopped);
                    }
                    ScanCounters::add(&counters.seeks, 1);
                    self.cursor = reader.cursor(keyspace, range, direction)?;
                }
            }
        }
    }
}

/// A cursor of another family, kept in step with an ordered walk of the default family.
pub struct Side<'a> {
    keyspace: KeyspaceId,
    direction: Direction,
    cursor: Option<Box<dyn Cursor + 'a>>,
    /// The cursor's current entry; `None` behind the last one.
    head: Option<(Vec<u8>, Vec<u8>)>,
    /// The current entry belongs to the current row.
    here: bool,
}

impl<'a> Side<'a> {
    /// A cursor for each of `families` except the default one.
    pub fn for_families(spec: &ScanSpec, families: &[FamilyId], direction: Direction) -> Vec<Side<'a>> {
        let families = families.iter().filter(|f| **f != FamilyId::DEFAULT);
        families
            .map(|f| Side {
                keyspace: spec.table.family(*f).keyspace,
                direction,
                cursor: None,
                head: None,
                here: false,
            })
            .collect()
    }

    /// The cursor's entry comes before `key` in the walk's order.
    fn is_behind(&self, key: &[u8]) -> bool {
        let behind = match self.direction {
            Direction::Forward => Order::Less,
            Direction::Reverse => Order::Greater,
        };
        self.head.as_ref().is_some_and(|(at, _)| at.as_slice().cmp(key) == behind)
    }

    /// Moves on to `key`: by steps if it is near, by a seek if it is far.
    pub fn advance(&mut self, reader: &'a dyn Reader, key: &[u8], counters: &ScanCounters) -> Result<()> {
        for _ in 0..STEPS_BEFORE_SEEK {
            if !self.is_behind(key) {
                break;
            }
            self.step(counters)?;
        }
        if self.cursor.is_none() || self.is_behind(key) {
            let range = match self.direction {
                Direction::Forward => KeyRange::starting_at(key),
                Direction::Reverse => KeyRange::new(Rowkey::default(), Rowkey::from(key).successor()),
            };
            ScanCounters::add(&counters.seeks, 1);
            self.cursor = Some(reader.cursor(self.keyspace, &range, self.direction)?);
            self.step(counters)?;
        }
        self.here = self.head.as_ref().is_some_and(|(at, _)| at == key);
        Ok(())
    }

    fn step(&mut self, counters: &ScanCounters) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let entry = cursor.next()?;
        if let Some((key, value)) = entry {
            ScanCounters::add(&counters.bytes, (key.len() + value.len()) as u64);
        }
        match (entry, &mut self.head) {
            (None, head) => *head = None,
            (Some((key, value)), Some((old_key, old_value))) => {
                old_key.clear();
                old_key.extend_from_slice(key);
                old_value.clear();
                old_value.extend_from_slice(value);
            }
            (Some((key, value)), head) => *head = Some((key.to_vec(), value.to_vec())),
        }
        Ok(())
    }

    /// The family's value of the current row, if it has one.
    pub fn value(&self) -> Option<&[u8]> {
        self.head.as_ref().filter(|_| self.here).map(|(_, value)| &value[..])
    }
}
