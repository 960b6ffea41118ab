//! Implication between conditions: a query may use a partial index only if its WHERE implies the index's.

use super::predicate::{Field, Predicate};
use super::sets::{ValueSet, truths};

impl Predicate {
    /// Is `other` true for every row for which this is true? Sound but not complete: `false` may mean that no
    /// proof was found. An opaque condition implies nothing, not even itself.
    pub fn implies(&self, other: &Predicate) -> bool {
        match (self, other) {
            (_, Predicate::True) | (Predicate::False | Predicate::Unknown, _) => true,
            (_, Predicate::And(terms)) => terms.iter().all(|term| self.implies(term)),
            (Predicate::Or(terms), _) if terms.iter().all(|term| term.implies(other)) => true,
            _ => self.proves(other),
        }
    }

    /// [`Predicate::implies`] for one term.
    fn proves(&self, term: &Predicate) -> bool {
        if self == term && !term.has_opaque() {
            return true;
        }
        if let Some(known) = truths(term)
            && known.exact
            && self.values_of(known.field).is_subset(&known.set)
        {
            return true;
        }
        let by_part = matches!(self, Predicate::And(mine) if mine.iter().any(|m| m.implies(term)));
        let by_choice = || matches!(term, Predicate::Or(any) if any.iter().any(|one| self.implies(one)));
        by_part || by_choice() || self.fields().into_iter().any(|field| self.values_of(field).is_empty())
    }

    /// Every value that `field` can have where this is true; maybe others.
    fn values_of(&self, field: Field) -> ValueSet {
        let of_term = |term: &Predicate| truths(term).filter(|t| t.field == field).map(|t| t.set);
        match self {
            Predicate::And(terms) => {
                terms.iter().filter_map(of_term).fold(ValueSet::all(), |all, set| all.intersect(&set))
            }
            term => of_term(term).unwrap_or_else(ValueSet::all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::like::LikePattern;
    use super::super::predicate::CmpOp::{Eq, Ge, Gt, Lt, Ne};
    use super::*;
    use crate::key::ColumnId;
    use crate::value::Value;

    const A: Field = Field::Column(ColumnId(0));
    const B: Field = Field::Column(ColumnId(1));

    fn a(op: super::super::CmpOp, value: i64) -> Predicate {
        Predicate::compare(A, op, Value::Int(value))
    }

    fn b(value: &str) -> Predicate {
        Predicate::compare(B, Eq, Value::Text(value.into()))
    }

    fn like(pattern: &str) -> Predicate {
        Predicate::like(B, LikePattern::new(pattern, None).unwrap(), false)
    }

    #[test]
    fn what_follows_and_what_does_not() {
        let opaque = || Predicate::Opaque("f(a)".into());
        let either = || Predicate::or([a(Lt, 3), a(Gt, 7)]);
        let tuple = Predicate::tuple(vec![A, B], Gt, vec![Value::Int(5), Value::Text("x".into())]).unwrap();
        let cases = [
            (a(Eq, 5), a(Gt, 3), true),
            (a(Gt, 3), a(Eq, 5), false),
            (a(Gt, 3), a(Ge, 4), true),
            (a(Gt, 3), Predicate::is_null(A).not(), true),
            (a(Ne, 3), Predicate::is_null(A).not(), true),
            (Predicate::True, a(Gt, 3), false),
            (opaque(), a(Gt, 3), false),
            (opaque(), opaque(), false),
            (Predicate::and([opaque(), b("paid")]), b("paid"), true),
            (Predicate::and([a(Gt, 3), a(Lt, 5)]), a(Eq, 4), true),
            (Predicate::and([a(Gt, 5), a(Lt, 5)]), b("x"), true),
            (Predicate::or([a(Eq, 1), a(Eq, 9)]), either(), true),
            (Predicate::or([a(Eq, 1), b("x")]), either(), false),
            (Predicate::or([Predicate::and([a(Eq, 1), b("x")]), a(Gt, 8)]), either(), true),
            (b("x"), Predicate::or([a(Eq, 1), b("x")]), true),
            (b("abc"), like("ab%"), true),
            (like("abc%"), like("ab%"), true),
            (like("ab%"), like("abc%"), false),
            (like("a%z"), like("a%z"), true),
            (like("a%z"), like("%z"), false),
            (tuple.clone(), a(Ge, 5), true),
            (tuple.clone(), a(Gt, 5), false),
            (Predicate::and([a(Eq, 5), b("y")]), tuple, false),
            (Predicate::compare(A, Eq, Value::Null), a(Eq, 1), true),
        ];
        for (known, wanted, expected) in cases {
            assert_eq!(known.implies(&wanted), expected, "{known:?} implies {wanted:?}");
        }
    }
}
