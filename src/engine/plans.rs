//! The plan cache: plans of queries, kept by the text of the query.
//!
//! The key is the text with its compared literals [lifted](crate::sql::lift) out, and the types of the values
//! in their place, so `id = 7` and `id = 8` share a plan, and `id = 'x'` gets its own. A query is planned to be
//! kept when it comes for the first time: that takes as long as planning it for one run. Most of a script's
//! queries never come again, so that these make room first. DDL makes a catalog of another
//! [identity](crate::catalog::Catalog::identity), under which older plans are not found; ANALYZE keeps the
//! identity, so it clears the cache.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use sqlparser::ast::{Expr, Query};

use super::outcome::{OutputColumn, output_columns};
use crate::access::Guards;
use crate::df::cached::page::DependsOn;
use crate::df::cached::plan::UnboundPlan;
use crate::df::cached::row_map::RowMap;
use crate::df::ways::Threads;
use crate::error::{Error, Result, sqlstate};
use crate::key::FastMap;
use crate::sql::{self, Lifted, Shown, Statement, parameter_count};
use crate::value::Value;

/// Entries (count), at most.
const QUERIES: usize = 512;

/// Length (bytes) of all plans' keys, at most: what a plan takes grows with the literals of its text.
const KEYS_BYTES: usize = 4 << 20;

/// Length (bytes) of the longest text whose parse result is kept.
const TEXT_BYTES: usize = 4096;

/// What the plan cache knows of a query.
#[derive(Clone)]
pub enum PlanCacheEntry {
    /// Its plan.
    Plan(Arc<CachedPlan>),
    /// One plan for each combination of values of these parameters.
    ByValues(DependsOn),
    /// A projection over rows that are in no table.
    Map(Arc<RowMap>),
    /// It must be planned each time.
    Each,
}

/// A plan, and its output columns.
pub struct CachedPlan {
    pub plan: UnboundPlan,
    /// The parameters of the run it was planned for.
    pub params: Arc<[Value]>,
    pub columns: Arc<[OutputColumn]>,
}

impl CachedPlan {
    /// A plan that was made for a run with these parameters.
    pub fn new(plan: UnboundPlan, params: &Arc<[Value]>) -> CachedPlan {
        CachedPlan { columns: output_columns(&plan.schema()), plan, params: Arc::clone(params) }
    }
}

/// A query's cache key, and all its parameters.
#[derive(Clone)]
pub struct Keyed {
    key: String,
    pub params: Arc<[Value]>,
    /// The parameters whose values are in the key.
    pub depends_on: DependsOn,
    /// A plan may read a few rows more than asked for.
    may_read_more: bool,
    /// When its plan is made for several threads, too.
    pub threads: Threads,
    /// It asks for the plan of parameters for which the first plan is none.
    pub is_other: bool,
    /// Literals in the names of its output columns.
    pub shown: Shown,
}

impl Keyed {
    /// `None` if the number of parameters is wrong, or a lifted value out of range. `kind` is a prefix that keeps equal
    /// texts planned for different purposes apart; `guards` are the session's limits on reads; `now` is the time of the
    /// statement, in microseconds since 1970.
    pub fn new(
        kind: &str,
        lifted: &Lifted,
        params: &[Value],
        guards: Guards,
        now: impl Fn() -> i64,
    ) -> Option<Keyed> {
        if params.len() != lifted.own {
            return None;
        }
        let lifted_values = lifted.values.iter().map(|value| value.value(&now));
        let params: Option<Arc<[Value]>> = params.iter().cloned().map(Some).chain(lifted_values).collect();
        let params = params?;
        let mut key = String::with_capacity(kind.len() + lifted.text.len() + 2 * params.len());
        key.push_str(kind);
        for value in &*params {
            key.push(letter(value));
            if let Value::Decimal(_, scale) = value {
                // Writing to a string cannot fail.
                let _ = write!(key, "{scale}");
            }
        }
        key.push('\n');
        key.push_str(&lifted.text);
        let may_read_more = guards == Guards::default();
        Some(Keyed {
            key,
            params,
            depends_on: DependsOn::default(),
            may_read_more,
            threads: Threads::IfLong,
            is_other: false,
            shown: lifted.shown.clone(),
        })
    }

    /// The key of a second plan, for parameters that the `first` does not hold for, or reads too much for: of `a > $1
    /// ORDER BY id LIMIT 5`, one plan has few rows to sort, the other has the first ones in front.
    pub fn other(&self, first: &CachedPlan) -> Option<Keyed> {
        let is_wanted = !self.is_other && !first.plan.lacks_threads();
        is_wanted.then(|| Keyed { key: format!("other {}", self.key), is_other: true, ..self.clone() })
    }

    /// The key extended by the values of these parameters.
    pub fn with_values(&self, of: &DependsOn) -> Keyed {
        let value = |at: &usize| format!("{at}={:?} ", self.params.get(*at));
        let values = of.values.iter().map(value);
        let page = of.page.map(|page| page.key(&self.params, self.may_read_more));
        let key = values.chain(page).collect::<String>() + &self.key;
        Keyed { key, depends_on: of.clone(), ..self.clone() }
    }
}

/// The letter of its type: no digit, for the scale of a decimal follows its letter.
fn letter(value: &Value) -> char {
    match value {
        Value::Null => 'n',
        Value::Boolean(_) => 'b',
        Value::Int(_) => 'i',
        Value::Double(_) => 'f',
        Value::Decimal(..) => 'd',
        Value::Text(_) => 't',
        Value::Bytes(_) => 'x',
        Value::Date(_) => 'D',
        Value::Timestamp(_) => 'T',
        Value::TimestampTz(_) => 'Z',
        Value::Uuid(_) => 'u',
    }
}

/// The plan cache of a database.
#[derive(Default)]
pub struct Plans(RwLock<ByText<Known>>);

/// What is known of a query under the catalog of an identity.
struct Known {
    catalog: u64,
    entry: PlanCacheEntry,
    /// It has been looked up since.
    came_again: AtomicBool,
}

type ByText<T> = FastMap<String, T>;

/// Drops every other entry, whichever those are: a program with more texts than fit keeps half of its plans.
fn halve<T>(texts: &mut ByText<T>) {
    let mut stays = false;
    texts.retain(|_, _| {
        stays = !stays;
        stays
    });
}

impl Plans {
    /// Looks up a query under the catalog of this identity. If its plan depends on parameter values, `query`
    /// is extended by them and looked up again.
    pub fn find(&self, query: &mut Keyed, catalog: u64) -> Option<PlanCacheEntry> {
        let plans = self.0.read();
        loop {
            let known = plans.get(&query.key).filter(|known| known.catalog == catalog)?;
            // Many threads look up the same query: only the first writes.
            if !known.came_again.load(Ordering::Relaxed) {
                known.came_again.store(true, Ordering::Relaxed);
            }
            match &known.entry {
                PlanCacheEntry::ByValues(of) => *query = query.with_values(of),
                entry => return Some(entry.clone()),
            }
        }
    }

    /// The plans under the catalog of this identity that were asked for again, each with the text of its query.
    pub fn kept(&self, catalog: u64) -> Vec<(String, Arc<CachedPlan>)> {
        let plans = self.0.read();
        let kept = plans.iter().filter_map(|(key, known)| match &known.entry {
            PlanCacheEntry::Plan(plan)
                if known.catalog == catalog && known.came_again.load(Ordering::Relaxed) =>
            {
                let text = key.split_once('\n').map_or(&key[..], |(_, text)| text);
                Some((text.to_owned(), Arc::clone(plan)))
            }
            _ => None,
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        kept.dedup_by(|a, b| a.0 == b.0);
        kept
    }

    /// Forgets all plans, because the statistics behind them have changed.
    pub fn forget(&self) {
        self.0.write().clear();
    }

    /// Stores what is known of a query.
    pub fn put(&self, query: &Keyed, catalog: u64, entry: PlanCacheEntry) {
        let mut plans = self.0.write();
        let is_full = |plans: &ByText<Known>| {
            let bytes: usize = plans.keys().map(String::len).sum();
            plans.len() >= QUERIES || bytes + query.key.len() > KEYS_BYTES
        };
        if !plans.contains_key(&query.key) && is_full(&plans) {
            // First drop queries that came only once.
            plans.retain(|_, known| *known.came_again.get_mut());
            if is_full(&plans) {
                halve(&mut plans);
            }
            if is_full(&plans) {
                plans.clear();
            }
        }
        let known = Known { catalog, entry, came_again: AtomicBool::new(false) };
        plans.insert(query.key.clone(), known);
    }
}

/// The query inside a statement that writes, and its text with literals lifted out, which is its cache key.
#[derive(Clone, Debug)]
pub struct SourceQuery {
    pub query: Query,
    /// `None`: the plan is not worth keeping.
    pub lifted: Option<Lifted>,
}

impl SourceQuery {
    pub fn new(query: Query) -> Arc<SourceQuery> {
        Arc::new(SourceQuery { lifted: sql::lift_unnamed(&sql::text_of(&query)), query })
    }
}

/// The query inside a statement that writes, kept from its last run; or several, if one would be too long.
///
/// They depend only on the statement and on which parts must be computed, which may differ with the
/// parameters. They do not depend on definitions, so DDL does not invalidate them; their plans are looked up under
/// the current catalog.
#[derive(Debug, Default)]
pub struct KeptQuery(RwLock<Option<(Vec<usize>, SourceQueries)>>);

type SourceQueries = Arc<[Arc<SourceQuery>]>;

impl KeptQuery {
    /// None is kept yet.
    pub fn is_new(&self) -> bool {
        self.0.read().is_none()
    }

    /// The query that computes the parts at these positions; `make` is called if the last run computed other
    /// parts. `None`: the query depends on more than the statement and is not kept.
    pub fn of(
        &self,
        computed: Option<Vec<usize>>,
        make: impl FnOnce() -> Result<Query>,
    ) -> Result<Arc<SourceQuery>> {
        let asked = self.all_of(computed, || Ok(vec![make()?]))?;
        asked.first().cloned().ok_or_else(|| Error::internal("a statement without its query"))
    }

    /// The same for several queries.
    pub fn all_of(
        &self,
        computed: Option<Vec<usize>>,
        make: impl FnOnce() -> Result<Vec<Query>>,
    ) -> Result<SourceQueries> {
        let made = || Ok(make()?.into_iter().map(SourceQuery::new).collect());
        let Some(computed) = computed else { return made() };
        if let Some((of, asked)) = &*self.0.read()
            && *of == computed
        {
            return Ok(Arc::clone(asked));
        }
        let asked: SourceQueries = made()?;
        *self.0.write() = Some((computed, Arc::clone(&asked)));
        Ok(asked)
    }
}

/// The queries inside a statement that writes.
#[derive(Debug, Default)]
pub struct CachedQueries {
    /// Gives an INSERT's rows, or computes values of them.
    pub source: KeptQuery,
    /// Finds the rows of an UPDATE or DELETE, or computes those of ON CONFLICT.
    pub rows: KeptQuery,
}

/// A parsed statement, and the number of its parameters.
#[derive(Debug)]
pub struct Parsed {
    pub statement: Statement,
    pub parameters: usize,
    pub queries: CachedQueries,
}

impl Parsed {
    pub fn new(statement: Statement) -> Parsed {
        Parsed { parameters: parameter_count(&statement), statement, queries: CachedQueries::default() }
    }

    /// Errors, about `what`: more or fewer values were given than there are parameters.
    pub fn check(&self, what: &str, given: usize) -> Result<()> {
        let takes = self.parameters;
        if takes == given {
            return Ok(());
        }
        let s = if takes == 1 { "" } else { "s" };
        let are = if given == 1 { "is" } else { "are" };
        Err(Error::invalid(format!("{what} takes {takes} value{s}"))
            .why(format!("{given} {are} given"))
            .state(sqlstate::PROTOCOL))
    }
}

/// A cache of parse results by text.
pub struct Texts<T>(RwLock<ByText<Arc<T>>>);

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts(RwLock::default())
    }
}

impl<T> Texts<T> {
    /// The result of `read` for a text, which must depend on nothing else. Errors: those of `read`.
    fn get(&self, text: &str, read: impl FnOnce(&str) -> Result<T>) -> Result<Arc<T>> {
        if let Some(known) = self.0.read().get(text) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(read(text)?);
        if text.len() <= TEXT_BYTES {
            let mut texts = self.0.write();
            if texts.len() >= QUERIES {
                halve(&mut texts);
            }
            texts.insert(text.to_owned(), Arc::clone(&new));
        }
        Ok(new)
    }
}

/// Parsed statements with parameters.
pub type Statements = Texts<Parsed>;

impl Statements {
    /// The statement of a text.
    ///
    /// Errors: those of [`sql::parse`].
    pub fn parse(&self, text: &str) -> Result<Arc<Parsed>> {
        self.get(text, |text| sql::parse(text).map(Parsed::new))
    }

    /// The statement of a text if it may be kept; `None` also if there is something wrong with it.
    pub fn kept(&self, text: &str) -> Option<Arc<Parsed>> {
        if text.len() <= TEXT_BYTES { self.parse(text).ok() } else { None }
    }
}

/// Parsed DEFAULT expressions of columns.
pub type Defaults = Texts<Expr>;

impl Defaults {
    /// The expression of a text.
    ///
    /// Errors: those of [`sql::parse_expr`].
    pub fn parse(&self, text: &str) -> Result<Arc<Expr>> {
        self.get(text, sql::parse_expr)
    }
}
