//! The data file in memory, page by page.

use std::fs::File;
use std::io::{self, Read};
use std::slice;

use memmap2::{MmapOptions, MmapRaw};

use super::ahead::{Ahead, ask};
use super::meta::{META_BYTES, MetaHead};
use super::page::{HEADER_BYTES, Page, pages_of_long};

/// What is asked for of a page before it is looked at: its header, and the offsets of some fifty nodes.
const ASKED_BYTES: usize = 128;

/// The file, and room for it to grow, mapped a second time: LMDB keeps its own map to itself.
pub(super) struct Map {
    memory: MmapRaw,
    page_bytes: usize,
}

/// The pages of one moment.
///
/// Whoever makes one holds a read transaction of that moment for as long as it lives, or the write transaction that
/// follows it: LMDB writes no page anew that somebody may read, nor one that the last commit uses.
#[derive(Clone, Copy)]
pub(super) struct Pages<'m> {
    map: &'m Map,
    /// So many are in the file, and in use or free.
    present: u64,
}

impl Map {
    /// Reserves `bytes` of addresses for `file`.
    pub(super) fn new(mut file: &File, bytes: usize) -> io::Result<Map> {
        let mut meta = [0; META_BYTES];
        file.read_exact(&mut meta)?;
        let meta = MetaHead::parse(&meta).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        // LMDB, too, makes room for what is there.
        let bytes = bytes.max(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX));
        let memory = MmapOptions::new().len(bytes).map_raw_read_only(file)?;
        Ok(Map { memory, page_bytes: meta.page_bytes as usize })
    }

    /// Its pages while the file is `bytes` long, and no page after `last` is in use.
    pub(super) fn pages(&self, bytes: u64, last: u64) -> Pages<'_> {
        let present = bytes.min(self.memory.len() as u64) / self.page_bytes as u64;
        self.pages_of(present.min(last.saturating_add(1)))
    }

    /// Its first pages, as many as another call said there are.
    pub(super) fn pages_of(&self, present: u64) -> Pages<'_> {
        Pages { map: self, present }
    }
}

impl<'m> Pages<'m> {
    /// Number of pages.
    pub(super) fn present(self) -> u64 {
        self.present
    }

    /// A branch or a leaf; `None`: there is none of this number.
    #[inline]
    pub(super) fn page(self, number: u64) -> Option<Page<'m>> {
        Page::of(self.bytes(number, 1)?, number)
    }

    /// What the meta page of a transaction says, of the last two.
    pub(super) fn meta(self, txn: u64) -> Option<&'m [u8]> {
        self.bytes(txn % 2, 1)
    }

    /// The long value that begins on page `number`; its tree has so many pages of long values.
    pub(super) fn long(self, number: u64, bytes: usize, pages_max: u64) -> Option<&'m [u8]> {
        let pages = self.count_of_long(number).filter(|pages| *pages <= pages_max)?;
        self.bytes(number, pages)?.get(HEADER_BYTES..HEADER_BYTES.checked_add(bytes)?)
    }

    /// How many pages the long value has that begins on page `number`.
    pub(super) fn count_of_long(self, number: u64) -> Option<u64> {
        pages_of_long(self.bytes(number, 1)?, number)
    }

    /// A page to be asked for in so many steps, if there is one of this number.
    pub(super) fn ahead(self, number: u64, steps: usize) -> Ahead<'m> {
        Ahead::new(self.bytes(number, 1).unwrap_or_default(), steps)
    }

    /// Asks for what a page begins with, the first offsets included, if there is one of this number.
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
        // SAFETY: the file has all of `present` pages and is never cut, so `at + len` is inside of what is mapped and
        // there; bytes have no other demands. LMDB writes to the file, but to no page that an open transaction may
        // read, nor to one of the last commit, and a transaction of this moment or the writer that follows it is open
        // (see `Pages`). Were a page's number read from a damaged one, the bytes may change while they are looked at,
        // as those of any damaged disk: all that is read of them is checked.
        Some(unsafe { slice::from_raw_parts(self.map.memory.as_ptr().add(at), len) })
    }
}
