//! The threads that queries run on.

use std::sync::Arc;

use crate::error::{Error, Kind, Result};

/// Stack of a worker: deeply nested expressions recurse in planners.
pub const STACK_BYTES: usize = 32 << 20;
/// Less than this left on a caller's stack, and it gets a new one of [`STACK_BYTES`].
const STACK_LEFT_BYTES: usize = 6 << 20;

/// A tokio runtime of our own, shared by everything of one database.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// Dropping a runtime blocks, which is not allowed inside another one: it is told to go instead.
struct Inner(Option<tokio::runtime::Runtime>);

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Runtime {
    /// Starts the threads.
    pub fn start() -> Result<Runtime> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("rowkeydb")
            .thread_stack_size(STACK_BYTES)
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
            .enable_time()
            .build()
            .map_err(|e| Error::new(Kind::Unavailable, "the query threads cannot be started").caused_by(e))?;
        Ok(Runtime(Arc::new(Inner(Some(runtime)))))
    }

    /// Lets what is started meanwhile run on these threads.
    pub fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        self.0.0.as_ref().map(tokio::runtime::Runtime::enter)
    }

    /// Runs `work` to its end, from any thread: inside another runtime a helper thread waits for it.
    pub fn block_on<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        // A statement's future is large, and is handed on a few times.
        let work = Box::pin(work);
        // The caller's thread may have a small stack, and a statement may nest deeply.
        let run = || {
            stacker::maybe_grow(STACK_LEFT_BYTES, STACK_BYTES, || match &self.0.0 {
                Some(runtime) => runtime.block_on(work),
                None => futures::executor::block_on(work),
            })
        };
        if tokio::runtime::Handle::try_current().is_err() {
            return run();
        }
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}
