//! The choice for a statement that has run before, with other parameters.

use super::choose::path_access;
use super::cost::{COST, Statistics};
use super::path::{Access, Method, Need, Path, Source};
use super::probe::Jumps;
use crate::key::KeyRanges;
use crate::plan::Skip;
use crate::schema::TableStatistics;
use crate::store::KeyspaceId;

/// The path that served the same statement before, if for these parameters too it cannot cost much, so that no
/// other need be looked at: nothing or one key to read, a limit on rows that lie in order, or few entries.
pub fn choose_again(source: Source<'_>, need: &Need, path: Path, stats: &dyn Statistics) -> Option<Access> {
    let mut access = path_access(source, need, path, &Unprobed(stats))?;
    match &access.method {
        Method::Empty | Method::Get(_) => Some(access),
        Method::Scan { skip: Some(_), .. } | Method::Gather { .. } => None,
        Method::Scan { ranges, .. } => {
            let reads_all = access.entry_filter.is_true() && access.filter.is_true();
            let few = COST.probe_entries;
            if need.limit.is_some_and(|limit| limit < few) && access.ordered && reads_all {
                return Some(access);
            }
            let found = stats.probe(access.keyspace(source), ranges, few);
            access.entries = found as f64;
            (found < few).then_some(access)
        }
    }
}

/// Statistics without a look at the data: every range is long.
struct Unprobed<'a>(&'a dyn Statistics);

impl Statistics for Unprobed<'_> {
    fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.0.entries(keyspace)
    }

    fn probe(&self, _: KeyspaceId, _: &KeyRanges, limit: u64) -> u64 {
        limit
    }

    fn collected(&self) -> Option<&TableStatistics> {
        self.0.collected()
    }

    fn jumps(&self, _: KeyspaceId, _: &KeyRanges, _: &Skip) -> Jumps {
        Jumps::default()
    }
}
