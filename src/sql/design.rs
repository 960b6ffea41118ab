//! The syntax tree of statements about key design, and of SPLIT.

use std::fmt::{self, Display, Formatter};

use sqlparser::ast::{Expr, Ident, Query};

use super::ast::{CopyFile, KeyExpr};
use crate::error::Span;
use crate::value::{Literal, Value};

/// A statement that analyses a key design; none changes anything.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Design {
    /// `DESCRIBE KEY ['key'] OF t`: shows a key of a table or an index part by part; without a key, the first
    /// one.
    DescribeKey { key: Option<Value>, of: Ident },
    /// `LINT TABLE t`, or `LINT` of all tables
    Lint { table: Option<Ident> },
    /// `SIMULATE WRITES ON t ...`
    Simulate(Simulate),
    /// `EXPLAIN WHATIF (change) query`
    WhatIf { change: HypotheticalChange, query: Box<Query> },
    /// `ADVISE FOR (query), (query)`; without queries, for those in the plan cache
    Advise { queries: Vec<Query> },
}

/// The hypothetical change of EXPLAIN WHATIF.
#[derive(Clone, Debug, PartialEq)]
pub struct HypotheticalChange {
    /// Another layout for the table's rows, rather than one more index.
    pub layout: bool,
    /// The table to change; by default the only one of the query.
    pub table: Option<Ident>,
    /// The keys of the layout or index.
    pub keys: Vec<KeyExpr>,
    /// Columns kept in the index's entries.
    pub include: Vec<Ident>,
}

impl Display for HypotheticalChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        f.write_str(if self.layout { "LAYOUT" } else { "INDEX" })?;
        if let Some(table) = &self.table {
            write!(f, " {} {table}", if self.layout { "OF" } else { "ON" })?;
        }
        write!(f, " ({})", keys.join(", "))?;
        if self.include.is_empty() {
            return Ok(());
        }
        let include: Vec<String> = self.include.iter().map(ToString::to_string).collect();
        write!(f, " INCLUDE ({})", include.join(", "))
    }
}

/// `SIMULATE WRITES ON table [FROM (query) | 'file'] [INTO n REGIONS] [UNDER LAYOUT (..), LAYOUT (..)]
/// [BY REGION | SLICE | REGION, SLICE]`
#[derive(Clone, Debug, PartialEq)]
pub struct Simulate {
    /// The table written to.
    pub table: Ident,
    /// The rows, in the order they are written; those of the table by default.
    pub source: Option<WritesFrom>,
    /// Number of regions wanted, and its place.
    pub regions: Option<(i64, Span)>,
    /// Layouts to try beside the table's own.
    pub layouts: Vec<Vec<KeyExpr>>,
    /// What the rows of the result stand for.
    pub by: SimulateBy,
}

/// Where the rows of a simulation come from, in the order they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum WritesFrom {
    /// A query with an ORDER BY.
    Query(Box<Query>),
    /// A file in a COPY format, from its first line to its last.
    File(CopyFile),
}

/// What a row of SIMULATE's result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulateBy {
    /// A layout.
    Layout,
    /// A region at the end of the simulation.
    Region,
    /// A slice of time.
    Slice,
    /// A region in a slice of time.
    RegionAndSlice,
}

impl Display for Simulate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "SIMULATE WRITES ON {}", self.table)?;
        match &self.source {
            Some(WritesFrom::Query(query)) => write!(f, " FROM ({query})")?,
            Some(WritesFrom::File(file)) => write!(f, " FROM {file}")?,
            None => {}
        }
        if let Some((regions, _)) = self.regions {
            write!(f, " INTO {regions} REGIONS")?;
        }
        for (n, layout) in self.layouts.iter().enumerate() {
            let keys: Vec<String> = layout.iter().map(ToString::to_string).collect();
            write!(f, "{} LAYOUT ({})", if n == 0 { " UNDER" } else { "," }, keys.join(", "))?;
        }
        f.write_str(match self.by {
            SimulateBy::Layout => "",
            SimulateBy::Region => " BY REGION",
            SimulateBy::Slice => " BY SLICE",
            SimulateBy::RegionAndSlice => " BY REGION, SLICE",
        })
    }
}

/// `SPLIT ...` of CREATE TABLE and ALTER TABLE: where regions are cut.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the text of a variant speaks of its fields")]
pub enum Split {
    /// `ON (points)`, `AT (points)`: rowkeys or prefixes of them.
    At(Vec<Expr>),
    /// `INTO regions method`
    Into { regions: i64, method: SplitMethod, span: Span },
}

/// How a key space is cut into regions.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitMethod {
    /// As suits the leading part of the layout.
    Suited,
    /// `UNIFORM`: evenly over all bytes.
    Uniform,
    /// `UNIFORM FROM a TO b`: evenly over the bytes between, as HBase's `Bytes.split` does.
    Between(Box<[Expr; 2]>),
    /// `HEX`: evenly over hex digits.
    Hex,
    /// `DECIMAL`: evenly over decimal digits.
    Decimal,
    /// `FROM DATA`: equally many rows in each region.
    FromData,
}

impl Display for Split {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Split::At(points) => {
                let points: Vec<String> = points.iter().map(ToString::to_string).collect();
                write!(f, "({})", points.join(", "))
            }
            Split::Into { regions, method, .. } => {
                write!(f, "INTO {regions}")?;
                match method {
                    SplitMethod::Suited => Ok(()),
                    SplitMethod::Uniform => f.write_str(" UNIFORM"),
                    SplitMethod::Between(bounds) => write!(f, " UNIFORM FROM {} TO {}", bounds[0], bounds[1]),
                    SplitMethod::Hex => f.write_str(" HEX"),
                    SplitMethod::Decimal => f.write_str(" DECIMAL"),
                    SplitMethod::FromData => f.write_str(" FROM DATA"),
                }
            }
        }
    }
}

impl Design {
    /// As [`Statement::kind_name`](super::Statement::kind_name).
    pub fn kind_name(&self) -> &'static str {
        match self {
            Design::DescribeKey { .. } => "DESCRIBE KEY",
            Design::Lint { .. } => "LINT",
            Design::Simulate(_) => "SIMULATE",
            Design::WhatIf { .. } => "EXPLAIN",
            Design::Advise { .. } => "ADVISE",
        }
    }
}

impl Display for Design {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Design::DescribeKey { key: Some(key), of } => {
                write!(f, "DESCRIBE KEY {} OF {of}", Literal(key.as_ref()))
            }
            Design::DescribeKey { key: None, of } => write!(f, "DESCRIBE KEY OF {of}"),
            Design::Lint { table: Some(table) } => write!(f, "LINT TABLE {table}"),
            Design::Lint { table: None } => f.write_str("LINT"),
            Design::Simulate(simulate) => simulate.fmt(f),
            Design::WhatIf { change, query } => write!(f, "EXPLAIN WHATIF ({change}) {query}"),
            Design::Advise { queries } => {
                f.write_str("ADVISE")?;
                for (n, query) in queries.iter().enumerate() {
                    write!(f, "{} ({query})", if n == 0 { " FOR" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}
