//! Access paths: which keyspace to read, by which keys or ranges, and why.
//!
//! [`choose()`] prices the table and every usable index for what a statement needs and takes the cheapest;
//! [`describe`] shows it in EXPLAIN.

mod advice;
mod again;
mod behind;
mod candidate;
mod choose;
mod cost;
mod explain;
mod guards;
mod hints;
mod path;
mod probe;
mod rivals;
mod selectivity;
mod several;
mod stretch;
mod unprobed;
mod words;

pub use advice::{IndexPart, key_for};
pub use again::{Again, along, choose_again};
pub use choose::{choose, path_access};
pub use cost::{COST, Statistics, passing_share, rows_of};
pub use explain::{Described, RuntimeKeys, describe};
pub use guards::{Guards, refused};
pub use hints::Hints;
pub use path::{Access, Choice, Each, Method, Need, OrderBy, Path, SetOp, Source};
pub use probe::{Jumps, probe_jumps};
pub use selectivity::share_of_equals;
pub use several::UnionPaths;
pub use stretch::{FirstRun, Stretch};
pub use words::NO_ROW;
