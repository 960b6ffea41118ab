//! What one key part does to its column.

use serde::{Deserialize, Serialize};

/// Position of a column in its table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnId(pub u16);

/// One SQL form of a key part. Widths count characters for text and digits for numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transform {
    /// `'_'`: a literal delimiter.
    Literal(String),
    /// `col`: order-preserving binary.
    Column(ColumnId),
    /// `cast(col AS VARCHAR)`: the column's text form, unpadded.
    Text(ColumnId),
    /// `lpad(col, width, pad)`.
    Lpad { column: ColumnId, width: u16, pad: char },
    /// `rpad(col, width, pad)`.
    Rpad { column: ColumnId, width: u16, pad: char },
    /// `reverse(col)`, or `reverse(lpad(col, width))`: the text form, zero-padded if there is a width, reversed.
    Reverse { column: ColumnId, width: Option<u16> },
    /// `reverse_bytes(col)`: the bytes of the binary form, last first.
    ReverseBytes(ColumnId),
    /// `max - col` in binary, or `lpad(max - col, width)` in text.
    MaxMinus { column: ColumnId, max: i64, width: Option<u16> },
    /// `left|right|substr(md5(col), ...)`: hex digits `from..from + len` of the MD5 of the text form.
    Md5Hex { column: ColumnId, from: u8, len: u8 },
    /// `md5(col)`: the 16 bytes of the MD5 of the text form.
    Md5(ColumnId),
    /// `col % buckets`: decimal text, as wide as `buckets - 1`.
    Modulo { column: ColumnId, buckets: u32 },
    /// `md5_bucket(col, ..., buckets)`: decimal text, as wide as `buckets - 1`.
    Md5Bucket { columns: Vec<ColumnId>, buckets: u32 },
    /// `random(buckets)`: drawn at insert; decimal text, as wide as `buckets - 1`.
    Random { buckets: u32 },
    /// `to_char(col, format)`: formatted time.
    ToChar { column: ColumnId, format: String },
    /// `code(col, 'name=code, ...')`.
    Code { column: ColumnId, codes: Vec<(String, String)> },
}

/// One part of a key layout: what it does to its column, in which direction, and how it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSpec {
    /// From the row's columns to the part's bytes.
    pub transform: Transform,
    /// The bytes are inverted.
    pub descending: bool,
    /// The part's expression, as written in SQL.
    pub sql: String,
}
