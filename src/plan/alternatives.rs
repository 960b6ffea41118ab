//! Turns a predicate into alternatives (disjunctive normal form): OR is pulled outward, so that each
//! alternative says which values of each field are possible.
//!
//! Multiplying ORs out can explode. Past the limit an OR stays whole: it then only says which values each
//! field can have in any of its terms, and the scan checks the OR.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::predicate::{CmpOp, Field, Predicate};
use super::sets::{ValueSet, compared, truths};
use crate::key::{ColumnId, PartExpr};

/// A condition that holds for every row of an alternative.
#[derive(Debug)]
pub(super) enum Fact {
    /// The field has one of these values; `exact`: the condition says no more than that.
    Values { field: Field, set: ValueSet, exact: bool },
    /// The column's text ends with `suffix`; `exact`: the condition says no more than that.
    Suffix { column: ColumnId, suffix: String, exact: bool },
    /// What a key part computes has one of these values; the condition says no more than that.
    Part { part: Arc<PartExpr>, set: ValueSet },
    /// Another condition, which cannot be expressed here.
    Inexpressible,
}

/// A fact, and the number of the conjunct that it comes from.
#[derive(Clone, Debug)]
pub(super) struct ConjunctFact {
    pub(super) conjunct: usize,
    pub(super) fact: Rc<Fact>,
}

/// Lists of facts such that a row matches all `conjuncts` if and only if it matches all facts of one list. At
/// most `limit` (at least 1) lists, unless an OR that must stay whole exceeds it; none if nothing can match.
pub(super) fn alternatives(conjuncts: &[Predicate], limit: usize) -> Vec<Vec<ConjunctFact>> {
    let factors = conjuncts.iter().enumerate().map(|(conjunct, predicate)| {
        let tag =
            move |facts: Conjunction| facts.into_iter().map(|fact| ConjunctFact { conjunct, fact }).collect();
        let choices = expand(predicate, limit).into_iter().map(tag).collect();
        Factor { choices, whole: move || tag(facts_of_whole(predicate)) }
    });
    product(factors.collect(), limit)
}

type Conjunction = Vec<Rc<Fact>>;

/// A conjunct: its alternatives, and the facts to use if there are too many of them.
struct Factor<T, W: Fn() -> Vec<T>> {
    choices: Vec<Vec<T>>,
    whole: W,
}

fn expand(predicate: &Predicate, limit: usize) -> Vec<Conjunction> {
    if let Some(known) = truths(predicate)
        && known.exact
    {
        return vec![vec![Rc::new(Fact::Values { field: known.field, set: known.set, exact: true })]];
    }
    match predicate {
        Predicate::True => vec![vec![]],
        Predicate::False | Predicate::Unknown => vec![],
        Predicate::And(terms) => {
            let factor = |t| Factor { choices: expand(t, limit), whole: move || facts_of_whole(t) };
            product(terms.iter().map(factor).collect(), limit)
        }
        Predicate::Or(terms) => {
            let mut choices = Vec::new();
            for term in terms {
                choices.extend(expand(term, limit));
                if choices.len() > limit.max(1) {
                    return vec![facts_of_whole(predicate)];
                }
            }
            choices
        }
        Predicate::Tuple { .. } => {
            // All fields before one are equal, and that one decides.
            let cases = tuple_cases(predicate);
            if cases.len() > limit {
                return vec![facts_of_whole(predicate)];
            }
            cases.iter().flat_map(|case| expand(case, limit)).collect()
        }
        other => vec![facts_of_whole(other)],
    }
}

/// `(a, b) > (1, 2)` as the cases `a > 1`, and `a = 1 AND b > 2`: the tuple's comparison holds if one of them
/// does.
fn tuple_cases(predicate: &Predicate) -> Vec<Predicate> {
    let Predicate::Tuple { fields, op, values } = predicate else { return Vec::new() };
    let compare = |i: usize, op| Predicate::compare(fields[i], op, values[i].clone());
    (0..fields.len())
        .map(|decides| {
            let op = if decides + 1 == fields.len() { *op } else { op.strict() };
            let equal = (0..decides).map(|i| compare(i, CmpOp::Eq));
            Predicate::and(equal.chain([compare(decides, op)]))
        })
        .collect()
}

/// Facts about a condition as a whole, which may not express all of it.
fn facts_of_whole(predicate: &Predicate) -> Conjunction {
    if let Predicate::Part { part, op, value } = predicate {
        let (part, set) = (Arc::clone(part), compared(*op, value.clone()));
        return vec![Rc::new(Fact::Part { part, set })];
    }
    let mut facts = vec![];
    if let Predicate::Like { field: Field::Column(column), pattern, negated: false, case_insensitive: false } =
        predicate
        && !pattern.suffix().is_empty()
    {
        let suffix = pattern.suffix().to_owned();
        let exact = pattern.is_suffix();
        facts.push(Rc::new(Fact::Suffix { column: *column, suffix, exact }));
        if exact {
            return facts;
        }
    }
    facts.push(Rc::new(Fact::Inexpressible));
    let known = possible_values(predicate).into_iter();
    facts.extend(known.map(|(field, set)| Rc::new(Fact::Values { field, set, exact: false })));
    facts
}

/// The values that fields can have in rows for which a condition is true; fields that can have any value are
/// left out.
pub fn possible_values(predicate: &Predicate) -> BTreeMap<Field, ValueSet> {
    if let Some(known) = truths(predicate) {
        return BTreeMap::from([(known.field, known.set)]);
    }
    let mut sets: BTreeMap<Field, Vec<ValueSet>> = BTreeMap::new();
    let terms = match predicate {
        Predicate::And(terms) | Predicate::Or(terms) => terms,
        _ => return BTreeMap::new(),
    };
    for (field, set) in terms.iter().flat_map(possible_values) {
        sets.entry(field).or_default().push(set);
    }
    match predicate {
        Predicate::And(_) => {
            let both = |sets: Vec<ValueSet>| sets.iter().fold(ValueSet::all(), |all, set| all.intersect(set));
            sets.into_iter().map(|(field, sets)| (field, both(sets))).collect()
        }
        // A term that does not restrict a field allows all of its values.
        _ => {
            let in_each = sets.into_iter().filter(|(_, sets)| sets.len() == terms.len());
            in_each.map(|(field, sets)| (field, ValueSet::union(sets))).collect()
        }
    }
}

/// Terms (count) for each alternative of the limit: with a hundred ORs, each alternative has a hundred terms.
const TERMS_PER_ALTERNATIVE: usize = 8;

/// Every way to choose one alternative of each factor: at most `limit`, and fewer if there are many factors.
fn product<T: Clone>(mut factors: Vec<Factor<T, impl Fn() -> Vec<T>>>, limit: usize) -> Vec<Vec<T>> {
    // Small factors first: then the limit affects the largest OR, not all that follow it.
    factors.sort_by_key(|f| f.choices.len());
    let limit = limit.min(limit * TERMS_PER_ALTERNATIVE / factors.len().max(1));
    let mut all = vec![vec![]];
    for Factor { choices, whole } in factors {
        let fits = all.len() * choices.len() <= limit.max(1);
        let choices = if fits { choices } else { vec![whole()] };
        all = all
            .iter()
            .flat_map(|head: &Vec<T>| choices.iter().map(move |tail| [head.as_slice(), tail].concat()))
            .collect();
    }
    all
}
