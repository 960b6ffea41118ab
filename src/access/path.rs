//! What a statement wants of a table, and a way to it.

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
    /// What to order by.
    pub field: Field,
    /// Largest first. NULLs are smallest either way.
    pub descending: bool,
}

/// What a statement wants from one table or index table.
#[derive(Clone, Debug)]
pub struct Need {
    /// Which rows.
    pub predicate: Predicate,
    /// Which fields of them.
    pub output: Arc<[Field]>,
    /// In which order, if that matters.
    pub order: Vec<OrderBy>,
    /// How many at the most, counted after all filters and in that order.
    pub limit: Option<u64>,
    /// How many of those are passed over before the first that anybody looks at.
    pub offset: u64,
    /// By which path.
    pub hints: Hints,
    /// A few rows of each group are enough; all rows count, without it.
    pub each: Option<Each>,
}

/// What is enough of each group of rows. More of them do no harm.
#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    /// Rows with equal values of these fields are a group.
    pub of: Vec<Field>,
    /// Which of them: the first in this order, if it is not empty.
    pub order: Vec<OrderBy>,
    /// How many, at least 1.
    pub rows: u64,
}

/// What is read: a table, or an index table as if it were one.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The rows of a table, by whichever path is cheapest.
    Table(&'a TableDef),
    /// The entries of an index table.
    Index(&'a TableDef, &'a IndexDef),
}

/// Where the chosen entries lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The table itself.
    Primary,
    /// An index table whose entries hold all that is needed.
    IndexOnly(IndexId),
    /// An index table, then a GET of each row.
    IndexFetch(IndexId),
}

/// How they are reached.
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
        /// What ranges are merged behind, so that rows come in the order of what follows it.
        merge: Option<FanOut>,
        /// Jumps over keys inside the ranges that cannot match.
        skip: Option<Arc<Skipping>>,
    },
    /// The rowkeys of several accesses are put together in key order; one GET for each, unless their entries do.
    Gather {
        /// How.
        set: SetOp,
        /// Each gives rowkeys: those of an index's entries or of the table. What it does not check, the row's
        /// filter does.
        branches: Vec<Access>,
        /// Greatest rowkey first, or last.
        direction: Direction,
        /// The entries tell all that is wanted, those of a union each, those of an intersection together: no row
        /// is fetched of which an index says that it is there.
        covering: bool,
    },
}

/// What becomes of the rowkeys of several accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// Every rowkey that one of them gives, once.
    Union,
    /// Every rowkey that all of them give.
    Intersection,
}

impl Method {
    /// Every entry is looked at.
    pub fn is_whole(&self) -> bool {
        self.is_unbound() && matches!(self, Method::Scan { skip: None, .. })
    }

    /// It is one GET, or one walk that neither jumps nor looks at every entry.
    pub fn is_one_walk(&self) -> bool {
        match self {
            Method::Get(keys) => keys.len() == 1,
            Method::Scan { ranges, skip: None, .. } => !ranges.is_all(),
            Method::Empty | Method::Scan { .. } | Method::Gather { .. } => false,
        }
    }

    /// Ranges (count) that are walked.
    pub fn range_count(&self) -> usize {
        match self {
            Method::Empty | Method::Get(_) => 0,
            Method::Scan { ranges, .. } => ranges.as_slice().len(),
            Method::Gather { branches, .. } => {
                branches.iter().map(|branch| branch.method.range_count()).sum()
            }
        }
    }

    /// No part of the key bounds it from the front, though it may jump.
    pub(super) fn is_unbound(&self) -> bool {
        matches!(self, Method::Scan { ranges, .. } if ranges.is_all())
    }
}

/// A way to the rows, and what is left to check on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Where.
    pub path: Path,
    /// How.
    pub method: Method,
    /// Checked on the index entry, before its row is fetched.
    pub entry_filter: Filter,
    /// Checked on the row.
    pub filter: Filter,
    /// The wanted order comes for free.
    pub ordered: bool,
    /// Entries it is expected to read.
    pub entries: f64,
    /// The same without a limit. No more rows can match than the shortest path has.
    pub all_entries: f64,
    /// Price, in units of one entry scanned.
    pub cost: f64,
}

impl Access {
    /// Of every entry in there nothing is asked but that it is: where the store knows how many there are, none is
    /// read.
    pub fn only_counts(&self, output: &[Field]) -> bool {
        output.is_empty() && self.method.is_whole() && self.filter.is_true() && self.entry_filter.is_true()
    }

    /// It is so, and the store knows.
    pub(super) fn is_counted(&self, source: Source<'_>, need: &Need, stats: &dyn Statistics) -> bool {
        self.only_counts(&need.output) && stats.is_counted(self.keyspace(source))
    }

    /// What it takes, in entries walked: which threads may share.
    pub fn work(&self) -> f64 {
        let each =
            if matches!(self.path, Path::IndexFetch(_)) { COST.entry + COST.fetch } else { COST.entry };
        self.entries * each
    }

    /// The rows with these rowkeys, about so many, that pass a filter.
    pub fn of_keys(keys: Vec<Rowkey>, filter: Predicate, rows: f64) -> Access {
        Access {
            path: Path::Primary,
            method: Method::Get(keys),
            entry_filter: Filter::all(),
            filter: filter.into(),
            ordered: true,
            entries: rows,
            all_entries: rows,
            cost: rows * COST.get,
        }
    }

    /// Itself, or the accesses whose rowkeys it puts together.
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

    /// The index that is walked, or read as a table of its own; several, or none, are not one.
    pub fn index<'s>(&self, source: Source<'s>) -> Option<&'s IndexDef> {
        match (source, self.path) {
            (Source::Index(_, index), _) => Some(index),
            (Source::Table(_), Path::Primary) => None,
            (Source::Table(table), Path::IndexOnly(id) | Path::IndexFetch(id)) => table.index_by_id(id),
        }
    }

    /// What is walked, or asked for keys.
    pub fn keyspace(&self, source: Source<'_>) -> KeyspaceId {
        let (Source::Table(table) | Source::Index(table, _)) = source;
        self.index(source).map_or(table.rows(), |index| index.keyspace)
    }
}

/// The chosen path, and why not the others.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The cheapest.
    pub access: Access,
    /// Why it was chosen, in words.
    pub chosen: String,
    /// Each index that was not, with the reason.
    pub rejected: Vec<(String, String)>,
    /// What would serve better, if much is read for want of an index.
    pub note: Option<String>,
}
