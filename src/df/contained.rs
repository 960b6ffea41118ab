//! A panic inside DataFusion, or in what it computes with, fails one query only.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::{Error, Result};

/// The work that failed.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Names, types and the plan.
    Planning,
    /// Rows.
    Running,
}

impl Stage {
    /// The error of work that panicked.
    pub fn failed(self) -> Error {
        Error::internal(match self {
            Stage::Planning => "this query cannot be planned",
            Stage::Running => "this query cannot be run to its end",
        })
    }

    /// Does `work`. Errors: its own; `Internal` if it panics.
    pub fn contain<T>(self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(self.failed()))
    }

    /// [`Stage::contain`] for a future. Boxed: a future is moved by copying, and the futures of all callers would hold
    /// this one.
    pub fn contain_all<'w, T>(
        self,
        work: impl Future<Output = Result<T>> + Send + 'w,
    ) -> BoxFuture<'w, Result<T>> {
        let done = AssertUnwindSafe(work).catch_unwind();
        done.map(move |done| done.unwrap_or_else(|_| Err(self.failed()))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_panic_is_an_error_of_its_query() {
        let panics = || -> Result<()> { panic!("on purpose") };
        for failed in [
            Stage::Planning.contain(panics),
            futures::executor::block_on(Stage::Planning.contain_all(async { panics() })),
        ] {
            let error = failed.unwrap_err();
            assert_eq!((error.kind(), error.what()), (Kind::Internal, "this query cannot be planned"));
        }
        assert_eq!(Stage::Running.contain(|| Ok(7)).unwrap(), 7);
    }
}
