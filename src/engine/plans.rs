//! Plans of queries, kept by the text of the query.
//!
//! The key is the text with its compared literals [lifted](crate::sql::lift) out and the kinds of the values in
//! their place, so `id = 7` and `id = 8` share a plan, and `id = 'x'` does not spoil it. A query is planned to be
//! kept when it comes for the second time: most of a script's statements never do. A change of definitions
//! makes a catalog of another [identity](crate::catalog::Catalog::identity), and plans of others are not found;
//! ANALYZE makes none, and all plans are forgotten.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::RwLock;
use sqlparser::ast::{Expr, Query};

use super::clock;
use super::outcome::{OutputColumn, output_columns};
use crate::df::kept::plan::Plan;
use crate::df::kept::row_map::RowMap;
use crate::error::{Error, Result};
use crate::key::FastMap;
use crate::sql::{self, Lifted, Statement, parameter_count};
use crate::value::Value;

/// Queries remembered at the most; then those without a plan are forgotten, or all.
const QUERIES: usize = 512;

/// Length (bytes) of the longest text whose statement is kept.
const TEXT_BYTES: usize = 4096;

/// What is known of a query.
#[derive(Clone)]
pub enum Known {
    /// It has come before.
    Seen,
    /// Its plan.
    Plan(Arc<KeptPlan>),
    /// It has a plan for each combination of values of these parameters, by their places.
    ByValues(Arc<[usize]>),
    /// What it makes of rows that are in no table.
    Map(Arc<RowMap>),
    /// It has to be planned each time.
    Each,
}

/// A plan, and its output columns.
pub struct KeptPlan {
    pub plan: Plan,
    /// Of the run that it was made for.
    pub params: Arc<[Value]>,
    pub columns: Arc<[OutputColumn]>,
}

impl KeptPlan {
    /// A plan that was made for a run with these parameters.
    pub fn new(plan: Plan, params: &Arc<[Value]>) -> KeptPlan {
        KeptPlan { columns: output_columns(&plan.schema()), plan, params: Arc::clone(params) }
    }
}

/// A query by its key, and all its parameters.
#[derive(Clone)]
pub struct Keyed {
    key: String,
    pub params: Arc<[Value]>,
    /// Places of those whose values are in the key.
    pub settled: Vec<usize>,
}

impl Keyed {
    /// `None` if the statement has other parameters than those given. Queries of another `kind` are other
    /// queries, whatever their text.
    pub fn new(kind: &str, lifted: &Lifted, params: &[Value]) -> Option<Keyed> {
        if params.len() != lifted.own {
            return None;
        }
        // One time for all of them.
        let now = OnceCell::new();
        let lifted_values = lifted.values.iter().map(|value| value.value(|| *now.get_or_init(clock::now)));
        let params: Arc<[Value]> = params.iter().cloned().chain(lifted_values).collect();
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
        Some(Keyed { key, params, settled: Vec::new() })
    }

    /// The query with the values that it has for some of its parameters, by their places.
    pub fn with_values(&self, of: &[usize]) -> Keyed {
        let value = |at: &usize| format!("{at}={:?} ", self.params.get(*at));
        let values: String = of.iter().map(value).collect();
        Keyed { key: values + &self.key, params: Arc::clone(&self.params), settled: of.to_vec() }
    }
}

fn letter(value: &Value) -> char {
    match value {
        Value::Null => '0',
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

/// What is known of the queries of one database.
#[derive(Default)]
pub struct Plans(RwLock<ByText<(u64, Known)>>);

type ByText<T> = FastMap<String, T>;

impl Plans {
    /// What is known of a query under the catalog of this identity; of one that has many plans, of that with its values,
    /// which it then is.
    pub fn find(&self, query: &mut Keyed, catalog: u64) -> Option<Known> {
        let plans = self.0.read();
        loop {
            match plans.get(&query.key).filter(|(identity, _)| *identity == catalog)? {
                (_, Known::ByValues(of)) => *query = query.with_values(of),
                (_, known) => return Some(known.clone()),
            }
        }
    }

    /// The plans kept under the catalog of this identity, by the texts of their queries, one of each.
    pub fn kept(&self, catalog: u64) -> Vec<(String, Arc<KeptPlan>)> {
        let plans = self.0.read();
        let kept = plans.iter().filter_map(|(key, (identity, known))| match known {
            Known::Plan(plan) if *identity == catalog => {
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

    /// Forgets all plans: what they were chosen by has changed.
    pub fn forget(&self) {
        self.0.write().clear();
    }

    /// Remembers it.
    pub fn put(&self, query: &Keyed, catalog: u64, known: Known) {
        let mut plans = self.0.write();
        if plans.len() >= QUERIES && !plans.contains_key(&query.key) {
            // Texts that never come again must not cost others their plans.
            plans.retain(|_, (_, known)| !matches!(known, Known::Seen));
            if plans.len() >= QUERIES {
                plans.clear();
            }
        }
        plans.insert(query.key.clone(), (catalog, known));
    }
}

/// A query of a statement that writes, and its text without the literals it compares with, by which its plan is found.
#[derive(Clone, Debug)]
pub struct Asked {
    pub query: Query,
    /// `None`: its plan is not worth keeping.
    pub lifted: Option<Lifted>,
}

impl Asked {
    pub fn new(query: Query) -> Arc<Asked> {
        Arc::new(Asked { lifted: sql::lift(&sql::text_of(&query)), query })
    }
}

/// A query of a statement that writes, as its last run made it.
///
/// It follows from the statement and from what of it is to be computed, which may be other parts for other values. No
/// definition has a part in it: so it holds whatever becomes of them, and its plan is that of the catalog it is asked with.
#[derive(Debug, Default)]
pub struct KeptQuery(RwLock<Option<(Vec<usize>, Arc<Asked>)>>);

impl KeptQuery {
    /// The query that computes the parts at these places, made if the last run's was another one; `None` if the statement
    /// alone does not tell it.
    pub fn of(
        &self,
        computed: Option<Vec<usize>>,
        make: impl FnOnce() -> Result<Query>,
    ) -> Result<Arc<Asked>> {
        let Some(computed) = computed else { return make().map(Asked::new) };
        if let Some((of, asked)) = &*self.0.read()
            && *of == computed
        {
            return Ok(Arc::clone(asked));
        }
        let asked = Asked::new(make()?);
        *self.0.write() = Some((computed, Arc::clone(&asked)));
        Ok(asked)
    }
}

/// The queries of a statement that writes.
#[derive(Debug, Default)]
pub struct KeptQueries {
    /// Gives an INSERT's rows, or computes what is in them.
    pub source: KeptQuery,
    /// Finds the rows of an UPDATE or DELETE, or computes those of an ON CONFLICT.
    pub rows: KeptQuery,
}

/// A statement, and how many values it takes.
#[derive(Debug)]
pub struct Parsed {
    pub statement: Statement,
    pub parameters: usize,
    pub queries: KeptQueries,
}

impl Parsed {
    pub fn new(statement: Statement) -> Parsed {
        Parsed { parameters: parameter_count(&statement), statement, queries: KeptQueries::default() }
    }

    /// Errors, about `what`: there are more or fewer values than it takes.
    pub fn check(&self, what: &str, given: usize) -> Result<()> {
        let takes = self.parameters;
        if takes == given {
            return Ok(());
        }
        let s = if takes == 1 { "" } else { "s" };
        let are = if given == 1 { "is" } else { "are" };
        Err(Error::invalid(format!("{what} takes {takes} value{s}"))
            .why(format!("{given} {are} given"))
            .state("08P01"))
    }
}

/// What was read in texts that come again: each is read once.
pub struct Texts<T>(RwLock<ByText<Arc<T>>>);

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts(RwLock::default())
    }
}

impl<T> Texts<T> {
    /// What `read` reads in a text, and nothing else has a part in. Errors: those of `read`.
    fn get(&self, text: &str, read: impl FnOnce(&str) -> Result<T>) -> Result<Arc<T>> {
        if let Some(known) = self.0.read().get(text) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(read(text)?);
        if text.len() <= TEXT_BYTES {
            let mut texts = self.0.write();
            if texts.len() >= QUERIES {
                texts.clear();
            }
            texts.insert(text.to_owned(), Arc::clone(&new));
        }
        Ok(new)
    }
}

/// Statements with parameters.
pub type Statements = Texts<Parsed>;

impl Statements {
    /// A text's statement.
    ///
    /// Errors: those of [`sql::parse`].
    pub fn parse(&self, text: &str) -> Result<Arc<Parsed>> {
        self.get(text, |text| sql::parse(text).map(Parsed::new))
    }
}

/// What columns have as their DEFAULT.
pub type Defaults = Texts<Expr>;

impl Defaults {
    /// A text's expression.
    ///
    /// Errors: those of [`sql::parse_expr`].
    pub fn parse(&self, text: &str) -> Result<Arc<Expr>> {
        self.get(text, sql::parse_expr)
    }
}
