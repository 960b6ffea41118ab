//! Aggregates one scan with all threads that are free.
//!
//! A long scan is cut into pieces. Each free thread takes the next one, beginning with the calling thread, so a
//! thread that wakes up late has less to do, and nobody waits for one that never comes. The results of the pieces are
//! combined in order, so that a sum of doubles is the same every time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::scan::{PARALLEL_WORK, Scan, ScanSpec};
use super::seats::Seat;
use super::sums::{AggregateKind, AggregateTerm, Sums, Total};
use super::watch::PlanText;
use crate::error::{Error, Result};

/// How long to wait for the others before checking for cancellation.
const PATIENCE: Duration = Duration::from_millis(20);

/// Work, in the units of `Access::work`, that is worth sharing.
const SHARED_WORK: f64 = 2_000.0;

/// A piece of the scan, and its totals so far.
struct ScanPiece {
    at: usize,
    scan: Scan,
    sums: Sums,
}

impl ScanPiece {
    /// Aggregates some of its rows; false when these were the last ones.
    fn step(&mut self) -> Result<bool> {
        self.scan.add_up(&mut self.sums)
    }
}

/// An aggregation in progress.
pub struct Adding {
    spec: Arc<ScanSpec>,
    /// The piece of the calling thread.
    mine: Option<ScanPiece>,
    /// The pieces of the other threads, and this thread's seat.
    others: Option<(Arc<SharedPieces>, Seat)>,
    totals: Option<Sums>,
}

impl Adding {
    /// Begins to aggregate a scan.
    pub fn new(scan: Scan, terms: impl Iterator<Item = AggregateTerm> + Clone) -> Result<Adding> {
        let spec = Arc::clone(scan.spec());
        // A plan of DataFusion operators adds few doubles in row order; the result must be the same as there.
        let has_doubles = terms.clone().any(|term| term.function == AggregateKind::SumOfDoubles);
        let work_min = if has_doubles { PARALLEL_WORK } else { SHARED_WORK };
        let pieces = scan.pieces(work_min)?.into_iter().enumerate().map(|(at, scan)| {
            let sums = Sums::new(terms.clone(), scan.spec());
            ScanPiece { at, scan, sums }
        });
        let mut left: Vec<ScanPiece> = pieces.rev().collect();
        let mine = left.pop();
        let others = (!left.is_empty()).then(|| {
            let seat = Seat::take();
            let shared = SharedPieces::start(left);
            seat.yield_once();
            (shared, seat)
        });
        Ok(Adding { spec, mine, others, totals: None })
    }

    /// Its line of EXPLAIN, computed when asked for.
    pub fn plan_text(&self) -> PlanText {
        self.spec.plan_text()
    }

    /// Aggregates some rows; gives the totals when all are done.
    pub fn step(&mut self) -> Result<Option<Vec<Total>>> {
        if let Some(piece) = &mut self.mine {
            if !piece.step()? {
                match (&self.others, self.mine.take()) {
                    (Some((others, _)), Some(piece)) => {
                        others.put(piece.at, Ok(piece.sums));
                        self.mine = others.take();
                    }
                    (_, piece) => self.totals = piece.map(|piece| piece.sums),
                }
            }
        } else if let Some((others, _)) = &self.others {
            self.totals = others.all()?;
        }
        Ok(self.totals.as_ref().map(|sums| sums.totals().collect()))
    }
}

impl Drop for Adding {
    fn drop(&mut self) {
        if let Some((others, _)) = &self.others {
            others.stop(self.mine.take());
        }
    }
}

/// The pieces that several threads work on.
struct SharedPieces {
    work: Mutex<Work>,
    /// Signalled when no piece is being worked on.
    idle: Condvar,
}

struct Work {
    /// Pieces not yet begun, the last one first.
    left: Vec<ScanPiece>,
    /// Pieces (count) being worked on.
    begun: usize,
    /// Results of finished pieces.
    done: Vec<(usize, Result<Sums>)>,
    /// The totals are no longer wanted, or a piece has failed.
    stopped: bool,
}

impl SharedPieces {
    /// Asks the other threads for help with these pieces, while the caller works on one more.
    fn start(left: Vec<ScanPiece>) -> Arc<SharedPieces> {
        // If the system has no threads to give, the calling thread does the work.
        static THREADS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let named = ThreadPoolBuilder::new().thread_name(|n| format!("rowkeydb-scan-{n}"));
            if threads > 1 { named.num_threads(threads - 1).build().ok() } else { None }
        });
        let work = Work { done: Vec::with_capacity(left.len() + 1), left, begun: 1, stopped: false };
        let shared = Arc::new(SharedPieces { work: Mutex::new(work), idle: Condvar::new() });
        if let Some(threads) = &*THREADS {
            for _ in 0..threads.current_num_threads() {
                let shared = Arc::clone(&shared);
                threads.spawn(move || shared.help());
            }
        }
        shared
    }

    /// Takes the next piece.
    fn take(&self) -> Option<ScanPiece> {
        let mut work = self.work.lock();
        let piece = work.left.pop()?;
        work.begun += 1;
        Some(piece)
    }

    /// Stores the result of a piece.
    fn put(&self, at: usize, sums: Result<Sums>) {
        let mut work = self.work.lock();
        work.begun -= 1;
        if sums.is_err() {
            work.left.clear();
            work.stopped = true;
        }
        work.done.push((at, sums));
        if work.begun == 0 {
            self.idle.notify_all();
        }
    }

    fn help(&self) {
        let _seat = Seat::take();
        while let Some(ScanPiece { at, scan, sums }) = self.take() {
            let ended = catch_unwind(AssertUnwindSafe(|| self.add_up(scan, sums)));
            self.put(
                at,
                ended.unwrap_or_else(|_| Err(Error::internal("a thread that adds up has panicked"))),
            );
        }
    }

    /// Aggregates a piece, and then drops its scan.
    fn add_up(&self, mut scan: Scan, mut sums: Sums) -> Result<Sums> {
        while scan.add_up(&mut sums)? && !self.work.lock().stopped {}
        Ok(sums)
    }

    /// The combined totals; `None` if a piece is still being worked on.
    fn all(&self) -> Result<Option<Sums>> {
        let mut work = self.work.lock();
        if work.begun > 0 {
            self.idle.wait_for(&mut work, PATIENCE);
        }
        if work.begun > 0 {
            return Ok(None);
        }
        work.done.sort_unstable_by_key(|(at, _)| *at);
        let mut all: Option<Sums> = None;
        for (_, sums) in work.done.drain(..) {
            match &mut all {
                None => all = Some(sums?),
                Some(all) => all.merge(&sums?)?,
            }
        }
        Ok(all)
    }

    /// Abandons the work, and waits until no thread reads any more.
    fn stop(&self, mine: Option<ScanPiece>) {
        let mut work = self.work.lock();
        work.begun -= usize::from(mine.is_some());
        work.left.clear();
        work.stopped = true;
        while work.begun > 0 {
            self.idle.wait(&mut work);
        }
    }
}
