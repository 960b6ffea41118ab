//! The threads that queries run on.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::error::{Error, Kind, Result};

/// Stack of a worker: deeply nested expressions recurse in planners.
pub const STACK_BYTES: usize = 32 << 20;
/// Less than this left on a caller's stack, and it gets a new one of [`STACK_BYTES`].
const STACK_LEFT_BYTES: usize = 6 << 20;

/// A tokio runtime of our own, shared by everything of one database; it starts when something has to wait for it.
#[derive(Clone, Default)]
pub struct Runtime(Arc<OnceLock<Started>>);

/// Its threads are waited for when it goes: `pthread_detach` of glibc 2.36 marks a thread and then reads of it once more,
/// and one that ends in between has taken its memory along, which ended the process (2026-11-26).
struct Started(Option<tokio::runtime::Runtime>);

/// How long they are waited for. They end at once, but for one that computes a long batch, which nobody can interrupt.
const END_MAX: Duration = Duration::from_millis(100);

impl Drop for Started {
    fn drop(&mut self) {
        let mut end = || self.0.take().map(|runtime| runtime.shutdown_timeout(END_MAX));
        if Handle::try_current().is_err() {
            end();
            return;
        }
        // Inside another runtime nobody may block, but a helper thread may.
        thread::scope(|scope| {
            if let Ok(helper) = thread::Builder::new().spawn_scoped(scope, end) {
                let _ = helper.join();
            }
        });
        // There was no thread to be had.
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
        if Handle::try_current().is_err() {
            return run();
        }
        thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

fn start() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("rowkeydb")
        .thread_stack_size(STACK_BYTES)
        .worker_threads(thread::available_parallelism().map_or(2, usize::from).max(2))
        .enable_time()
        .build()
        .map_err(|e| Error::new(Kind::Unavailable, "the query threads cannot be started").caused_by(e))
}

/// Calls `work` with room for a statement that nests deeply: the caller's thread may have a small stack.
pub fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_BYTES, STACK_BYTES, work)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    thread_local! {
        static END: std::cell::RefCell<Option<SlowEnd>> = const { std::cell::RefCell::new(None) };
    }

    /// Says that its thread has ended, some time after that has begun to end.
    struct SlowEnd(Arc<AtomicBool>);

    impl Drop for SlowEnd {
        fn drop(&mut self) {
            thread::sleep(END_MAX / 4);
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a thread of a runtime that is dropped has ended then.
    fn ends() -> bool {
        let (runtime, has_ended) = (Runtime::default(), Arc::new(AtomicBool::new(false)));
        let (end, (done, is_done)) = (SlowEnd(Arc::clone(&has_ended)), std::sync::mpsc::channel());
        runtime.started().unwrap().spawn(async move {
            END.set(Some(end));
            done.send(()).unwrap();
        });
        is_done.recv().unwrap();
        drop(runtime);
        has_ended.load(Ordering::SeqCst)
    }

    #[test]
    fn threads_have_ended_when_their_runtime_is_dropped() {
        assert!(ends());
        let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(other.block_on(async { ends() }), "inside another runtime");
    }
}
