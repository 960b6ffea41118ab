//! Checks key layouts: what CREATE refuses.

use super::layout::Tail;
use super::part::{ColumnInfo, Ending, KeyPart, PartSpec};
use super::problem::LayoutError;
use super::rowkey::KEY_BYTES_MAX;
use super::scalar;
use super::text;
use super::time_format::TimeFormat;
use super::transform::{ColumnId, Form, Shape, Transform};
use crate::value::{ColumnType, Value, name_sql};

type ColumnLookup<'f, 'a> = &'f dyn Fn(ColumnId) -> ColumnInfo<'a>;

/// Buckets of a part (count), at most: a range scan reads each of them.
pub const BUCKETS_MAX: u32 = 1_000_000;

/// Why a form is refused, and what to write instead.
struct Refusal {
    why: String,
    hint: String,
}

fn refuse<T>(why: impl Into<String>, hint: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { why: why.into(), hint: hint.into() })
}

/// Binds every part to its columns and its ending.
pub(super) fn parts(
    specs: Vec<PartSpec>,
    column: ColumnLookup<'_, '_>,
    tail: Tail,
) -> Result<Vec<KeyPart>, LayoutError> {
    if specs.iter().all(|spec| spec.transform.columns().is_empty()) {
        return Err(LayoutError {
            part: 0,
            what: "the key layout holds no column".into(),
            why: "every row would get the same key, or a random one".into(),
            hint: "add the columns that identify a row".into(),
        });
    }
    let mut forms = Vec::with_capacity(specs.len());
    for (part, spec) in specs.iter().enumerate() {
        forms.push(form(spec, column).map_err(|refusal| LayoutError {
            part,
            what: format!("rowkey part {} cannot be used", spec.sql),
            why: refusal.why,
            hint: refusal.hint,
        })?);
    }
    let mut parts = Vec::with_capacity(specs.len());
    for (part, form) in forms.into_iter().enumerate() {
        let ending = ending(part, &form, &specs, column, tail)?;
        let spec = &specs[part];
        let nullable = spec.transform.columns().iter().any(|&c| column(c).nullable);
        parts.push(KeyPart::new(form, nullable, spec.descending, spec.sql.clone(), ending));
    }
    if tail == Tail::Nothing {
        tells_rows_apart(&parts, column)?;
    }
    Ok(parts)
}

/// Why no row at all has a key, if that is so. Layouts are refused for it when they are declared; a layout that is
/// stored may have been declared before it was checked.
pub(super) fn why_no_row_fits(parts: &[KeyPart]) -> Option<LayoutError> {
    let bytes: usize = parts.iter().map(KeyPart::least_bytes).sum();
    if bytes > KEY_BYTES_MAX {
        return Some(LayoutError {
            part: (0..parts.len()).max_by_key(|part| parts[*part].least_bytes())?,
            what: format!("every key would be too long: {bytes} bytes or more"),
            why: format!("a key has {KEY_BYTES_MAX} bytes at most"),
            hint: "pad no wider than values need, and use numbers and codes instead of text".into(),
        });
    }
    let (part, delimiter) =
        parts.iter().enumerate().find_map(|(at, part)| Some((at, delimiter_in_all(part)?)))?;
    Some(LayoutError {
        part,
        what: format!("rowkey part {} cannot be told from its delimiter", parts[part].sql),
        why: format!("every value holds '{delimiter}', which ends the part"),
        hint: "choose another delimiter, or a part of fixed width".into(),
    })
}

/// The delimiter that ends a part, if every value of the part has it: it is of the marks with which all values of the
/// type are written.
fn delimiter_in_all(part: &KeyPart) -> Option<&str> {
    let Ending::Delimiter(delimiter) = &part.ending else { return None };
    let any = match part.form.ty()? {
        ColumnType::Date => Value::Date(0),
        ColumnType::Timestamp => Value::Timestamp(0),
        ColumnType::TimestampTz => Value::TimestampTz(0),
        ColumnType::Uuid => Value::Uuid([0; 16]),
        _ => return None,
    };
    let is_of_marks = !delimiter.contains(char::is_alphanumeric);
    (is_of_marks && part.bytes_of(&|_| &any, &mut Vec::new()).is_err()).then_some(delimiter)
}

/// Binds one form to its columns' types.
fn form(spec: &PartSpec, column: ColumnLookup<'_, '_>) -> Result<Form, Refusal> {
    let transform = &spec.transform;
    let types: Vec<ColumnType> = transform.columns().iter().map(|&c| column(c).ty).collect();
    let name = transform.columns().first().map_or("", |&c| column(c).name);
    let mut time = None;
    match transform {
        Transform::Literal(delimiter) => check_literal(delimiter, spec.descending)?,
        Transform::ToChar { format, .. } => time = Some(check_time(name, types[0], format)?),
        Transform::Code { codes, .. } => check_codes(name, types[0], codes)?,
        Transform::Md5Bucket { columns, .. } if columns.is_empty() => {
            return refuse("it hashes no column", "name the columns to hash before the number of buckets");
        }
        Transform::Md5Hex { from, len, .. } if *len == 0 || u16::from(*from) + u16::from(*len) > 32 => {
            return refuse("an MD5 has 32 hex digits", "take 1 to 32 of them, such as left(md5(col), 4)");
        }
        Transform::Md5Hex { .. }
        | Transform::Md5(_)
        | Transform::Md5Bucket { .. }
        | Transform::Random { .. } => {}
        _ => check_type(name, types[0], transform)?,
    }
    if transform.buckets().is_some_and(|n| !(1..=BUCKETS_MAX).contains(&n)) {
        return refuse(
            format!("the number of buckets must be 1 to {BUCKETS_MAX}"),
            "16 is a good number for one machine",
        );
    }
    Ok(Form { transform: transform.clone(), types, time })
}

fn check_literal(delimiter: &str, descending: bool) -> Result<(), Refusal> {
    if delimiter.is_empty() {
        return refuse("an empty delimiter marks nothing", "leave it out, or write a character such as '_'");
    }
    if delimiter.contains('\0') {
        return refuse("a NUL character stands for NULL in text parts", "write a character such as '_'");
    }
    if descending {
        return refuse("a literal is the same in every key, so it has no order", "leave DESC out");
    }
    Ok(())
}

fn check_time(name: &str, ty: ColumnType, format: &str) -> Result<TimeFormat, Refusal> {
    if !ty.is_time() {
        return refuse(
            format!("\"{name}\" is {ty}, and to_char formats DATE, TIMESTAMP and TIMESTAMPTZ"),
            format!("use \"{name}\" itself, or lpad({name}, n) for numbers"),
        );
    }
    if format.contains('%') {
        return refuse(
            format!("'{format}' is a format of strftime"),
            "write it as PostgreSQL does, such as 'YYYY-MM-DD HH24:MI:SS'",
        );
    }
    TimeFormat::parse(format).map_err(|why| Refusal {
        why,
        hint: "write a format of fixed width, such as 'YYYY-MM-DD HH24:MI:SS'".into(),
    })
}

fn check_codes(name: &str, ty: ColumnType, codes: &[(String, String)]) -> Result<(), Refusal> {
    if ty != ColumnType::Varchar {
        return refuse(
            format!("\"{name}\" is {ty}, and codes stand for names"),
            format!("use \"{name}\" itself: it is already short"),
        );
    }
    if codes.is_empty() {
        return refuse("it lists no codes", "list them, such as code(col, 'Taobao=tb, Tmall=tm')");
    }
    for (i, (known, code)) in codes.iter().enumerate() {
        if code.is_empty() || code.contains('\0') {
            return refuse(
                format!("the code of '{known}' is empty or holds a NUL"),
                "give every name a code",
            );
        }
        if let Some((other, _)) = codes[..i].iter().find(|(n, c)| n == known || c == code) {
            return refuse(
                format!("'{other}' and '{known}' share a name or a code"),
                "give every name one code of its own",
            );
        }
    }
    Ok(())
}

/// Errors: the transform does not accept the column's type.
fn check_type(name: &str, ty: ColumnType, transform: &Transform) -> Result<(), Refusal> {
    let (number, is_text) = (text::scale_of(ty).is_some(), ty == ColumnType::Varchar);
    if ty == ColumnType::Json {
        return refuse(
            format!("\"{name}\" is JSON, whose text has no useful order or length"),
            format!("use md5({name}), or a column of the value you look rows up by"),
        );
    }
    let (width, pad) = match transform {
        Transform::Lpad { width, pad, .. } | Transform::Rpad { width, pad, .. } => (Some(*width), Some(*pad)),
        Transform::Reverse { width, .. } | Transform::MaxMinus { width, .. } => (*width, None),
        _ => (None, None),
    };
    let least = text::scale_of(ty).map_or(1, |scale| if scale > 0 { u16::from(scale) + 2 } else { 1 });
    if width.is_some_and(|width| width < least) {
        return refuse(
            format!("no value fits a width below {least}"),
            format!("use the greatest width \"{name}\" will ever need"),
        );
    }
    let suits = match transform {
        Transform::Lpad { .. } | Transform::Reverse { width: Some(_), .. } => number || is_text,
        Transform::Rpad { .. } => is_text,
        Transform::Text(_) | Transform::Reverse { width: None, .. } => text::reads_back(ty),
        Transform::ReverseBytes(_) => scalar::width(ty).is_some(),
        Transform::MaxMinus { .. } => ty.is_integer() || ty.is_time(),
        Transform::Modulo { .. } => ty.is_integer(),
        _ => true,
    };
    if !suits {
        return refuse(
            format!("\"{name}\" is {ty}, which this form does not take"),
            instead(name, ty, transform),
        );
    }
    match pad {
        Some('\0') => refuse("a NUL character stands for NULL in text parts", "pad with '0' or ' '"),
        Some(pad) if number && pad != '0' => {
            refuse("a number is padded with '0'", format!("leave out '{pad}'"))
        }
        _ => Ok(()),
    }
}

/// The hint for a type that a form does not accept.
fn instead(name: &str, ty: ColumnType, transform: &Transform) -> String {
    let sql = name_sql(name);
    match transform {
        Transform::Rpad { .. } if text::scale_of(ty).is_some() => format!("use lpad({sql}, n) for numbers"),
        Transform::Modulo { .. } => format!("use md5_bucket({sql}, n), which takes every type"),
        Transform::ReverseBytes(_) => format!("use reverse({sql})"),
        Transform::MaxMinus { .. } => format!("use \"{name}\" DESC"),
        _ if ty.is_time() => format!("use \"{name}\" itself, or to_char({sql}, 'YYYY-MM-DD HH24:MI:SS')"),
        _ => format!("use \"{name}\" itself"),
    }
}

/// How content of variable length is terminated; an error if nothing terminates it.
fn ending(
    part: usize,
    form: &Form,
    specs: &[PartSpec],
    column: ColumnLookup<'_, '_>,
    tail: Tail,
) -> Result<Ending, LayoutError> {
    let spec = &specs[part];
    if form.shape() != Shape::Variable {
        return Ok(Ending::Rest);
    }
    let is_text = form.ty() != Some(ColumnType::Varbinary);
    match specs.get(part + 1).map(|next| &next.transform) {
        // Inverted text does not sort without a terminator, and inverted bytes could look like the delimiter.
        _ if form.is_plain() && spec.descending => Ok(Ending::Escaped),
        None if tail == Tail::Nothing => Ok(Ending::Rest),
        None => Ok(Ending::Escaped),
        Some(Transform::Literal(_)) if spec.descending => Err(LayoutError {
            part,
            what: format!("rowkey part {} cannot be descending", spec.sql),
            why: "a delimiter ends it, which is not inverted".into(),
            hint: "leave DESC out: the form does not keep the order of values anyway".into(),
        }),
        Some(Transform::Literal(delimiter)) if is_text => {
            codes_avoid(part, spec, delimiter).map(|()| Ending::Delimiter(delimiter.clone()))
        }
        Some(_) if form.is_plain() || matches!(form.transform, Transform::Reverse { .. }) => {
            Ok(Ending::Escaped)
        }
        Some(_) => Err(no_end(part, form, specs, column)),
    }
}

/// Errors: a code contains the delimiter after it, or overlaps with it.
fn codes_avoid(part: usize, spec: &PartSpec, delimiter: &str) -> Result<(), LayoutError> {
    let Transform::Code { codes, .. } = &spec.transform else { return Ok(()) };
    match codes.iter().find(|(_, code)| format!("{code}{delimiter}").find(delimiter) != Some(code.len())) {
        None => Ok(()),
        Some((name, code)) => Err(LayoutError {
            part,
            what: format!("rowkey part {} cannot be told from its delimiter", spec.sql),
            why: format!("the code '{code}' of '{name}' holds '{delimiter}', which ends the part"),
            hint: "choose another delimiter or other codes".into(),
        }),
    }
}

fn no_end(part: usize, form: &Form, specs: &[PartSpec], column: ColumnLookup<'_, '_>) -> LayoutError {
    let label = |spec: &PartSpec| match spec.transform.columns() {
        [only] => name_sql(column(*only).name),
        _ => spec.sql.clone(),
    };
    let name = label(&specs[part]);
    let fixed = match &form.transform {
        Transform::Code { .. } => "make all codes equally long, ".to_owned(),
        Transform::Text(_) if form.ty().and_then(text::scale_of).is_some() => {
            format!("write lpad({name}, n), ")
        }
        Transform::Text(_) => format!("use {name} itself, "),
        _ => format!("write rpad({name}, n, ' '), "),
    };
    LayoutError {
        part,
        what: format!("rowkey part \"{name}\" has no end"),
        why: format!("it is variable-width and \"{}\" follows it", label(&specs[part + 1])),
        hint: format!("{fixed}put a delimiter literal after it, or move it last"),
    }
}

/// Errors: a column of a primary key is not in it injectively, so that two rows could share a key. A whole
/// MD5 and padded text are accepted as the author's choice.
fn tells_rows_apart(parts: &[KeyPart], column: ColumnLookup<'_, '_>) -> Result<(), LayoutError> {
    let vouches = |part: &KeyPart| {
        part.form.facts().injective
            || matches!(
                part.form.transform,
                Transform::Md5(_) | Transform::Lpad { .. } | Transform::Reverse { .. }
            )
    };
    for (index, part) in parts.iter().enumerate() {
        for &c in part.columns() {
            if !parts.iter().any(|p| vouches(p) && p.columns().contains(&c)) {
                let name = column(c).name;
                return Err(LayoutError {
                    part: index,
                    what: format!("rowkey part {} does not tell rows apart", part.sql),
                    why: format!(
                        "different values of \"{name}\" share its bytes, and \"{name}\" is nowhere else in the key"
                    ),
                    hint: format!("add \"{name}\" itself after it"),
                });
            }
        }
    }
    Ok(())
}
