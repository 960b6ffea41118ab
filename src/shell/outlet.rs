//! The console's output, which shows several small results by one system call.
//!
//! A script of many quick statements spends a good part of its time on telling that each was done, if each is told
//! alone: to a pipe, whoever reads it is woken every time. So a result may wait for those behind it, but only for
//! [`MOMENT`]: the next statement may take long.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How long a result waits for others, at most.
const MOMENT: Duration = Duration::from_millis(10);

/// Bytes that are written together, at most.
const BUFFER: usize = 1 << 16;

/// A buffered output.
pub struct Outlet {
    shared: Arc<Shared>,
    has_thread: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    out: BufWriter<Box<dyn Write + Send>>,
    /// Something is to be flushed in a moment.
    is_due: bool,
    is_closed: bool,
    /// What went wrong with that.
    failed: Option<io::Error>,
}

impl State {
    /// Errors: those of a flush before.
    fn writer(&mut self) -> io::Result<&mut impl Write> {
        self.failed.take().map_or(Ok(&mut self.out), Err)
    }
}

impl Outlet {
    /// A buffer before `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Outlet {
        let out = BufWriter::with_capacity(BUFFER, out);
        let state = Mutex::new(State { out, is_due: false, is_closed: false, failed: None });
        Outlet { shared: Arc::new(Shared { state, changed: Condvar::new() }), has_thread: false }
    }

    /// Flushes in a moment, if nobody does before.
    ///
    /// Errors: there can be no thread for that.
    pub fn flush_soon(&mut self) -> io::Result<()> {
        if !self.has_thread {
            let shared = Arc::clone(&self.shared);
            thread::Builder::new().name("output".to_owned()).spawn(move || shared.flush_when_due())?;
            self.has_thread = true;
        }
        if !std::mem::replace(&mut self.shared.state.lock().is_due, true) {
            self.shared.changed.notify_one();
        }
        Ok(())
    }
}

impl Shared {
    /// Until the output is closed.
    fn flush_when_due(&self) {
        let mut state = self.state.lock();
        while !state.is_closed {
            if !state.is_due {
                self.changed.wait(&mut state);
                continue;
            }
            // New results come meanwhile; only the end cuts it short.
            self.changed.wait_for(&mut state, MOMENT);
            state.is_due = false;
            if let Err(e) = state.out.flush() {
                state.failed = Some(e);
            }
        }
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.shared.state.lock().writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.shared.state.lock().writer()?.flush()
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        // Nobody is left to be told.
        let _ = state.out.flush();
        self.shared.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::testing::Sheet;
    use super::*;

    /// A writer that accepts nothing.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_waits_shows_in_a_moment_and_at_the_end() {
        let sheet = Sheet::default();
        let mut outlet = Outlet::new(Box::new(sheet.clone()));
        outlet.write_all(b"one ").unwrap();
        assert_eq!(sheet.take(), "");
        outlet.flush_soon().unwrap();
        outlet.write_all(b"two ").unwrap();
        let (since, mut shown) = (Instant::now(), String::new());
        while shown != "one two " {
            assert!(since.elapsed() < Duration::from_secs(20), "{shown}");
            shown += &sheet.take();
            thread::yield_now();
        }
        outlet.write_all(b"three ").unwrap();
        outlet.flush().unwrap();
        assert_eq!(sheet.take(), "three ");
        outlet.write_all(b"four").unwrap();
        drop(outlet);
        assert_eq!(sheet.take(), "four");
    }

    #[test]
    fn a_closed_pipe_is_told_of_later() {
        let mut outlet = Outlet::new(Box::new(Closed));
        outlet.write_all(b"one").unwrap();
        outlet.flush_soon().unwrap();
        let since = Instant::now();
        let error = loop {
            assert!(since.elapsed() < Duration::from_secs(20));
            if let Err(error) = outlet.write_all(b"more") {
                break error;
            }
            thread::yield_now();
        };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
