//! Predicates: the conditions the planner understands, such as columns compared with literals, AND and OR.
//!
//! Constructors normalise, so that equal conditions mostly look equal: nested ANDs and ORs are flattened,
//! constants are folded, NOT is pushed down to the atoms, and `a = 1 OR a = 2` becomes `a IN (1, 2)`.
//! Anything else is opaque. The logic is SQL's: true, false, or unknown (`None`), and a filter keeps the rows
//! for which it is true.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::like::LikePattern;
use crate::error::{Error, Result, sqlstate};
use crate::key::{ColumnId, PartExpr};
use crate::value::{Literal, Value, ValueRef};

/// Values of a list that are shown before the rest is only counted.
const LISTED: usize = 10;

/// What a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// A column of the row.
    Column(ColumnId),
    /// The rowkey's bytes: text if every part of the layout is text, otherwise binary. For an index entry,
    /// only the index's own layout.
    Rowkey,
    /// An index entry's pointer, the rowkey of its row.
    PrimaryRowkey,
}

/// Comparison of two values that are not NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CmpOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CmpOp {
    /// The operator that is true exactly when this one is false.
    pub fn negated(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::Lt => CmpOp::Ge,
            CmpOp::Ge => CmpOp::Lt,
            CmpOp::Gt => CmpOp::Le,
            CmpOp::Le => CmpOp::Gt,
        }
    }

    /// The operator without equality: `<=` becomes `<`.
    pub fn strict(self) -> CmpOp {
        match self {
            CmpOp::Le => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Gt,
            other => other,
        }
    }

    /// The operator with equality: `<` becomes `<=`.
    pub fn loose(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Le,
            CmpOp::Gt => CmpOp::Ge,
            other => other,
        }
    }

    /// Whether `a op b` holds if `a.cmp(b)` is `order`.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CmpOp::Eq => order.is_eq(),
            CmpOp::Ne => order.is_ne(),
            CmpOp::Lt => order.is_lt(),
            CmpOp::Le => order.is_le(),
            CmpOp::Gt => order.is_gt(),
            CmpOp::Ge => order.is_ge(),
        }
    }

    /// As SQL.
    pub fn sql(self) -> &'static str {
        match self {
            CmpOp::Eq => "=",
            CmpOp::Ne => "<>",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }
}

/// A condition on one row. Literals have the type of their field: the caller has coerced them, rounding
/// included (a `REAL` column is compared with 32-bit values only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Predicate {
    /// Every row.
    True,
    /// No row, and its negation every row.
    False,
    /// NULL, as of `a = NULL`: true for no row, and neither is its negation.
    Unknown,
    /// `field op value`; the value is not NULL.
    Compare {
        /// Left side.
        field: Field,
        /// Operator.
        op: CmpOp,
        /// Right side.
        value: Value,
    },
    /// `field [NOT] IN (values)`.
    In {
        /// The field looked up.
        field: Field,
        /// Sorted, distinct, not NULL.
        values: Vec<Value>,
        /// `NOT IN`.
        negated: bool,
        /// The list also contained NULL: a value that is not found gives unknown.
        null_in_list: bool,
    },
    /// `field [NOT] [I]LIKE pattern`; the field is text.
    Like {
        /// The field matched.
        field: Field,
        /// The pattern.
        pattern: LikePattern,
        /// `NOT LIKE`.
        negated: bool,
        /// `ILIKE`.
        case_insensitive: bool,
    },
    /// `field IS [NOT] NULL`.
    IsNull {
        /// The field tested.
        field: Field,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `(fields) op (values)` with `<`, `<=`, `>` or `>=`, compared left to right; as many values as fields.
    Tuple {
        /// Left side.
        fields: Vec<Field>,
        /// Operator.
        op: CmpOp,
        /// Right side.
        values: Vec<Value>,
    },
    /// `part op value`, of what a key part computes. The value has the expression's type and is not NULL. Never stored: the
    /// part may be gone tomorrow.
    #[serde(skip)]
    Part {
        /// Left side.
        part: Arc<PartExpr>,
        /// Operator.
        op: CmpOp,
        /// Right side.
        value: Value,
    },
    /// All of them hold.
    And(Vec<Predicate>),
    /// One of them holds.
    Or(Vec<Predicate>),
    /// A condition that cannot be expressed here, as SQL: it may be true for any row.
    Opaque(String),
}

/// A row that predicates can be evaluated on.
pub trait RowView {
    /// The value of `field`. Errors: those of reading the row's bytes.
    fn field(&self, field: Field) -> Result<ValueRef<'_>>;

    /// How the value of `field` compares with one that is not NULL; `None` if the field is NULL. Errors: as
    /// [`RowView::field`].
    fn compared(&self, field: Field, with: &Value) -> Result<Option<Ordering>> {
        let value = self.field(field)?;
        Ok((!value.is_null()).then(|| value.cmp(&with.as_ref())))
    }
}

/// Constructors, all of which normalise.
impl Predicate {
    /// `field op value`; unknown if the value is NULL.
    pub fn compare(field: Field, op: CmpOp, value: Value) -> Predicate {
        if value.is_null() { Predicate::Unknown } else { Predicate::Compare { field, op, value } }
    }

    /// `field IN (values)`; values may be unsorted and contain NULL.
    pub fn is_in(field: Field, mut values: Vec<Value>) -> Predicate {
        let len = values.len();
        values.retain(|v| !v.is_null());
        let null_in_list = values.len() < len;
        values.sort();
        values.dedup();
        match (values.len(), null_in_list) {
            (0, false) => Predicate::False,
            (0, true) => Predicate::Unknown,
            (1, false) => Predicate::compare(field, CmpOp::Eq, values.remove(0)),
            _ => Predicate::In { field, values, negated: false, null_in_list },
        }
    }

    /// `field LIKE pattern`, or `ILIKE`.
    pub fn like(field: Field, pattern: LikePattern, case_insensitive: bool) -> Predicate {
        match pattern.as_exact() {
            Some(text) if !case_insensitive => {
                Predicate::compare(field, CmpOp::Eq, Value::Text(text.to_owned()))
            }
            _ => Predicate::Like { field, pattern, negated: false, case_insensitive },
        }
    }

    /// `field IS NULL`.
    pub fn is_null(field: Field) -> Predicate {
        Predicate::IsNull { field, negated: false }
    }

    /// `(fields) op (values)`. Errors: invalid, if there are not as many values as fields.
    pub fn tuple(fields: Vec<Field>, op: CmpOp, values: Vec<Value>) -> Result<Predicate> {
        if fields.len() != values.len() {
            return Err(Error::invalid("rows of different length are compared")
                .why(format!("{} on the left, {} on the right", fields.len(), values.len()))
                .hint("write as many values as there are columns")
                .state(sqlstate::DATATYPE_MISMATCH));
        }
        let each = |op| fields.iter().zip(values.iter()).map(move |(f, v)| Self::compare(*f, op, v.clone()));
        Ok(match op {
            CmpOp::Eq => Predicate::and(each(CmpOp::Eq)),
            CmpOp::Ne => Predicate::or(each(CmpOp::Ne)),
            _ if fields.len() == 1 => Predicate::and(each(op)),
            _ => Predicate::Tuple { fields, op, values },
        })
    }

    /// The AND of `terms`.
    pub fn and(terms: impl IntoIterator<Item = Predicate>) -> Predicate {
        let mut flat = Vec::new();
        for term in terms {
            match term {
                Predicate::True => {}
                Predicate::False => return Predicate::False,
                Predicate::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        one_or(flat, Predicate::True, Predicate::And)
    }

    /// The OR of `terms`.
    pub fn or(terms: impl IntoIterator<Item = Predicate>) -> Predicate {
        let mut flat = Vec::new();
        for term in terms {
            match term {
                Predicate::False => {}
                Predicate::True => return Predicate::True,
                Predicate::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        one_or(merge_equalities(flat), Predicate::False, Predicate::Or)
    }

    /// The negation, pushed down to the atoms.
    #[expect(clippy::should_implement_trait, reason = "reads as and() and or() do")]
    pub fn not(self) -> Predicate {
        match self {
            Predicate::True => Predicate::False,
            Predicate::False => Predicate::True,
            Predicate::Unknown => Predicate::Unknown,
            Predicate::Compare { field, op, value } => Predicate::Compare { field, op: op.negated(), value },
            Predicate::In { field, values, negated, null_in_list } => {
                Predicate::In { field, values, negated: !negated, null_in_list }
            }
            Predicate::Like { field, pattern, negated, case_insensitive } => {
                Predicate::Like { field, pattern, negated: !negated, case_insensitive }
            }
            Predicate::IsNull { field, negated } => Predicate::IsNull { field, negated: !negated },
            Predicate::Tuple { fields, op, values } => Predicate::Tuple { fields, op: op.negated(), values },
            Predicate::Part { part, op, value } => Predicate::Part { part, op: op.negated(), value },
            Predicate::And(terms) => Predicate::or(terms.into_iter().map(Predicate::not)),
            Predicate::Or(terms) => Predicate::and(terms.into_iter().map(Predicate::not)),
            Predicate::Opaque(sql) => Predicate::Opaque(format!("NOT ({sql})")),
        }
    }

    /// The terms of an AND, or the predicate itself.
    pub fn terms(&self) -> &[Predicate] {
        match self {
            Predicate::And(terms) => terms,
            one => std::slice::from_ref(one),
        }
    }

    /// One of the terms compares this column with a single value.
    pub fn equals(&self, id: ColumnId) -> bool {
        self.terms().iter().any(|term| {
            matches!(term, Predicate::Compare { field: Field::Column(of), op: CmpOp::Eq, .. } if *of == id)
        })
    }

    /// [`Predicate::terms`], owned; none for TRUE.
    pub fn conjuncts(self) -> Vec<Predicate> {
        match self {
            Predicate::True => Vec::new(),
            Predicate::And(terms) => terms,
            other => vec![other],
        }
    }
}

/// Evaluation and inspection.
impl Predicate {
    /// True, false or unknown for `row`; an opaque condition counts as true, because it cannot be ruled out.
    /// Does not allocate. Errors: those of [`RowView::field`]; internal, if LIKE meets a value that is not
    /// text.
    pub fn eval<R: RowView + ?Sized>(&self, row: &R) -> Result<Option<bool>> {
        match self {
            Predicate::True | Predicate::Opaque(_) => Ok(Some(true)),
            Predicate::False => Ok(Some(false)),
            Predicate::Unknown => Ok(None),
            Predicate::Compare { field, op, value } => {
                Ok(row.compared(*field, value)?.map(|ordering| op.holds(ordering)))
            }
            Predicate::In { field, values, negated, null_in_list } => {
                let found = lookup(row.field(*field)?, values, *null_in_list);
                Ok(found.map(|found| found != *negated))
            }
            Predicate::Like { field, pattern, negated, case_insensitive } => {
                let matched = matches(row.field(*field)?, pattern, *case_insensitive)?;
                Ok(matched.map(|matched| matched != *negated))
            }
            Predicate::IsNull { field, negated } => Ok(Some(row.field(*field)?.is_null() != *negated)),
            Predicate::Tuple { fields, op, values } => compare_rows(row, fields, *op, values),
            Predicate::Part { part, op, value } => compare_part(row, part, *op, value),
            Predicate::And(terms) => first_or_unknown(row, terms, false),
            Predicate::Or(terms) => first_or_unknown(row, terms, true),
        }
    }

    /// Is it TRUE, so that it need not be checked?
    pub fn is_true(&self) -> bool {
        matches!(self, Predicate::True)
    }

    /// Does it contain an opaque condition?
    pub fn has_opaque(&self) -> bool {
        match self {
            Predicate::Opaque(_) => true,
            Predicate::And(terms) | Predicate::Or(terms) => terms.iter().any(Predicate::has_opaque),
            _ => false,
        }
    }

    /// Does it contain a condition on what a key part computes?
    pub fn has_part(&self) -> bool {
        match self {
            Predicate::Part { .. } => true,
            Predicate::And(terms) | Predicate::Or(terms) => terms.iter().any(Predicate::has_part),
            _ => false,
        }
    }

    /// The same condition with other fields; key parts keep their columns.
    #[must_use]
    pub fn map_fields(&self, map: &dyn Fn(Field) -> Field) -> Predicate {
        let mut mapped = self.clone();
        mapped.rename(map);
        mapped
    }

    fn rename(&mut self, map: &dyn Fn(Field) -> Field) {
        match self {
            Predicate::True | Predicate::False | Predicate::Unknown => {}
            Predicate::Part { .. } | Predicate::Opaque(_) => {}
            Predicate::Compare { field, .. }
            | Predicate::In { field, .. }
            | Predicate::Like { field, .. }
            | Predicate::IsNull { field, .. } => *field = map(*field),
            Predicate::Tuple { fields, .. } => fields.iter_mut().for_each(|field| *field = map(*field)),
            Predicate::And(terms) | Predicate::Or(terms) => terms.iter_mut().for_each(|t| t.rename(map)),
        }
    }

    /// Every field it reads, sorted, once each; fields of opaque conditions are not known.
    pub fn fields(&self) -> Vec<Field> {
        let mut all = BTreeSet::new();
        self.each_field(&mut |field| {
            all.insert(field);
        });
        all.into_iter().collect()
    }

    /// It reads these fields, which are sorted, and no others.
    pub fn reads_exactly(&self, fields: &[Field]) -> bool {
        let (mut seen, mut others) = (0_u64, false);
        self.each_field(&mut |field| match fields.binary_search(&field) {
            Ok(at) if at < 64 => seen |= 1 << at,
            _ => others = true,
        });
        !others && seen.count_ones() as usize == fields.len()
    }

    fn each_field(&self, see: &mut dyn FnMut(Field)) {
        match self {
            Predicate::True | Predicate::False | Predicate::Unknown | Predicate::Opaque(_) => {}
            Predicate::Compare { field, .. }
            | Predicate::In { field, .. }
            | Predicate::Like { field, .. }
            | Predicate::IsNull { field, .. } => see(*field),
            Predicate::Tuple { fields, .. } => fields.iter().copied().for_each(see),
            Predicate::Part { part, .. } => part.columns().iter().for_each(|id| see(Field::Column(*id))),
            Predicate::And(terms) | Predicate::Or(terms) => terms.iter().for_each(|t| t.each_field(see)),
        }
    }

    /// SQL text, with field names from `name`; of long lists, the first values and how many follow.
    pub fn show(&self, name: &dyn Fn(Field) -> String) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Predicate::True => "TRUE".into(),
            Predicate::False => "FALSE".into(),
            Predicate::Unknown => "NULL".into(),
            Predicate::Compare { field, op, value } => {
                format!("{} {} {}", name(*field), op.sql(), Literal(value.as_ref()))
            }
            Predicate::In { field, values, negated, null_in_list } => {
                let null = null_in_list.then_some(&Value::Null);
                format!("{} {}IN {}", name(*field), not(negated), show_row(values.iter().chain(null)))
            }
            Predicate::Like { field, pattern, negated, case_insensitive } => {
                let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
                let text = Literal(ValueRef::Text(pattern.text()));
                let escape = match pattern.escape() {
                    Some(c) if c != '\\' => format!(" ESCAPE '{c}'"),
                    _ => String::new(),
                };
                format!("{} {}{like} {text}{escape}", name(*field), not(negated))
            }
            Predicate::IsNull { field, negated } => format!("{} IS {}NULL", name(*field), not(negated)),
            Predicate::Tuple { fields, op, values } => {
                let names: Vec<String> = fields.iter().map(|f| name(*f)).collect();
                format!("({}) {} {}", names.join(", "), op.sql(), show_row(values))
            }
            Predicate::And(terms) => show_terms(terms, " AND ", name),
            Predicate::Or(terms) => show_terms(terms, " OR ", name),
            Predicate::Part { part, op, value } => {
                format!("{} {} {}", part.sql(), op.sql(), Literal(value.as_ref()))
            }
            Predicate::Opaque(sql) => sql.clone(),
        }
    }
}

fn one_or(
    mut terms: Vec<Predicate>,
    none: Predicate,
    many: impl FnOnce(Vec<Predicate>) -> Predicate,
) -> Predicate {
    match terms.len() {
        0 => none,
        1 => terms.remove(0),
        _ => many(terms),
    }
}

/// Merges `a = 1 OR a IN (2, 3)` into `a IN (1, 2, 3)`, at the place of the first term.
fn merge_equalities(terms: Vec<Predicate>) -> Vec<Predicate> {
    let mut out: Vec<Predicate> = Vec::with_capacity(terms.len());
    let mut lists: Vec<(usize, Field, Vec<Value>)> = Vec::new();
    for term in terms {
        let (field, values) = match term {
            Predicate::Compare { field, op: CmpOp::Eq, value } => (field, vec![value]),
            Predicate::In { field, mut values, negated: false, null_in_list } => {
                values.extend(null_in_list.then_some(Value::Null));
                (field, values)
            }
            other => {
                out.push(other);
                continue;
            }
        };
        match lists.iter_mut().find(|(_, known, _)| *known == field) {
            Some((_, _, list)) => list.extend(values),
            None => {
                lists.push((out.len(), field, values));
                out.push(Predicate::False);
            }
        }
    }
    for (at, field, values) in lists {
        out[at] = Predicate::is_in(field, values);
    }
    out
}

fn lookup(value: ValueRef<'_>, sorted: &[Value], null_in_list: bool) -> Option<bool> {
    if value.is_null() {
        return None;
    }
    match sorted.binary_search_by(|v| v.as_ref().cmp(&value)) {
        Ok(_) => Some(true),
        Err(_) => (!null_in_list).then_some(false),
    }
}

fn matches(value: ValueRef<'_>, pattern: &LikePattern, case_insensitive: bool) -> Result<Option<bool>> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Text(text) => Ok(Some(pattern.matches(text, case_insensitive))),
        // A binary rowkey may still start with text; bytes that are no text can only match a prefix.
        ValueRef::Bytes(bytes) => Ok(Some(match std::str::from_utf8(bytes) {
            Ok(text) => pattern.matches(text, case_insensitive),
            Err(_) => {
                pattern.is_prefix() && !case_insensitive && bytes.starts_with(pattern.prefix().as_bytes())
            }
        })),
        other => Err(Error::internal(format!("LIKE was planned for {other}, which is no text"))),
    }
}

/// The first pair that differs decides; a pair with NULL gives unknown.
fn compare_rows<R: RowView + ?Sized>(
    row: &R,
    fields: &[Field],
    op: CmpOp,
    values: &[Value],
) -> Result<Option<bool>> {
    for (field, value) in fields.iter().zip(values) {
        let left = row.field(*field)?;
        if left.is_null() || value.is_null() {
            return Ok(None);
        }
        let order = left.cmp(&value.as_ref());
        if order.is_ne() {
            return Ok(Some(op.holds(order)));
        }
    }
    Ok(Some(op.holds(Ordering::Equal)))
}

/// Compares what a key part computes.
fn compare_part<R: RowView + ?Sized>(
    row: &R,
    part: &PartExpr,
    op: CmpOp,
    value: &Value,
) -> Result<Option<bool>> {
    let found = match part.columns() {
        &[column] => part.value(&[row.field(Field::Column(column))?]),
        columns => {
            let values = columns.iter().map(|column| row.field(Field::Column(*column)));
            part.value(&values.collect::<Result<Vec<_>>>()?)
        }
    };
    Ok((!found.is_null()).then(|| op.holds(found.cmp(value))))
}

/// `decisive` if any term is (false for AND, true for OR), else unknown if any is, else the opposite.
fn first_or_unknown<R: RowView + ?Sized>(
    row: &R,
    terms: &[Predicate],
    decisive: bool,
) -> Result<Option<bool>> {
    let mut result = Some(!decisive);
    for term in terms {
        match term.eval(row)? {
            Some(value) if value == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The first few values, and how many more there are.
fn show_row<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut values = values.into_iter();
    let mut shown: Vec<String> =
        values.by_ref().take(LISTED).map(|v| Literal(v.as_ref()).to_string()).collect();
    let more = values.count();
    if more > 0 {
        shown.push(format!("... {more} more"));
    }
    format!("({})", shown.join(", "))
}

fn show_terms(terms: &[Predicate], between: &str, name: &dyn Fn(Field) -> String) -> String {
    let show = |term: &Predicate| match term {
        Predicate::And(_) | Predicate::Or(_) => format!("({})", term.show(name)),
        other => other.show(name),
    };
    terms.iter().map(show).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests;
