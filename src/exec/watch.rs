//! What a long statement tells whoever waits for it, and how it is told to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::error::{Error, Kind, Result};

/// How far a long statement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, such as `building payments_by_date`.
    pub label: String,
    /// How much is done.
    pub done: u64,
    /// How much there is, if known.
    pub total: Option<u64>,
    /// Of what: `rows`, `entries`, `bytes`.
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
    notify: Notify,
}

impl CancelHandle {
    /// Asks the running statement to stop; it ends with [`Kind::Cancelled`]. Nothing happens if none runs.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Forgets an earlier request.
    pub fn reset(&self) {
        self.0.asked.store(false, Ordering::SeqCst);
    }

    /// Errors: `Cancelled`, if that was asked for.
    pub fn check(&self) -> Result<()> {
        if self.0.asked.load(Ordering::SeqCst) { Err(cancelled()) } else { Ok(()) }
    }

    /// Runs `work` until it ends or is cancelled.
    pub async fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        self.check()?;
        tokio::select! {
            result = work => result,
            () = notified => Err(cancelled()),
        }
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the statement was cancelled").why("nothing was changed")
}

/// A statement's cancellation and progress.
#[derive(Clone, Default)]
pub struct Watch {
    /// Stops it.
    pub cancel: CancelHandle,
    /// Hears of it.
    pub on_progress: Option<OnProgress>,
}

impl Watch {
    /// Reports progress, and ends the statement if it was cancelled.
    pub fn step(&self, label: &str, done: u64, total: Option<u64>, unit: &'static str) -> Result<()> {
        self.report(label, done, total, unit, false);
        self.cancel.check()
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
