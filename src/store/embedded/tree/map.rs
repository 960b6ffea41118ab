//! The data file in mapped memory, page by page.

use std::fs::File;
use std::io::{self, Read};
use std::slice;

use memmap2::{MmapOptions, MmapRaw};

use super::ahead::{Ahead, ask};
use super::meta::{META_BYTES, MetaHead};
use super::page::{HEADER_BYTES, Page, pages_of_long};

/// Bytes of a page to prefetch before it is read: its header, and the offsets of some fifty nodes.
const ASKED_BYTES: usize = 128;

/// The file, and addresses for its growth, mapped a second time because LMDB does not expose its own map.
pub(super) struct Map {
    memory: MmapRaw,
    page_bytes: usize,
}

/// The pages as of one transaction.
///
/// Whoever makes one must, for as long as it lives, hold a read transaction of that moment, or the write transaction
/// that follows it: LMDB reuses no page that an open transaction may read, nor one of the last commit.
#[derive(Clone, Copy)]
pub(super) struct Pages<'m> {
    map: &'m Map,
    /// Number of pages that are in the file and allocated (in use or free).
    present: u64,
}

impl Map {
    /// Reserves `bytes` of addresses for `file`.
    pub(super) fn new(mut file: &File, bytes: usize) -> io::Result<Map> {
        let mut meta = [0; META_BYTES];
        file.read_exact(&mut meta)?;
        let meta = MetaHead::parse(&meta).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        // As LMDB does, map at least the whole file.
        let bytes = bytes.max(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX));
        let memory = MmapOptions::new().len(bytes).map_raw_read_only(file)?;
        Ok(Map { memory, page_bytes: meta.page_bytes as usize })
    }

    /// The pages of a file that is `bytes` long and whose last allocated page is `last`.
    pub(super) fn pages(&self, bytes: u64, last: u64) -> Pages<'_> {
        let present = bytes.min(self.memory.len() as u64) / self.page_bytes as u64;
        self.pages_of(present.min(last.saturating_add(1)))
    }

    /// The first `present` pages, as [`Pages::present`] gave them earlier.
    pub(super) fn pages_of(&self, present: u64) -> Pages<'_> {
        Pages { map: self, present }
    }
}

impl<'m> Pages<'m> {
    /// Number of pages.
    pub(super) fn present(self) -> u64 {
        self.present
    }

    /// A branch or leaf page; `None` if page `number` is neither.
    #[inline]
    pub(super) fn page(self, number: u64) -> Option<Page<'m>> {
        Page::of(self.bytes(number, 1)?, number)
    }

    /// The meta page that transaction `txn` wrote, one of the first two pages.
    pub(super) fn meta(self, txn: u64) -> Option<&'m [u8]> {
        self.bytes(txn % 2, 1)
    }

    /// The long value that begins on page `number`; `pages_max`: how many pages of long values its tree has.
    pub(super) fn long(self, number: u64, bytes: usize, pages_max: u64) -> Option<&'m [u8]> {
        let pages = self.count_of_long(number).filter(|pages| *pages <= pages_max)?;
        self.bytes(number, pages)?.get(HEADER_BYTES..HEADER_BYTES.checked_add(bytes)?)
    }

    /// Number of pages of the long value that begins on page `number`.
    pub(super) fn count_of_long(self, number: u64) -> Option<u64> {
        pages_of_long(self.bytes(number, 1)?, number)
    }

    /// Prefetches page `number` in `steps` steps, if it exists.
    pub(super) fn ahead(self, number: u64, steps: usize) -> Ahead<'m> {
        Ahead::new(self.bytes(number, 1).unwrap_or_default(), steps)
    }

    /// Prefetches the start of page `number`, with the first offsets, if it exists.
    #[inline]
    pub(super) fn ask_header(self, number: u64) {
        ask(self.bytes(number, 1).and_then(|bytes| bytes.get(..ASKED_BYTES)).unwrap_or_default());
    }

    #[inline]
    fn bytes(self, number: u64, pages: u64) -> Option<&'m [u8]> {
        if number.checked_add(pages)? > self.present {
            return None;
        }
        let page_bytes = self.map.page_bytes;
        let (at, len) = (number as usize * page_bytes, pages as usize * page_bytes);
        // SAFETY: the file has all of `present` pages and is never truncated, so `at + len` is mapped and backed by
        // the file; bytes need no alignment. LMDB writes to the file, but to no page that an open transaction may
        // read, nor to one of the last commit, and a transaction of this moment or the writer that follows it is open
        // (see `Pages`). If the page number comes from a damaged page, the bytes may change while they are read, as
        // on any damaged disk: all that is read of them is checked.
        Some(unsafe { slice::from_raw_parts(self.map.memory.as_ptr().add(at), len) })
    }
}
