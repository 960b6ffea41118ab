//! Rowkeys: their bytes, ranges of them, and the layouts that produce them.

mod range;
mod rowkey;

pub use range::{End, KeyRange, KeyRanges};
pub use rowkey::{Rowkey, hex, prefix_end};

mod transform;

pub use transform::{ColumnId, PartSpec, Transform};
