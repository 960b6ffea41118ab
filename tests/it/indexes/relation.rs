//! The answer every query must give: rows in a vector, filtered and sorted the plain way.

use std::cmp::Ordering;

use rowkeydb::Value;
use rowkeydb::value::ColumnType;

use super::values::{literal, pool};

/// A table or index table as it should be.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, ColumnType)>,
    pub rows: Vec<Vec<Value>>,
}

/// A condition; numbers choose columns and values, whatever their count.
#[derive(Clone, Debug)]
pub enum Cond {
    Compare(u8, u8, u8),
    /// With a number that lies between two integers.
    Between2(u8, u8, i8),
    In(u8, Vec<u8>, bool),
    Between(u8, u8, u8, bool),
    Null(u8, bool),
    Like(u8, u8, bool),
    Columns(u8, u8, u8),
    /// Columns with their values, and how the two rows compare.
    Row(Vec<(u8, u8)>, u8),
    /// Columns of a row, and the rows that it is among.
    RowIn(Vec<u8>, Vec<[u8; 3]>, bool),
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Not(Box<Cond>),
}

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];
const PATTERNS: [&str; 12] = ["a%", "%a", "_", "%", "", "ab%", "é%", "host1%", "a\\_%", "%b%", "a_", "0000_"];

fn holds(op: u8, order: Ordering) -> bool {
    match op % 6 {
        0 => order.is_eq(),
        1 => order.is_ne(),
        2 => order.is_lt(),
        3 => order.is_le(),
        4 => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// SQL text under construction, with its parameters.
#[derive(Default)]
pub struct Sql {
    pub text: String,
    pub params: Vec<Value>,
}

impl Sql {
    pub fn value(&mut self, value: &Value, ty: ColumnType, as_param: bool) {
        match literal(value, ty).filter(|_| !as_param) {
            Some(text) => self.text.push_str(&text),
            None => {
                self.params.push(value.clone());
                self.text.push_str(&format!("${}", self.params.len()));
            }
        }
    }
}

impl Relation {
    fn column(&self, at: u8) -> usize {
        usize::from(at) % self.columns.len()
    }

    /// The `n`th value that is tried with a column.
    fn value(&self, column: usize, n: u8) -> Value {
        let n = usize::from(n);
        let (name, ty) = &self.columns[column];
        // A rowkey is best compared with one that is there.
        if name.ends_with("rowkey") && !self.rows.is_empty() {
            return self.rows[n % self.rows.len()][column].clone();
        }
        let pool = pool(*ty);
        pool[n % pool.len()].clone()
    }

    /// Writes `cond` as SQL.
    pub fn write(&self, cond: &Cond, out: &mut Sql) {
        let list = |out: &mut Sql, all: &[Cond], word: &str| {
            for (i, c) in all.iter().enumerate() {
                out.text.push_str(if i == 0 { "(" } else { word });
                self.write(c, out);
            }
            out.text.push_str(if all.is_empty() { "true" } else { ")" });
        };
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match cond {
            Cond::Compare(c, op, v) => {
                let c = self.column(*c);
                let (name, ty) = &self.columns[c];
                out.text.push_str(&format!("{name} {} ", OPERATORS[usize::from(op % 6)]));
                out.value(&self.value(c, *v), *ty, v % 3 == 0);
            }
            Cond::Between2(c, op, n) => match self.columns[self.column(*c)] {
                (ref name, ty) if ty.is_integer() => {
                    out.text.push_str(&format!("{name} {} {n}.5", OPERATORS[usize::from(op % 6)]));
                }
                (ref name, _) => out.text.push_str(&format!("{name} IS NOT NULL")),
            },
            Cond::In(c, values, negated) => {
                let c = self.column(*c);
                out.text.push_str(&format!("{} {}IN (", self.columns[c].0, not(negated)));
                for (i, v) in values.iter().enumerate() {
                    out.text.push_str(if i == 0 { "" } else { ", " });
                    out.value(&self.value(c, *v), self.columns[c].1, v % 5 == 0);
                }
                out.text.push(')');
            }
            Cond::Between(c, low, high, negated) => {
                let c = self.column(*c);
                out.text.push_str(&format!("{} {}BETWEEN ", self.columns[c].0, not(negated)));
                out.value(&self.value(c, *low), self.columns[c].1, false);
                out.text.push_str(" AND ");
                out.value(&self.value(c, *high), self.columns[c].1, true);
            }
            Cond::Null(c, negated) => {
                out.text.push_str(&format!("{} IS {}NULL", self.columns[self.column(*c)].0, not(negated)));
            }
            Cond::Like(c, pattern, negated) => match &self.columns[self.column(*c)] {
                (name, ColumnType::Varchar) => {
                    let pattern = PATTERNS[usize::from(*pattern) % PATTERNS.len()];
                    out.text.push_str(&format!("{name} {}LIKE '{pattern}'", not(negated)));
                }
                (name, _) => out.text.push_str(&format!("{name} IS NULL")),
            },
            Cond::Columns(a, op, b) => {
                let (a, b) = self.same_type(*a, *b);
                let op = OPERATORS[usize::from(op % 6)];
                out.text.push_str(&format!("{} {op} {}", self.columns[a].0, self.columns[b].0));
            }
            Cond::Row(pairs, op) => {
                self.write_row(&pairs.iter().map(|p| p.0).collect::<Vec<_>>(), None, out);
                out.text.push_str(&format!(" {} ", OPERATORS[usize::from(op % 6)]));
                let (columns, values): (Vec<u8>, Vec<u8>) = pairs.iter().copied().unzip();
                self.write_row(&columns, Some(&values), out);
            }
            Cond::RowIn(columns, rows, negated) => {
                self.write_row(columns, None, out);
                out.text.push_str(&format!(" {}IN (", not(negated)));
                for (i, row) in rows.iter().enumerate() {
                    out.text.push_str(if i == 0 { "" } else { ", " });
                    self.write_row(columns, Some(row), out);
                }
                out.text.push(')');
            }
            Cond::And(all) => list(out, all, " AND "),
            Cond::Or(all) => list(out, all, " OR "),
            Cond::Not(inner) => {
                out.text.push_str("NOT (");
                self.write(inner, out);
                out.text.push(')');
            }
        }
    }

    /// `(a, b)`, or values for these columns.
    fn write_row(&self, columns: &[u8], values: Option<&[u8]>, out: &mut Sql) {
        for (i, column) in columns.iter().enumerate() {
            out.text.push_str(if i == 0 { "(" } else { ", " });
            let c = self.column(*column);
            match values {
                None => out.text.push_str(&self.columns[c].0),
                Some(values) => out.value(&self.value(c, values[i]), self.columns[c].1, values[i] % 4 == 0),
            }
        }
        out.text.push(')');
    }

    /// Two columns that can be compared.
    fn same_type(&self, a: u8, b: u8) -> (usize, usize) {
        let (a, mut b) = (self.column(a), self.column(b));
        while self.columns[a].1 != self.columns[b].1 {
            b = (b + 1) % self.columns.len();
        }
        (a, b)
    }

    /// What `cond` says of a row; `None` is unknown.
    pub fn eval(&self, cond: &Cond, row: &[Value]) -> Option<bool> {
        let compare =
            |a: &Value, op: u8, b: &Value| (!a.is_null() && !b.is_null()).then(|| holds(op, a.cmp(b)));
        let negate = |negated: bool, verdict: Option<bool>| verdict.map(|v| v != negated);
        let or = |verdicts: &mut dyn Iterator<Item = Option<bool>>| {
            let mut unknown = false;
            for verdict in verdicts {
                match verdict {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            if unknown { None } else { Some(false) }
        };
        match cond {
            Cond::Compare(c, op, v) => {
                let c = self.column(*c);
                compare(&row[c], *op, &self.value(c, *v))
            }
            Cond::Between2(c, op, n) => match &row[self.column(*c)] {
                Value::Null if self.columns[self.column(*c)].1.is_integer() => None,
                Value::Int(i) => {
                    // -3.5 lies between -4 and -3, 3.5 between 3 and 4.
                    let below = i64::from(*n) - i64::from(*n < 0);
                    // "-0.5" is written for n = 0 only as 0.5.
                    let order = if *i <= below { Ordering::Less } else { Ordering::Greater };
                    Some(holds(*op, order))
                }
                value => Some(!value.is_null()),
            },
            Cond::In(c, values, negated) => {
                let c = self.column(*c);
                negate(*negated, or(&mut values.iter().map(|v| compare(&row[c], 0, &self.value(c, *v)))))
            }
            Cond::Between(c, low, high, negated) => {
                let c = self.column(*c);
                let above = compare(&row[c], 5, &self.value(c, *low));
                let below = compare(&row[c], 3, &self.value(c, *high));
                negate(!*negated, or(&mut [above, below].into_iter().map(|v| negate(true, v))))
            }
            Cond::Null(c, negated) => Some(row[self.column(*c)].is_null() != *negated),
            Cond::Like(c, pattern, negated) => {
                match (&row[self.column(*c)], &self.columns[self.column(*c)].1) {
                    (Value::Text(text), ColumnType::Varchar) => {
                        let pattern: Vec<char> =
                            PATTERNS[usize::from(*pattern) % PATTERNS.len()].chars().collect();
                        let text: Vec<char> = text.chars().collect();
                        Some(like(&text, &pattern) != *negated)
                    }
                    (value, ColumnType::Varchar) if value.is_null() => None,
                    (value, _) => Some(value.is_null()),
                }
            }
            Cond::Columns(a, op, b) => {
                let (a, b) = self.same_type(*a, *b);
                compare(&row[a], *op, &row[b])
            }
            Cond::Row(pairs, op) => {
                let pair =
                    |(c, v): &(u8, u8)| (row[self.column(*c)].clone(), self.value(self.column(*c), *v));
                let pairs: Vec<(Value, Value)> = pairs.iter().map(pair).collect();
                match op % 6 {
                    0 => negate(true, or(&mut pairs.iter().map(|(a, b)| compare(a, 1, b)))),
                    1 => or(&mut pairs.iter().map(|(a, b)| compare(a, 1, b))),
                    _ => {
                        let decides = pairs.iter().find(|(a, b)| a.is_null() || b.is_null() || a != b);
                        match decides {
                            Some((a, b)) => compare(a, *op, b),
                            None => Some(holds(*op, Ordering::Equal)),
                        }
                    }
                }
            }
            Cond::RowIn(columns, rows, negated) => {
                let equal = |values: &[u8; 3]| {
                    let pairs = columns.iter().copied().zip(values.iter().copied()).collect();
                    self.eval(&Cond::Row(pairs, 0), row)
                };
                negate(*negated, or(&mut rows.iter().map(equal)))
            }
            Cond::And(all) => negate(true, or(&mut all.iter().map(|c| negate(true, self.eval(c, row))))),
            Cond::Or(all) if all.is_empty() => Some(true),
            Cond::Or(all) => or(&mut all.iter().map(|c| self.eval(c, row))),
            Cond::Not(inner) => negate(true, self.eval(inner, row)),
        }
    }
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|n| like(&text[n..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && like(&text[1..], rest),
    }
}

/// A query over one relation.
#[derive(Clone, Debug)]
pub struct Query {
    /// Which relation: the table, or one of its index tables.
    pub relation: u8,
    pub cond: Option<Cond>,
    /// Column, descending, NULLS FIRST or LAST if said.
    pub order: Vec<(u8, bool, Option<bool>)>,
    pub limit: Option<u8>,
    pub offset: u8,
    /// Which columns, a bit for each; the ordered ones besides.
    pub columns: u16,
    /// Rows, or what is counted, compared or told apart of them.
    pub grouped: bool,
}

/// What is asked about the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Rows,
    /// The rows with each value of a column, counted.
    Groups,
    /// The least value of a column.
    Least,
    /// The least and the greatest.
    Extremes,
    /// Distinct rows.
    Distinct,
    /// The first rows of each group.
    Firsts,
    /// The greatest value of each group, or the least.
    Extreme,
    /// The rows with a value that one of the rows has.
    Members,
}

impl Query {
    fn selected(&self, relation: &Relation) -> Vec<usize> {
        let mut all: Vec<usize> = self.order.iter().map(|o| relation.column(o.0)).collect();
        all.extend((0..relation.columns.len()).filter(|c| self.columns >> c & 1 == 1));
        if all.is_empty() {
            all.push(0);
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|c| seen.insert(*c));
        all
    }

    fn shape(&self, relation: &Relation) -> Shape {
        // The least of these is no value of their own type any more.
        let ty = relation.columns[self.selected(relation)[0]].1;
        let is_plain = !matches!(ty, ColumnType::Uuid | ColumnType::Json | ColumnType::Varbinary);
        match (self.grouped, self.columns / 2 % 9) {
            (false, _) => Shape::Rows,
            (true, 4 | 5) => Shape::Members,
            (true, 6 | 7) if is_plain && self.ordered(relation).is_some() => Shape::Firsts,
            (true, 8) if is_plain && self.ordered(relation).is_some() => Shape::Extreme,
            (true, 0 | 1) if is_plain => Shape::Least,
            (true, 2) if is_plain => Shape::Extremes,
            (true, 3) => Shape::Distinct,
            (true, _) => Shape::Groups,
        }
    }

    /// Nothing but the rows that pass, and all of them.
    pub fn wants_all_rows(&self, relation: &Relation) -> bool {
        self.shape(relation) == Shape::Rows && self.limit.is_none()
    }

    /// Another column than the first one, by which groups are ordered, and which end comes first.
    fn ordered(&self, relation: &Relation) -> Option<(usize, bool)> {
        let at = *self.selected(relation).get(1)?;
        let is_plain =
            !matches!(relation.columns[at].1, ColumnType::Uuid | ColumnType::Json | ColumnType::Varbinary);
        is_plain.then_some((at, self.offset % 2 == 1))
    }

    /// Rows of a group.
    fn firsts(&self) -> usize {
        1 + usize::from(self.limit.unwrap_or(0)) % 3
    }

    /// Two columns of one type: whose values are looked up, and among which.
    fn looked_up(&self, relation: &Relation) -> (usize, usize) {
        relation.same_type(self.selected(relation)[0] as u8, self.offset)
    }

    /// The query as SQL.
    pub fn sql(&self, relation: &Relation) -> Sql {
        let names: Vec<&str> =
            self.selected(relation).iter().map(|c| relation.columns[*c].0.as_str()).collect();
        let shape = self.shape(relation);
        let wanted = match shape {
            Shape::Rows => names.join(", "),
            Shape::Groups => format!("{0}, count(*), count({0})", names[0]),
            Shape::Least => format!("min({})", names[0]),
            Shape::Extremes => format!("min({0}) AS least, max({0}) AS greatest", names[0]),
            Shape::Distinct => format!("DISTINCT {}", names.join(", ")),
            Shape::Firsts => names[..2].join(", "),
            Shape::Extreme => {
                let call = if self.ordered(relation).is_some_and(|o| o.1) { "max" } else { "min" };
                format!("{}, {call}({})", names[0], names[1])
            }
            Shape::Members => {
                let (of, among) = self.looked_up(relation);
                let (of, among) = (&relation.columns[of].0, &relation.columns[among].0);
                format!("{} FROM {} WHERE {of} IN (SELECT {among}", names.join(", "), relation.name)
            }
        };
        let text = format!("SELECT {wanted} FROM {}", relation.name);
        let mut out = Sql { text, ..Sql::default() };
        if let Some(cond) = &self.cond {
            out.text.push_str(" WHERE ");
            relation.write(cond, &mut out);
        }
        match shape {
            Shape::Rows => {}
            Shape::Least | Shape::Extremes | Shape::Distinct => return out,
            Shape::Members => {
                out.text.push(')');
                return out;
            }
            Shape::Groups | Shape::Extreme => {
                out.text.push_str(&format!(" GROUP BY {}", names[0]));
                return out;
            }
            Shape::Firsts => {
                let (by, descending) = (names[1], self.ordered(relation).is_some_and(|o| o.1));
                let by = if descending { format!("{by} DESC") } else { by.to_owned() };
                out.text.push_str(&format!(
                    " QUALIFY row_number() OVER (PARTITION BY {} ORDER BY {by}) <= {}",
                    names[0],
                    self.firsts()
                ));
                return out;
            }
        }
        for (i, (column, descending, nulls)) in self.order.iter().enumerate() {
            out.text.push_str(if i == 0 { " ORDER BY " } else { ", " });
            out.text.push_str(&relation.columns[relation.column(*column)].0);
            out.text.push_str(if *descending { " DESC" } else { "" });
            out.text.push_str(match nulls {
                None => "",
                Some(true) => " NULLS FIRST",
                Some(false) => " NULLS LAST",
            });
        }
        if let Some(limit) = self.limit {
            out.text.push_str(&format!(" LIMIT {limit}"));
            if self.offset > 0 {
                out.text.push_str(&format!(" OFFSET {}", self.offset));
            }
        }
        out
    }

    fn compare(&self, positions: &[usize], a: &[Value], b: &[Value]) -> Ordering {
        for ((_, descending, nulls), at) in self.order.iter().zip(positions) {
            let (a, b) = (&a[*at], &b[*at]);
            let nulls_first = nulls.unwrap_or(!descending);
            let order = match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) => {
                    if nulls_first {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (false, true) => {
                    if nulls_first {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
                _ if *descending => b.cmp(a),
                _ => a.cmp(b),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Compares an answer with the rows that should be in it. Ties may come in any order, and without an
    /// ORDER BY a LIMIT may keep any rows.
    pub fn check(&self, relation: &Relation, answer: &[Vec<Value>]) -> Result<(), String> {
        let selected = self.selected(relation);
        let matching = relation
            .rows
            .iter()
            .filter(|row| self.cond.as_ref().is_none_or(|cond| relation.eval(cond, row) == Some(true)));
        let mut expected: Vec<Vec<Value>> =
            matching.map(|row| selected.iter().map(|c| row[*c].clone()).collect()).collect();
        let known = || expected.iter().map(|row| &row[0]).filter(|value| !value.is_null());
        let or_null = |value: Option<&Value>| value.cloned().unwrap_or(Value::Null);
        match self.shape(relation) {
            Shape::Rows => {}
            Shape::Groups => return same_rows(answer, &grouped(&expected)),
            Shape::Least => return same_rows(answer, &[vec![or_null(known().min())]]),
            Shape::Extremes => {
                return same_rows(answer, &[vec![or_null(known().min()), or_null(known().max())]]);
            }
            Shape::Distinct => {
                expected.sort();
                expected.dedup();
                return same_rows(answer, &expected);
            }
            Shape::Firsts => {
                let descending = self.ordered(relation).is_some_and(|o| o.1);
                return same_rows(answer, &firsts(&expected, descending, self.firsts()));
            }
            Shape::Extreme => {
                let greatest = self.ordered(relation).is_some_and(|o| o.1);
                return same_rows(answer, &extremes(&expected, greatest));
            }
            Shape::Members => {
                let (of, among) = self.looked_up(relation);
                let matches = |row: &&Vec<Value>| {
                    self.cond.as_ref().is_none_or(|cond| relation.eval(cond, row) == Some(true))
                };
                let values: Vec<&Value> =
                    relation.rows.iter().filter(matches).map(|row| &row[among]).collect();
                let members =
                    relation.rows.iter().filter(|row| !row[of].is_null() && values.contains(&&row[of]));
                let members: Vec<Vec<Value>> =
                    members.map(|row| selected.iter().map(|c| row[*c].clone()).collect()).collect();
                return same_rows(answer, &members);
            }
        }
        let positions: Vec<usize> = self
            .order
            .iter()
            .map(|o| {
                selected
                    .iter()
                    .position(|c| *c == relation.column(o.0))
                    .expect("ordered columns are selected")
            })
            .collect();
        expected.sort_by(|a, b| self.compare(&positions, a, b));
        let Some(limit) = self.limit else {
            if !answer.is_sorted_by(|a, b| self.compare(&positions, a, b).is_le()) {
                return Err(format!("out of order: {answer:?}"));
            }
            return same_rows(answer, &expected);
        };
        let window: Vec<Vec<Value>> =
            expected.iter().skip(self.offset.into()).take(limit.into()).cloned().collect();
        if window.len() != answer.len() {
            return Err(format!("{} rows instead of {}: {answer:?}", answer.len(), window.len()));
        }
        if window.iter().zip(answer).any(|(a, b)| self.compare(&positions, a, b).is_ne()) {
            return Err(format!("other rows come first: {answer:?} instead of {window:?}"));
        }
        let mut left = expected;
        for row in answer {
            match left.iter().position(|r| r == row) {
                Some(at) => drop(left.swap_remove(at)),
                None => return Err(format!("row {row:?} should not be there")),
            }
        }
        Ok(())
    }
}

/// The first `n` of the rows with each value of the first column, in the order of the second.
fn firsts(rows: &[Vec<Value>], descending: bool, n: usize) -> Vec<Vec<Value>> {
    let mut pairs: Vec<Vec<Value>> = rows.iter().map(|row| row[..2].to_vec()).collect();
    pairs.sort_by(|a, b| a[0].cmp(&b[0]).then(if descending { b[1].cmp(&a[1]) } else { a[1].cmp(&b[1]) }));
    pairs.chunk_by(|a, b| a[0] == b[0]).flat_map(|group| group.iter().take(n).cloned()).collect()
}

/// The extreme that is not NULL of the rows with each value of the first column, if there is one.
fn extremes(rows: &[Vec<Value>], greatest: bool) -> Vec<Vec<Value>> {
    let mut groups: std::collections::BTreeMap<&Value, Vec<&Value>> = Default::default();
    rows.iter().for_each(|row| groups.entry(&row[0]).or_default().push(&row[1]));
    let extreme = |(group, values): (&Value, Vec<&Value>)| {
        let known = values.into_iter().filter(|value| !value.is_null());
        let extreme = if greatest { known.max() } else { known.min() };
        vec![group.clone(), extreme.cloned().unwrap_or(Value::Null)]
    };
    groups.into_iter().map(extreme).collect()
}

fn grouped(rows: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let mut groups: std::collections::BTreeMap<&Value, i64> = Default::default();
    rows.iter().for_each(|row| *groups.entry(&row[0]).or_default() += 1);
    let count = |(value, n): (&Value, i64)| {
        vec![value.clone(), Value::Int(n), Value::Int(if value.is_null() { 0 } else { n })]
    };
    groups.into_iter().map(count).collect()
}

/// The same rows, as often, in any order.
pub fn same_rows(answer: &[Vec<Value>], expected: &[Vec<Value>]) -> Result<(), String> {
    let sorted = |rows: &[Vec<Value>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let (answer, expected) = (sorted(answer), sorted(expected));
    if answer == expected {
        return Ok(());
    }
    let missing: Vec<_> = expected.iter().filter(|row| !answer.contains(row)).collect();
    let extra: Vec<_> = answer.iter().filter(|row| !expected.contains(row)).collect();
    Err(format!("{} rows instead of {}; missing {missing:?}; extra {extra:?}", answer.len(), expected.len()))
}
