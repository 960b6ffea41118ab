//! The threads that queries run on.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind, Result};

/// Stack of a worker: deeply nested expressions recurse in planners.
pub const STACK_BYTES: usize = 32 << 20;
/// Less than this left on a caller's stack, and it gets a new one of [`STACK_BYTES`].
const STACK_LEFT_BYTES: usize = 6 << 20;

/// A tokio runtime of our own, shared by everything of one database; it starts when something has to wait for it.
#[derive(Clone, Default)]
pub struct Runtime(Arc<OnceLock<Started>>);

/// Dropping a runtime blocks, which is not allowed inside another one: it is told to go instead.
struct Started(Option<tokio::runtime::Runtime>);

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Runtime {
    fn started(&self) -> Result<&tokio::runtime::Runtime> {
        let started = match self.0.get() {
            Some(started) => started,
            None => {
                let started = Started(Some(start()?));
                // Of two at once, one is told to go.
                self.0.get_or_init(|| started)
            }
        };
        started.0.as_ref().ok_or_else(|| Error::internal("the query threads are gone"))
    }

    /// Lets what is started meanwhile run on these threads.
    pub fn enter(&self) -> Result<tokio::runtime::EnterGuard<'_>> {
        self.started().map(tokio::runtime::Runtime::enter)
    }

    /// Runs `work` to its end, from any thread: inside another runtime a helper thread waits for it.
    pub fn block_on<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        // A statement's future is large, and is handed on a few times.
        let work = Box::pin(work);
        let runtime = self.started()?;
        let run = || with_stack(|| runtime.block_on(work));
        if tokio::runtime::Handle::try_current().is_err() {
            return run();
        }
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

fn start() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("rowkeydb")
        .thread_stack_size(STACK_BYTES)
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
        .enable_time()
        .build()
        .map_err(|e| Error::new(Kind::Unavailable, "the query threads cannot be started").caused_by(e))
}

/// Calls `work` with room for a statement that nests deeply: the caller's thread may have a small stack.
pub fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_BYTES, STACK_BYTES, work)
}
