//! Execution: access paths are run against a snapshot, and changed rows are written to a batch.
//!
//! [`scan`] turns an [`Access`](crate::access::Access) into record batches; [`dml`] collects a statement's changes of
//! rows and turns them into one write batch, index entries included; [`changes`] and [`bulk`] do the same for changes and
//! loads too large for that, sorting on disk if need be; [`stored`] defines how one row is stored.

pub mod build;
pub mod bulk;
pub mod changes;
pub mod check;
pub mod dml;
mod encoded;
mod fetch;
mod gather;
mod gets;
pub mod groups;
mod jump;
pub mod losses;
pub mod next_rows;
mod past;
mod pieces;
mod pull;
pub mod rekey;
pub mod row_sorter;
mod run;
pub mod scan;
mod seats;
pub mod shared;
mod sink;
mod sorter;
mod sources;
mod spec;
mod spill;
pub mod stored;
pub mod sums;
pub mod trace;
pub mod transfer;
mod view;
mod walk;
pub mod watch;

pub use view::key_value;
