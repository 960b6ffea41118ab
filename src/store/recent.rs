//! Which keys the last commits wrote: what the reads of a batch are checked against.
//!
//! Of each keyspace the last [`KEYS_MAX`] keys are kept, each with the version that wrote it. What is older
//! is forgotten but for its version: to a reader from before that, the whole keyspace has changed. So memory
//! is bounded, and forgetting can only refuse more, never less.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::MutexGuard;

use super::{KeyspaceId, Mutation, Reads, WriteBatch};
use crate::error::{Error, Kind, Result};
use crate::key::{FastMap, Rowkey, hex};

/// Keys remembered of one keyspace (count).
const KEYS_MAX: usize = 8192;

/// Keys of one keyspace that a bulk writer names (count); with more it is taken to have written all of it.
const KEYS_FEW: usize = 16;

/// What the last commits wrote.
#[derive(Default)]
pub(super) struct Recent {
    keyspaces: FastMap<KeyspaceId, Written>,
    /// The last version that came to something.
    newest: u64,
}

/// What they wrote into one keyspace.
#[derive(Default)]
struct Written {
    /// The last version that wrote any key, for all that is known.
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

    /// `version` writes this.
    fn record(&mut self, version: u64, mutations: &[Mutation]) {
        for mutation in mutations {
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

    /// `version` writes any keys of `keyspace`.
    fn record_all(&mut self, version: u64, keyspace: KeyspaceId) {
        self.keyspaces.insert(keyspace, Written { anywhere: version, keys: VecDeque::new() });
    }

    /// `version` came to nothing after all. Snapshots to come are of the newest version, so they must not conflict
    /// with it, however many numbers have been drawn in vain since.
    fn take_back(&mut self, version: u64) {
        for written in self.keyspaces.values_mut() {
            written.anywhere = written.anywhere.min(self.newest);
            while written.keys.back().is_some_and(|(last, _)| *last >= version) {
                written.keys.pop_back();
            }
        }
    }
}

/// A commit under way, which keeps others from recording theirs. What it records is taken back when it is
/// dropped, unless it was [kept](Recorder::keep).
pub(super) struct Recorder<'r> {
    recent: MutexGuard<'r, Recent>,
    /// The number that the commit will have.
    version: u64,
    kept: bool,
}

impl<'r> Recorder<'r> {
    /// A commit that will make this version.
    pub(super) fn new(recent: MutexGuard<'r, Recent>, version: u64) -> Self {
        Recorder { recent, version, kept: false }
    }

    /// As [`Recent::check`], what this commit recorded so far included.
    pub(super) fn check(&self, reads: &Reads) -> Result<()> {
        self.recent.check(reads)
    }

    /// Records the batches of a group whose reads hold, each minding those before it; one result per batch, and those.
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

    /// It writes (or deletes) this.
    pub(super) fn record(&mut self, mutations: &[Mutation]) {
        self.recent.record(self.version, mutations);
    }

    /// It writes what a bulk writer touched.
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

    /// The commit was made.
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

/// Keys that a bulk writer wrote, as long as they are few.
#[derive(Default)]
pub(super) struct Touched(BTreeMap<KeyspaceId, Vec<Rowkey>>);

impl Touched {
    /// It writes or deletes this key.
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
