//! Whose turn it is to commit, where commits side by side would go on undoing one of them.
//!
//! Whoever loses a race begins anew, and a long piece of work among many short ones might lose forever. So
//! after a few defeats it takes a turn: others wait with their commits until it is through. A turn is a
//! courtesy, no lock: nobody waits longer than [`PATIENCE`], and nothing is wrong if somebody does not wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long others wait for a turn to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The turn, which one or nobody has.
#[derive(Default)]
pub struct Turns {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Somebody's turn, until dropped.
pub struct Turn(Arc<Turns>);

impl Turns {
    /// Waits, but not forever, until it is nobody's turn.
    pub fn wait(&self) {
        drop(self.free());
    }

    /// Waits for the turn; takes it even if the one before it goes on forever.
    pub fn take(self: &Arc<Self>) -> Turn {
        *self.free() = true;
        Turn(Arc::clone(self))
    }

    fn free(&self) -> MutexGuard<'_, bool> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.free.wait_timeout_while(taken, PATIENCE, |taken| *taken);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn others_wait_until_the_turn_ends() {
        let turns = Arc::new(Turns::default());
        turns.wait();
        let turn = turns.take();
        let (sender, order) = channel();
        thread::scope(|scope| {
            let (turns, other) = (&turns, sender.clone());
            scope.spawn(move || {
                turns.wait();
                other.send("the other").unwrap();
            });
            thread::sleep(Duration::from_millis(50));
            sender.send("the turn").unwrap();
            drop(turn);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["the turn", "the other"]);
    }
}
