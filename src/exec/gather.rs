//! Rows by way of several indexes: first the rowkeys, put together in key order, then a GET for each.

use std::collections::VecDeque;

use super::pull::{Pull, dangling, passes};
use super::scan::{Counters, ScanSpec};
use super::sink::Sink;
use super::view::{Scratch, Sources, View, see_entry};
use super::walk::{Visited, Walk};
use crate::access::{Access, Method, SetOp};
use crate::error::Result;
use crate::index::open_entry;
use crate::key::Rowkey;
use crate::plan::Predicate;
use crate::schema::{IndexDef, IndexId};
use crate::store::Direction;

/// Rowkeys that are being found, then asked for.
pub struct Gather {
    set: SetOp,
    direction: Direction,
    /// Rows that an index says are there need not be read.
    covering: bool,
    /// Still to be walked; the first may be under way.
    branches: VecDeque<Branch>,
    /// Those of the first branch that are found so far.
    walked: Vec<Pointer>,
    /// Those that the branches before it give: sorted, each once, in the direction of the rows when no branch is left.
    found: Option<Vec<Pointer>>,
    /// The first of them that is not yet asked for.
    next: usize,
}

/// A rowkey, and the index that says its row is there.
type Pointer = (Rowkey, Option<IndexId>);

/// One access under way.
enum Branch {
    /// Keys, whether there are such rows or not.
    Keys(Vec<Rowkey>),
    Rows(Walk),
    Entries {
        walk: Walk,
        index: Box<IndexDef>,
        filter: Predicate,
        sources: Sources,
    },
}

impl Gather {
    /// Nothing read so far.
    pub fn new(
        spec: &ScanSpec,
        set: SetOp,
        branches: &[Access],
        direction: Direction,
        covering: bool,
    ) -> Gather {
        let branches = branches.iter().map(|access| Branch::new(spec, access)).collect();
        Gather { set, direction, covering, branches, walked: Vec::new(), found: None, next: 0 }
    }

    /// Looks for rowkeys, or fills `out` with their rows when all are found; false if nothing follows.
    pub fn go(&mut self, pull: &Pull<'_>, out: &mut impl Sink) -> Result<bool> {
        let Some(branch) = self.branches.front_mut() else { return self.rows(pull, out) };
        if !branch.walk(pull, &mut self.walked)? {
            self.branches.pop_front();
            self.put_together();
        }
        Ok(true)
    }

    /// Joins what a branch found to what the branches before it gave.
    fn put_together(&mut self) {
        let mut walked = std::mem::take(&mut self.walked);
        let before = self.found.take();
        let mut found = match (self.set, before) {
            (SetOp::Union, Some(mut before)) => {
                before.append(&mut walked);
                before
            }
            (SetOp::Intersection, Some(mut before)) => {
                walked.sort_unstable();
                let is_there = |key: &Rowkey| walked.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
                before.retain(|(key, _)| is_there(key));
                before
            }
            (_, None) => walked,
        };
        // Of two with one key, the one that an index answers for stays.
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        found.dedup_by(|a, b| a.0 == b.0);
        if self.set == SetOp::Intersection && found.is_empty() {
            self.branches.clear();
        }
        if self.branches.is_empty() && self.direction == Direction::Reverse {
            found.reverse();
        }
        self.found = Some(found);
    }

    fn rows(&mut self, pull: &Pull<'_>, out: &mut impl Sink) -> Result<bool> {
        let found = self.found.as_deref().unwrap_or_default();
        let mut scratch = Scratch::new(&pull.spec.table);
        while self.next < found.len() && !out.is_full() {
            let (key, index) = &found[self.next];
            self.next += 1;
            if self.covering && index.is_some() {
                pull.row_out(key, &[], std::iter::empty(), &mut scratch, out)?;
                continue;
            }
            Counters::add(&pull.counters.fetched, 1);
            let Some(value) = pull.get(pull.spec.table.rows(), key)? else {
                match index.and_then(|id| pull.spec.table.index_by_id(id)) {
                    Some(index) => return Err(dangling(pull.spec, index, key)),
                    None => continue,
                }
            };
            let families = pull.families(key)?;
            pull.row_out(key, value, families.into_iter(), &mut scratch, out)?;
        }
        Ok(self.next < found.len())
    }
}

impl Branch {
    fn new(spec: &ScanSpec, access: &Access) -> Branch {
        let index = access.index(spec.source());
        match (&access.method, index) {
            (Method::Scan { .. }, Some(index)) => Branch::Entries {
                walk: Walk::new(&access.method, index.keyspace),
                sources: Sources::new(&spec.table, Some(index), &access.entry_filter.fields()),
                index: Box::new(index.clone()),
                filter: access.entry_filter.clone(),
            },
            (Method::Scan { .. }, None) => Branch::Rows(Walk::new(&access.method, spec.table.rows())),
            (Method::Get(keys), _) => Branch::Keys(keys.clone()),
            (Method::Empty | Method::Gather { .. }, _) => Branch::Keys(Vec::new()),
        }
    }

    /// Adds rowkeys to `found`; true if there may be more.
    fn walk(&mut self, pull: &Pull<'_>, found: &mut Vec<Pointer>) -> Result<bool> {
        match self {
            Branch::Keys(keys) => {
                found.extend(keys.drain(..).map(|key| (key, None)));
                Ok(false)
            }
            Branch::Rows(walk) => walk.go(pull.reader, pull.counters, &mut |key, _| {
                found.push((key.into(), None));
                Ok(Visited { taken: false, go_on: true })
            }),
            Branch::Entries { walk, index, filter, sources } => {
                let mut scratch = Scratch::new(&pull.spec.table);
                walk.go(pull.reader, pull.counters, &mut |key, value| {
                    let parts = open_entry(index, key, value)?;
                    let see = |view: &View<'_>| passes(filter, view);
                    if see_entry(pull.spec, sources, index, &parts, &mut scratch, see)? {
                        found.push((parts.pointer.into(), Some(index.id)));
                    }
                    Ok(Visited { taken: false, go_on: true })
                })
            }
        }
    }
}
