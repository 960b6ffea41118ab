//! Rows outside the key: packed for the store, as columns for Arrow, as text for people.
//!
//! Down: typed values → [`pack`] → bytes of one row and family → [`seal`] → the store.
//! Up: the store → [`open`] → [`PackedRow`], decoded column by column as asked → [`ColumnBuilder`] →
//! record batches → [`value_at`], [`write_text_cell`] or [`write_json_cell`].

mod arrow;
mod builder;
mod cell;
mod compress;
mod packed;
#[cfg(test)]
pub(crate) mod testing;

pub use arrow::{
    any_value_at, arrow_type, as_values, column_type_of, field, is_same_type, plain_text_field, ref_at,
    rows_of, type_name, value_at,
};
pub use builder::ColumnBuilder;
pub use cell::{write_json_cell, write_text_cell};
pub use compress::{Compression, open, seal};
pub use packed::{PackedRow, encode, overwrite, pack, repack, unpack, unpack_number};
