//! Rowkeys: their bytes, ranges of them, and the layouts that produce them.

mod image;
mod layout;
mod part;
mod problem;
mod range;
mod rowkey;
mod transform;

pub use image::{Image, Interval};
pub use layout::{KeyLayout, Tail};
pub use part::{ColumnInfo, Facts, KeyOrder, KeyPart, PartSpec};
pub use problem::{BadKey, KeyError, LayoutError, Rule, Warning};
pub use range::{End, KeyRange, KeyRanges};
pub use rowkey::{Rowkey, hex, prefix_end};
pub use transform::{ColumnId, Transform};
