//! Functions of texts, as key layouts have them: `lpad`, `md5_bucket`, `code`.

use std::fmt::Write as _;

use super::row_function::FunctionBuffers;
use crate::error::{Error, Result, sqlstate};
use crate::key::{md5_bucket, put_md5_digits};
use crate::value::{Literal, ValueRef};

/// Longest result of `lpad` and `rpad`, in characters.
const PADDED_CHARS_MAX: usize = 1 << 20;

/// Longest result of `repeat`, in bytes. DataFusion's allows 2 GiB, copies that several times, and cannot be cancelled
/// meanwhile.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// `md5_bucket(value, ..., n)`: the bucket of the values, as in key layouts.
pub(super) fn bucket<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let usage = || {
        Error::invalid("md5_bucket takes one value or more and a number of buckets")
            .hint("md5_bucket(user_id, 16)")
    };
    let Some((ValueRef::Int(n), values)) = args.split_last() else { return Err(usage()) };
    let n = u32::try_from(*n).ok().filter(|n| *n > 0 && !values.is_empty()).ok_or_else(usage)?;
    if values.iter().any(|value| value.is_null()) {
        return Ok(ValueRef::Null);
    }
    buffers.text = md5_bucket(values.iter().copied(), n);
    Ok(ValueRef::Text(&buffers.text))
}

/// `octet_length(text or bytes)`: its size in bytes. DataFusion's own does not take bytes.
pub(super) fn octet_length<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [ValueRef::Text(text)] => Ok(ValueRef::Int(text.len() as i64)),
        [ValueRef::Bytes(bytes)] => Ok(ValueRef::Int(bytes.len() as i64)),
        _ => Err(Error::invalid("octet_length takes a text or bytes").hint("octet_length(rowkey)")),
    }
}

/// `length(text or bytes)`: characters of a text, bytes of a VARBINARY, as in PostgreSQL and SQLite.
pub(super) fn length<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [ValueRef::Bytes(bytes)] => Ok(ValueRef::Int(bytes.len() as i64)),
        [value] => Ok(ValueRef::Int(text_of(*value, &mut buffers.inner).chars().count() as i64)),
        _ => Err(Error::invalid("length takes one value").hint("length(name)")),
    }
}

/// `md5(value)`: the digest of the value's text form, as in key layouts.
pub(super) fn md5<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [value] => {
            put_md5_digits(*value, &mut buffers.text);
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("md5 takes one value").hint("md5(user_id)")),
    }
}

/// `hex(text or bytes)`: the digits of its bytes, of a number those of its text, as in SQLite.
pub(super) fn hex<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let FunctionBuffers { text: out, inner, .. } = buffers;
    let bytes = match args {
        [ValueRef::Null] => return Ok(ValueRef::Null),
        [ValueRef::Bytes(bytes)] => bytes,
        [value] => text_of(*value, inner).as_bytes(),
        _ => return Err(Error::invalid("hex takes one value").hint("hex(rowkey)")),
    };
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02X}");
    }
    Ok(ValueRef::Text(out))
}

/// `quote(value)`: the value as it is written in SQL.
pub(super) fn quote<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let [value] = args else { return Err(Error::invalid("quote takes one value").hint("quote(name)")) };
    buffers.text = Literal(*value).to_string();
    Ok(ValueRef::Text(&buffers.text))
}

/// The text of a value; values of other types are written to `out`.
fn text_of<'a>(value: ValueRef<'a>, out: &'a mut String) -> &'a str {
    if let ValueRef::Text(text) = value {
        return text;
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "{value}");
    out
}

pub(super) fn lpad<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    padded("lpad", args, buffers)
}

pub(super) fn rpad<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    padded("rpad", args, buffers)
}

/// `lpad(value, width [, fill])`: numbers are padded with zeros, as in key layouts. A longer text is cut; a longer
/// number is not.
fn padded<'a>(name: &str, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let usage = || {
        Error::invalid(format!("{name} takes a value, a width and what to fill up with"))
            .hint(format!("{name}(id, 6), {name}(name, 20, ' ')"))
    };
    let (value, width, fill) = match args {
        [value, ValueRef::Int(width)] => (*value, *width, None),
        [value, ValueRef::Int(width), ValueRef::Text(fill)] => (*value, *width, Some(*fill)),
        args if (2..=3).contains(&args.len()) && args.iter().any(|arg| arg.is_null()) => {
            return Ok(ValueRef::Null);
        }
        _ => return Err(usage()),
    };
    let is_left = name == "lpad";
    let is_number = matches!(value, ValueRef::Int(_) | ValueRef::Decimal(..) | ValueRef::Double(_));
    let fill = fill.unwrap_or(if is_number && is_left { "0" } else { " " });
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    if width > PADDED_CHARS_MAX {
        return Err(Error::invalid(format!("{name} to {width} characters is too much"))
            .why(format!("the most is {PADDED_CHARS_MAX}"))
            .state(sqlstate::LIMIT));
    }
    let FunctionBuffers { text: out, inner, .. } = buffers;
    let text = text_of(value, inner);
    let len = text.chars().count();
    if len >= width {
        let end = text.char_indices().nth(width).filter(|_| !is_number);
        return Ok(ValueRef::Text(end.map_or(text, |(end, _)| &text[..end])));
    }
    let pad = fill.chars().cycle().take(width - len);
    // The sign of a number stays in front of its zeros.
    let signed = is_left && is_number && fill == "0" && text.starts_with('-');
    let (sign, text) = text.split_at(usize::from(signed));
    if is_left {
        out.push_str(sign);
        out.extend(pad);
        out.push_str(text);
    } else {
        out.push_str(text);
        out.extend(pad);
    }
    Ok(ValueRef::Text(out))
}

/// `repeat(text, times)`: empty if `times` is negative.
pub(super) fn repeat<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let (text, times) = match args {
        [a, b] if a.is_null() || b.is_null() => return Ok(ValueRef::Null),
        [text, ValueRef::Int(times)] => (text.to_string(), usize::try_from(*times).unwrap_or(0)),
        _ => {
            return Err(Error::invalid("repeat takes a text and a number of times").hint("repeat('ab', 3)"));
        }
    };
    if text.len().saturating_mul(times) > REPEATED_BYTES_MAX {
        return Err(Error::invalid(format!("{} bytes repeated {times} times is too much", text.len()))
            .why(format!("the most is {REPEATED_BYTES_MAX} bytes"))
            .state(sqlstate::LIMIT));
    }
    buffers.text = text.repeat(times);
    Ok(ValueRef::Text(&buffers.text))
}

/// `code(name, 'Taobao=tb, Tmall=tm')`.
pub(super) fn code<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] => Ok(ValueRef::Null),
        [ValueRef::Text(name), ValueRef::Text(codes)] => {
            let pairs = crate::sql::parse_codes(codes)?;
            let found = pairs.into_iter().find(|(n, _)| n == name);
            let (_, code) = found.ok_or_else(|| {
                Error::invalid(format!("\"{name}\" has no code")).hint(format!("the codes are {codes}"))
            })?;
            buffers.text = code;
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("code takes a name and its codes").hint("code(shop, 'Taobao=tb, Tmall=tm')")),
    }
}
