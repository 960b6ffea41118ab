//! Group commit: one thread commits the batches of all that wait.
//!
//! A flush takes milliseconds, and meanwhile the next batches pile up. The first waiting thread becomes the leader,
//! takes all batches, and pays for one flush; the others sleep until their own result is there. A group is limited in
//! size, so that a batch the store refuses as too large is in a group of its own, and fails no other.

use std::collections::HashMap;
use std::mem;

use parking_lot::{Condvar, Mutex};

use super::WriteBatch;
use crate::error::{Error, Result};

/// Size limit of a group of several batches, in bytes. A larger one takes much longer to flush than it saves.
const GROUP_BYTES: usize = if cfg!(test) { 1 << 10 } else { 16 << 20 };

/// Batches that wait, and results to be fetched.
#[derive(Default)]
pub(super) struct CommitQueue {
    state: Mutex<State>,
    results_ready: Condvar,
}

/// Number of a batch in the queue.
type Ticket = u64;

#[derive(Default)]
struct State {
    next: Ticket,
    waiting: Vec<(Ticket, WriteBatch)>,
    results: HashMap<Ticket, Result<()>>,
    led: bool,
}

impl CommitQueue {
    /// Queues `batch` and returns its own result once this thread or another one has passed a group with it to
    /// `apply`. `apply` gives one result per batch, in order.
    pub(super) fn submit(
        &self,
        batch: WriteBatch,
        apply: impl Fn(&[WriteBatch]) -> Vec<Result<()>>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let ticket = state.enqueue(batch);
        loop {
            if let Some(result) = state.results.remove(&ticket) {
                return result;
            }
            if state.led {
                self.results_ready.wait(&mut state);
                continue;
            }
            // The group may not include its own batch, which then waits for a later one.
            state.led = true;
            let (tickets, group) = state.take_group();
            drop(state);
            let mut leader = Leader { queue: self, tickets, results: Vec::new() };
            leader.results = apply(&group);
            drop(leader);
            state = self.state.lock();
        }
    }
}

impl State {
    fn enqueue(&mut self, batch: WriteBatch) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.push((ticket, batch));
        ticket
    }

    /// The batches that have waited longest: one of any size, or as many as fit into a group.
    fn take_group(&mut self) -> (Vec<Ticket>, Vec<WriteBatch>) {
        let mut bytes = 0;
        let fits = |(_, batch): &&(Ticket, WriteBatch)| {
            bytes += batch.bytes();
            bytes <= GROUP_BYTES
        };
        let count = self.waiting.iter().take_while(fits).count().max(1);
        self.waiting.drain(..count.min(self.waiting.len())).unzip()
    }
}

/// The leader of a group. Hands out the results when dropped, so that nobody sleeps forever if `apply` panics.
struct Leader<'q> {
    queue: &'q CommitQueue,
    tickets: Vec<Ticket>,
    results: Vec<Result<()>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let results =
            mem::take(&mut self.results).into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        for (ticket, result) in mem::take(&mut self.tickets).into_iter().zip(results) {
            state.results.insert(ticket, result.unwrap_or_else(|| Err(interrupted())));
        }
        state.led = false;
        self.queue.results_ready.notify_all();
    }
}

fn interrupted() -> Error {
    Error::internal("the commit was interrupted").hint("read the rows again to see what was written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::KeyspaceId;
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread;

    /// A batch that can be told apart from others.
    fn batch(number: u32) -> WriteBatch {
        let mut batch = WriteBatch::default();
        batch.clear(KeyspaceId(number));
        batch
    }

    #[test]
    fn what_queues_up_during_a_flush_shares_the_next_and_each_gets_its_own_result() {
        let queue = CommitQueue::default();
        let (started, release) = (Barrier::new(2), Barrier::new(2));
        let (groups, seen) = channel();
        let fail_odd = |group: &[WriteBatch]| -> Vec<Result<()>> {
            groups.send(group.len()).unwrap();
            let odd = |b: &WriteBatch| (0..4).any(|n| *b == batch(2 * n + 1));
            group.iter().map(|b| if odd(b) { Err(Error::invalid("odd")) } else { Ok(()) }).collect()
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                queue.submit(batch(0), |group| {
                    started.wait();
                    release.wait();
                    fail_odd(group)
                })
            });
            started.wait();
            let rest: Vec<_> = (1..8)
                .map(|n| {
                    let (queue, fail_odd) = (&queue, fail_odd);
                    scope.spawn(move || queue.submit(batch(n), fail_odd))
                })
                .collect();
            while queue.state.lock().waiting.len() < 7 {
                thread::yield_now();
            }
            release.wait();
            for (n, thread) in (1..8).zip(rest) {
                assert_eq!(thread.join().unwrap().is_err(), n % 2 == 1, "batch {n}");
            }
        });
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [1, 7]);
    }

    #[test]
    fn a_group_ends_where_it_gets_large_and_nobody_is_left_behind() {
        let queue = CommitQueue::default();
        let (started, release) = (Barrier::new(2), Barrier::new(2));
        let (groups, seen) = channel();
        let sized = |number: u32, bytes| {
            let mut batch = batch(number);
            batch.put(KeyspaceId(1), "key", vec![0; bytes]);
            batch
        };
        // A batch that is refused for its size is refused alone.
        let apply = |group: &[WriteBatch]| -> Vec<Result<()>> {
            groups.send(group.len()).unwrap();
            match group.iter().map(WriteBatch::bytes).sum::<usize>() > 5000 {
                true => group.iter().map(|_| Err(Error::invalid("too large"))).collect(),
                false => group.iter().map(|_| Ok(())).collect(),
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                queue.submit(batch(0), |group| {
                    started.wait();
                    release.wait();
                    group.iter().map(|_| Ok(())).collect()
                })
            });
            started.wait();
            let rest: Vec<_> = [400, 400, 400, 9000, 400]
                .into_iter()
                .enumerate()
                .map(|(n, bytes)| {
                    let (queue, apply, batch) = (&queue, &apply, sized(n as u32 + 2, bytes));
                    let thread = scope.spawn(move || queue.submit(batch, apply));
                    while queue.state.lock().waiting.len() <= n {
                        thread::yield_now();
                    }
                    (bytes, thread)
                })
                .collect();
            release.wait();
            for (bytes, thread) in rest {
                assert_eq!(thread.join().unwrap().is_err(), bytes == 9000, "{bytes} bytes");
            }
        });
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [2, 1, 1, 1]);
    }

    #[test]
    fn a_panic_of_the_leader_wakes_the_others() {
        let queue = CommitQueue::default();
        let started = Barrier::new(2);
        thread::scope(|scope| {
            let leader = scope.spawn(|| {
                queue.submit(batch(0), |_| {
                    started.wait();
                    while queue.state.lock().waiting.is_empty() {
                        thread::yield_now();
                    }
                    panic!("on purpose");
                })
            });
            started.wait();
            queue.submit(batch(1), |group| group.iter().map(|_| Ok(())).collect()).unwrap();
            assert!(leader.join().is_err());
        });
    }
}
