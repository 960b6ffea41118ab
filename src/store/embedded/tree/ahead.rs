//! Memory asked for before it is needed.
//!
//! A line of memory that is in none of the processor's caches takes some 200 ns to come. Whoever asks for several
//! and goes on with something else waits for the last of them only.

/// What comes at once, in bytes.
const LINE_BYTES: usize = 64;

/// Asks for the lines of `bytes`, without waiting for them.
#[inline]
pub(super) fn ask(bytes: &[u8]) {
    let begun = LINE_BYTES - bytes.as_ptr().addr() % LINE_BYTES;
    let (first, rest) = bytes.split_at(begun.min(bytes.len()));
    #[cfg(target_arch = "x86_64")]
    for line in std::iter::once(first).filter(|first| !first.is_empty()).chain(rest.chunks(LINE_BYTES)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it needs SSE, which every processor of this kind has, and reads nothing that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, rest);
}
