//! Prefetch: asks the processor for memory before it is needed.
//!
//! A cache line that is in none of the processor's caches takes some 200 ns to load. Several prefetches overlap, so
//! the program waits only for the last of them.

/// Size of a cache line, in bytes.
const LINE_BYTES: usize = 64;

/// Prefetches a region step by step. A processor has only about ten loads in flight, so prefetching a whole page at
/// once would stall for most of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead<'m> {
    rest: &'m [u8],
    step_bytes: usize,
}

impl<'m> Ahead<'m> {
    /// All of `bytes`, in `steps` steps.
    pub(super) fn new(bytes: &'m [u8], steps: usize) -> Ahead<'m> {
        Ahead { rest: bytes, step_bytes: bytes.len().div_ceil(steps.max(1)).next_multiple_of(LINE_BYTES) }
    }

    /// Prefetches the next step.
    #[inline]
    pub(super) fn ask(&mut self) {
        if !self.rest.is_empty() {
            let (now, rest) = self.rest.split_at(self.rest.len().min(self.step_bytes));
            ask(now);
            self.rest = rest;
        }
    }
}

/// Prefetches the cache lines of `bytes`, without waiting for them.
#[inline]
pub(super) fn ask(bytes: &[u8]) {
    let begun = bytes.as_ptr().addr() % LINE_BYTES;
    #[cfg(target_arch = "x86_64")]
    for at in (0..begun + bytes.len()).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = bytes.as_ptr().wrapping_sub(begun).wrapping_add(at);
        // SAFETY: the instruction needs SSE, which every x86-64 processor has, and has no visible effect, wherever
        // the address points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = begun;
}
