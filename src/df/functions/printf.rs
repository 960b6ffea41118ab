//! `printf(format, value, ..)`, also called `format`: as in SQLite, and with `%I` and `%L` of PostgreSQL's `format`.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use super::row_function::FunctionBuffers;
use crate::error::{Error, Result, sqlstate};
use crate::value::{ColumnType, Literal, Value, ValueRef, name_sql};

/// Characters of a width, and digits behind a point, at most.
const WIDTH_MAX: usize = 10_000;

/// `%-08.2f`, say.
#[derive(Default)]
struct Spec {
    is_left: bool,
    has_zeros: bool,
    has_sign: bool,
    has_commas: bool,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn printf<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let (format, values) = match args {
        [ValueRef::Null, ..] => return Ok(ValueRef::Null),
        [ValueRef::Text(format), values @ ..] => (format, values),
        _ => {
            return Err(Error::invalid("printf takes a format and values")
                .hint("printf('%05d %s %.2f', id, name, x)"));
        }
    };
    let (mut values, mut chars, out) = (values.iter(), format.chars().peekable(), &mut buffers.text);
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let spec = Spec::read(&mut chars).ok_or_else(|| too_wide(format))?;
        match chars.next() {
            Some('%') => out.push('%'),
            // What is missing is NULL, as in SQLite.
            Some(kind) if "sdiufxXcqQLI".contains(kind) => {
                spec.put(kind, values.next().copied().unwrap_or(ValueRef::Null), out)?;
            }
            _ => return Err(unknown(format)),
        }
    }
    Ok(ValueRef::Text(&buffers.text))
}

impl Spec {
    /// Reads flags, width and precision; `None` if one is too large.
    fn read(chars: &mut Peekable<Chars<'_>>) -> Option<Spec> {
        let mut spec = Spec::default();
        while let Some(flag) = chars.next_if(|c| "-0+,".contains(*c)) {
            match flag {
                '-' => spec.is_left = true,
                '0' => spec.has_zeros = true,
                '+' => spec.has_sign = true,
                _ => spec.has_commas = true,
            }
        }
        spec.width = number(chars)?;
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(chars)?);
        }
        Some(spec)
    }

    fn put(&self, kind: char, value: ValueRef<'_>, out: &mut String) -> Result<()> {
        let is_null = value.is_null();
        let text = match kind {
            'd' | 'i' | 'u' => match self.number(value, ColumnType::BigInt)? {
                Value::Int(n) => {
                    return self.pad_number(n < 0, &self.grouped(&n.unsigned_abs().to_string()), out);
                }
                _ => String::new(),
            },
            'x' | 'X' => match self.number(value, ColumnType::BigInt)? {
                Value::Int(n) if kind == 'x' => return self.pad_number(false, &format!("{n:x}"), out),
                Value::Int(n) => return self.pad_number(false, &format!("{n:X}"), out),
                _ => String::new(),
            },
            'f' => match self.number(value, ColumnType::Double)? {
                Value::Double(x) => {
                    let digits = format!("{:.*}", self.precision.unwrap_or(6), x.abs());
                    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
                    let is_negative =
                        x.is_sign_negative() && digits.bytes().any(|b| matches!(b, b'1'..=b'9' | b'i'));
                    return self.pad_number(is_negative, &format!("{}{rest}", self.grouped(whole)), out);
                }
                _ => String::new(),
            },
            'Q' | 'L' => Literal(value).to_string(),
            _ if is_null => String::new(),
            'q' => value.to_string().replace('\'', "''"),
            'I' => name_sql(&value.to_string()),
            'c' => value.to_string().chars().take(1).collect(),
            _ => value.to_string().chars().take(self.precision.unwrap_or(usize::MAX)).collect(),
        };
        self.pad(&text, out);
        Ok(())
    }

    /// The value as a number; 0 for NULL.
    fn number(&self, value: ValueRef<'_>, ty: ColumnType) -> Result<Value> {
        let value = if value.is_null() { ValueRef::Int(0) } else { value };
        Ok(value.to_value().cast(ty)?)
    }

    /// The digits with a comma before each three.
    fn grouped(&self, digits: &str) -> String {
        if !self.has_commas {
            return digits.to_owned();
        }
        let mut grouped = String::with_capacity(digits.len() * 4 / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    }

    fn pad_number(&self, is_negative: bool, digits: &str, out: &mut String) -> Result<()> {
        let sign = match (is_negative, self.has_sign) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        if self.has_zeros && !self.is_left {
            // Writing to a string cannot fail.
            let _ = write!(out, "{sign}{digits:0>width$}", width = self.width.saturating_sub(sign.len()));
        } else {
            self.pad(&format!("{sign}{digits}"), out);
        }
        Ok(())
    }

    fn pad(&self, text: &str, out: &mut String) {
        let width = self.width;
        // Writing to a string cannot fail.
        let _ = if self.is_left { write!(out, "{text:<width$}") } else { write!(out, "{text:>width$}") };
    }
}

/// The digits that come next; 0 if there are none, `None` if they are too many.
fn number(chars: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut number = 0;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        number = number * 10 + digit.to_digit(10)? as usize;
        if number > WIDTH_MAX {
            return None;
        }
    }
    Some(number)
}

fn unknown(format: &str) -> Error {
    Error::invalid(format!("printf does not know the format '{format}'"))
        .why("it has %s, %d, %f, %x, %c, %q, %Q, %L and %I, each with a width such as %-8s, %05d, %.2f")
        .hint("a percent sign is written %%")
        .state(sqlstate::INVALID_TEXT)
}

fn too_wide(format: &str) -> Error {
    Error::invalid(format!("printf to so many characters is too much: '{format}'"))
        .why(format!("the most is {WIDTH_MAX}"))
        .state(sqlstate::LIMIT)
}
