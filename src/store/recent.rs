//! The keys that recent commits wrote, against which the reads of a batch are checked.
//!
//! For each keyspace the last [`KEYS_MAX`] keys are kept, each with the version that wrote it. Of older keys only the
//! newest version is kept: for a reader from before it, the whole keyspace counts as changed. So does one of many
//! keyspaces when they have [`ALL_KEYS_MAX`] keys together. So memory is bounded, and forgetting can only refuse more
//! batches, never fewer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{KeyspaceId, Mutation, Reads, WriteBatch};
use crate::error::{Error, Kind, Result};
use crate::key::{FastMap, Rowkey, hex};

/// Keys kept per keyspace (count).
const KEYS_MAX: usize = 8192;

/// Keys kept of all keyspaces (count).
const ALL_KEYS_MAX: usize = if cfg!(test) { 3 * KEYS_MAX } else { 1 << 18 };

/// Keys per keyspace that a bulk writer records (count); with more, all of the keyspace counts as written.
const KEYS_FEW: usize = 16;

/// The recent writes of all keyspaces. Each writer checks and records while it has the writer lock.
#[derive(Default)]
pub(super) struct Recent {
    keyspaces: FastMap<KeyspaceId, KeyspaceWrites>,
    /// Keys kept (count).
    keys: usize,
}

/// The recent writes to one keyspace.
#[derive(Default)]
struct KeyspaceWrites {
    /// The newest version that may have written any key.
    anywhere: u64,
    /// Keys written since, versions ascending.
    keys: VecDeque<(u64, Rowkey)>,
}

impl Recent {
    /// Errors: `Conflict` when a version after that of `reads` wrote into one of them.
    pub(super) fn check(&self, reads: &Reads) -> Result<()> {
        for keyspace in reads.keyspaces() {
            let Some(written) = self.keyspaces.get(&keyspace) else { continue };
            if written.anywhere > reads.since() {
                return Err(met_much(keyspace));
            }
            let later = written.keys.partition_point(|(version, _)| *version <= reads.since());
            if let Some((_, key)) = written.keys.range(later..).find(|(_, key)| reads.contains(keyspace, key))
            {
                return Err(met_key(keyspace, key));
            }
        }
        Ok(())
    }

    /// Checks the batches of a group that is committed as one, each also against those before it. Gives one result per
    /// batch, and the batches whose reads hold.
    pub(super) fn accept<'b>(&self, group: &'b [WriteBatch]) -> (Vec<Result<()>>, Vec<&'b WriteBatch>) {
        let mut accepted: Vec<&WriteBatch> = Vec::with_capacity(group.len());
        let results = group.iter().map(|batch| {
            self.check(&batch.reads)?;
            let mut before = accepted.iter().flat_map(|before| &before.mutations);
            if let Some(written) = before.find(|mutation| batch.reads.meet(mutation)) {
                return Err(met(written));
            }
            accepted.push(batch);
            Ok(())
        });
        (results.collect(), accepted)
    }

    /// Records that `version` has written `mutations`.
    pub(super) fn record(&mut self, version: u64, mutations: &[Mutation]) {
        // Of a keyspace with so many, no key would be kept that says more than that.
        let mut many = BTreeSet::new();
        if mutations.len() > KEYS_MAX {
            let mut counts = BTreeMap::new();
            mutations.iter().for_each(|mutation| *counts.entry(mutation.keyspace()).or_insert(0) += 1);
            many.extend(counts.into_iter().filter(|(_, count)| *count > KEYS_MAX).map(|(id, _)| id));
            many.iter().for_each(|keyspace| self.record_all(version, *keyspace));
        }
        for mutation in mutations.iter().filter(|mutation| !many.contains(&mutation.keyspace())) {
            match mutation {
                Mutation::Put(keyspace, key, _) | Mutation::Delete(keyspace, key) => {
                    let written = self.keyspaces.entry(*keyspace).or_default();
                    written.keys.push_back((version, key.clone()));
                    self.keys += 1;
                    if written.keys.len() > KEYS_MAX
                        && let Some((forgotten, _)) = written.keys.pop_front()
                    {
                        written.anywhere = forgotten;
                        self.keys -= 1;
                    }
                }
                Mutation::Clear(keyspace) => self.record_all(version, *keyspace),
            }
        }
        while self.keys > ALL_KEYS_MAX
            && let Some(most) = self.keyspaces.iter().max_by_key(|(_, written)| written.keys.len())
            && let (keyspace, Some((last, _))) = (*most.0, most.1.keys.back())
        {
            self.record_all(*last, keyspace);
        }
    }

    /// Records that `version` may have written any key of `keyspace`.
    fn record_all(&mut self, version: u64, keyspace: KeyspaceId) {
        let all = KeyspaceWrites { anywhere: version, keys: VecDeque::new() };
        let before = self.keyspaces.insert(keyspace, all);
        self.keys -= before.map_or(0, |before| before.keys.len());
    }

    /// Records the keys that a bulk writer has written as `version`.
    pub(super) fn record_touched(&mut self, version: u64, touched: Touched) {
        for (keyspace, keys) in touched.0 {
            if keys.len() > KEYS_FEW {
                self.record_all(version, keyspace);
            } else {
                let mutations: Vec<_> = keys.into_iter().map(|key| Mutation::Delete(keyspace, key)).collect();
                self.record(version, &mutations);
            }
        }
    }
}

/// The keys that a bulk writer wrote, as long as they are few.
#[derive(Default)]
pub(super) struct Touched(BTreeMap<KeyspaceId, Vec<Rowkey>>);

impl Touched {
    /// Adds a key that was put or deleted.
    pub(super) fn add(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        let keys = self.0.entry(keyspace).or_default();
        if keys.len() <= KEYS_FEW {
            keys.push(key.into());
        }
    }
}

/// The error for reads that a mutation changes.
fn met(mutation: &Mutation) -> Error {
    match mutation.change() {
        Some((key, _)) => met_key(mutation.keyspace(), key),
        None => met_much(mutation.keyspace()),
    }
}

fn met_key(keyspace: KeyspaceId, key: &[u8]) -> Error {
    conflict(format!("key {} of keyspace {} was written", hex(key), keyspace.0))
}

fn met_much(keyspace: KeyspaceId) -> Error {
    conflict(format!("much of keyspace {} was written", keyspace.0))
}

fn conflict(what: String) -> Error {
    Error::new(Kind::Conflict, "conflict: another transaction changed what this one had read")
        .why(format!("{what} after this transaction's snapshot was taken"))
        .hint("retry the transaction from its beginning")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyRange;

    const T: KeyspaceId = KeyspaceId(1);

    fn put(key: impl Into<Rowkey>) -> Mutation {
        Mutation::Put(T, key.into(), Vec::new())
    }

    fn reads(since: u64, range: KeyRange) -> Reads {
        let mut reads = Reads::new(since);
        reads.add(T, range);
        reads
    }

    #[test]
    fn only_later_writes_into_the_reads_conflict() {
        let mut recent = Recent::default();
        recent.record(5, &[put("b"), Mutation::Delete(T, "d".into())]);
        let holds = |since, range| recent.check(&reads(since, range)).is_ok();
        assert!(holds(5, KeyRange::all()));
        assert!(!holds(4, KeyRange::all()));
        assert!(holds(4, KeyRange::new("c", "d")));
        assert!(!holds(4, KeyRange::point("d")), "a delete is a write");
    }

    #[test]
    fn what_is_forgotten_conflicts_with_everything_before_it() {
        let mut recent = Recent::default();
        let key = |n: usize| format!("{n:06}");
        (0..=KEYS_MAX).for_each(|n| recent.record(n as u64 + 1, &[put(&*key(n))]));
        let holds = |since| recent.check(&reads(since, KeyRange::point("elsewhere"))).is_ok();
        assert!(!holds(0), "version 1 is forgotten");
        assert!(holds(1));
    }

    #[test]
    fn of_many_keyspaces_those_with_most_keys_are_forgotten() {
        let mut recent = Recent::default();
        for keyspace in 1..=4 {
            for n in 0..KEYS_MAX as u64 {
                let put = Mutation::Put(KeyspaceId(keyspace), format!("{n:06}").into(), Vec::new());
                recent.record(u64::from(keyspace) * KEYS_MAX as u64 + n, &[put]);
            }
        }
        let kept: usize = recent.keyspaces.values().map(|written| written.keys.len()).sum();
        assert!(kept <= ALL_KEYS_MAX && kept == recent.keys, "{kept}");
        let holds = |keyspace, since| {
            let mut reads = Reads::new(since);
            reads.add(KeyspaceId(keyspace), KeyRange::point("elsewhere"));
            recent.check(&reads).is_ok()
        };
        let forgotten: Vec<u32> = (1..=4).filter(|keyspace| !holds(*keyspace, 0)).collect();
        assert_eq!(forgotten.len(), 1);
        assert!(holds(forgotten[0], 5 * KEYS_MAX as u64));
    }

    #[test]
    fn a_commit_of_too_many_keys_conflicts_with_everything_before_it() {
        let mut recent = Recent::default();
        let mut many: Vec<_> = (0..=KEYS_MAX).map(|n| put(&*format!("{n:06}"))).collect();
        many.push(Mutation::Put(KeyspaceId(2), "few".into(), Vec::new()));
        recent.record(5, &many);
        let holds = |since| recent.check(&reads(since, KeyRange::point("elsewhere"))).is_ok();
        assert!(!holds(4));
        assert!(holds(5));
        let mut elsewhere = Reads::new(4);
        elsewhere.add(KeyspaceId(2), KeyRange::point("elsewhere"));
        recent.check(&elsewhere).unwrap();
    }

    #[test]
    fn a_cleared_keyspace_conflicts_with_any_read_of_it() {
        let mut recent = Recent::default();
        recent.record(3, &[put("a"), Mutation::Clear(T), put("b")]);
        assert!(recent.check(&reads(2, KeyRange::point("z"))).is_err());
        recent.check(&reads(3, KeyRange::all())).unwrap();
        let mut elsewhere = Reads::new(0);
        elsewhere.add(KeyspaceId(2), KeyRange::all());
        recent.check(&elsewhere).unwrap();
    }

    #[test]
    fn batches_of_a_group_are_held_against_those_before_them_that_are_accepted() {
        let recent = Recent::default();
        let batch = |read: &str, mutation| WriteBatch {
            reads: reads(0, KeyRange::point(read)),
            mutations: vec![mutation],
        };
        let group = [
            batch("a", put("b")),
            batch("b", put("c")),
            batch("c", Mutation::Clear(KeyspaceId(2))),
            batch("d", Mutation::Clear(T)),
            batch("e", put("f")),
        ];
        let (results, accepted) = recent.accept(&group);
        let holds: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(
            holds,
            [true, false, true, true, false],
            "the second did not write what the third has read"
        );
        assert_eq!(accepted.len(), 3);
    }
}
