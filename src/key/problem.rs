//! Errors and warnings about layouts, values for them, and bytes that are no key.

use std::fmt;

use super::hex;
use super::transform::ColumnId;
use crate::error::{Error, sqlstate};

/// A layout that CREATE refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The part at fault, as an index into the specs.
    pub part: usize,
    /// What is wrong, naming the part.
    pub what: String,
    /// Why that cannot work.
    pub why: String,
    /// What to write instead.
    pub hint: String,
}

impl From<LayoutError> for Error {
    fn from(e: LayoutError) -> Error {
        Error::invalid(e.what).why(e.why).hint(e.hint).state(sqlstate::INVALID_TABLE_DEFINITION)
    }
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// All new rows go to one end of the table.
    Hotspot,
    /// Formatted time whose text does not sort as time does.
    UnsortedTime,
    /// Formatted time, reversed.
    ReversedTime,
    /// Numbers as text of no fixed width.
    Unpadded,
    /// Text padded in front, which maps different texts to one.
    PaddedText,
    /// A bucket in front: range scans read every bucket.
    FanOut,
    /// A random bucket: the same values make different keys.
    DrawnKey,
    /// A hash in front: range scans read everything.
    WholeScan,
    /// A key that is long for every row and index entry.
    LongKey,
    /// A part whose value follows from the parts before it.
    IdlePart,
}

/// A warning: the layout works, but probably not as intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub concern: Concern,
    /// The part it is about, as an index into the specs.
    pub part: usize,
    /// What will happen, naming the part.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to write instead.
    pub hint: String,
}

/// The rule of a key part that a value violates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// NULL in a part that cannot be NULL.
    #[error("the column is NOT NULL")]
    Null,
    /// A value of another type than the column's: the caller did not coerce it.
    #[error("the column is {0}")]
    Type(String),
    /// A number outside the range of its type, or of 64 bits after the subtraction.
    #[error("it lies outside {0}")]
    Range(String),
    /// More characters or digits than the part has room for.
    #[error("the part is {width} wide and the value takes {len}")]
    Wide {
        /// Characters of the part.
        width: u16,
        /// Characters of the value.
        len: usize,
    },
    /// A negative number in a part of digits.
    #[error("a padded part holds digits only, and a minus sign would not sort")]
    Negative,
    /// `max - col` below zero.
    #[error("it is greater than {0}, from which the part subtracts it")]
    AboveMax(i64),
    /// The text contains the delimiter, or overlaps with it.
    #[error("the delimiter '{0}' ends the part, so it may not begin in the text")]
    Delimiter(String),
    /// The text holds a NUL character, which stands for NULL.
    #[error("the part is plain text, in which a NUL character stands for NULL")]
    Nul,
    /// The text ends with the pad character.
    #[error("the part is filled up with '{0}', so the text may not end with it")]
    EndsInPad(char),
    /// A time that the format would round.
    #[error("the part keeps only what '{0}' shows, and the time is finer")]
    Finer(String),
    /// A time with a year that takes more than four digits, or is before year 0.
    #[error("the part shows years 0000 to 9999 only")]
    Year,
    /// A name that has no code; the known names, in order.
    #[error("the part knows codes only for {}", .0.join(", "))]
    NoCode(Vec<String>),
    /// The bytes are drawn at insert: no value determines them.
    #[error("the part is drawn at random when the row is inserted")]
    Drawn,
}

impl Rule {
    /// The hint for the user.
    pub fn hint(&self) -> String {
        match self {
            Rule::Null | Rule::Drawn => "give the column a value".into(),
            Rule::Type(ty) => format!("cast the value to {ty}"),
            Rule::Range(_) => "use a number inside it".into(),
            Rule::Wide { len, .. } => {
                format!("shorten the value, or create the table with a part at least {len} wide")
            }
            Rule::Negative => {
                "use the column itself as the part: its binary form sorts negative numbers".into()
            }
            Rule::AboveMax(_) => "create the table with a greater maximum".into(),
            Rule::Delimiter(_) => {
                "choose a delimiter that no value contains, or use rpad(col, n, ' ')".into()
            }
            Rule::Nul => "take the NUL character out".into(),
            Rule::EndsInPad(_) => "create the table with a fill character that no value ends with".into(),
            Rule::Finer(_) => "truncate the time, or create the table with a finer format".into(),
            Rule::Year => "use the column itself as the part: its binary form holds every year".into(),
            Rule::NoCode(known) => format!("use one of: {}", known.join(", ")),
        }
    }

    /// The SQLSTATE of the error.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Rule::Null => sqlstate::NOT_NULL,
            Rule::Type(_) => sqlstate::DATATYPE_MISMATCH,
            Rule::Range(_) => sqlstate::OUT_OF_RANGE,
            Rule::Wide { .. } => sqlstate::TOO_LONG,
            _ => sqlstate::KEY_RULE,
        }
    }
}

/// A value that a key part cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The column; `None` for a part without one.
    pub column: Option<ColumnId>,
    /// The column's name, if known; until then the part's SQL.
    pub name: String,
    /// The value, as an SQL literal.
    pub value: String,
    /// The part, as SQL.
    pub part: String,
    /// The rule that it violates.
    pub rule: Rule,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {} of \"{}\" does not fit the rowkey part {}", self.value, self.name, self.part)
    }
}

impl std::error::Error for KeyError {}

impl From<KeyError> for Error {
    fn from(e: KeyError) -> Error {
        Error::invalid(e.to_string())
            .why(e.rule.to_string())
            .hint(e.rule.hint())
            .state(e.rule.sqlstate())
            .of_column(&e.name)
    }
}

/// Bytes that cannot be a key of this layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey {
    /// The part that cannot be read, as an index into the parts.
    pub part: usize,
    /// The part, as SQL.
    pub sql: String,
    /// The whole key.
    pub key: Vec<u8>,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} ('{}') cannot be read", hex(&self.key), self.key.escape_ascii())
    }
}

impl std::error::Error for BadKey {}

impl From<BadKey> for Error {
    fn from(e: BadKey) -> Error {
        Error::corrupt(e.to_string()).why(format!(
            "its part {} ({}) is not what this table writes",
            e.part + 1,
            e.sql
        ))
    }
}
