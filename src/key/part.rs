//! One part of a key layout.

use serde::{Deserialize, Serialize};

use super::image::{Image, Interval};
use super::problem::KeyError;
use super::transform::{ColumnId, Transform};
use crate::value::{ColumnType, Value};

/// What CREATE gives for one part, before it is resolved against the columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSpec {
    /// The form.
    pub transform: Transform,
    /// `DESC`.
    pub descending: bool,
    /// As written, for messages.
    pub sql: String,
}

/// What a layout needs to know about a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo<'a> {
    /// As declared.
    pub name: &'a str,
    /// Its type.
    pub ty: ColumnType,
    /// May be NULL.
    pub nullable: bool,
    /// `GENERATED ... AS IDENTITY`: grows with every insert.
    pub identity: bool,
}

/// How the order of a part's bytes follows the order of the column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// NULL first, then small to great.
    Ascending,
    /// Great to small, then NULL.
    Descending,
}

/// What a part states about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Distinct values have distinct bytes: an equality range holds nothing else.
    pub injective: bool,
    /// How the order of bytes follows the order of values; `None` if it does not.
    pub order: Option<KeyOrder>,
    /// Decoding gives the column's value back exactly.
    pub undoable: bool,
    /// Bytes every value takes, NULL included, if that is fixed.
    pub width: Option<usize>,
}

/// One part of a layout: a transform, bound to its column's type and to what follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    pub(super) transform: Transform,
}

impl KeyPart {
    /// Input columns: none for a literal and for `random(n)`.
    pub fn columns(&self) -> &[ColumnId] {
        todo!()
    }

    /// A literal delimiter.
    pub fn is_literal(&self) -> bool {
        todo!()
    }

    /// Bytes are drawn at insert (`random(n)`): they follow from no column. Ask [`KeyPart::fan_out`].
    pub fn is_random(&self) -> bool {
        todo!()
    }

    /// As written in the SQL.
    pub fn sql(&self) -> &str {
        todo!()
    }

    /// Appends this part's bytes for the given input values, exactly as [`super::KeyLayout::encode`] does.
    ///
    /// Values must have their column's type. An error means that no row can hold such a value, so equality
    /// with it matches nothing. A part that a delimiter ends writes its text only: the delimiter is the next
    /// part, and a prefix without it also covers longer texts.
    pub fn bytes_of<'v>(
        &self,
        value: &dyn Fn(ColumnId) -> &'v Value,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let _ = (value, out);
        todo!()
    }

    /// What the planner may rely on.
    pub fn facts(&self) -> Facts {
        todo!()
    }

    /// A range holding the bytes of every row whose column lies in `interval`; `None` if this part says
    /// nothing about intervals.
    pub fn image(&self, interval: &Interval) -> Option<Image> {
        let _ = interval;
        todo!()
    }

    /// A range holding the bytes of every row whose text ends with `suffix`, for `LIKE '%suffix'`.
    pub fn suffix_image(&self, suffix: &str) -> Option<Image> {
        let _ = suffix;
        todo!()
    }

    /// All byte strings a bucket part can have, in order, those of NULL included; `None` for other parts.
    pub fn fan_out(&self) -> Option<Vec<Vec<u8>>> {
        todo!()
    }

    /// NULL as this part's bytes; `None` if its columns are never NULL.
    pub fn null_bytes(&self) -> Option<Vec<u8>> {
        todo!()
    }
}
