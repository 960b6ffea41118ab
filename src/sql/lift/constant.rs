//! Constants as they are written: a literal, the clock, or what is computed of one of them.
//!
//! ```text
//! constant = term { ("+" | "-") (whole number | INTERVAL '1 month 2 days' | INTERVAL '2' HOUR) }
//! term     = one { "::" type }
//! one      = 'text' | number | DATE 'text' | TIMESTAMP 'text' | now() | current_date
//!          | CAST(constant AS type) | date_trunc('unit', constant)
//! ```

use super::tokens::{Class, Token, text_of};
use crate::value::{ColumnType, US_PER_DAY, Value, shifted, unit_around};

/// A constant's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// It does not change.
    Value(Value),
    /// What is computed of the clock when a statement runs.
    Now(Clock, Vec<Step>),
}

impl Constant {
    /// The value at the time `now` (microseconds since 1970 in UTC); `None` if it is out of range.
    pub fn value(&self, now: impl FnOnce() -> i64) -> Option<Value> {
        match self {
            Constant::Value(value) => Some(value.clone()),
            Constant::Now(clock, steps) => {
                steps.iter().try_fold(clock.at(now()), |value, step| step.of(value))
            }
        }
    }

    /// With one step more; `None` if that is not defined for its type, or is out of range.
    fn then(self, step: Step) -> Option<Constant> {
        Some(match self {
            Constant::Value(value) => Constant::Value(step.of(value)?),
            Constant::Now(clock, mut steps) => {
                steps.push(step);
                let now = Constant::Now(clock, steps);
                // Which steps fit depends on types only; this time is far from the ends of the range.
                now.value(|| 0)?;
                now
            }
        })
    }
}

/// What a clock function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `now()`: a TIMESTAMP.
    Time,
    /// `current_date`: a DATE.
    Day,
}

impl Clock {
    /// The function of this name.
    pub fn named(name: &str) -> Option<Clock> {
        let is = |names: [&str; 2]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        if is(["now", "current_timestamp"]) {
            return Some(Clock::Time);
        }
        is(["current_date", "today"]).then_some(Clock::Day)
    }

    /// Its value at a time, in microseconds since 1970 in UTC.
    pub fn at(self, micros: i64) -> Value {
        match self {
            Clock::Time => Value::Timestamp(micros),
            Clock::Day => Value::Date(micros.div_euclid(US_PER_DAY) as i32),
        }
    }
}

/// What is done with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A whole number is added: days, to a date.
    Plus(i64),
    /// An interval is added.
    Later(Length),
    /// `date_trunc`: the start of the unit.
    StartOf(String),
    /// `CAST`
    As(ColumnType),
}

impl Step {
    /// `None` if it is not defined for the value, or out of range.
    fn of(&self, value: Value) -> Option<Value> {
        let date = |days: i64| Some(Value::Date(i32::try_from(days).ok()?));
        Some(match (self, value) {
            (Step::Plus(more), Value::Int(n)) => Value::Int(n.checked_add(*more)?),
            (Step::Plus(more), Value::Date(days)) => {
                Step::Later(Length { days: *more, ..Length::default() }).of(Value::Date(days))?
            }
            (Step::Later(length), Value::Date(days)) => {
                let us = length.after(i64::from(days) * US_PER_DAY)?;
                // With hours it is a time.
                if length.micros == 0 { date(us.div_euclid(US_PER_DAY))? } else { Value::Timestamp(us) }
            }
            (Step::Later(length), Value::Timestamp(us)) => Value::Timestamp(length.after(us)?),
            (Step::StartOf(unit), Value::Timestamp(us)) => Value::Timestamp(unit_around(unit, us)?.0),
            (Step::StartOf(unit), Value::Date(days)) => {
                Value::Timestamp(unit_around(unit, i64::from(days) * US_PER_DAY)?.0)
            }
            (Step::As(ty), value) if can_cast(&value, *ty) => value.cast(*ty).ok()?,
            _ => return None,
        })
    }
}

/// A constant as CAST gives it; `None` if DataFusion's cast has to tell, or it cannot be cast.
pub fn cast_constant(value: Value, ty: ColumnType) -> Option<Value> {
    Step::As(ty).of(value)
}

/// CAST does the same as an assignment to a column of the type, and gives a value of just this type.
fn can_cast(value: &Value, ty: ColumnType) -> bool {
    use ColumnType::{BigInt, Date, Timestamp};
    match value {
        Value::Text(_) => matches!(ty, BigInt | Date | Timestamp),
        Value::Int(_) => ty == BigInt,
        Value::Date(_) | Value::Timestamp(_) => matches!(ty, Date | Timestamp),
        _ => false,
    }
}

/// An interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Length {
    months: i64,
    days: i64,
    micros: i64,
}

impl Length {
    /// The time so much later, in microseconds; `None` if it is out of range.
    fn after(self, us: i64) -> Option<i64> {
        shifted(us, self.months, self.days, self.micros)
    }

    /// The sum with `n` of a unit; `None` if there is no such unit, or for hours and the like of more than 292 years,
    /// which DataFusion refuses: it counts them in nanoseconds.
    fn plus(self, n: i64, unit: &str) -> Option<Length> {
        let Length { months, days, micros } = self;
        let sum = |of: i64, unit: i64| of.checked_add(n.checked_mul(unit)?);
        let sum_of_clock = |unit| sum(micros, unit).filter(|micros| micros.checked_mul(1_000).is_some());
        Some(match unit {
            "second" => Length { micros: sum_of_clock(1_000_000)?, ..self },
            "minute" => Length { micros: sum_of_clock(60_000_000)?, ..self },
            "hour" => Length { micros: sum_of_clock(3_600_000_000)?, ..self },
            "day" => Length { days: sum(days, 1)?, ..self },
            "week" => Length { days: sum(days, 7)?, ..self },
            "month" => Length { months: sum(months, 1)?, ..self },
            "year" => Length { months: sum(months, 12)?, ..self },
            _ => return None,
        })
    }

    fn negated(self) -> Option<Length> {
        let Length { months, days, micros } = self;
        Some(Length {
            months: months.checked_neg()?,
            days: days.checked_neg()?,
            micros: micros.checked_neg()?,
        })
    }
}

/// The constant at the start of the tokens, and its number of tokens. `None` if there is none, or if it is out of
/// range: then the query is planned as it is, which gives the error.
pub fn constant(sql: &str, tokens: &[Token]) -> Option<(Constant, usize)> {
    let text = |n: usize| tokens.get(n).map_or("", |t: &Token| t.text(sql));
    let (mut value, mut len) = term(sql, tokens)?;
    loop {
        let sign = match text(len) {
            "+" => 1,
            "-" => -1,
            _ => return Some((value, len)),
        };
        let more = tokens.get(len + 1)?;
        let (step, of_more) = match more.class {
            Class::Number => match Value::number(more.text(sql))? {
                Value::Int(n) => (Step::Plus(sign * n), 1),
                _ => return None,
            },
            _ if more.is(sql, &["interval"]) => {
                let (length, of_interval) = interval(sql, tokens.get(len + 2..)?)?;
                let length = if sign < 0 { length.negated()? } else { length };
                (Step::Later(length), 1 + of_interval)
            }
            _ => return None,
        };
        (value, len) = (value.then(step)?, len + 1 + of_more);
    }
}

/// A constant to which nothing is added.
fn term(sql: &str, tokens: &[Token]) -> Option<(Constant, usize)> {
    let (mut value, mut len) = one(sql, tokens)?;
    while let [colon, again, ty, ..] = tokens.get(len..)?
        && [colon, again].iter().all(|token| token.text(sql) == ":")
    {
        (value, len) = (value.then(Step::As(type_named(ty.text(sql))?))?, len + 3);
    }
    Some((value, len))
}

/// A constant that no cast follows.
fn one(sql: &str, tokens: &[Token]) -> Option<(Constant, usize)> {
    let (here, text) = (tokens.first()?, |n: usize| tokens.get(n).map_or("", |t: &Token| t.text(sql)));
    let (value, len) = match here.class {
        Class::Text => (Value::Text(text_of(text(0))), 1),
        Class::Number => (Value::number(text(0))?, 1),
        Class::Other if text(0) == "-" && tokens.get(1)?.class == Class::Number => {
            (Value::number(text(1))?.negated()?, 2)
        }
        Class::Word if tokens.get(1).is_some_and(|next| next.class == Class::Text) => {
            let ty =
                type_named(text(0)).filter(|ty| matches!(ty, ColumnType::Date | ColumnType::Timestamp))?;
            (Value::Text(text_of(text(1))).cast(ty).ok()?, 2)
        }
        Class::Word if here.is(sql, &["cast"]) && text(1) == "(" => {
            let (value, len) = constant(sql, &tokens[2..])?;
            let [word, ty, close, ..] = tokens.get(2 + len..)? else { return None };
            let is_cast = word.is(sql, &["as"]) && close.text(sql) == ")";
            return is_cast.then_some((value.then(Step::As(type_named(ty.text(sql))?))?, len + 5));
        }
        Class::Word if here.is(sql, &["date_trunc"]) && (text(1), text(3)) == ("(", ",") => {
            let unit = tokens.get(2).filter(|unit| unit.class == Class::Text)?;
            let unit = text_of(unit.text(sql)).to_lowercase();
            let (value, len) = constant(sql, tokens.get(4..)?)?;
            return (text(4 + len) == ")").then_some((value.then(Step::StartOf(unit))?, len + 5));
        }
        Class::Word => {
            let clock = Clock::named(text(0))?;
            let is_call = (text(1), text(2)) == ("(", ")");
            // Without parentheses these may be columns.
            let is_column = !is_call && here.is(sql, &["now", "today"]);
            return (!is_column).then_some((Constant::Now(clock, Vec::new()), if is_call { 3 } else { 1 }));
        }
        _ => return None,
    };
    Some((Constant::Value(value), len))
}

/// The type of one word.
fn type_named(word: &str) -> Option<ColumnType> {
    Some(match word.to_ascii_lowercase().as_str() {
        "bigint" => ColumnType::BigInt,
        "date" => ColumnType::Date,
        "timestamp" => ColumnType::Timestamp,
        _ => return None,
    })
}

/// The interval `'1 month 2 days'` or `'7' DAY`, and its number of tokens; `None` for other spellings.
fn interval(sql: &str, tokens: &[Token]) -> Option<(Length, usize)> {
    let quoted = tokens.first().filter(|token| token.class == Class::Text)?;
    let quoted = text_of(quoted.text(sql)).to_ascii_lowercase();
    let words: Vec<&str> = quoted.split_whitespace().collect();
    if let [n] = words[..] {
        // A unit behind the quotes has no plural.
        let unit = tokens.get(1)?.text(sql).to_ascii_lowercase();
        return Some((Length::default().plus(n.parse().ok()?, &unit)?, 2));
    }
    let (pairs, []) = words.as_chunks::<2>() else { return None };
    let (mut length, mut units) = (Length::default(), Vec::with_capacity(pairs.len()));
    for [n, unit] in pairs {
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        // A unit that comes twice is refused.
        if units.contains(&unit) {
            return None;
        }
        units.push(unit);
        length = length.plus(n.parse().ok()?, unit)?;
    }
    (!pairs.is_empty()).then_some((length, 1))
}
