//! The thread that moves memtables into the tree.
//!
//! A memtable that is full, or in the way of reads, is moved at once; any other when nobody has committed for [`IDLE`],
//! because reads of the tree alone are faster. The thread is started when there is something to move for the first time.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Shared;
use crate::error::Result;

/// How long a memtable must be idle before it is moved, and the delay before a failed move is retried.
const IDLE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Keeper {
    signal: Arc<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// There may be something new to move.
    awake: bool,
    stop: bool,
}

impl Signal {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_one();
    }
}

impl Keeper {
    /// Announces the first entry of a memtable, or one to be moved. Starts the thread if needed.
    pub(super) fn wake(&self, shared: &Arc<Shared>) {
        self.signal.change(|state| state.awake = true);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (shared, signal) = (shared.clone(), self.signal.clone());
            // If it cannot be started, writers move memtables themselves when these are full.
            *thread =
                thread::Builder::new().name("keeper".to_owned()).spawn(move || keep(&shared, &signal)).ok();
        }
    }

    pub(super) fn stop(&self) {
        self.signal.change(|state| state.stop = true);
        if let Some(thread) = self.thread.lock().take() {
            // If it panicked, the log still has everything.
            let _ = thread.join();
        }
    }
}

fn keep(shared: &Shared, signal: &Signal) {
    let mut seen = 0;
    let mut state = signal.state.lock();
    while !state.stop {
        let newest = shared.newest();
        let is_resting = seen == newest.version;
        seen = newest.version;
        if newest.sealed.is_some() || !newest.active.is_empty() {
            let is_sealed = newest.sealed.is_some();
            drop((newest, state));
            let moved = if is_sealed {
                shared.move_sealed()
            } else if is_resting {
                move_idle(shared)
            } else {
                Ok(())
            };
            state = signal.state.lock();
            // The writer that needs the room retries, and gets the error.
            if (moved.is_err() || !is_sealed) && !state.stop {
                signal.changed.wait_for(&mut state, IDLE);
            }
        } else {
            drop(newest);
            state.awake = false;
            while !state.awake && !state.stop {
                signal.changed.wait(&mut state);
            }
        }
    }
}

/// Moves the active memtable, unless a writer is at work: that one moves it itself when it is full.
fn move_idle(shared: &Shared) -> Result<()> {
    let Some(mut writer) = shared.writer.try_lock() else { return Ok(()) };
    shared.seal(&mut writer.log)?;
    drop(writer);
    shared.move_sealed()
}
