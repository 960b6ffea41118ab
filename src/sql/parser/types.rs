//! Column types: maps the spellings of PostgreSQL, SQLite and MySQL to our [`ColumnType`].

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryLength, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo,
};
use sqlparser::tokenizer::{Token, Word};

use super::{Parser, is_reserved};
use crate::error::{Error, Result, sqlstate};
use crate::suggest::did_you_mean;
use crate::value::ColumnType;

const TYPES: &[&str] = &[
    "BIGINT",
    "BLOB",
    "BOOLEAN",
    "BYTEA",
    "CHAR",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER",
    "JSON",
    "JSONB",
    "NUMERIC",
    "REAL",
    "SMALLINT",
    "STRING",
    "TEXT",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "UUID",
    "VARBINARY",
    "VARCHAR",
];

/// A parsed column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeSpec {
    pub(super) data_type: ColumnType,
    /// Longest value, in characters of text, or in bytes.
    pub(super) max_len: Option<u32>,
    /// `SERIAL` and similar types: an identity column.
    pub(super) serial: bool,
}

impl Parser<'_> {
    /// The type of a column. Its name is for hints of what to declare; empty: no CHECK can be declared here.
    ///
    /// Errors: SYNTAX for an unknown one, unsupported for one we do not store.
    pub(super) fn column_type(&mut self, column: &str) -> Result<TypeSpec> {
        match &self.peek().token {
            Token::Word(Word { value, quote_style: None, .. }) if !is_reserved(value) => {}
            _ => return Err(self.expected("a type").hint(list_of_types())),
        }
        let from = self.here();
        if let Some(data_type) = self.serial() {
            return Ok(TypeSpec { data_type, max_len: None, serial: true });
        }
        // sqlparser wants its values right behind it.
        let is_bare_enum = self.peek_words(&["ENUM"]) && *self.nth(1) != Token::LParen;
        if is_bare_enum {
            self.inner.advance_token();
            return Err(
                not_stored(&DataType::Enum(Vec::new(), None), "ENUM", column).at(self.span_since(from))
            );
        }
        let parsed = self.inner.parse_data_type();
        let parsed = self.lift(parsed)?;
        if self.word("ARRAY") {
            let array = DataType::Array(ArrayElemTypeDef::None);
            return Err(not_stored(&array, &self.text_since(from), column).at(self.span_since(from)));
        }
        let written = self.text_since(from);
        convert(&parsed, &written, column).map_err(|e| e.at(self.span_since(from)))
    }

    fn serial(&mut self) -> Option<ColumnType> {
        let serials = [
            ("SMALLSERIAL", ColumnType::SmallInt),
            ("SERIAL", ColumnType::Integer),
            ("BIGSERIAL", ColumnType::BigInt),
        ];
        serials.into_iter().find(|(word, _)| self.word(word)).map(|(_, data_type)| data_type)
    }
}

pub(super) fn convert(parsed: &DataType, written: &str, column: &str) -> Result<TypeSpec> {
    let plain = |data_type| Ok(TypeSpec { data_type, max_len: None, serial: false });
    let limited = |data_type, max_len: Option<u64>| {
        let max_len = max_len.map(|n| length(n, written)).transpose()?;
        Ok(TypeSpec { data_type, max_len, serial: false })
    };
    match parsed {
        DataType::Boolean | DataType::Bool => plain(ColumnType::Boolean),
        DataType::TinyInt(_) | DataType::SmallInt(_) | DataType::Int2(_) | DataType::Int16 => {
            plain(ColumnType::SmallInt)
        }
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) | DataType::Int32 => {
            plain(ColumnType::Integer)
        }
        DataType::MediumInt(_) => plain(ColumnType::Integer),
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => plain(ColumnType::BigInt),
        DataType::Real | DataType::Float4 | DataType::Float32 => plain(ColumnType::Real),
        DataType::Float(_) | DataType::Float8 | DataType::Float64 => plain(ColumnType::Double),
        DataType::Double(_) | DataType::DoublePrecision => plain(ColumnType::Double),
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => {
            plain(decimal(*info, written)?)
        }
        DataType::Varchar(len) | DataType::CharacterVarying(len) | DataType::CharVarying(len) => {
            limited(ColumnType::Varchar, characters(len))
        }
        // CHAR(n) is only a limit: values are not padded.
        DataType::Char(len) | DataType::Character(len) | DataType::Nvarchar(len) => {
            limited(ColumnType::Varchar, characters(len))
        }
        DataType::String(len) | DataType::Clob(len) => limited(ColumnType::Varchar, *len),
        DataType::Text | DataType::TinyText | DataType::MediumText | DataType::LongText => {
            plain(ColumnType::Varchar)
        }
        DataType::Bytea => plain(ColumnType::Varbinary),
        DataType::Blob(len) | DataType::Binary(len) | DataType::Bytes(len) => {
            limited(ColumnType::Varbinary, *len)
        }
        DataType::Varbinary(Some(BinaryLength::IntegerLength { length })) => {
            limited(ColumnType::Varbinary, Some(*length))
        }
        DataType::Varbinary(_) => plain(ColumnType::Varbinary),
        DataType::Date | DataType::Date32 => plain(ColumnType::Date),
        DataType::Timestamp(Some(digits), _)
        | DataType::Datetime(Some(digits))
        | DataType::TimestampNtz(Some(digits))
            if *digits != 6 =>
        {
            let plain = match parsed {
                DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "TIMESTAMPTZ",
                _ => "TIMESTAMP",
            };
            Err(Error::unsupported(format!("{written} is not supported"))
                .why("times have microseconds, six digits")
                .hint(format!("write {plain}; date_trunc('second', t) cuts a time off")))
        }
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            plain(ColumnType::TimestampTz)
        }
        DataType::Timestamp(..) | DataType::Datetime(_) | DataType::TimestampNtz(_) => {
            plain(ColumnType::Timestamp)
        }
        DataType::Uuid => plain(ColumnType::Uuid),
        DataType::JSON | DataType::JSONB => plain(ColumnType::Json),
        DataType::Custom(..) if written.eq_ignore_ascii_case("long") => plain(ColumnType::BigInt),
        DataType::Custom(..) => Err(unknown(written, column)),
        _ => Err(not_stored(parsed, written, column)),
    }
}

fn characters(len: &Option<CharacterLength>) -> Option<u64> {
    match len {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        Some(CharacterLength::Max) | None => None,
    }
}

fn length(n: u64, written: &str) -> Result<u32> {
    match u32::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::invalid(format!("{written} has no usable length"))
            .hint("write a length from 1 to 4294967295, or none")
            .state(sqlstate::SYNTAX)),
    }
}

/// DECIMAL without digits is DECIMAL(38,10), as in DataFusion.
fn decimal(info: ExactNumberInfo, written: &str) -> Result<ColumnType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (38, 10),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => {
            Ok(ColumnType::Decimal { precision, scale })
        }
        _ => Err(Error::invalid(format!("{written} has no usable digits"))
            .why("a DECIMAL has 1 to 38 digits, and no more after the point than in all")
            .state(sqlstate::SYNTAX)),
    }
}

fn not_stored(parsed: &DataType, written: &str, column: &str) -> Error {
    let error = Error::unsupported(format!("columns of type {written} are not supported"));
    let named = if column.is_empty() { String::new() } else { format!("{column} ") };
    error.hint(match parsed {
        DataType::Array(_) => {
            format!("write {named}JSON, for values such as '[1, 2]'; or keep them in a table with a row for each")
        }
        DataType::Enum(..) if column.is_empty() => {
            "write TEXT; ALTER TABLE t ADD CHECK (a IN ('x', 'y')) keeps a column to its values".to_owned()
        }
        DataType::Enum(..) => {
            let values = written.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
            let values = values.map_or("'a', 'b'", |(values, _)| values.trim());
            format!("write {column} TEXT CHECK ({column} IN ({values}))")
        }
        DataType::Time(..) => format!(
            "write {named}TEXT, for times such as '09:30:00', which sort as they follow; or TIMESTAMP, with the day"
        ),
        DataType::Interval { .. } => {
            let seconds = if column.is_empty() { "x" } else { column };
            format!("write {named}BIGINT, for a number of seconds: INTERVAL '1 second' * {seconds} is an interval")
        }
        _ => instead(written, column).unwrap_or_else(|| list_of_types().to_owned()),
    })
}

fn unknown(written: &str, column: &str) -> Error {
    let word = written.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(written);
    let error = Error::invalid(format!("unknown type {written}")).state(sqlstate::SYNTAX);
    if let Some(instead) = instead(written, column) {
        return error.hint(instead);
    }
    match did_you_mean(word, TYPES.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error.hint(list_of_types()),
    }
}

/// Types of other databases, and ours that hold their values.
const ELSEWHERE: &[(&str, &str)] = &[
    ("INET", "TEXT"),
    ("CIDR", "TEXT"),
    ("MACADDR", "TEXT"),
    ("XML", "TEXT"),
    ("CITEXT", "TEXT, and an index of lower(...)"),
    ("TSVECTOR", "TEXT"),
    ("HSTORE", "JSON"),
    ("MONEY", "DECIMAL(19, 2)"),
    ("NUMBER", "DECIMAL(19, 2), or BIGINT"),
    ("OID", "BIGINT"),
    ("ROWID", "BIGINT"),
    ("BIT", "BOOLEAN, or VARBINARY for many of them"),
    ("VARBIT", "VARBINARY"),
    ("UNIQUEIDENTIFIER", "UUID"),
    ("YEAR", "SMALLINT"),
    ("POINT", "two columns of type DOUBLE"),
    ("GEOMETRY", "JSON"),
    ("MAP", "JSON"),
    ("STRUCT", "JSON"),
];

/// What to write for a type of another database, in a column if its name is known; `None` for one we do not know.
pub(super) fn instead(written: &str, column: &str) -> Option<String> {
    let upper = written.to_ascii_uppercase();
    let word = upper.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(&upper);
    if let Some((_, ours)) = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word) {
        return Some(format!("write {ours}"));
    }
    // The unsigned types of MySQL and Phoenix.
    let (at_front, behind) = (upper.strip_prefix("UNSIGNED_"), upper.strip_suffix(" UNSIGNED"));
    let ours = match at_front.or(behind)?.split('(').next()? {
        "DATE" | "TIME" | "TIMESTAMP" => return Some("write TIMESTAMP".to_owned()),
        "TINYINT" => "SMALLINT",
        "SMALLINT" | "MEDIUMINT" if behind.is_some() => "INTEGER",
        "FLOAT" | "DOUBLE" => "DOUBLE",
        _ => "BIGINT",
    };
    Some(match column {
        "" => format!("write {ours}"),
        column => format!("write {ours} CHECK ({column} >= 0)"),
    })
}

fn list_of_types() -> &'static str {
    "types are BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL(p,s), VARCHAR, VARBINARY, DATE, \
     TIMESTAMP, TIMESTAMPTZ, UUID and JSON"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_in_the_list_is_one() {
        for name in TYPES {
            let sql = format!("CREATE TABLE t (a {name})");
            assert!(crate::sql::parse(&sql).is_ok(), "{name}");
        }
    }
}
