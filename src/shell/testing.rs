//! Hand-made results for the shell's tests.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;

use super::console::{Console, Settings};
use crate::engine::{Database, OutputColumn};

/// Columns of these names and types.
pub fn columns(named: &[(&str, &str)]) -> Vec<OutputColumn> {
    let column = |(name, ty): &(&str, &str)| OutputColumn { name: (*name).into(), type_name: (*ty).into() };
    named.iter().map(column).collect()
}

/// Four orders with everything that is hard to print: NULL, '', quotes, several lines.
pub fn orders() -> (Vec<OutputColumn>, RecordBatch) {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(123456), None, Some(-1)]));
    let notes = vec![Some("paid"), Some("a, \"b\"\nsecond line"), Some(""), None];
    let notes: ArrayRef = Arc::new(StringArray::from(notes));
    let batch = RecordBatch::try_from_iter([("order_id", ids), ("note", notes)]).unwrap();
    (columns(&[("order_id", "BIGINT"), ("note", "VARCHAR")]), batch)
}

/// A writer whose text can be looked at meanwhile.
#[derive(Clone, Default)]
pub struct Sheet(Arc<Mutex<Vec<u8>>>);

impl Sheet {
    /// The text written since the last call.
    pub fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A console over an empty database, and its stdout and stderr.
pub fn console(settings: Settings) -> (Console, Sheet, Sheet) {
    let (out, err) = (Sheet::default(), Sheet::default());
    let db = Database::in_memory().unwrap();
    (Console::new(db, settings, Box::new(out.clone()), Box::new(err.clone())), out, err)
}
