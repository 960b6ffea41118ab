//! Rowkeys: their bytes, ranges of them, and the layouts that produce them.

mod check;
#[cfg(test)]
mod golden;
mod image;
mod layout;
mod part;
mod problem;
#[cfg(test)]
mod properties;
mod range;
mod rowkey;
mod scalar;
mod show;
#[cfg(test)]
mod testing;
mod text;
mod time_format;
mod transform;

pub use image::{Image, Interval, text_successor};
pub use layout::{KeyLayout, Tail};
pub use part::{ColumnInfo, Facts, KeyOrder, KeyPart, PartSpec};
pub use problem::{BadKey, KeyError, LayoutError, Rule, Warning};
pub use range::{End, KeyRange, KeyRanges};
pub use rowkey::{Rowkey, hex, prefix_end};
pub use time_format::TimeFormat;
pub use transform::{ColumnId, Transform};
