//! Guards: session limits on what an access may read.

use super::advice::index_for;
use super::cost::Statistics;
use super::explain::describe;
use super::path::{Access, Method, Need, Source};
use crate::error::{Error, Kind, Result, counted, sqlstate};

/// Limits on what one access may read; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Most rows of a full table scan.
    pub full_scan_rows: Option<u64>,
    /// Most ranges of a scan.
    pub ranges: Option<u64>,
    /// Most GETs, including fetches of rows for index entries.
    pub gets: Option<u64>,
}

impl Guards {
    /// Errors: LIMIT, with the plan and a hint, if the access would read more than is allowed.
    pub fn check(
        &self,
        source: Source<'_>,
        need: &Need,
        access: &Access,
        stats: &dyn Statistics,
    ) -> Result<()> {
        if *self == Guards::default() {
            return Ok(());
        }
        let (Source::Table(table) | Source::Index(table, _)) = source;
        let keyspace = access.keyspace(source);
        let is_exact = access.ordered && access.passes_all();
        let up_to = |rows: u64| need.limit.filter(|_| is_exact).map_or(rows, |limit| rows.min(limit));
        let read = match &access.method {
            Method::Empty => return Ok(()),
            _ if access.is_counted(source, need, stats) => return Ok(()),
            Method::Get(keys) => (("GET", ""), "max_gets", keys.len() as u64, self.gets),
            method if method.is_whole() && over(up_to(stats.entries(keyspace)), self.full_scan_rows) => (
                ("row", " of a full scan"),
                "max_full_scan_rows",
                up_to(stats.entries(keyspace)),
                self.full_scan_rows,
            ),
            method => (("range", ""), "max_ranges", method.range_count() as u64, self.ranges),
        };
        let ((noun, behind), setting, n, limit) = read;
        let Some(limit) = limit.filter(|limit| n > *limit) else { return Ok(()) };
        let plan = describe(source, access, need.limit, false).to_string();
        Err(refused(&format!("the statement would read {}{behind}", counted(n, noun)), setting, limit, &plan)
            .hint(way_out(setting, index_for(table, need))))
    }
}

fn over(n: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| n > limit)
}

fn way_out(setting: &str, index: Option<String>) -> String {
    match index.filter(|_| setting == "max_full_scan_rows") {
        Some(create) => format!("{create} would serve; RESET {setting} allows it"),
        None => format!("narrow the WHERE, or RESET {setting}"),
    }
}

/// The error for a statement that would read more than the session allows.
pub fn refused(what: &str, setting: &str, limit: u64, plan: &str) -> Error {
    Error::new(Kind::Invalid, what.to_owned())
        .why(format!("{setting} is {limit}"))
        .plan(plan)
        .state(sqlstate::LIMIT)
}
