use super::*;

const A: Field = Field::Column(ColumnId(0));
const B: Field = Field::Column(ColumnId(1));

fn int(field: Field, op: CmpOp, value: i64) -> Predicate {
    Predicate::compare(field, op, Value::Int(value))
}

fn show(p: &Predicate) -> String {
    p.show(&|field| match field {
        Field::Column(c) => ["a", "b"][usize::from(c.0)].into(),
        Field::Rowkey => "rowkey".into(),
        Field::PrimaryRowkey => "primary_rowkey".into(),
    })
}

struct Pair(Value, Value);

impl RowView for Pair {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        Ok(if field == A { self.0.as_ref() } else { self.1.as_ref() })
    }
}

fn pair(a: impl Into<Option<i64>>, b: impl Into<Option<i64>>) -> Pair {
    let value = |i: Option<i64>| i.map_or(Value::Null, Value::Int);
    Pair(value(a.into()), value(b.into()))
}

#[test]
fn equalities_of_one_column_become_a_list() {
    let p = Predicate::or([
        int(A, CmpOp::Eq, 3),
        int(B, CmpOp::Gt, 9),
        Predicate::or([int(A, CmpOp::Eq, 1), Predicate::False]),
        Predicate::is_in(A, vec![Value::Int(3), Value::Int(2)]),
    ]);
    assert_eq!(show(&p), "a IN (1, 2, 3) OR b > 9");
    assert_eq!(show(&p.not()), "a NOT IN (1, 2, 3) AND b <= 9");
    let many = Predicate::is_in(A, (0..99).map(Value::Int).collect());
    assert_eq!(show(&many), "a IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 89 more)");
}

#[test]
fn constants_disappear() {
    let p = Predicate::and([Predicate::True, int(A, CmpOp::Eq, 1)]);
    assert_eq!(show(&p), "a = 1");
    assert_eq!(Predicate::and([p.clone(), Predicate::False]), Predicate::False);
    assert_eq!(Predicate::or([p, Predicate::True]), Predicate::True);
    assert_eq!(Predicate::is_in(A, vec![]), Predicate::False);
}

#[test]
fn null_is_neither_true_nor_false() {
    let unknown = Predicate::compare(A, CmpOp::Eq, Value::Null);
    assert_eq!(unknown, Predicate::Unknown);
    assert_eq!(unknown.not(), Predicate::Unknown);

    let not_in = Predicate::is_in(A, vec![Value::Int(1), Value::Null]).not();
    assert_eq!(show(&not_in), "a NOT IN (1, NULL)");
    assert_eq!(not_in.eval(&pair(1, 1)).unwrap(), Some(false));
    assert_eq!(not_in.eval(&pair(2, 1)).unwrap(), None);
    assert_eq!(int(A, CmpOp::Ne, 1).eval(&pair(None, 1)).unwrap(), None);
}

#[test]
fn rows_compare_left_to_right() {
    let values = vec![Value::Int(5), Value::Int(7)];
    let p = Predicate::tuple(vec![A, B], CmpOp::Gt, values.clone()).unwrap();
    assert_eq!(show(&p), "(a, b) > (5, 7)");
    assert_eq!(p.eval(&pair(6, None)).unwrap(), Some(true));
    assert_eq!(p.eval(&pair(5, None)).unwrap(), None);
    assert_eq!(p.eval(&pair(5, 8)).unwrap(), Some(true));
    assert_eq!(p.eval(&pair(5, 7)).unwrap(), Some(false));
    assert_eq!(show(&p.not()), "(a, b) <= (5, 7)");
    let equal = Predicate::tuple(vec![A, B], CmpOp::Eq, values).unwrap();
    assert_eq!(show(&equal), "a = 5 AND b = 7");
    assert!(Predicate::tuple(vec![A, B], CmpOp::Eq, vec![Value::Null]).is_err());
}

#[test]
fn shown_as_people_write_it() {
    let text = |p: &str| LikePattern::new(p, Some('!')).unwrap();
    let p = Predicate::or([
        Predicate::and([int(A, CmpOp::Ge, 1), Predicate::is_null(B).not()]),
        Predicate::like(A, text("10!%%"), true).not(),
        Predicate::like(A, text("it's"), false),
        Predicate::Opaque("f(a) > 1".into()).not(),
    ]);
    assert_eq!(
        show(&p),
        "(a >= 1 AND b IS NOT NULL) OR a NOT ILIKE '10!%%' ESCAPE '!' OR a = 'it''s' OR NOT (f(a) > 1)"
    );
    assert_eq!(p.fields(), [A, B]);
    let stored = serde_json::to_string(&p).unwrap();
    assert_eq!(serde_json::from_str::<Predicate>(&stored).unwrap(), p);
}
