//! What a statement needs of a table, and the access path that gives it.

use std::sync::Arc;

use super::cost::{COST, Statistics};
use super::hints::Hints;
use crate::key::{KeyRanges, Rowkey};
use crate::plan::{FanOut, Field, Filter, Predicate, Skipping};
use crate::schema::{IndexDef, IndexId, TableDef};
use crate::store::{Direction, KeyspaceId};

/// One column of an ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// The field to order by.
    pub field: Field,
    /// Largest first. NULLs are smallest either way.
    pub descending: bool,
}

/// What a statement needs of one table or index.
#[derive(Clone, Debug)]
pub struct Need {
    /// The rows.
    pub predicate: Predicate,
    /// The fields.
    pub output: Arc<[Field]>,
    /// The order, if it matters.
    pub order: Vec<OrderBy>,
    /// Most rows (count), after all filters and in that order.
    pub limit: Option<u64>,
    /// The number of these rows that OFFSET skips.
    pub offset: u64,
    /// Hints about the path.
    pub hints: Hints,
    /// A few rows of each group are enough; `None`: all rows are needed.
    pub each: Option<Each>,
}

/// How many rows of each group are enough. More do no harm.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// The fields that form a group.
    pub of: Vec<Field>,
    /// Which rows: the first in this order, unless it is empty.
    pub order: Vec<OrderBy>,
    /// Rows per group (count), at least 1.
    pub rows: u64,
    /// Those that equal the last of them in all of the order are wanted, too.
    pub with_ties: bool,
}

/// What is read: a table, or an index as if it were a table.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The rows of a table, by any path.
    Table(&'a TableDef),
    /// The entries of an index.
    Index(&'a TableDef, &'a IndexDef),
}

/// The keyspace that is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The table itself.
    Primary,
    /// A covering index.
    IndexOnly(IndexId),
    /// An index, followed by a GET of each row.
    IndexFetch(IndexId),
}

/// How the entries are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Nothing can match: the store is not asked.
    Empty,
    /// One GET for each key.
    Get(Vec<Rowkey>),
    /// A walk through each range.
    Scan {
        /// Sorted and disjoint.
        ranges: KeyRanges,
        /// Which way.
        direction: Direction,
        /// The prefixes whose ranges are merged, so that rows come in the order of what follows the prefix.
        merge: Option<FanOut>,
        /// A skip scan: jumps over keys inside the ranges that cannot match.
        skip: Option<Arc<Skipping>>,
    },
    /// The rowkeys of several accesses, combined in key order; one GET for each rowkey, unless the entries
    /// are `covering`.
    Gather {
        /// Union or intersection.
        set: SetOp,
        /// Accesses that give rowkeys, from index entries or from the table. Conditions that they do not
        /// check are in the row filter.
        branches: Vec<Access>,
        /// Order of the rowkeys.
        direction: Direction,
        /// The entries hold all that is needed (each one in a union, all together in an intersection), so
        /// rows found through an index are not fetched.
        covering: bool,
    },
}

/// How the rowkeys of several accesses are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// Every rowkey that any access gives, once.
    Union,
    /// Every rowkey that all accesses give.
    Intersection,
}

impl Method {
    /// Is it a full scan?
    pub fn is_whole(&self) -> bool {
        self.is_unbound() && matches!(self, Method::Scan { skip: None, .. })
    }

    /// Is it one GET, or one walk that neither skips nor visits every entry?
    pub fn is_one_walk(&self) -> bool {
        match self {
            Method::Get(keys) => keys.len() == 1,
            Method::Scan { ranges, skip: None, .. } => !ranges.is_all(),
            Method::Empty | Method::Scan { .. } | Method::Gather { .. } => false,
        }
    }

    /// Ranges walked (count).
    pub fn range_count(&self) -> usize {
        match self {
            Method::Empty | Method::Get(_) => 0,
            Method::Scan { ranges, .. } => ranges.as_slice().len(),
            Method::Gather { branches, .. } => {
                branches.iter().map(|branch| branch.method.range_count()).sum()
            }
        }
    }

    /// Is no leading part of the key bound? It may still be a skip scan.
    pub(super) fn is_unbound(&self) -> bool {
        matches!(self, Method::Scan { ranges, .. } if ranges.is_all())
    }
}

/// An access path with its filters and price.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which keyspace.
    pub path: Path,
    /// How it is read.
    pub method: Method,
    /// Filter on the index entry, checked before its row is fetched.
    pub entry_filter: Filter,
    /// Filter on the row.
    pub filter: Filter,
    /// The wanted order comes for free.
    pub ordered: bool,
    /// Entries expected to be read.
    pub entries: f64,
    /// The same without a limit. No more rows can match than the shortest path has entries.
    pub all_entries: f64,
    /// Jumps expected on the way to them.
    pub jumps: f64,
    /// Price, in units of one entry scanned.
    pub cost: f64,
}

impl Access {
    /// Is only the number of entries needed? If the store knows it, none is read.
    pub fn only_counts(&self, output: &[Field]) -> bool {
        output.is_empty() && self.method.is_whole() && self.passes_all()
    }

    /// Is only the number of entries needed, and does the store know it?
    pub(super) fn is_counted(&self, source: Source<'_>, need: &Need, stats: &dyn Statistics) -> bool {
        self.only_counts(&need.output) && stats.is_counted(self.keyspace(source))
    }

    /// Does it read a few entries of each group only?
    pub fn jumps_each(&self) -> bool {
        matches!(&self.method, Method::Scan { skip: Some(skip), .. } if skip.skip.each_of().is_some())
    }

    /// Work in entries walked, which decides whether threads share it.
    pub fn work(&self) -> f64 {
        let each =
            if matches!(self.path, Path::IndexFetch(_)) { COST.entry + COST.fetch } else { COST.entry };
        self.entries * each
    }

    /// An access by these rowkeys and a filter; `rows`: the expected number.
    pub fn of_keys(keys: Vec<Rowkey>, filter: Predicate, rows: f64) -> Access {
        Access {
            path: Path::Primary,
            method: Method::Get(keys),
            entry_filter: Filter::all(),
            filter: filter.into(),
            ordered: true,
            entries: rows,
            all_entries: rows,
            jumps: 0.0,
            cost: rows * COST.get,
        }
    }

    /// Nothing is checked, of index entries or of rows.
    pub fn passes_all(&self) -> bool {
        self.entry_filter.is_true() && self.filter.is_true()
    }

    /// Is this what is checked of rows, or all of it of index entries?
    pub fn checks(&self, predicate: &Predicate) -> bool {
        match self.filter.is_true() {
            true => *self.entry_filter == *predicate,
            false => self.entry_filter.is_true() && *self.filter == *predicate,
        }
    }

    /// The combined accesses, or itself.
    pub fn walks(&self) -> &[Access] {
        match &self.method {
            Method::Gather { branches, .. } => branches,
            Method::Empty | Method::Get(_) | Method::Scan { .. } => std::slice::from_ref(self),
        }
    }

    /// Every index it reads.
    pub fn indexes(&self) -> impl Iterator<Item = IndexId> {
        self.walks().iter().filter_map(|access| match access.path {
            Path::Primary => None,
            Path::IndexOnly(id) | Path::IndexFetch(id) => Some(id),
        })
    }

    /// The index that is walked, or read as a table; `None` for several or none.
    pub fn index<'s>(&self, source: Source<'s>) -> Option<&'s IndexDef> {
        match (source, self.path) {
            (Source::Index(_, index), _) => Some(index),
            (Source::Table(_), Path::Primary) => None,
            (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => table.index_by_id(id),
        }
    }

    /// The keyspace that is read.
    pub fn keyspace(&self, source: Source<'_>) -> KeyspaceId {
        let (Source::Table(table) | Source::Index(table, _)) = source;
        self.index(source).map_or(table.rows(), |index| index.keyspace)
    }
}

/// The chosen access, and why the others lost.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The cheapest access.
    pub access: Access,
    /// Why it was chosen, in words.
    pub chosen: String,
    /// Each rejected index, with the reason.
    pub rejected: Vec<(String, String)>,
    /// A hint about a missing index, if much is read for want of one.
    pub note: Option<String>,
}

impl Choice {
    /// The only access there is.
    pub fn of(access: Access, chosen: impl Into<String>) -> Choice {
        Choice { access, chosen: chosen.into(), rejected: Vec::new(), note: None }
    }
}
