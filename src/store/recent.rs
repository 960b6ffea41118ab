//! The keys that recent commits wrote, against which the reads of a batch are checked.
//!
//! For each keyspace the last [`KEYS_MAX`] keys are kept, each with the version that wrote it. Of older keys only the
//! newest version is kept: for a reader from before it, the whole keyspace counts as changed. So memory is bounded,
//! and forgetting can only refuse more batches, never fewer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parking_lot::MutexGuard;

use super::{KeyspaceId, Mutation, Reads, WriteBatch};
use crate::error::{Error, Kind, Result};
use crate::key::{FastMap, Rowkey, hex};

/// Keys kept per keyspace (count).
const KEYS_MAX: usize = 8192;

/// Keys per keyspace that a bulk writer records (count); with more, all of the keyspace counts as written.
const KEYS_FEW: usize = 16;

/// The recent writes of all keyspaces.
#[derive(Default)]
pub(super) struct Recent {
    keyspaces: FastMap<KeyspaceId, KeyspaceWrites>,
    /// The newest version that was committed.
    newest: u64,
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
                return Err(conflict(format!("much of keyspace {} was written", keyspace.0)));
            }
            let later = written.keys.partition_point(|(version, _)| *version <= reads.since());
            if let Some((_, key)) = written.keys.range(later..).find(|(_, key)| reads.contains(keyspace, key))
            {
                return Err(conflict(format!("key {} of keyspace {} was written", hex(key), keyspace.0)));
            }
        }
        Ok(())
    }

    /// Records that `version` writes `mutations`.
    fn record(&mut self, version: u64, mutations: &[Mutation]) {
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
                    if written.keys.len() > KEYS_MAX
                        && let Some((forgotten, _)) = written.keys.pop_front()
                    {
                        written.anywhere = forgotten;
                    }
                }
                Mutation::Clear(keyspace) => self.record_all(version, *keyspace),
            }
        }
    }

    /// Records that `version` may write any key of `keyspace`.
    fn record_all(&mut self, version: u64, keyspace: KeyspaceId) {
        self.keyspaces.insert(keyspace, KeyspaceWrites { anywhere: version, keys: VecDeque::new() });
    }

    /// Undoes what `version` recorded, because it was not committed. New snapshots have the newest committed version,
    /// which may be several numbers less than `version`; they must not conflict with it.
    fn take_back(&mut self, version: u64) {
        for written in self.keyspaces.values_mut() {
            written.anywhere = written.anywhere.min(self.newest);
            while written.keys.back().is_some_and(|(last, _)| *last >= version) {
                written.keys.pop_back();
            }
        }
    }
}

/// A commit in progress; no other can record meanwhile. What it records is undone when it is dropped, unless it was
/// [kept](Recorder::keep).
pub(super) struct Recorder<'r> {
    recent: MutexGuard<'r, Recent>,
    /// The version that the commit will have.
    version: u64,
    kept: bool,
}

impl<'r> Recorder<'r> {
    /// Begins a commit that will have this version.
    pub(super) fn new(recent: MutexGuard<'r, Recent>, version: u64) -> Self {
        Recorder { recent, version, kept: false }
    }

    /// As [`Recent::check`], but includes what this commit has recorded so far.
    pub(super) fn check(&self, reads: &Reads) -> Result<()> {
        self.recent.check(reads)
    }

    /// Records the batches of a group whose reads hold, each checked against those before it too. Gives one result
    /// per batch, and the accepted batches.
    pub(super) fn accept<'b>(&mut self, group: &'b [WriteBatch]) -> (Vec<Result<()>>, Vec<&'b WriteBatch>) {
        let mut accepted = Vec::with_capacity(group.len());
        let results = group.iter().map(|batch| {
            self.check(&batch.reads)?;
            self.record(&batch.mutations);
            accepted.push(batch);
            Ok(())
        });
        (results.collect(), accepted)
    }

    /// Records puts and deletes of the commit.
    pub(super) fn record(&mut self, mutations: &[Mutation]) {
        self.recent.record(self.version, mutations);
    }

    /// Records the keys that a bulk writer touched.
    pub(super) fn record_touched(&mut self, touched: Touched) {
        for (keyspace, keys) in touched.0 {
            if keys.len() > KEYS_FEW {
                self.recent.record_all(self.version, keyspace);
            } else {
                let mutations = keys.into_iter().map(|key| Mutation::Delete(keyspace, key));
                self.record(&mutations.collect::<Vec<_>>());
            }
        }
    }

    /// Keeps what was recorded: the commit has succeeded.
    pub(super) fn keep(mut self) {
        self.kept = true;
        self.recent.newest = self.version;
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.recent.take_back(self.version);
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
    fn what_was_taken_back_conflicts_with_nobody() {
        let mut recent = Recent::default();
        recent.record(3, &[put("a")]);
        recent.newest = 3;
        recent.record(7, &[put("b"), Mutation::Clear(KeyspaceId(2))]);
        recent.take_back(7);
        let mut all = reads(3, KeyRange::all());
        all.add(KeyspaceId(2), KeyRange::all());
        recent.check(&all).unwrap();
        assert!(recent.check(&reads(2, KeyRange::point("a"))).is_err());
    }
}
