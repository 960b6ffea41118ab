//! The form in which a scan evaluates a predicate on each row.
//!
//! `(a, b) IN (...)`, and what a join learns of its other side, are an OR of very many ANDs. Trying one after
//! the other takes time proportional to the number of terms; so terms are looked up by the value of a column
//! that each of them compares with a literal.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::predicate::{CmpOp, Field, Predicate, RowView};
use crate::error::Result;
use crate::value::Value;

/// With fewer terms than this, they are tried one after the other.
const TERMS_MIN: usize = 8;

/// A condition that keeps the rows for which it is true.
#[derive(Clone, Debug)]
pub struct Filter {
    predicate: Predicate,
    /// The predicate as a lookup tree, built when the first row is checked; `None` if there is nothing to
    /// look up.
    lookup: OnceLock<Option<Arc<FilterNode>>>,
}

impl From<Predicate> for Filter {
    fn from(predicate: Predicate) -> Filter {
        Filter { predicate, lookup: OnceLock::new() }
    }
}

impl From<Filter> for Predicate {
    fn from(filter: Filter) -> Predicate {
        filter.predicate
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.predicate == other.predicate
    }
}

impl Deref for Filter {
    type Target = Predicate;

    fn deref(&self) -> &Predicate {
        &self.predicate
    }
}

impl Filter {
    /// A filter that keeps every row.
    pub fn all() -> Filter {
        Predicate::True.into()
    }

    /// Whether the row is kept. Errors: those of [`Predicate::eval`].
    #[inline]
    pub fn passes<R: RowView + ?Sized>(&self, row: &R) -> Result<bool> {
        if self.predicate.is_true() {
            return Ok(true);
        }
        match self.lookup.get_or_init(|| FilterNode::of(&self.predicate).map(Arc::new)) {
            None => Ok(self.predicate.eval(row)? == Some(true)),
            Some(node) => node.passes(row),
        }
    }
}

/// A condition as a lookup tree. NOT occurs in atoms only, so an unknown part may count as false.
#[derive(Debug)]
enum FilterNode {
    Is(Predicate),
    All(Vec<FilterNode>),
    Any(Vec<FilterNode>),
    /// The field has one of these values, and the condition that belongs to it holds; sorted by value.
    Case(Field, Vec<(Value, FilterNode)>),
}

impl FilterNode {
    /// `None` if there is nothing to look up.
    fn of(predicate: &Predicate) -> Option<FilterNode> {
        match predicate {
            Predicate::And(terms) => {
                let nodes: Vec<Option<FilterNode>> = terms.iter().map(FilterNode::of).collect();
                let found = nodes.iter().any(Option::is_some);
                let whole = |(node, term): (Option<FilterNode>, &Predicate)| {
                    node.unwrap_or(FilterNode::Is(term.clone()))
                };
                found.then(|| FilterNode::All(nodes.into_iter().zip(terms).map(whole).collect()))
            }
            Predicate::Or(terms) if terms.len() >= TERMS_MIN => {
                // The field with the most values leaves the fewest terms for each.
                let cases = equalities(&terms[0]).map(|(field, _)| (field, cases(field, terms)));
                let (field, cases) = cases.max_by_key(|(_, cases)| cases.len())?;
                if cases.len() < TERMS_MIN {
                    return None;
                }
                let rest = terms.iter().filter(|term| equalities(term).all(|(f, _)| f != field));
                let rest = Predicate::or(rest.cloned());
                let node =
                    |predicate: Predicate| FilterNode::of(&predicate).unwrap_or(FilterNode::Is(predicate));
                let cases = cases.into_iter();
                let cases = cases.map(|(value, left)| (value.clone(), node(Predicate::or(left)))).collect();
                let case = FilterNode::Case(field, cases);
                Some(if rest == Predicate::False { case } else { FilterNode::Any(vec![case, node(rest)]) })
            }
            _ => None,
        }
    }

    fn passes<R: RowView + ?Sized>(&self, row: &R) -> Result<bool> {
        match self {
            FilterNode::Is(predicate) => Ok(predicate.eval(row)? == Some(true)),
            FilterNode::All(nodes) => {
                for node in nodes {
                    if !node.passes(row)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            FilterNode::Any(nodes) => {
                for node in nodes {
                    if node.passes(row)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            FilterNode::Case(field, cases) => {
                let value = row.field(*field)?;
                match cases.binary_search_by(|(case, _)| case.as_ref().cmp(&value)) {
                    Ok(at) => cases[at].1.passes(row),
                    Err(_) => Ok(false),
                }
            }
        }
    }
}

/// The fields that must equal a literal for the predicate to hold, and the literals.
fn equalities(predicate: &Predicate) -> impl Iterator<Item = (Field, &Value)> {
    predicate.terms().iter().filter_map(|term| match term {
        Predicate::Compare { field, op: CmpOp::Eq, value } => Some((*field, value)),
        _ => None,
    })
}

/// The terms grouped by the value that they compare a field with, each without that comparison.
fn cases(field: Field, terms: &[Predicate]) -> BTreeMap<&Value, Vec<Predicate>> {
    let mut cases: BTreeMap<&Value, Vec<Predicate>> = BTreeMap::new();
    for term in terms {
        let Some((_, value)) = equalities(term).find(|(f, _)| *f == field) else { continue };
        let mut found = false;
        let left = term.clone().conjuncts().into_iter().filter(|conjunct| {
            let is_it = !found
                && matches!(conjunct, Predicate::Compare { field: f, op: CmpOp::Eq, value: v } if *f == field && v == value);
            found |= is_it;
            !is_it
        });
        cases.entry(value).or_default().push(Predicate::and(left.collect::<Vec<_>>()));
    }
    cases
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::ColumnId;
    use crate::value::ValueRef;

    struct Row([Value; 3]);

    impl RowView for Row {
        fn field(&self, field: Field) -> Result<ValueRef<'_>> {
            let Field::Column(ColumnId(at)) = field else { return Ok(ValueRef::Null) };
            Ok(self.0[usize::from(at)].as_ref())
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), (0i64..12).prop_map(Value::Int)]
    }

    fn atom() -> impl Strategy<Value = Predicate> {
        let field = (0u16..3).prop_map(|id| Field::Column(ColumnId(id)));
        (field, 0i64..12, 0u8..6).prop_map(|(field, n, kind)| match kind {
            0 => Predicate::compare(field, CmpOp::Lt, Value::Int(n)),
            1 => Predicate::is_null(field),
            _ => Predicate::compare(field, CmpOp::Eq, Value::Int(n)),
        })
    }

    proptest! {
        #[test]
        fn a_filter_keeps_what_its_predicate_holds_for(
            terms in prop::collection::vec(prop::collection::vec(atom(), 1..4), 1..40),
            also in atom(),
            rows in prop::collection::vec(prop::array::uniform3(value()), 40),
        ) {
            let any = Predicate::or(terms.into_iter().map(Predicate::and));
            let filter = Filter::from(Predicate::and([any, also]));
            for row in rows.into_iter().map(Row) {
                prop_assert_eq!(filter.passes(&row).unwrap(), filter.eval(&row).unwrap() == Some(true));
            }
        }
    }

    #[test]
    fn many_terms_are_looked_up() {
        let pair = |n: i64| {
            let column = |id| Field::Column(ColumnId(id));
            let equal = |id, n| Predicate::compare(column(id), CmpOp::Eq, Value::Int(n));
            Predicate::and([equal(0, n / 100), equal(1, n % 100)])
        };
        let node = FilterNode::of(&Predicate::or((0..10_000).map(pair))).unwrap();
        let FilterNode::Case(_, cases) = node else { panic!("{node:?}") };
        assert_eq!(cases.len(), 100);
        assert!(cases.iter().all(|(_, node)| matches!(node, FilterNode::Is(Predicate::In { .. }))));
        assert!(FilterNode::of(&pair(1)).is_none());
    }
}
