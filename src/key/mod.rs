//! Rowkeys: their bytes, ranges of them, and the layouts that produce them.
//!
//! CREATE gives [`PartSpec`]s; [`KeyLayout::new`] checks them and binds them to their columns. From then
//! on [`KeyLayout::encode`] turns rows into keys, [`KeyLayout::decode`] gives back the columns that keys
//! hold, and the planner asks each [`KeyPart`] how equality ([`KeyPart::bytes_of`]), intervals
//! ([`KeyPart::image`]) and suffixes ([`KeyPart::suffix_image`]) map to [`KeyRange`]s; and so do conditions on what the
//! part computes, its [`PartExpr`].
//!
//! # Bytes
//!
//! Each part below belongs to a key of the row `id INTEGER = 7, name VARCHAR = 'ab', day DATE =
//! 2017-01-01, ts TIMESTAMP = 2017-01-01 09:00:00, note VARCHAR = NULL, n INTEGER = NULL`; in other
//! parts and rows `id` follows. Scalars of other types are in `scalar.rs`, time patterns in
//! `time_format.rs`.
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | `id` | `80000007` | big-endian, sign bit flipped |
//! | `id DESC` | `7ffffff8` | every byte inverted |
//! | `name`, last | `6162` | as it is |
//! | `name`, not last | `61620001` | 00 becomes 00 FF, and 00 01 ends it |
//! | `name DESC` | `9e9dfffe` | ended even when last, or `'a'` would sort before `'ab'` |
//! | `name, '_'` | `6162 5f` | as it is: it may not contain the delimiter |
//! | `day` | `8000430f` | days since 1970-01-01 |
//! | `ts` | `80054504a8ef6400` | microseconds since 1970-01-01 |
//! | `cast(id AS VARCHAR)` | `37` | the text form; not padded, so it does not sort |
//! | `lpad(id, 3)` | `303037` | digits; no sign, no wider number |
//! | `rpad(name, 4, ' ')` | `61622020` | 4 characters; a value may not end with the pad |
//! | `reverse(lpad(id, 3))` | `373030` | |
//! | `reverse(name)` | `6261` | characters, not bytes; last, delimited, or ended before a pointer |
//! | `reverse_bytes(id)` | `07000080` | |
//! | `9 - id` | `8000000000000002` | 8 bytes for any type |
//! | `lpad(99 - id, 2)` | `3932` | |
//! | `left(md5(id), 2)` | `3866` | hex digits of the MD5 of the text form |
//! | `md5(id)` | `8f14e45fceea167a5a36dedd4bea2543` | |
//! | `id % 5` | `32` | the remainder is never negative; as wide as the last bucket |
//! | `md5_bucket(id, name, 16)` | `3039` | first 8 bytes of the MD5 of the text forms joined by 00, modulo 16 |
//! | `random(16)` | `3035` | drawn at insert |
//! | `to_char(ts, 'YYYYMMDD HH24')` | `3230313730313031203039` | a finer time is refused |
//! | `code(name, 'ab=x')` | `78` | |
//!
//! NULL sorts first, and last where values run backwards (`DESC`, `max - col`):
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | `n` | `00` | binary and ended parts start with a byte: 01 before a value |
//! | `n DESC` | `ff` | |
//! | `note`, last | `00` | |
//! | `lpad(n, 2)` | `0000` | text parts of fixed width hold as many 00 bytes, so values stay plain text |
//! | `lpad(99 - n, 2)` | `ffff` | |
//! | `note, '_'` | `00 5f` | delimited text has one 00 byte |
//!
//! # After
//!
//! FoundationDB's tuple layer (escaped bytes), CockroachDB's `util/encoding` (ordered scalars), Apache
//! Phoenix (salt buckets, inverted DESC), and the rowkey guides of HBase and MapR (padding, reversing,
//! `MAX - value`, hash prefixes).

mod anatomy;
mod check;
mod digits;
mod expression;
#[cfg(test)]
mod golden;
mod hash;
mod image;
mod layout;
mod part;
mod problem;
#[cfg(test)]
mod properties;
mod range;
#[cfg(test)]
mod refusals;
mod rowkey;
mod scalar;
mod show;
#[cfg(test)]
mod testing;
mod text;
mod time_format;
mod transform;
mod warn;

pub use anatomy::Piece;
pub use check::BUCKETS_MAX;
pub use digits::{Digits, Pad};
pub use expression::{PartExpr, reversed};
pub use hash::{FastMap, FastSet};
pub use image::{Image, Interval, text_successor};
pub use layout::{KeyLayout, Tail};
pub use part::{ColumnInfo, Facts, KeyOrder, KeyPart, PartSpec};
pub use problem::{BadKey, Concern, KeyError, LayoutError, Rule, Warning};
pub use range::{End, KeyRange, KeyRanges, RangesBehind};
pub use rowkey::{KEY_BYTES_MAX, KeyHead, Rowkey, hex, in_key_order, prefix_end};
pub use time_format::TimeFormat;
pub use transform::{ColumnId, MD5_DIGITS, Transform, md5_bucket, md5_digits, put_md5_digits};
