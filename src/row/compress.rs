//! Compression of packed rows.
//!
//! [`seal`] compresses a row when that pays, [`open`] undoes it.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the row's head with bit 7 set |
//! | 4 | length of the rest of the row before compression, little-endian |
//! | the rest | the rest of the row, one LZ4 block |

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::packed::SEALED;
use crate::error::{Error, Result};

/// Longest row that is compressed, and limit of the inflated length that a sealed one may claim: 64 MiB.
const INFLATED_BYTES_MAX: usize = 64 << 20;

/// Shorter rows are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 48;

/// Largest factor by which an LZ4 block inflates: each byte of a match length adds at most 255.
const LZ4_RATIO_MAX: usize = 255;

/// How a family's rows are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// LZ4, each row alone, where it makes the row smaller.
    Lz4,
}

impl Compression {
    /// The compression of that name, as in `WITH (compression = 'lz4')`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Compression::None, Compression::Lz4].into_iter().find(|c| name.eq_ignore_ascii_case(c.name()))
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
        }
    }
}

/// The bytes to store for a row made by [`pack`](super::pack): compressed if requested, and if that makes it smaller.
pub fn seal(packed: Vec<u8>, compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => packed,
        Compression::Lz4 => sealed_lz4(&packed).unwrap_or(packed),
    }
}

fn sealed_lz4(packed: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = packed.split_first()?;
    if !(COMPRESSED_BYTES_MIN..=INFLATED_BYTES_MAX).contains(&body.len()) {
        return None;
    }
    let start = 1 + 4;
    let mut out = vec![0; start + lz4_flex::block::get_maximum_output_size(body.len())];
    let written = lz4_flex::block::compress_into(body, &mut out[start..]).ok()?;
    out.truncate(start + written);
    if out.len() >= packed.len() {
        return None;
    }
    out[0] = head | SEALED;
    out[1..start].copy_from_slice(&(body.len() as u32).to_le_bytes());
    Some(out)
}

/// The packed row in `stored`; borrowed when it was not compressed.
///
/// Errors: `Corrupt` when the block is damaged or claims more than 64 MiB.
#[inline(always)]
pub fn open(stored: &[u8]) -> Result<Cow<'_, [u8]>> {
    match stored.first() {
        Some(head) if head & SEALED == 0 => Ok(Cow::Borrowed(stored)),
        Some(head) => inflated(*head, &stored[1..]).map(Cow::Owned),
        None => Err(corrupt("it is empty")),
    }
}

#[inline(never)]
fn inflated(head: u8, rest: &[u8]) -> Result<Vec<u8>> {
    let (len, block) = rest.split_first_chunk::<4>().ok_or_else(|| corrupt("it ends too early"))?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > INFLATED_BYTES_MAX || len > (block.len() + 1) * LZ4_RATIO_MAX {
        return Err(corrupt(format!("{} bytes claim to hold {len}", block.len())));
    }
    let mut row = vec![0; 1 + len];
    row[0] = head & !SEALED;
    match lz4_flex::block::decompress_into(block, &mut row[1..]) {
        Ok(inflated) if inflated == len => Ok(row),
        Ok(inflated) => Err(corrupt(format!("it holds {inflated} bytes and not {len}"))),
        Err(e) => Err(corrupt("its block does not decompress").caused_by(e)),
    }
}

#[cold]
fn corrupt(why: impl Into<String>) -> Error {
    Error::corrupt("a compressed row is damaged").why(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::key::ColumnId;
    use crate::row::{PackedRow, pack};
    use crate::value::{ColumnType, ValueRef};
    use proptest::prelude::*;

    fn row(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        pack([(ColumnId(1), ColumnType::Varchar, ValueRef::Text(text))], &mut out).unwrap();
        out
    }

    #[test]
    fn a_sealed_row_is_opened_again() {
        let text = "ab".repeat(100);
        let packed = row(&text);
        let sealed = seal(packed.clone(), Compression::Lz4);
        assert!(sealed.len() < 32, "{} bytes", sealed.len());
        assert_eq!(sealed[0], packed[0] | SEALED);
        assert_eq!(sealed[1..5], 203u32.to_le_bytes());
        assert_eq!(*open(&sealed).unwrap(), packed[..]);
        assert_eq!(PackedRow::new(&sealed).unwrap_err().kind(), Kind::Corrupt);
    }

    #[test]
    fn what_does_not_shrink_stays() {
        let short = row("ab");
        assert_eq!(seal(short.clone(), Compression::Lz4), short);
        assert!(matches!(open(&short).unwrap(), Cow::Borrowed(_)));
        let long = row(&"ab".repeat(100));
        assert_eq!(seal(long.clone(), Compression::None), long);
    }

    #[test]
    fn a_bomb_is_refused_before_memory_is_taken() {
        for claimed in [u32::MAX, 60 << 20] {
            let bomb = [&[SEALED | 1][..], &claimed.to_le_bytes(), &[0; 16]].concat();
            let error = open(&bomb).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert_eq!(error.reason(), Some(&*format!("16 bytes claim to hold {claimed}")));
        }
    }

    #[test]
    fn names_round_trip() {
        assert_eq!(Compression::from_name("LZ4"), Some(Compression::Lz4));
        assert_eq!(Compression::from_name("zstd"), None);
        assert_eq!(serde_json::to_string(&Compression::Lz4).unwrap(), "\"lz4\"");
    }

    proptest! {
        #[test]
        fn rows_come_back(text in "[ab]{0,300}|\\PC{0,80}") {
            let packed = row(&text);
            let sealed = seal(packed.clone(), Compression::Lz4);
            prop_assert!(sealed.len() <= packed.len());
            prop_assert_eq!(&*open(&sealed).unwrap(), &packed[..]);
        }

        #[test]
        fn noise_and_flipped_bytes_never_panic(
            noise in prop::collection::vec(any::<u8>(), 0..60),
            at: prop::sample::Index,
            with in 1u8..,
        ) {
            let _ = open(&noise);
            let mut sealed = seal(row(&"abc".repeat(60)), Compression::Lz4);
            let at = at.index(sealed.len());
            sealed[at] ^= with;
            if let Ok(opened) = open(&sealed) {
                let _ = PackedRow::new(&opened);
            }
        }
    }
}
