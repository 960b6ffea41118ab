//! Formulas: expressions that an index computes from a row, such as `upper(name)` or `amount * 2`.
//!
//! A table with such an index has a hidden column for each formula. It is not stored: an index entry or a
//! filter gets its value from [`Formula::eval`], so an index and a query cannot disagree. DataFusion computes
//! the same value for the same expression elsewhere in a query: `df::formula` translates its expressions, and
//! `tests/it/formulas.rs` compares both.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::predicate::{Field, RowView};
use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::value::{
    ColumnType, DECIMAL_DIGITS_MAX, JsonStep, Literal, Value, ValueRef, canonical_double, json_part,
    json_text, rescale, unit_around,
};

/// A deterministic expression over the columns of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Formula {
    /// The value of a column.
    Column(ColumnId),
    /// A literal, not NULL.
    Literal(Value),
    /// A function of other formulas. NULL if an argument is NULL, except for [`Function::Coalesce`].
    Call {
        /// The function.
        function: Function,
        /// Its arguments.
        args: Vec<Formula>,
        /// Type of the result: a value that does not fit is an error.
        ty: ColumnType,
    },
}

/// The functions of formulas. Texts consist of Unicode characters, as in queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// `upper(text)`
    Upper,
    /// `lower(text)`
    Lower,
    /// `trim(text)`: without spaces at both ends.
    Trim,
    /// `ltrim(text)`
    TrimStart,
    /// `rtrim(text)`
    TrimEnd,
    /// `length(text)`, in characters.
    Length,
    /// `substr(text, from [, count])`, from 1 on.
    Substr,
    /// `left(text, count)`
    Left,
    /// `right(text, count)`
    Right,
    /// `a || b`
    Concat,
    /// `coalesce(a, b, ...)`: the first that is not NULL.
    Coalesce,
    /// `abs(a)`
    Abs,
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `date_trunc('unit', time)`
    DateTrunc,
    /// `CAST(a AS type)`. Widening an integer or decimal needs none.
    Cast,
    /// `json -> step`: a member of an object, or an element of an array.
    JsonGet,
    /// `json ->> step`: the same as text.
    JsonGetText,
    /// `json #> '{step, ...}'`: the part at the end of a path.
    JsonPath,
    /// `json #>> '{step, ...}'`: the same as text.
    JsonPathText,
}

impl Function {
    /// The function's name or operator.
    pub fn name(self) -> &'static str {
        match self {
            Function::Upper => "upper",
            Function::Lower => "lower",
            Function::Trim => "trim",
            Function::TrimStart => "ltrim",
            Function::TrimEnd => "rtrim",
            Function::Length => "length",
            Function::Substr => "substr",
            Function::Left => "left",
            Function::Right => "right",
            Function::Concat => "||",
            Function::Coalesce => "coalesce",
            Function::Abs => "abs",
            Function::Add => "+",
            Function::Subtract => "-",
            Function::Multiply => "*",
            Function::DateTrunc => "date_trunc",
            Function::Cast => "CAST",
            Function::JsonGet => "->",
            Function::JsonGetText => "->>",
            Function::JsonPath => "json_extract_path",
            Function::JsonPathText => "json_extract_path_text",
        }
    }

    /// For those that find a part of a JSON value: do they take a path, and do they give text?
    fn of_json(self) -> Option<(bool, bool)> {
        match self {
            Function::JsonGet => Some((false, false)),
            Function::JsonGetText => Some((false, true)),
            Function::JsonPath => Some((true, false)),
            Function::JsonPathText => Some((true, true)),
            _ => None,
        }
    }

    /// Is it an infix operator?
    fn is_operator(self) -> bool {
        matches!(
            self,
            Function::Concat
                | Function::Add
                | Function::Subtract
                | Function::Multiply
                | Function::JsonGet
                | Function::JsonGetText
        )
    }
}

impl Formula {
    /// The same, however its steps into JSON are written: as far as they go by names, `->` and `#>` are one path. A name
    /// that is a number may be an element's in a path.
    pub fn canonical(self) -> Formula {
        let Formula::Call { mut function, args, ty } = self else { return self };
        let mut args: Vec<Formula> = args.into_iter().map(Formula::canonical).collect();
        function = match (function, &args[..]) {
            (Function::JsonGet, [_, step]) if is_member(step) => Function::JsonPath,
            (Function::JsonGetText, [_, step]) if is_member(step) => Function::JsonPathText,
            _ => function,
        };
        if let Function::JsonPath | Function::JsonPathText = function
            && let Some(Formula::Call { function: Function::JsonPath, args: before, .. }) = args.first_mut()
        {
            let before = std::mem::take(before);
            args.splice(..1, before);
        }
        Formula::Call { function, args, ty }
    }

    /// The type of a call's result; `None` for a column or a literal.
    pub fn ty(&self) -> Option<ColumnType> {
        if let Formula::Call { ty, .. } = self { Some(*ty) } else { None }
    }

    /// The value for a row. Errors: OUT_OF_RANGE if it does not fit the type; those of the row.
    pub fn eval<R: RowView + ?Sized>(&self, row: &R) -> Result<Value> {
        self.value(row).map(Cow::into_owned)
    }

    fn value<R: RowView + ?Sized>(&self, row: &R) -> Result<Cow<'_, Value>> {
        let (function, args, ty) = match self {
            Formula::Column(id) => return Ok(Cow::Owned(row.field(Field::Column(*id))?.to_value())),
            Formula::Literal(value) => return Ok(Cow::Borrowed(value)),
            Formula::Call { function, args, ty } => (*function, args, *ty),
        };
        if function == Function::Coalesce {
            for arg in args {
                let value = arg.value(row)?;
                if !value.is_null() {
                    let fitting = value.clone().into_owned().cast(ty).ok();
                    return fitting.map(Cow::Owned).ok_or_else(|| out_of_range(function, &[&value], ty));
                }
            }
            return Ok(Cow::Owned(Value::Null));
        }
        if let Some((of_path, as_text)) = function.of_json() {
            return part_of_json(args, row, of_path, as_text).map(Cow::Owned);
        }
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let value = arg.value(row)?;
            if value.is_null() {
                return Ok(Cow::Owned(Value::Null));
            }
            values.push(value);
        }
        let values: Vec<&Value> = values.iter().map(|value| &**value).collect();
        let value = apply(function, &values, ty).and_then(|value| value.cast(ty).ok());
        value.map(Cow::Owned).ok_or_else(|| out_of_range(function, &values, ty))
    }

    /// Is it NULL whenever one of its columns is?
    pub fn is_strict(&self) -> bool {
        match self {
            Formula::Column(_) | Formula::Literal(_) => true,
            Formula::Call { function, args, .. } => {
                *function != Function::Coalesce && args.iter().all(Formula::is_strict)
            }
        }
    }

    /// The columns it reads.
    pub fn columns(&self) -> BTreeSet<ColumnId> {
        match self {
            Formula::Column(id) => BTreeSet::from([*id]),
            Formula::Literal(_) => BTreeSet::new(),
            Formula::Call { args, .. } => args.iter().flat_map(Formula::columns).collect(),
        }
    }

    /// SQL of the same meaning, with column names from `name`.
    pub fn sql(&self, name: &dyn Fn(ColumnId) -> String) -> String {
        match self {
            Formula::Column(id) => name(*id),
            Formula::Literal(value) => Literal(value.as_ref()).to_string(),
            Formula::Call { function: Function::Cast, args, ty } => {
                let args: Vec<String> = args.iter().map(|arg| arg.sql(name)).collect();
                format!("CAST({} AS {})", args.join(", "), ty.sql_name())
            }
            Formula::Call { function, args, .. } => {
                let is_operator = self.is_operator();
                let shown = args.iter().map(|arg| match is_operator && arg.is_operator() {
                    true => format!("({})", arg.sql(name)),
                    false => arg.sql(name),
                });
                let shown: Vec<String> = shown.collect();
                match (function, &shown[..]) {
                    (Function::JsonPath, _) if is_operator => shown.join(" -> "),
                    (Function::JsonPathText, [before @ .., last]) if is_operator => {
                        format!("{} ->> {last}", before.join(" -> "))
                    }
                    _ => call(*function, &shown),
                }
            }
        }
    }

    /// Is it shown as an infix operator?
    fn is_operator(&self) -> bool {
        match self {
            Formula::Call { function: Function::JsonPath | Function::JsonPathText, args, .. } => {
                args.len() > 1 && args[1..].iter().all(is_member)
            }
            Formula::Call { function, .. } => function.is_operator(),
            _ => false,
        }
    }
}

/// Is it a step into JSON that goes to a member, in a path, too?
fn is_member(step: &Formula) -> bool {
    matches!(step, Formula::Literal(Value::Text(name)) if name.parse::<i64>().is_err())
}

/// A call as SQL.
fn call(function: Function, args: &[String]) -> String {
    match function.is_operator() {
        true => args.join(&format!(" {} ", function.name())),
        false => format!("{}({})", function.name(), args.join(", ")),
    }
}

/// Applies a function to arguments that are not NULL; `None` if the result does not exist in the type.
fn apply(function: Function, args: &[&Value], ty: ColumnType) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    match (function, args) {
        (Function::Upper, [Value::Text(t)]) => Some(Value::Text(t.to_uppercase())),
        (Function::Lower, [Value::Text(t)]) => Some(Value::Text(t.to_lowercase())),
        (Function::Trim, [Value::Text(t)]) => text(t.trim_matches(' ')),
        (Function::TrimStart, [Value::Text(t)]) => text(t.trim_start_matches(' ')),
        (Function::TrimEnd, [Value::Text(t)]) => text(t.trim_end_matches(' ')),
        (Function::Length, [Value::Text(t)]) => Some(Value::Int(t.chars().count() as i64)),
        (Function::Left, [Value::Text(t), Value::Int(n)]) => text(first(t, *n)),
        (Function::Right, [Value::Text(t), Value::Int(n)]) => {
            let skipped = (t.chars().count() as i64).saturating_sub(*n);
            text(&t[first(t, skipped).len()..])
        }
        (Function::Substr, [Value::Text(t), Value::Int(from), count @ ..]) => {
            let rest = &t[first(t, from.saturating_sub(1)).len()..];
            match count {
                [Value::Int(n)] => text(first(rest, *n)),
                _ => text(rest),
            }
        }
        (Function::Concat, [Value::Text(a), Value::Text(b)]) => Some(Value::Text(format!("{a}{b}"))),
        (Function::Abs, [Value::Int(i)]) => Some(Value::Int(i.checked_abs()?)),
        (Function::Abs, [Value::Double(d)]) => Some(Value::Double(d.abs())),
        (Function::Abs, [Value::Decimal(d, scale)]) => Some(Value::Decimal(d.checked_abs()?, *scale)),
        (Function::Add | Function::Subtract | Function::Multiply, [a, b]) => arithmetic(function, a, b, ty),
        (Function::DateTrunc, [Value::Text(unit), Value::Timestamp(us)]) => {
            Some(Value::Timestamp(unit_around(unit, *us)?.0))
        }
        (Function::DateTrunc, [Value::Text(unit), Value::TimestampTz(us)]) => {
            Some(Value::TimestampTz(unit_around(unit, *us)?.0))
        }
        (Function::Cast, [value]) => Some((*value).clone()),
        _ => None,
    }
}

/// The part of a JSON value, the first of `args`, that the others, which are literals, lead to.
fn part_of_json<R: RowView + ?Sized>(
    args: &[Formula],
    row: &R,
    of_path: bool,
    as_text: bool,
) -> Result<Value> {
    let [json, steps @ ..] = args else { return Ok(Value::Null) };
    let computed;
    // A column's text is not copied.
    let json = match json {
        Formula::Column(id) => row.field(Field::Column(*id))?,
        json => {
            computed = json.value(row)?;
            (*computed).as_ref()
        }
    };
    let ValueRef::Text(json) = json else { return Ok(Value::Null) };
    let steps = steps.iter().map(|step| match step {
        Formula::Literal(step) => JsonStep::new(step.as_ref(), of_path),
        _ => None,
    });
    let part = json_part(json, steps).map_err(|e| Error::corrupt("a JSON value is damaged").caused_by(e))?;
    let Some(part) = part else { return Ok(Value::Null) };
    Ok(match as_text {
        true => json_text(part).map_or(Value::Null, |text| Value::Text(text.into_owned())),
        false => Value::Text(part.to_owned()),
    })
}

/// The first `n` characters of a text, or all of them.
fn first(text: &str, n: i64) -> &str {
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
    text.char_indices().nth(n).map_or(text, |(end, _)| &text[..end])
}

fn arithmetic(function: Function, a: &Value, b: &Value, ty: ColumnType) -> Option<Value> {
    if let (Value::Double(a), Value::Double(b)) = (a, b) {
        return Some(Value::Double(canonical_double(match function {
            Function::Add => a + b,
            Function::Subtract => a - b,
            _ => a * b,
        })));
    }
    if let (Value::Int(a), Value::Int(b), true) = (a, b, ty.is_integer()) {
        return Some(Value::Int(match function {
            Function::Add => a.checked_add(*b)?,
            Function::Subtract => a.checked_sub(*b)?,
            _ => a.checked_mul(*b)?,
        }));
    }
    let decimal = |value: &Value| match value {
        Value::Int(i) => Some((i128::from(*i), 0)),
        Value::Decimal(d, scale) => Some((*d, *scale)),
        _ => None,
    };
    let ((a, s), (b, t)) = (decimal(a)?, decimal(b)?);
    let (result, scale) = match function {
        Function::Multiply => (a.checked_mul(b)?, s.checked_add(t)?),
        function => {
            let scale = s.max(t);
            let (a, b) = (rescale(a, s, scale)?, rescale(b, t, scale)?);
            (if function == Function::Add { a.checked_add(b)? } else { a.checked_sub(b)? }, scale)
        }
    };
    // An i128 has room for some numbers of 39 digits.
    (result.unsigned_abs() < 10u128.pow(DECIMAL_DIGITS_MAX.into())).then_some(Value::Decimal(result, scale))
}

fn out_of_range(function: Function, args: &[&Value], ty: ColumnType) -> Error {
    let args: Vec<String> = args.iter().map(|arg| Literal(arg.as_ref()).to_string()).collect();
    let what = match function {
        Function::Coalesce | Function::Cast => args.join(", "),
        _ => call(function, &args),
    };
    Error::invalid(format!("{what} is out of range for {}", ty.sql_name())).state(sqlstate::OUT_OF_RANGE)
}

/// A row's values, by column, as fields; it has no rowkey.
#[derive(Clone, Copy)]
pub struct Values<'a>(pub &'a [Value]);

impl<'a> Values<'a> {
    /// The value of `field`. Errors: internal, if it is the rowkey.
    pub fn get(self, field: Field) -> Result<ValueRef<'a>> {
        match field {
            Field::Column(id) => Ok(self.0.get(usize::from(id.0)).map_or(ValueRef::Null, Value::as_ref)),
            Field::Rowkey | Field::PrimaryRowkey => {
                Err(Error::internal("an index predicate cannot use the rowkey"))
            }
        }
    }
}

impl RowView for Values<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        self.get(field)
    }
}
