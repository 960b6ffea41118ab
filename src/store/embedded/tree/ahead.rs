//! Memory asked for before it is needed.
//!
//! A line of memory that is in none of the processor's caches takes some 200 ns to come. Whoever asks for several
//! and goes on with something else waits for the last of them only.

/// What comes at once, in bytes.
const LINE_BYTES: usize = 64;

/// Memory that is asked for little by little. A processor waits for some ten lines at a time and no more, so whoever
/// asks for a page at once waits for most of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead<'m> {
    rest: &'m [u8],
    step_bytes: usize,
}

impl<'m> Ahead<'m> {
    /// All of `bytes`, in so many steps.
    pub(super) fn new(bytes: &'m [u8], steps: usize) -> Ahead<'m> {
        Ahead { rest: bytes, step_bytes: bytes.len().div_ceil(steps.max(1)).next_multiple_of(LINE_BYTES) }
    }

    /// Goes one step.
    #[inline]
    pub(super) fn ask(&mut self) {
        if !self.rest.is_empty() {
            let (now, rest) = self.rest.split_at(self.rest.len().min(self.step_bytes));
            ask(now);
            self.rest = rest;
        }
    }
}

/// Asks for the lines of `bytes`, without waiting for them.
#[inline]
pub(super) fn ask(bytes: &[u8]) {
    let begun = bytes.as_ptr().addr() % LINE_BYTES;
    #[cfg(target_arch = "x86_64")]
    for at in (0..begun + bytes.len()).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = bytes.as_ptr().wrapping_sub(begun).wrapping_add(at);
        // SAFETY: it needs SSE, which every processor of this kind has, and reads nothing that the program could see,
        // wherever it points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = begun;
}
