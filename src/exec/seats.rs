//! Spreads threads that share a piece of work over different processors.
//!
//! A thread that is woken often starts on the processor of the thread that woke it, and the two take turns, although
//! another processor is idle; above all on virtual machines, where a sleeping processor looks busy. The system
//! migrates one of them after some milliseconds, when a short query is over. So threads that compute together take
//! seats: a thread whose processor is taken moves to a free one, and the thread that started the work yields once,
//! because the others may be queued behind it.
//!
//! Off Linux, and where threads may not move, a seat does nothing.

use std::sync::atomic::{AtomicU32, Ordering};

/// Processors (count) that are distinguished.
const PROCESSORS: usize = 64;

/// Threads (count) seated on each processor.
type Occupancy = [AtomicU32; PROCESSORS];

static TAKEN: Occupancy = [const { AtomicU32::new(0) }; PROCESSORS];

/// A seat on a processor, counted there until dropped.
#[derive(Debug)]
pub struct Seat(Option<&'static AtomicU32>);

impl Seat {
    /// Takes a seat for the calling thread. If this processor has one already, moves to a processor without any.
    pub fn take() -> Seat {
        Seat::among(&TAKEN)
    }

    fn among(taken: &'static Occupancy) -> Seat {
        let Some(here) = system::processor().and_then(|here| taken.get(here)) else { return Seat(None) };
        if here.fetch_add(1, Ordering::Relaxed) == 0 {
            return Seat(Some(here));
        }
        let is_free = |(_, there): &(usize, &AtomicU32)| there.load(Ordering::Relaxed) == 0;
        let there = taken.iter().enumerate().filter(is_free).find(|(there, _)| system::go_to(*there));
        let there = there.map_or(here, |(_, there)| there);
        there.fetch_add(1, Ordering::Relaxed);
        here.fetch_sub(1, Ordering::Relaxed);
        Seat(Some(there))
    }

    /// Lets the threads that were woken on this processor run, so that they can move elsewhere.
    pub fn yield_once(&self) {
        if self.0.is_some() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(taken) = self.0 {
            taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The processor that the calling thread runs on.
    pub fn processor() -> Option<usize> {
        Some(sched_getcpu())
    }

    /// Moves the calling thread to a processor, without binding it there; false if it may not run there.
    pub fn go_to(processor: usize) -> bool {
        let Ok(all) = sched_getaffinity(None) else { return false };
        if !all.is_set(processor) {
            return false;
        }
        let mut one = CpuSet::new();
        one.set(processor);
        sched_setaffinity(None, &one).and_then(|()| sched_setaffinity(None, &all)).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub fn processor() -> Option<usize> {
        None
    }

    pub fn go_to(_: usize) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use rustix::thread::CpuSet;

    use super::*;

    #[test]
    fn threads_sit_apart_give_their_seats_back_and_may_go_anywhere_afterwards() {
        static OURS: Occupancy = [const { AtomicU32::new(0) }; PROCESSORS];
        let allowed = || rustix::thread::sched_getaffinity(None).unwrap();
        let before = allowed();
        if (PROCESSORS..CpuSet::MAX_CPU).any(|processor| before.is_set(processor)) {
            return; // Some processors have no seats.
        }
        let seats = || OURS.iter().map(|taken| taken.load(Ordering::Relaxed)).filter(|seats| *seats > 0);
        let together = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let seat = Seat::among(&OURS);
                    seat.yield_once();
                    together.wait();
                    assert_eq!(seats().sum::<u32>(), 3);
                    assert!(seats().count() > 1 || before.count() == 1, "all sit on one processor");
                    assert!(allowed() == before, "it is bound to a processor");
                    together.wait();
                });
            }
        });
        assert_eq!(seats().count(), 0);
    }

    #[test]
    fn nobody_goes_where_threads_may_not_run() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        for processor in (0..PROCESSORS).filter(|processor| !allowed.is_set(*processor)) {
            assert!(!system::go_to(processor));
        }
        assert!(system::processor().is_some_and(|here| allowed.is_set(here) && system::go_to(here)));
    }
}
