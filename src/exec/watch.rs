//! Progress reports and cancellation of long statements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::error::{Error, Kind, Result};

/// Rows or entries between two reports of progress, and looks whether to stop.
const TICK_EVERY: u64 = 4096;

/// Progress of a long statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step in progress, such as `building payments_by_date`.
    pub label: String,
    /// Amount done.
    pub done: u64,
    /// Total amount, if known.
    pub total: Option<u64>,
    /// Unit of both: `rows`, `entries`, `bytes`.
    pub unit: &'static str,
    /// This was the last report of this label.
    pub finished: bool,
}

/// Receives progress reports.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Stops the statement that a session runs; clones stop the same session.
#[derive(Clone, Default)]
pub struct CancelHandle(Arc<Cancel>);

#[derive(Default)]
struct Cancel {
    asked: AtomicBool,
    /// Some caller holds a handle and may cancel.
    held: AtomicBool,
    notify: Notify,
    deadline: Mutex<Option<Deadline>>,
    /// What of the statement is committed.
    committed: Mutex<Option<&'static str>>,
}

/// When a statement has to end.
#[derive(Clone)]
struct Deadline {
    at: Instant,
    timeout: Duration,
    /// The statement's plan, once known.
    plan: Option<PlanText>,
}

/// Gives a plan's first line, and perhaps a hint at what would serve better.
pub type PlanText = Arc<dyn Fn() -> (String, Option<String>) + Send + Sync>;

impl CancelHandle {
    /// A handle for somebody who may cancel.
    pub fn held(&self) -> CancelHandle {
        self.0.held.store(true, Ordering::SeqCst);
        self.clone()
    }

    /// A handle that nobody cancels, but that times out.
    pub fn within(time: Duration) -> CancelHandle {
        let handle = CancelHandle::default();
        handle.start(Some(time));
        handle
    }

    /// Whether the running statement may be cancelled or time out.
    pub fn may_stop(&self) -> bool {
        self.0.held.load(Ordering::SeqCst) || self.deadline().is_some()
    }

    /// Asks the running statement to stop; it ends with [`Kind::Cancelled`]. Nothing happens if none runs.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Has the running statement, or else the last one, been asked to stop?
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Starts a statement with a time limit, and forgets earlier requests to cancel.
    pub fn start(&self, timeout: Option<Duration>) {
        self.0.asked.store(false, Ordering::SeqCst);
        let deadline = timeout.and_then(|timeout| {
            let at = Instant::now().checked_add(timeout)?;
            Some(Deadline { at, timeout, plan: None })
        });
        *self.0.deadline.lock() = deadline;
        *self.0.committed.lock() = None;
    }

    /// Records what is already committed if the running statement is stopped from now on; the first call wins.
    pub fn note_committed(&self, what: &'static str) {
        self.0.committed.lock().get_or_insert(what);
    }

    /// What was written by a statement that was stopped.
    fn written(&self) -> &'static str {
        self.0.committed.lock().unwrap_or("nothing of the statement was written")
    }

    /// Sets the plan of the running statement, to be named if it times out.
    pub fn plan(&self, plan: impl FnOnce() -> PlanText) {
        if let Some(deadline) = &mut *self.0.deadline.lock() {
            deadline.plan = Some(plan());
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        self.0.deadline.lock().clone()
    }

    fn cancelled(&self) -> Error {
        Error::new(Kind::Cancelled, "the statement was cancelled").why(self.written())
    }

    fn timed_out(&self) -> Error {
        self.deadline().map_or_else(|| self.cancelled(), |deadline| timed_out(deadline, self.written()))
    }

    /// Errors: `Cancelled` if the statement was cancelled or has timed out.
    pub fn check(&self) -> Result<()> {
        if self.0.asked.load(Ordering::SeqCst) {
            return Err(self.cancelled());
        }
        match self.deadline() {
            Some(deadline) if Instant::now() >= deadline.at => Err(timed_out(deadline, self.written())),
            _ => Ok(()),
        }
    }

    /// [`CancelHandle::check`], now and then as `done` grows by ones.
    pub fn tick(&self, done: u64) -> Result<()> {
        if done.is_multiple_of(TICK_EVERY) { self.check() } else { Ok(()) }
    }

    /// Runs `work` until it ends, is cancelled or times out.
    pub async fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        self.check()?;
        let Some(deadline) = self.deadline() else {
            return tokio::select! {
                result = work => result,
                () = notified => Err(self.cancelled()),
            };
        };
        let time_is_up = {
            let _clock = clock()?.enter();
            tokio::time::sleep_until(deadline.at.into())
        };
        tokio::select! {
            result = work => result,
            () = notified => Err(self.cancelled()),
            () = time_is_up => Err(self.timed_out()),
        }
    }
}

/// A runtime only for timers: those that run plans do not fire timers while all their threads are busy.
fn clock() -> Result<&'static Handle> {
    static CLOCK: OnceLock<Handle> = OnceLock::new();
    let start = || -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        // Of threads started at once, the first one stays.
        let watch = move || {
            if CLOCK.set(runtime.handle().clone()).is_ok() {
                runtime.block_on(std::future::pending::<()>());
            }
        };
        thread::Builder::new().name("rowkeydb-clock".to_owned()).spawn(watch).map(drop)
    };
    if CLOCK.get().is_none() {
        start().map_err(|e| {
            Error::new(Kind::Unavailable, "the thread that watches statement_timeout cannot be started")
                .why(e.to_string())
                .hint("end other processes, or RESET statement_timeout")
        })?;
    }
    Ok(CLOCK.wait())
}

fn timed_out(Deadline { timeout, plan, .. }: Deadline, written: &str) -> Error {
    let error = Error::new(Kind::Cancelled, "the statement took too long");
    let why = format!("statement_timeout is {timeout:?}; {written}");
    let Some((plan, note)) = plan.map(|plan| plan()) else {
        return error.why(why).hint("EXPLAIN shows what it reads; RESET statement_timeout lets it run on");
    };
    let way_out = note.unwrap_or_else(|| "narrow the WHERE".to_owned());
    let hint = format!("{way_out}; RESET statement_timeout lets it run on");
    error.why(why).plan(&plan).hint(hint)
}

/// A statement's cancellation and progress.
#[derive(Clone, Default)]
pub struct Watch {
    /// Stops it.
    pub cancel: CancelHandle,
    /// Receives progress reports.
    pub on_progress: Option<OnProgress>,
}

impl Watch {
    /// Reports progress. Errors: `Cancelled` if the statement was cancelled.
    pub fn step(&self, label: &str, done: u64, total: Option<u64>, unit: &'static str) -> Result<()> {
        self.report(label, done, total, unit, false);
        self.cancel.check()
    }

    /// [`Watch::step`], now and then as `done` grows by ones.
    pub fn tick(&self, label: &str, done: u64, total: Option<u64>, unit: &'static str) -> Result<()> {
        if done.is_multiple_of(TICK_EVERY) { self.step(label, done, total, unit) } else { Ok(()) }
    }

    /// Reports that `label` is done.
    pub fn finish(&self, label: &str, done: u64, unit: &'static str) {
        self.report(label, done, Some(done), unit, true);
    }

    fn report(&self, label: &str, done: u64, total: Option<u64>, unit: &'static str, finished: bool) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(&Progress { label: label.to_owned(), done, total, unit, finished });
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
