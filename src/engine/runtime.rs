//! The tokio runtime that queries run on.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::error::{Error, Kind, Result};

/// Stack of a worker: planners recurse on deeply nested expressions.
pub const STACK_BYTES: usize = 32 << 20;
/// If the caller's stack has less than this left, work moves to a new one of [`STACK_BYTES`].
const STACK_LEFT_BYTES: usize = 6 << 20;

/// A tokio runtime, shared by all of a database; it is started when something first has to wait.
#[derive(Clone, Default)]
pub struct Runtime(Arc<OnceLock<Started>>);

/// Waits for its threads when dropped: glibc 2.36's `pthread_detach` marks a thread and then reads its memory
/// once more, which is unmapped if the thread has ended in between.
struct Started(Option<tokio::runtime::Runtime>);

/// How long to wait for them. They end at once, except one that computes a long batch, which cannot be
/// interrupted.
const END_MAX: Duration = Duration::from_millis(100);

impl Drop for Started {
    fn drop(&mut self) {
        let mut end = || self.0.take().map(|runtime| runtime.shutdown_timeout(END_MAX));
        if Handle::try_current().is_err() {
            end();
            return;
        }
        // Blocking is not allowed inside another runtime, so a helper thread does it.
        thread::scope(|scope| {
            if let Ok(helper) = thread::Builder::new().spawn_scoped(scope, end) {
                let _ = helper.join();
            }
        });
        // No helper thread could be started.
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
                // If two threads race, the loser's runtime is dropped.
                self.0.get_or_init(|| started)
            }
        };
        started.0.as_ref().ok_or_else(|| Error::internal("the query threads are gone"))
    }

    /// Makes code in this thread spawn its tasks on this runtime.
    pub fn enter(&self) -> Result<tokio::runtime::EnterGuard<'_>> {
        self.started().map(tokio::runtime::Runtime::enter)
    }

    /// Runs `work` to completion, from any thread: inside another runtime a helper thread waits for it.
    pub fn block_on<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        // Boxed because the future of a statement is large and is moved a few times.
        let work = Box::pin(work);
        let runtime = self.started()?;
        let run = || with_stack(|| runtime.block_on(work));
        if Handle::try_current().is_err() {
            return run();
        }
        thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, run) {
            Ok(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(e) => Err(cannot_start(e)),
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
        .map_err(cannot_start)
}

fn cannot_start(e: io::Error) -> Error {
    Error::new(Kind::Unavailable, "the query threads cannot be started")
        .why(e.to_string())
        .hint("end other processes, or raise the limit of threads")
        .caused_by(e)
}

/// Calls `work` with enough stack for deeply nested statements: the caller's thread may have a small one.
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

    /// Reports that its thread has ended, some time after the end began.
    struct SlowEnd(Arc<AtomicBool>);

    impl Drop for SlowEnd {
        fn drop(&mut self) {
            thread::sleep(END_MAX / 4);
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Whether the thread of a runtime has ended by the time the runtime is dropped.
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
